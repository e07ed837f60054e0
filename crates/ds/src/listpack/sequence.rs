//! A listpack, to be changed: with room at both ends, so that neither end moves what lies behind it with each change.
//! Bounds nothing: whoever holds it splits it when it grows long.

use super::element;
use super::view::{End, HEADER, Listpack};
use crate::packed::Item;
use std::ops::Range;

/// Room that is made at an end beside what is asked for is as long as what is there, within these bytes.
const ROOM_MIN: usize = 16;
const ROOM_MAX: usize = 4 * 1024;
/// Memory up to which unused room does not matter, in bytes.
const SLACK_MAX: usize = 256;

/// A listpack, to be changed.
///
/// ```text
///            start
/// +----------+-------+---------+-----+---------+----------+
/// | room     | count | element | ... | element | room     |
/// +----------+-------+---------+-----+---------+----------+
///                                    the Vec's end         its capacity
/// ```
#[derive(Debug)]
pub struct ListpackBuf {
    bytes: Vec<u8>,
    start: usize,
}

impl Default for ListpackBuf {
    fn default() -> ListpackBuf {
        ListpackBuf::new()
    }
}

impl Clone for ListpackBuf {
    fn clone(&self) -> ListpackBuf {
        ListpackBuf { bytes: self.bytes[self.start..].to_vec(), start: 0 }
    }
}

impl ListpackBuf {
    /// An empty listpack.
    pub fn new() -> ListpackBuf {
        ListpackBuf { bytes: vec![0; HEADER], start: 0 }
    }

    /// The listpack in these bytes, which this module has written; no bytes at all are an empty one.
    pub fn from_bytes(mut bytes: Vec<u8>) -> ListpackBuf {
        if bytes.is_empty() {
            bytes.resize(HEADER, 0);
        }
        ListpackBuf { bytes, start: 0 }
    }

    /// The allocation, for another use: what lies in it is of no meaning.
    pub fn into_allocation(self) -> Vec<u8> {
        self.bytes
    }

    /// The listpack, for reading.
    #[inline]
    pub fn view(&self) -> Listpack<'_> {
        Listpack::new(&self.bytes[self.start..])
    }

    /// How many elements there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.view().is_empty()
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// Gives back the allocation's room beside what it holds.
    pub fn fit(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// Adds an element before the first.
    pub fn push_front(&mut self, item: Item<'_>) {
        let len = element::encoded_len(item);
        if self.start < len {
            self.make_front_room(len);
        }
        let count = self.len();
        self.start -= len;
        let first = self.start + HEADER;
        element::write(item, &mut self.bytes[first..first + len]);
        self.set_count(count + 1);
    }

    /// Adds an element behind the last.
    pub fn push_back(&mut self, item: Item<'_>) {
        let len = element::encoded_len(item);
        self.make_back_room(len);
        let at = self.bytes.len();
        self.bytes.resize(at + len, 0);
        element::write(item, &mut self.bytes[at..]);
        self.set_count(self.len() + 1);
    }

    /// Adds all elements of another listpack behind the last.
    pub fn append(&mut self, other: Listpack<'_>) {
        let more = &other.bytes()[HEADER..];
        self.make_back_room(more.len());
        self.bytes.extend_from_slice(more);
        self.set_count(self.len() + other.len());
    }

    /// Adds an element before the one that starts at byte `at` of the view, or at its end.
    ///
    /// # Panics
    /// When there are `COUNT_MAX` elements.
    pub fn insert(&mut self, at: usize, item: Item<'_>) {
        if at == HEADER {
            return self.push_front(item);
        }
        self.splice(at..at, item);
        self.set_count(self.len() + 1);
    }

    /// Puts an element in the place of the one that takes the bytes `range` of the view.
    pub fn replace(&mut self, range: Range<usize>, item: Item<'_>) {
        self.splice(range, item);
    }

    fn splice(&mut self, range: Range<usize>, item: Item<'_>) {
        let len = element::encoded_len(item);
        if len > range.len() {
            self.make_back_room(len - range.len());
        }
        // Making room may have moved everything to the front.
        let (from, to) = (self.start + range.start, self.start + range.end);
        let before = self.bytes.len();
        if len > range.len() {
            self.bytes.resize(before + len - range.len(), 0);
            self.bytes.copy_within(to..before, from + len);
            element::write(item, &mut self.bytes[from..from + len]);
        } else {
            self.bytes.copy_within(to..before, from + len);
            self.bytes.truncate(before + len - range.len());
            element::write(item, &mut self.bytes[from..from + len]);
            self.give_back_room();
        }
    }

    /// Takes out the `count` elements that take the bytes `range` of the view.
    pub fn remove(&mut self, range: Range<usize>, count: usize) {
        let left = self.len() - count;
        let (from, to) = (self.start + range.start, self.start + range.end);
        if range.start == HEADER {
            self.start = to - HEADER;
        } else {
            self.bytes.copy_within(to.., from);
            self.bytes.truncate(self.bytes.len() - range.len());
        }
        self.set_count(left);
        self.give_back_room();
    }

    /// Takes out up to `most` elements that are equal to `item`, the first or the last ones; gives how many.
    pub fn remove_equal(&mut self, item: Item<'_>, most: usize, from: End) -> usize {
        let mut removed = 0;
        let mut at = match from {
            End::Front => HEADER,
            End::Back => self.view().bytes().len(),
        };
        while removed < most {
            let view = self.view();
            let element = match from {
                End::Front if at < view.bytes().len() => view.at(at),
                End::Back if at > HEADER => view.before(at),
                End::Front | End::Back => break,
            };
            let range = element.at..element.end;
            let is_equal = element.item == item;
            at = match from {
                End::Front if !is_equal => range.end,
                End::Front | End::Back => range.start,
            };
            if is_equal {
                self.remove(range, 1);
                removed += 1;
            }
        }
        removed
    }

    /// Cuts off the elements from the one that starts at byte `at` of the view on, which is of index `index`.
    pub fn split_off(&mut self, at: usize, index: usize) -> ListpackBuf {
        let tail = &self.bytes[self.start + at..];
        let mut bytes = Vec::with_capacity(HEADER + tail.len());
        bytes.extend_from_slice(&[0; HEADER]);
        bytes.extend_from_slice(tail);
        let mut split = ListpackBuf { bytes, start: 0 };
        split.set_count(self.len() - index);
        self.bytes.truncate(self.start + at);
        self.set_count(index);
        self.give_back_room();
        split
    }

    /// Gives back the memory that is not in use.
    pub fn shrink(&mut self) {
        let used = self.bytes.len() - self.start;
        if self.bytes.capacity() > used + used / 8 {
            self.bytes = self.bytes[self.start..].to_vec();
            self.start = 0;
        }
    }

    fn set_count(&mut self, count: usize) {
        let count = u16::try_from(count).expect("a listpack is split before it has too many elements to count");
        self.bytes[self.start..self.start + HEADER].copy_from_slice(&count.to_le_bytes());
    }

    /// Makes room for at least `len` bytes before the count.
    #[cold]
    fn make_front_room(&mut self, len: usize) {
        let used = self.bytes.len() - self.start;
        let room = len.max(used.clamp(ROOM_MIN, ROOM_MAX));
        // Room at the other end stays, or pushes to both ends in turn would move everything each time.
        let behind = (self.bytes.capacity() - self.bytes.len()).min(used);
        let mut bytes = Vec::with_capacity(room + used + behind);
        bytes.resize(room, 0);
        bytes.extend_from_slice(&self.bytes[self.start..]);
        *self = ListpackBuf { bytes, start: room };
    }

    /// Makes room for `len` bytes behind the last element.
    #[inline]
    fn make_back_room(&mut self, len: usize) {
        if self.bytes.capacity() - self.bytes.len() < len {
            self.move_or_grow(len);
        }
    }

    #[cold]
    fn move_or_grow(&mut self, len: usize) {
        let used = self.bytes.len() - self.start;
        if self.start >= len.max(used) {
            // What elements at the front have left is enough: moving costs no more than what they were.
            self.bytes.copy_within(self.start.., 0);
            self.bytes.truncate(used);
            self.start = 0;
        } else {
            let room = len.max(used.clamp(ROOM_MIN, ROOM_MAX));
            let before = self.start.min(used);
            let mut bytes = Vec::with_capacity(before + used + room);
            bytes.resize(before, 0);
            bytes.extend_from_slice(&self.bytes[self.start..]);
            *self = ListpackBuf { bytes, start: before };
        }
    }

    /// Gives memory back once most of it is not in use.
    #[inline]
    fn give_back_room(&mut self) {
        let used = self.bytes.len() - self.start;
        if self.bytes.capacity() > SLACK_MAX && used < self.bytes.capacity() / 4 {
            let mut bytes = Vec::with_capacity(used * 2);
            bytes.extend_from_slice(&self.bytes[self.start..]);
            *self = ListpackBuf { bytes, start: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Vec<u8>> {
        let mut samples: Vec<Vec<u8>> =
            vec![b"".to_vec(), b"-0".to_vec(), b"007".to_vec(), b"+1".to_vec(), b"9223372036854775808".to_vec()];
        let edges = [0, 127, 128, -1, 4_095, 4_096, -4_096, -4_097, 32_767, -32_769, 1 << 23, (1 << 23) - 1];
        for int in edges.into_iter().chain([-(1 << 23), 1 << 31, -(1 << 31), 1 << 40, i64::MAX, i64::MIN]) {
            samples.push(int.to_string().into_bytes());
        }
        for len in [1, 63, 64, 125, 126, 127, 4_095, 4_096, 16_377, 16_378, 16_379, 70_000, 2_097_147] {
            samples.push(vec![b'x'; if cfg!(miri) { len.min(5_000) } else { len }]);
        }
        samples
    }

    fn read(listpack: &ListpackBuf) -> Vec<Vec<u8>> {
        listpack.view().iter().items().map(Item::to_vec).collect()
    }

    #[test]
    fn gives_back_what_was_put_in_from_either_end() {
        let (mut forward, mut backward) = (ListpackBuf::new(), ListpackBuf::new());
        for sample in samples() {
            let before = forward.view().redis_len();
            forward.push_back(Item::of(&sample));
            assert_eq!(forward.view().redis_len() - before, element::encoded_len(Item::of(&sample)));
            backward.push_front(Item::of(&sample));
        }
        assert_eq!(read(&forward), samples());
        let mut reversed = read(&backward);
        reversed.reverse();
        assert_eq!(reversed, samples());
        let from_the_end: Vec<_> = backward.view().iter().items().rev().map(Item::to_vec).collect();
        assert_eq!(from_the_end, samples());
        for (index, sample) in samples().iter().enumerate() {
            assert_eq!(forward.view().get(index).map(|element| element.item), Some(Item::of(sample)));
            assert_eq!(forward.view().iter_from(index).count(), samples().len() - index);
        }
        assert_eq!(forward.view().get(samples().len()), None);
    }

    #[test]
    fn has_the_bytes_of_redis() {
        // DUMP of a list of these elements on redis-server 7.0.15, the part between the count and the end.
        let cases: [(&[u8], &[u8]); 8] = [
            (b"a", b"\x81a\x02"),
            (b"5", b"\x05\x01"),
            (b"-1", b"\xdf\xff\x02"),
            (b"4095", b"\xcf\xff\x02"),
            (b"-4096", b"\xd0\x00\x02"),
            (b"32767", b"\xf1\xff\x7f\x03"),
            (b"-8388608", b"\xf2\x00\x00\x80\x04"),
            (b"2147483648", b"\xf4\x00\x00\x00\x80\x00\x00\x00\x00\x09"),
        ];
        for (text, encoded) in cases {
            let mut listpack = ListpackBuf::new();
            listpack.push_back(Item::of(text));
            assert_eq!(&listpack.view().bytes()[HEADER..], encoded, "{}", text.escape_ascii());
        }
        let mut long = ListpackBuf::new();
        long.push_back(Item::Bytes(&[b'x'; 200]));
        assert_eq!(&long.view().bytes()[HEADER..][..2], b"\xe0\xc8");
        assert_eq!(&long.view().bytes()[HEADER + 202..], b"\x01\xca");
        for (len, back) in [(16_377, &b"\x7f\xfe"[..]), (16_378, b"\x00\xff\xff"), (16_379, b"\x01\x80\x80")] {
            let mut longest = ListpackBuf::new();
            longest.push_back(Item::Bytes(&vec![b'x'; len]));
            assert_eq!(&longest.view().bytes()[HEADER + 5 + len..], back, "{len}");
        }
    }

    #[test]
    fn changes_agree_with_a_vector() {
        let samples = samples();
        let mut model: Vec<Vec<u8>> = Vec::new();
        let mut listpack = ListpackBuf::new();
        let mut random = 7u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % below
        };
        for _ in 0..if cfg!(miri) { 60 } else { 5_000 } {
            // Short ones mostly, so that there are many of them.
            let long_ones = if next(10) > 0 { 4 } else { 0 };
            let sample = &samples[next(samples.len() - long_ones)];
            let index = next(model.len() + 1);
            let element = listpack.view().get(index);
            match (next(8), element) {
                (0, Some(element)) => {
                    let range = element.at..element.end;
                    listpack.replace(range, Item::of(sample));
                    model[index] = sample.clone();
                }
                (1, Some(element)) => {
                    let count = 1 + next(model.len() - index);
                    let range = element.at..listpack.view().offset_of(index + count);
                    listpack.remove(range, count);
                    model.drain(index..index + count);
                }
                (2, Some(element)) => {
                    let at = element.at;
                    let split = listpack.split_off(at, index);
                    assert_eq!(read(&split), model[index..]);
                    listpack.append(split.view());
                }
                (3, _) => {
                    listpack.push_front(Item::of(sample));
                    model.insert(0, sample.clone());
                }
                (4, _) => {
                    listpack.push_back(Item::of(sample));
                    model.push(sample.clone());
                }
                (5, _) => listpack.shrink(),
                (6, Some(_)) => {
                    let (most, from) = (1 + next(2), if next(2) == 0 { End::Front } else { End::Back });
                    let removed = listpack.remove_equal(Item::of(sample), most, from);
                    for _ in 0..removed {
                        let found = match from {
                            End::Front => model.iter().position(|other| other == sample),
                            End::Back => model.iter().rposition(|other| other == sample),
                        };
                        model.remove(found.expect("no more is removed than there was"));
                    }
                    assert!(removed == most || !model.contains(sample));
                }
                (_, element) => {
                    let at = element.map_or(listpack.view().bytes().len(), |element| element.at);
                    listpack.insert(at, Item::of(sample));
                    model.insert(index, sample.clone());
                }
            }
            assert_eq!(read(&listpack), model);
            assert_eq!(listpack.len(), model.len());
        }
    }

    #[test]
    fn a_queue_does_not_grow() {
        let mut queue = ListpackBuf::new();
        for number in 0..if cfg!(miri) { 200 } else { 20_000 } {
            queue.push_back(Item::Int(1_000_000 + number));
            if queue.len() > 10 {
                let first = queue.view().at(HEADER);
                let (range, is_oldest) = (first.at..first.end, first.item == Item::Int(1_000_000 + number - 10));
                assert!(is_oldest);
                queue.remove(range, 1);
            }
        }
        assert!(queue.memory() < 1_000, "{} bytes for ten numbers", queue.memory());
    }
}
