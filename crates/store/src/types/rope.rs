//! A long string in chunks: nothing that is there moves when it grows or is written into. Knows nothing of keys.

use bytes::{Buf, Bytes, BytesMut};
use std::ops::{Deref, Range};
use tenon_ds::looks::Looks;
use tenon_ds::progress;

/// Bytes of memory a chunk: a size that the allocator has blocks of. Miri takes minutes for each MiB.
const BLOCK_LEN: usize = if cfg!(miri) { 128 * 1024 } else { 512 * 1024 };

/// Bytes of a block that are left unused before the chunk.
///
/// Blocks begin where pages do, and so does the kernel's buffer for an answer: without this, each byte of a value would be
/// sent to a place a few bytes further on in its page than it comes from, namely by the length of what stands before the
/// value. Processors copy that several times slower (`rep movsb` on AMD's Zen 3 takes five times as long where the target is
/// less than 48 bytes ahead of the source, modulo 4096). It is more than what stands before a value, and an odd number of
/// cache lines, so that the chunks of a value are not in the same case.
pub const CHUNK_FRONT: usize = 9 * 64;

/// Bytes a chunk: every chunk but the last has exactly as many.
pub const CHUNK_LEN: usize = BLOCK_LEN - CHUNK_FRONT;

/// What every full chunk of zeros refers to until something is written into it: a bitmap with one bit far out costs
/// next to nothing.
static ZEROS: [u8; CHUNK_LEN] = [0; CHUNK_LEN];

/// A string of chunks.
///
/// Chunks are reference-counted, so that a reader leaves the lock with references; only a last one that is still growing
/// is copied for a reader.
#[derive(Debug, Default)]
pub struct Rope {
    /// All of `CHUNK_LEN` bytes.
    full: Vec<Bytes>,
    /// Shorter than `CHUNK_LEN`.
    last: Last,
}

/// The last chunk of a string, with or without bytes.
#[derive(Debug)]
enum Last {
    /// As it came with the string; readers refer to it.
    Whole(Bytes),
    /// Something has been added to it or written into it.
    Growing(BytesMut),
}

impl Last {
    /// The chunk, to write into: a copy if a reader refers to it.
    fn to_mut(&mut self) -> &mut BytesMut {
        if let Last::Whole(bytes) = self {
            *self = Last::Growing(writable(std::mem::take(bytes)));
        }
        match self {
            Last::Growing(own) => own,
            Last::Whole(_) => unreachable!("it has just been replaced"),
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Last::Whole(bytes) => bytes,
            Last::Growing(own) => own.freeze(),
        }
    }

    /// Bytes that it has room for; of a whole one, whose room is not known, the bytes that are there.
    fn capacity(&self) -> usize {
        match self {
            Last::Whole(bytes) => bytes.len(),
            Last::Growing(own) => own.capacity(),
        }
    }

    /// A part of it, by reference where that can be.
    fn slice(&self, range: Range<usize>) -> Bytes {
        match self {
            Last::Whole(bytes) => bytes.slice(range),
            Last::Growing(own) => Bytes::copy_from_slice(&own[range]),
        }
    }
}

impl Default for Last {
    fn default() -> Last {
        Last::Whole(Bytes::new())
    }
}

impl Deref for Last {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Last::Whole(bytes) => bytes,
            Last::Growing(own) => own,
        }
    }
}

/// The same bytes to write into: those themselves, or a copy if somebody else refers to them.
fn writable(bytes: Bytes) -> BytesMut {
    bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]))
}

impl Rope {
    /// An empty rope.
    pub fn new() -> Rope {
        Rope::default()
    }

    /// Bytes in the string.
    pub fn len(&self) -> usize {
        self.full.len() * CHUNK_LEN + self.last.len()
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory beside the rope itself.
    pub fn memory(&self, looks: Looks) -> usize {
        let own = looks.sum(self.full.len(), |number, _| usize::from(self.full[number].as_ptr() != ZEROS.as_ptr()));
        let front = if self.last.capacity() > 0 { CHUNK_FRONT } else { 0 };
        own * BLOCK_LEN + front + self.last.capacity() + self.full.capacity() * size_of::<Bytes>()
    }

    /// Adds bytes at the end.
    pub fn append(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(CHUNK_LEN - self.last.len()));
            progress::count_bytes(now.len());
            self.grow_last(now);
            bytes = rest;
        }
    }

    /// Adds at the end the bytes that stand in `block` from [`CHUNK_FRONT`] on; they are not copied where they can be a chunk
    /// as they are.
    pub fn append_block(&mut self, block: Vec<u8>) {
        let mut chunk = Bytes::from(block);
        chunk.advance(CHUNK_FRONT.min(chunk.len()));
        if self.last.is_empty() && chunk.len() <= CHUNK_LEN {
            let Rope { full, last } = Rope::from(chunk);
            self.full.extend(full);
            self.last = last;
        } else {
            self.append(&chunk);
        }
    }

    /// Adds bytes to the last chunk, which they fit.
    fn grow_last(&mut self, bytes: &[u8]) {
        let len = self.last.len();
        // Doubling up to the chunk keeps short tails small, and never allocates more than a chunk.
        let doubled = (len + bytes.len()).max(len * 2).min(CHUNK_LEN);
        let last = self.last_with_room(len + bytes.len(), doubled);
        last.extend_from_slice(bytes);
        if last.len() == CHUNK_LEN {
            self.full.push(without_zeros(std::mem::take(&mut self.last).into_bytes()));
        }
    }

    /// The last chunk, to add to, of `wanted` bytes if it has no room for `needed`.
    fn last_with_room(&mut self, needed: usize, wanted: usize) -> &mut BytesMut {
        let last = self.last.to_mut();
        if last.capacity() < needed {
            // `BytesMut::reserve` may double past the chunk.
            let mut grown = BytesMut::with_capacity(CHUNK_FRONT + wanted);
            grown.resize(CHUNK_FRONT, 0);
            grown.advance(CHUNK_FRONT);
            grown.extend_from_slice(last);
            *last = grown;
        }
        last
    }

    /// Adds zero bytes at the end, behind which there will be so many others; whole chunks of them take no memory of their
    /// own.
    fn append_zeros(&mut self, mut count: usize, others: usize) {
        while count > 0 {
            let now = count.min(CHUNK_LEN - self.last.len());
            if now == CHUNK_LEN {
                self.full.push(Bytes::from_static(&ZEROS));
            } else {
                // The others would have it double.
                let needed = (self.last.len() + now + others).min(CHUNK_LEN);
                self.last_with_room(needed, needed);
                self.append(&ZEROS[..now]);
            }
            count -= now;
        }
    }

    /// Writes `bytes` over what is at `offset`, growing with zeros as far as needed.
    pub fn write_at(&mut self, offset: usize, bytes: &[u8]) {
        self.append_zeros(offset.saturating_sub(self.len()), bytes.len());
        let (over, append) = bytes.split_at(bytes.len().min(self.len() - offset));
        let mut at = offset;
        let mut rest = over;
        while !rest.is_empty() {
            let within = at % CHUNK_LEN;
            let (now, later) = rest.split_at(rest.len().min(CHUNK_LEN - within));
            progress::count_bytes(now.len());
            match self.full.get_mut(at / CHUNK_LEN) {
                Some(chunk) => {
                    // A chunk that is being sent is copied, any other is written where it is.
                    let mut own = writable(std::mem::take(chunk));
                    own[within..within + now.len()].copy_from_slice(now);
                    *chunk = own.freeze();
                }
                None => self.last.to_mut()[within..within + now.len()].copy_from_slice(now),
            }
            at += now.len();
            rest = later;
        }
        self.append(append);
    }

    /// The pieces of the bytes `start..end`, by reference unless they are in a last chunk that is growing.
    ///
    /// # Panics
    /// When the range does not lie inside the string.
    pub fn range(&self, start: usize, end: usize) -> impl Iterator<Item = Bytes> + '_ {
        assert!(start <= end && end <= self.len(), "the range is inside the string");
        let first = start / CHUNK_LEN;
        let chunks = end.div_ceil(CHUNK_LEN).saturating_sub(first);
        (first..first + chunks).map(move |index| {
            let base = index * CHUNK_LEN;
            let from = start.max(base) - base;
            let to = end.min(base + CHUNK_LEN) - base;
            match self.full.get(index) {
                Some(chunk) => chunk.slice(from..to),
                None => self.last.slice(from..to),
            }
        })
    }

    /// The slices that make up the bytes of `range`, in order.
    ///
    /// # Panics
    /// When the range does not lie inside the string.
    pub fn slices_in(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let Range { start, end } = range;
        assert!(start <= end && end <= self.len(), "the range is inside the string");
        (start / CHUNK_LEN..end.div_ceil(CHUNK_LEN)).map(move |index| {
            let chunk = self.full.get(index).map_or(&self.last[..], |chunk| &chunk[..]);
            let base = index * CHUNK_LEN;
            counted(&chunk[start.max(base) - base..(end - base).min(CHUNK_LEN)])
        })
    }

    /// All of it in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        self.slices().for_each(|slice| bytes.extend_from_slice(slice));
        bytes
    }

    /// The slices that make up the string, in order.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.full.iter().map(|chunk| &chunk[..]).chain([&self.last[..]]).map(counted)
    }

    /// What lies in one piece at its beginning: all of it, or as much as a chunk has.
    pub fn first_chunk(&self) -> &[u8] {
        self.full.first().map_or(&self.last[..], |chunk| &chunk[..])
    }

    /// The same string once more: chunks are shared by reference until one of the two writes into them; a last one that
    /// is growing is copied.
    pub fn share(&self) -> Rope {
        Rope { full: self.full.clone(), last: Last::Whole(self.last.slice(0..self.last.len())) }
    }

    /// The only chunk, when there is no more than one; the rope is empty then.
    pub fn take_single(&mut self) -> Option<Bytes> {
        match (self.full.len(), self.last.is_empty()) {
            (0, _) => Some(std::mem::take(&mut self.last).into_bytes()),
            (1, true) => self.full.pop(),
            _ => None,
        }
    }
}

/// A full chunk, which takes no memory of its own if it is zeros: what had been a hole is one again when it comes from a file.
fn without_zeros(chunk: Bytes) -> Bytes {
    // Almost always the first byte tells.
    if chunk[..] == ZEROS { Bytes::from_static(&ZEROS) } else { chunk }
}

/// A slice that is gone through.
fn counted(slice: &[u8]) -> &[u8] {
    progress::count_bytes(slice.len());
    slice
}

impl From<&[u8]> for Rope {
    fn from(bytes: &[u8]) -> Rope {
        let mut rope = Rope::new();
        rope.append(bytes);
        rope
    }
}

impl From<Bytes> for Rope {
    /// Takes the bytes over without a copy when they fit a chunk.
    fn from(bytes: Bytes) -> Rope {
        let mut rope = Rope::new();
        if bytes.len() == CHUNK_LEN {
            rope.full.push(bytes);
            return rope;
        }
        if bytes.len() < CHUNK_LEN {
            rope.last = Last::Whole(bytes);
            return rope;
        }
        rope.append(&bytes);
        rope
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_before_what_is_written_take_no_more_than_they_are() {
        for (before, offset) in [(0, 100_000), (20_000, 100_000), (0, CHUNK_LEN + 50_000), (0, CHUNK_LEN - 1)] {
            let mut rope = Rope::from(&vec![b'a'; before][..]);
            rope.write_at(offset, b"xy");
            assert_eq!(rope.len(), offset + 2);
            let own = if offset > CHUNK_LEN { offset - CHUNK_LEN } else { offset };
            assert!(rope.last.capacity() <= own + 2 + 64, "{} bytes for {own}", rope.last.capacity());
            assert!(rope.to_vec()[before..offset].iter().all(|byte| *byte == 0));
        }
    }

    /// As when a string with a hole comes from a file.
    #[test]
    #[cfg_attr(miri, ignore = "a million steps of safe code")]
    fn zeros_that_are_added_are_a_hole_as_far_as_they_fill_chunks() {
        let mut rope = Rope::from(&vec![0; 5 * CHUNK_LEN + 7][..]);
        rope.append(b"x");
        assert!(rope.memory(Looks::ALL) < CHUNK_LEN, "{} bytes", rope.memory(Looks::ALL));
        rope.write_at(2 * CHUNK_LEN + 1, b"y");
        let bytes = rope.to_vec();
        assert_eq!((bytes.len(), bytes[2 * CHUNK_LEN + 1], bytes[5 * CHUNK_LEN + 7]), (5 * CHUNK_LEN + 8, b'y', b'x'));
        assert_eq!(bytes.iter().filter(|byte| **byte != 0).count(), 2);
        assert!(ZEROS.iter().all(|byte| *byte == 0), "nobody writes there");
    }

    #[test]
    #[cfg_attr(miri, ignore = "a million steps of safe code")]
    fn a_shared_rope_costs_no_chunk_and_changes_alone() {
        let bytes = vec![b'a'; 3 * CHUNK_LEN + 5];
        let mut first = Rope::from(&bytes[..]);
        let mut second = first.share();
        assert_eq!(second.to_vec(), bytes);
        let addresses = |rope: &Rope| rope.slices().map(<[u8]>::as_ptr).collect::<Vec<_>>();
        assert_eq!(addresses(&first)[..3], addresses(&second)[..3]);
        assert_ne!(addresses(&first)[3], addresses(&second)[3]);
        first.write_at(CHUNK_LEN + 1, b"x");
        first.append(b"y");
        second.write_at(3 * CHUNK_LEN, b"z");
        let differ = |rope: &Rope| {
            let now = rope.to_vec();
            (0..now.len()).filter(|&at| bytes.get(at) != Some(&now[at])).collect::<Vec<_>>()
        };
        assert_eq!(differ(&first), [CHUNK_LEN + 1, bytes.len()]);
        assert_eq!(differ(&second), [3 * CHUNK_LEN]);
        assert_eq!(addresses(&first)[2], addresses(&second)[2]);
        assert_ne!(addresses(&first)[1], addresses(&second)[1]);
    }

    #[test]
    fn behaves_like_a_vec() {
        let mut rope = Rope::new();
        let mut model: Vec<u8> = Vec::new();
        let mut random = 7u64;
        let mut held = Vec::new();
        for round in 0..if cfg!(miri) { 6 } else { 300 } {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let len = (random >> 33) as usize % (CHUNK_LEN * 2);
            let bytes = vec![round as u8; len];
            if random >> 62 == 0 {
                rope.append(&bytes);
                model.extend_from_slice(&bytes);
            } else {
                let offset = (random >> 20) as usize % (model.len() + 1000);
                model.resize(model.len().max(offset + len), 0);
                model[offset..offset + len].copy_from_slice(&bytes);
                rope.write_at(offset, &bytes);
            }
            if model.len() > 20 * CHUNK_LEN {
                rope = Rope::from(&model[..3 * CHUNK_LEN]);
                model.truncate(3 * CHUNK_LEN);
            }
            assert_eq!(rope.len(), model.len());
            let start = (random >> 7) as usize % (model.len() + 1);
            let end = start + (random >> 11) as usize % (model.len() - start + 1);
            let pieces: Vec<Bytes> = rope.range(start, end).collect();
            assert_eq!(pieces.concat(), &model[start..end]);
            assert_eq!(rope.slices_in(start..end).collect::<Vec<_>>().concat(), &model[start..end]);
            // What a reader took does not change under it.
            held.push((pieces, model[start..end].to_vec()));
            if held.len() > 3 {
                let (pieces, then) = held.remove(0);
                assert_eq!(pieces.concat(), then);
            }
        }
        assert_eq!(rope.to_vec(), model);
        assert_eq!(rope.slices().collect::<Vec<_>>().concat(), model);
    }

    #[test]
    fn chunks_are_taken_over_where_they_fit() {
        let mut rope = Rope::new();
        let mut model = Vec::new();
        // The third one does not begin where a chunk does.
        for (len, is_taken_over) in
            [(CHUNK_LEN, true), (100, true), (CHUNK_LEN, false), (CHUNK_LEN + 1, false), (0, false)]
        {
            let mut block = vec![0; CHUNK_FRONT];
            block.resize(CHUNK_FRONT + len, len as u8);
            let address = block[CHUNK_FRONT..].as_ptr();
            model.extend_from_slice(&block[CHUNK_FRONT..]);
            rope.append_block(block);
            assert_eq!(rope.slices().any(|slice| slice.as_ptr() == address), is_taken_over, "{len}");
        }
        assert_eq!(rope.to_vec(), model);
        rope.append(b"xy");
        rope.write_at(1, b"z");
        model.extend_from_slice(b"xy");
        model[1] = b'z';
        assert_eq!(rope.to_vec(), model);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a million steps of safe code")]
    fn chunks_of_zeros_cost_nothing_until_they_are_written_into() {
        let mut rope = Rope::from(&b"start"[..]);
        rope.write_at(9 * CHUNK_LEN + 3, b"end");
        assert!(rope.memory(Looks::ALL) < 3 * CHUNK_LEN, "{} bytes", rope.memory(Looks::ALL));
        rope.write_at(5 * CHUNK_LEN + 1, b"x");
        assert!((CHUNK_LEN..4 * CHUNK_LEN).contains(&rope.memory(Looks::ALL)), "{} bytes", rope.memory(Looks::ALL));
        let mut model = vec![0; 9 * CHUNK_LEN + 6];
        model[..5].copy_from_slice(b"start");
        model[5 * CHUNK_LEN + 1] = b'x';
        model[9 * CHUNK_LEN + 3..].copy_from_slice(b"end");
        assert_eq!(rope.to_vec(), model);
        assert!(ZEROS.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn takes_over_bytes_of_any_length() {
        for len in [0, 10, CHUNK_LEN - 1, CHUNK_LEN, CHUNK_LEN + 1] {
            let bytes = Bytes::from(vec![1; len]);
            let held = bytes.clone();
            let mut rope = Rope::from(bytes);
            rope.append(b"xy");
            rope.write_at(0, b"z");
            let mut expected = [&vec![1; len][..], b"xy"].concat();
            expected[0] = b'z';
            assert_eq!(rope.to_vec(), expected);
            assert_eq!(held, vec![1; len], "what a reader holds does not change");
        }
    }

    #[test]
    fn readers_refer_to_a_last_chunk_until_it_changes() {
        let mut block = vec![b'a'; CHUNK_FRONT + CHUNK_LEN];
        let mut rope = Rope::new();
        rope.append_block(block.clone());
        block.truncate(CHUNK_FRONT + 100);
        rope.append_block(block);
        let end = CHUNK_LEN + 100;
        let address = |rope: &Rope| rope.slices().nth(1).map(<[u8]>::as_ptr);
        let read = |rope: &Rope| rope.range(CHUNK_LEN, end).next().expect("it is not empty");
        let held = read(&rope);
        assert_eq!(Some(held.as_ptr()), address(&rope));
        assert_eq!(address(&rope.share()), address(&rope));
        rope.write_at(CHUNK_LEN, b"b");
        assert_eq!(held, vec![b'a'; 100], "what a reader holds does not change");
        assert_eq!(&read(&rope)[..2], b"ba");
        assert_ne!(Some(read(&rope).as_ptr()), address(&rope), "what may yet change is copied");
    }

    #[test]
    fn a_single_chunk_is_handed_over() {
        for len in [0, 10, CHUNK_LEN] {
            assert_eq!(Rope::from(&vec![1; len][..]).take_single().map(|b| b.len()), Some(len));
        }
        assert_eq!(Rope::from(&vec![1; CHUNK_LEN + 1][..]).take_single(), None);
    }
}
