//! The counted B-tree as a whole. Knows no table; whoever holds it keeps the blobs alive.

use super::inner::Node;
use crate::blob::{ScoredBlob, ScoredBlobRef};
use crate::hash_table::Pointer;
use crate::looks::Looks;
use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};
use std::ptr::NonNull;

/// Which way members are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the lowest to the highest.
    Ascending,
    /// From the highest to the lowest.
    Descending,
}

/// A member as the tree has it: its number and its blob.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) score: f64,
    pub(super) blob: NonNull<u8>,
}

/// The order of members: by number, where these are equal by bytes. Numbers are no NaN.
#[inline]
pub(super) fn compare(score: f64, bytes: &[u8], other: Entry) -> Ordering {
    match score.partial_cmp(&other.score) {
        Some(Ordering::Equal) | None => bytes.cmp(other.view().bytes()),
        Some(order) => order,
    }
}

impl Entry {
    /// The blob, for reading. An entry that is in the tree, or was taken out of it a moment ago, has one.
    #[inline]
    pub(super) fn view<'a>(self) -> ScoredBlobRef<'a> {
        // SAFETY: the contract of `Tree::insert` keeps the blob alive and unchanged while its entry is in the tree, and
        // entries do not leave this module; `'a` is at most a borrow of the tree wherever a view is handed out.
        unsafe { ScoredBlob::as_ref(self.blob) }
    }

    #[inline]
    pub(super) fn is_before(self, other: Entry) -> bool {
        compare(self.score, self.view().bytes(), other) == Ordering::Less
    }

    #[cfg(test)]
    pub(super) fn is(self, other: Entry) -> bool {
        self.score.to_bits() == other.score.to_bits() && self.blob == other.blob
    }
}

pub(super) struct Tree {
    root: Node,
}

// SAFETY: the tree owns its nodes; the blobs that it points to are plain bytes that are tied to no thread.
unsafe impl Send for Tree {}
// SAFETY: a shared tree and its blobs are only read.
unsafe impl Sync for Tree {}

impl Tree {
    pub(super) fn new() -> Tree {
        Tree { root: Node::new() }
    }

    /// Bytes of memory that the nodes take.
    pub(super) fn memory(&self, looks: Looks) -> usize {
        self.root.memory(looks)
    }

    /// Adds an entry that is not there.
    ///
    /// # Safety
    /// The blob is a `ScoredBlob` with this number, which lives and does not change until the entry is taken out, the
    /// number excepted: it is told to the tree in the same step.
    pub(super) unsafe fn insert(&mut self, entry: Entry) {
        let bytes = entry.view().bytes();
        let split = self.root.insert(entry, &mut |other| compare(entry.score, bytes, other) == Ordering::Greater);
        if let Some(right) = split {
            let left = std::mem::replace(&mut self.root, Node::new());
            self.root = Node::above(left, right);
        }
    }

    /// How many members `before` holds for; it holds for no member behind one for which it does not.
    #[inline]
    pub(super) fn partition(&self, mut before: impl FnMut(Entry) -> bool) -> usize {
        self.root.partition(&mut before)
    }

    /// The rank of an entry that is there.
    #[inline]
    pub(super) fn rank(&self, entry: Entry) -> usize {
        let bytes = entry.view().bytes();
        self.partition(|other| {
            // Blobs are looked at where numbers are equal only, and where it is met itself its bytes need no look.
            entry.score > other.score
                || entry.score == other.score && other.blob != entry.blob && bytes > other.view().bytes()
        })
    }

    /// The entry of a rank, which is below the number of members.
    #[inline]
    pub(super) fn get(&self, rank: usize) -> Entry {
        self.root.get(rank)
    }

    /// Takes out the entry of a rank, which is below the number of members.
    pub(super) fn remove(&mut self, rank: usize) -> Entry {
        let entry = self.root.remove(rank);
        self.lower();
        entry
    }

    /// Takes out the entries of a range of ranks.
    ///
    /// # Panics
    /// When there are not so many.
    pub(super) fn remove_range(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.root.remove_range(range);
            self.lower();
        }
    }

    /// Gives up levels that have one node, or none.
    fn lower(&mut self) {
        while let Some(only) = self.root.take_only_child() {
            self.root = only;
        }
        if self.root.is_childless() {
            self.root = Node::new();
        }
    }

    /// Gives the entry of a rank another number where that is sure to leave its rank; tells whether it has. The caller
    /// gives its blob the same number.
    pub(super) fn try_set_score(&mut self, rank: usize, score: f64) -> bool {
        self.root.try_set_score(rank, score)
    }

    /// Calls `visit` for the members of a range of ranks until it breaks off.
    #[inline]
    pub(super) fn visit<'a>(
        &'a self,
        range: Range<usize>,
        direction: Direction,
        mut visit: impl FnMut(f64, ScoredBlobRef<'a>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.root.visit(range, direction, &mut visit)
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        self.root.check(&mut None);
    }

    #[cfg(test)]
    pub(super) fn leaves(&self) -> usize {
        self.root.leaves()
    }
}
