//! The leaves of the tree: members in order, as numbers and pointers. Knows no other node.

use super::tree::{Direction, Entry};
use crate::blob::ScoredBlobRef;
use crate::hash_table::prefetch;
use std::ops::{ControlFlow, Range};
use std::ptr::NonNull;

/// The most members of a leaf, and the most children of an inner node.
pub(super) const NODE_LEN_MAX: usize = 63;
/// A node of no more than this joins a neighbour, if there is room.
pub(super) const JOIN_LEN_MAX: usize = NODE_LEN_MAX / 4;
/// The most that two nodes that join may have together: the next few insertions shall not split them again.
pub(super) const JOINED_LEN_MAX: usize = NODE_LEN_MAX * 3 / 4;

/// How many members ahead their blobs are asked for in a walk.
const PREFETCH_AHEAD: usize = 8;

/// Where a full node of `NODE_LEN_MAX` splits when something is put at `index`: what is put last begins a node of its
/// own, as the next one will likely follow it; what is put first is left alone for the same reason.
pub(super) fn split_at(index: usize) -> usize {
    match index {
        0 => 0,
        NODE_LEN_MAX => NODE_LEN_MAX,
        _ => NODE_LEN_MAX / 2,
    }
}

/// The number of leading indices below `len` for which `before` holds; it holds for no index behind one for which it
/// does not.
#[inline]
pub(super) fn partition_point(len: usize, mut before: impl FnMut(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low.midpoint(high);
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Members in order.
pub(super) struct Leaf {
    len: usize,
    scores: [f64; NODE_LEN_MAX],
    blobs: [NonNull<u8>; NODE_LEN_MAX],
}

// Allocators have a class of one KiB, and what is a little longer costs a quarter more.
const _: () = assert!(size_of::<Leaf>() <= 1024);

impl Leaf {
    pub(super) fn new() -> Leaf {
        Leaf { len: 0, scores: [0.0; NODE_LEN_MAX], blobs: [NonNull::dangling(); NODE_LEN_MAX] }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Entry {
        debug_assert!(index < self.len);
        Entry { score: self.scores[index], blob: self.blobs[index] }
    }

    /// Asks for all numbers at once: a search among them would wait for one cache line after another.
    #[inline]
    pub(super) fn prefetch(&self) {
        let numbers = self.scores.as_ptr();
        (0..NODE_LEN_MAX).step_by(8).for_each(|index| prefetch(numbers.wrapping_add(index).cast()));
    }

    /// How many members `before` holds for.
    #[inline]
    pub(super) fn partition(&self, before: &mut impl FnMut(Entry) -> bool) -> usize {
        partition_point(self.len, |index| before(self.get(index)))
    }

    /// Puts an entry at `index`; gives the second half when the leaf had to be split.
    pub(super) fn insert(&mut self, index: usize, entry: Entry) -> Option<Box<Leaf>> {
        if self.len < NODE_LEN_MAX {
            self.open(index, entry);
            return None;
        }
        let at = split_at(index);
        let mut right = Box::new(Leaf::new());
        right.take_from(self, at..NODE_LEN_MAX);
        self.len = at;
        if index < at || index == 0 {
            self.open(index, entry);
        } else {
            right.open(index - at, entry);
        }
        Some(right)
    }

    fn open(&mut self, index: usize, entry: Entry) {
        self.scores.copy_within(index..self.len, index + 1);
        self.blobs.copy_within(index..self.len, index + 1);
        self.len += 1;
        self.set(index, entry);
    }

    fn set(&mut self, index: usize, entry: Entry) {
        self.scores[index] = entry.score;
        self.blobs[index] = entry.blob;
    }

    /// Copies a range of another leaf's entries to the end.
    fn take_from(&mut self, other: &Leaf, range: Range<usize>) {
        let end = self.len + range.len();
        self.scores[self.len..end].copy_from_slice(&other.scores[range.clone()]);
        self.blobs[self.len..end].copy_from_slice(&other.blobs[range]);
        self.len = end;
    }

    /// Adds all entries of the next leaf.
    pub(super) fn append(&mut self, next: &Leaf) {
        self.take_from(next, 0..next.len);
    }

    pub(super) fn remove(&mut self, index: usize) -> Entry {
        let entry = self.get(index);
        self.scores.copy_within(index + 1..self.len, index);
        self.blobs.copy_within(index + 1..self.len, index);
        self.len -= 1;
        entry
    }

    /// Takes out the entries of a range of indices.
    pub(super) fn remove_range(&mut self, range: Range<usize>) {
        self.scores.copy_within(range.end..self.len, range.start);
        self.blobs.copy_within(range.end..self.len, range.start);
        self.len -= range.len();
    }

    /// Gives the entry at `index` another number if it stays between its neighbours in this leaf; tells whether it does.
    pub(super) fn try_set_score(&mut self, index: usize, score: f64) -> bool {
        // The first number of a leaf stands in its parents, too, and nobody here knows what is behind the last.
        if index == 0 || index + 1 >= self.len {
            return false;
        }
        let changed = Entry { score, ..self.get(index) };
        let fits = self.get(index - 1).is_before(changed) && changed.is_before(self.get(index + 1));
        if fits {
            self.set(index, changed);
        }
        fits
    }

    /// Calls `visit` for the members of a range of indices.
    pub(super) fn visit<'a>(
        &'a self,
        range: Range<usize>,
        direction: Direction,
        visit: &mut impl FnMut(f64, ScoredBlobRef<'a>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (blobs, scores) = (&self.blobs[range.clone()], &self.scores[range]);
        let len = blobs.len();
        let nth = |step: usize| match direction {
            Direction::Ascending => step,
            Direction::Descending => len - 1 - step,
        };
        for step in 0..len {
            if step + PREFETCH_AHEAD < len {
                prefetch(blobs[nth(step + PREFETCH_AHEAD)].as_ptr());
            }
            let index = nth(step);
            let entry = Entry { score: scores[index], blob: blobs[index] };
            visit(entry.score, entry.view())?;
        }
        ControlFlow::Continue(())
    }
}
