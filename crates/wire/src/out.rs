//! A connection's bytes on their way out: small replies in one buffer, big values by reference. Knows no socket.

use bytes::Bytes;
use std::collections::VecDeque;
use std::io::IoSlice;

/// A piece of a long reply: what grows past it goes on in the next one. A buffer that doubled instead would be copied each time,
/// which takes milliseconds for a reply of some megabytes, and take up to three times its bytes meanwhile.
const PIECE: usize = 256 * 1024;

/// Room in a piece for who does not say how much is appended.
const PIECE_REST: usize = 4 * 1024;

/// Up to here [`OutBuf::join`] copies.
const COPIED_MAX: usize = 64 * 1024;

/// Room for so many segments is kept when they are sent.
const SEGMENTS_KEPT: usize = 64;

/// Bytes waiting to be sent, in order.
///
/// Replies are appended to a contiguous tail; a big value joins as a reference-counted segment and is never copied.
#[derive(Debug, Default)]
pub struct OutBuf {
    /// Segments before the tail, first to send at the front.
    segments: VecDeque<Segment>,
    /// Sum of the lengths of `segments`.
    segments_len: usize,
    /// Bytes of memory that `segments` hold beside those: room behind them, and what of the first is sent.
    segments_spare: usize,
    /// What was appended after the last segment.
    tail: Vec<u8>,
    /// How much of the tail is sent; non-zero only while `segments` is empty.
    tail_sent: usize,
}

/// A place in an [`OutBuf`], given out by [`OutBuf::mark`].
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Bytes that lay unsent before the place.
    unsent_before: usize,
}

#[derive(Debug)]
enum Segment {
    Owned { bytes: Vec<u8>, sent: usize },
    Shared(Bytes),
}

impl Segment {
    fn remaining(&self) -> &[u8] {
        match self {
            Segment::Owned { bytes, sent } => &bytes[*sent..],
            Segment::Shared(bytes) => bytes,
        }
    }

    /// Bytes of memory held beside what remains.
    fn spare(&self) -> usize {
        match self {
            Segment::Owned { bytes, sent } => bytes.capacity() - bytes.len() + sent,
            Segment::Shared(_) => 0,
        }
    }
}

impl OutBuf {
    /// An empty buffer; allocates nothing.
    pub const fn new() -> OutBuf {
        OutBuf { segments: VecDeque::new(), segments_len: 0, segments_spare: 0, tail: Vec::new(), tail_sent: 0 }
    }

    /// Bytes not yet sent.
    #[inline]
    pub fn len(&self) -> usize {
        self.segments_len + self.tail.len() - self.tail_sent
    }

    /// Whether everything is sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The buffer that replies are appended to. Callers only append, or cut back to a length that they have seen since they got it:
    /// the next one may be another.
    #[inline]
    pub fn tail(&mut self) -> &mut Vec<u8> {
        self.tail_for(PIECE_REST)
    }

    /// The same for who appends `len` bytes, which may be many.
    #[inline]
    pub fn tail_for(&mut self, len: usize) -> &mut Vec<u8> {
        if self.tail.len().saturating_add(len) > PIECE {
            self.go_on_with(len);
        }
        &mut self.tail
    }

    #[cold]
    fn go_on_with(&mut self, len: usize) {
        if len > PIECE && self.tail.len() <= PIECE_REST {
            // The head of what comes need not lie apart from it.
            self.tail.reserve_exact(len);
        } else {
            self.begin_piece(PIECE.max(len));
        }
    }

    /// The same where this has fewer bytes than `len_max`, else a new one behind it: a tail is freed only when all of it is
    /// sent, so that with a client which is always a little behind it would grow without end.
    pub fn tail_below(&mut self, len_max: usize) -> &mut Vec<u8> {
        if self.tail.len() >= len_max {
            self.begin_piece(len_max);
        }
        &mut self.tail
    }

    /// Goes on in a new buffer: what has been so long will be again.
    #[cold]
    fn begin_piece(&mut self, len: usize) {
        self.seal_tail();
        self.tail.reserve_exact(len);
    }

    /// Appends a reference-counted piece without copying it.
    pub fn push_shared(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        self.seal_tail();
        self.push_segment(Segment::Shared(bytes));
    }

    fn push_segment(&mut self, segment: Segment) {
        self.segments_len += segment.remaining().len();
        self.segments_spare += segment.spare();
        self.segments.push_back(segment);
    }

    /// The place behind everything appended so far, for [`OutBuf::insert`].
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark { unsent_before: self.len() }
    }

    /// Bytes appended since the mark. Nothing may have been sent since.
    ///
    /// # Panics
    /// When the buffer holds less than it did at the mark.
    #[inline]
    pub fn len_since(&self, mark: Mark) -> usize {
        self.len().checked_sub(mark.unsent_before).expect("the buffer shrank below its mark")
    }

    /// Puts `bytes` where `mark` was taken: before everything appended since. Nothing may have been sent since.
    ///
    /// What lies behind in the same contiguous piece moves; shared pieces stay where they are.
    ///
    /// # Panics
    /// When the buffer holds less than it did at the mark.
    pub fn insert(&mut self, mark: Mark, bytes: &[u8]) {
        self.replace(mark, 0, bytes);
    }

    /// The same instead of the first `old_len` bytes that were appended since the mark, which were appended as one. Gives how
    /// many bytes had to move.
    ///
    /// # Panics
    /// When the buffer holds less than it did at the mark, or the bytes lie in several pieces.
    pub fn replace(&mut self, mark: Mark, old_len: usize, bytes: &[u8]) -> usize {
        let mut behind = self.len_since(mark);
        let tail_len = self.tail.len() - self.tail_sent;
        if behind <= tail_len {
            let at = self.tail.len() - behind;
            self.tail.splice(at..at + old_len, bytes.iter().copied());
            return behind - old_len;
        }
        behind -= tail_len;
        self.segments_len = self.segments_len + bytes.len() - old_len;
        let mut index = self.segments.len();
        while behind > 0 {
            index -= 1;
            let here = self.segments[index].remaining().len();
            if behind < here || (behind == here && old_len > 0) {
                let Segment::Owned { bytes: owned, .. } = &mut self.segments[index] else {
                    unreachable!("a mark lies at the end of something appended, never inside a shared piece");
                };
                let at = owned.len() - behind;
                let spare = owned.capacity() - owned.len();
                owned.splice(at..at + old_len, bytes.iter().copied());
                self.segments_spare = self.segments_spare + owned.capacity() - owned.len() - spare;
                return behind - old_len;
            }
            behind -= here;
        }
        // As long as it is: nothing is spare.
        self.segments.insert(index, Segment::Owned { bytes: bytes.to_vec(), sent: 0 });
        0
    }

    /// Takes what was appended since the mark. Nothing may have been sent since.
    ///
    /// # Panics
    /// When the buffer holds less than it did at the mark.
    pub fn split_off(&mut self, mark: Mark) -> OutBuf {
        let mut behind = self.len_since(mark);
        let mut taken = OutBuf::new();
        if behind <= self.tail.len() - self.tail_sent {
            taken.tail = self.tail.split_off(self.tail.len() - behind);
            return taken;
        }
        self.seal_tail();
        while let Some(mut last) = (behind > 0).then(|| self.segments.pop_back()).flatten() {
            let mut len = last.remaining().len();
            self.segments_len -= len;
            self.segments_spare -= last.spare();
            if behind < len {
                let Segment::Owned { bytes, .. } = &mut last else {
                    unreachable!("a mark lies at the end of something appended, never inside a shared piece");
                };
                let rest = bytes.split_off(bytes.len() - behind);
                self.push_segment(last);
                (last, len) = (Segment::Owned { bytes: rest, sent: 0 }, behind);
            }
            behind -= len;
            taken.segments_len += len;
            taken.segments_spare += last.spare();
            taken.segments.push_front(last);
        }
        taken
    }

    /// Moves everything of `other` behind what is here.
    pub fn append(&mut self, other: &mut OutBuf) {
        if self.is_empty() {
            self.clear();
            std::mem::swap(self, other);
            return;
        }
        self.seal_tail();
        other.seal_tail();
        self.segments_len += other.segments_len;
        self.segments_spare += other.segments_spare;
        self.segments.append(&mut other.segments);
        other.clear();
    }

    /// The same, but what is short is copied, so that all that a client is answered stays in one piece.
    pub fn join(&mut self, other: &mut OutBuf) {
        if other.may_be_copied(COPIED_MAX) {
            let tail = self.tail_for(other.len());
            other.drain_into(tail);
        } else {
            self.append(other);
        }
    }

    /// Whether everything may as well be copied: it is no more than `len_max` bytes, and nothing of it is shared.
    pub fn may_be_copied(&self, len_max: usize) -> bool {
        let is_owned = |segment: &Segment| matches!(segment, Segment::Owned { .. });
        self.len() <= len_max && self.segments.iter().all(is_owned)
    }

    /// Copies everything to the end of `bytes`, and holds nothing then; keeps the tail's capacity.
    pub fn drain_into(&mut self, bytes: &mut Vec<u8>) {
        bytes.reserve(self.len());
        self.pieces().for_each(|piece| bytes.extend_from_slice(piece));
        self.clear();
    }

    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let tail = &self.tail[self.tail_sent..];
        self.segments.iter().map(Segment::remaining).chain((!tail.is_empty()).then_some(tail))
    }

    /// Fills `slices` with what to send next, and tells how many were filled.
    pub fn io_slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.io_slices_within(usize::MAX, slices)
    }

    /// Fills `slices` with at most so many bytes of what to send next, and tells how many were filled.
    pub fn io_slices_within<'a>(&'a self, mut bytes_max: usize, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        for (slice, piece) in slices.iter_mut().zip(self.pieces()) {
            if bytes_max == 0 {
                break;
            }
            let piece = &piece[..piece.len().min(bytes_max)];
            *slice = IoSlice::new(piece);
            bytes_max -= piece.len();
            filled += 1;
        }
        filled
    }

    /// The bytes to send next when they are one contiguous piece, which they nearly always are.
    #[inline]
    pub fn contiguous(&self) -> Option<&[u8]> {
        self.segments.is_empty().then(|| &self.tail[self.tail_sent..])
    }

    /// Takes everything, as one buffer, where it is one contiguous piece; `spare`, which is empty, is appended to from now on.
    ///
    /// # Panics
    /// When there are several pieces.
    #[inline]
    pub fn take_contiguous(&mut self, spare: Vec<u8>) -> Vec<u8> {
        assert!(self.segments.is_empty() && spare.is_empty(), "several pieces are no contiguous one");
        let mut bytes = std::mem::replace(&mut self.tail, spare);
        if self.tail_sent > 0 {
            bytes.drain(..self.tail_sent);
            self.tail_sent = 0;
        }
        bytes
    }

    /// Takes everything, as one buffer: copied where there are several pieces.
    pub fn take_joined(&mut self) -> Vec<u8> {
        if self.segments.is_empty() {
            return self.take_contiguous(Vec::new());
        }
        let mut bytes = Vec::new();
        self.drain_into(&mut bytes);
        bytes
    }

    /// Forgets the first `sent` bytes, which the kernel has taken.
    ///
    /// # Panics
    /// When more is said to be sent than there was.
    #[inline(always)]
    pub fn advance(&mut self, sent: usize) {
        assert!(sent <= self.len(), "more was sent than was waiting");
        let sent = if self.segments.is_empty() { sent } else { self.advance_segments(sent) };
        self.tail_sent += sent;
        if self.tail_sent == self.tail.len() {
            self.tail.clear();
            self.tail_sent = 0;
        }
    }

    /// Forgets the first `sent` bytes of the segments; gives how many of them are the tail's.
    fn advance_segments(&mut self, mut sent: usize) -> usize {
        while let Some(front) = self.segments.front_mut() {
            let front_len = front.remaining().len();
            if sent < front_len {
                match front {
                    Segment::Owned { sent: done, .. } => {
                        *done += sent;
                        self.segments_spare += sent;
                    }
                    Segment::Shared(bytes) => drop(bytes.split_to(sent)),
                }
                self.segments_len -= sent;
                return 0;
            }
            sent -= front_len;
            self.segments_len -= front_len;
            self.segments_spare -= front.spare();
            self.segments.pop_front();
        }
        sent
    }

    /// Drops everything unsent; keeps the tail's capacity.
    pub fn clear(&mut self) {
        self.segments.clear();
        self.segments_len = 0;
        self.segments_spare = 0;
        self.tail.clear();
        self.tail_sent = 0;
    }

    /// Gives back all memory where the tail's has grown past `keep` bytes and nothing waits to be sent.
    pub fn shrink(&mut self, keep: usize) {
        if self.is_empty() && (self.tail.capacity() > keep || self.segments.capacity() > SEGMENTS_KEPT) {
            *self = OutBuf::new();
        }
    }

    /// Bytes of memory held, shared values counted whole.
    pub fn memory(&self) -> usize {
        let segments = self.segments_len + self.segments_spare;
        segments + self.tail.capacity() + self.segments.capacity() * size_of::<Segment>()
    }

    /// Turns the tail into a segment, so that something else can follow it.
    fn seal_tail(&mut self) {
        if self.tail.len() > self.tail_sent {
            let bytes = std::mem::take(&mut self.tail);
            self.push_segment(Segment::Owned { bytes, sent: self.tail_sent });
        } else {
            self.tail.clear();
        }
        self.tail_sent = 0;
    }
}

#[cfg(test)]
mod tests;
