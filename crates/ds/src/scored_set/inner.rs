//! The inner nodes of the tree: children, each with its first member and how many it has. Knows not how deep it is.

use super::leaf::{JOIN_LEN_MAX, JOINED_LEN_MAX, Leaf, NODE_LEN_MAX, partition_point, split_at};
use super::tree::{Direction, Entry};
use crate::blob::ScoredBlobRef;
use crate::hash_table::prefetch;
use crate::looks::Looks;
use crate::progress;
use std::ops::{ControlFlow, Range};
use std::ptr::NonNull;

/// A node: all those under one parent are of one kind.
pub(super) enum Node {
    Leaf(Box<Leaf>),
    Inner(Box<Inner>),
}

pub(super) struct Inner {
    len: usize,
    /// The children's first members: their numbers, and their blobs, which a search hardly looks at.
    first_scores: [f64; NODE_LEN_MAX],
    first_blobs: [NonNull<u8>; NODE_LEN_MAX],
    counts: [usize; NODE_LEN_MAX],
    children: [Option<Node>; NODE_LEN_MAX],
}

impl Node {
    pub(super) fn new() -> Node {
        Node::Leaf(Box::new(Leaf::new()))
    }

    /// A node above two others.
    pub(super) fn above(left: Node, right: Node) -> Node {
        let mut inner = Box::new(Inner::new());
        inner.open(0, left);
        inner.open(1, right);
        Node::Inner(inner)
    }

    /// Members or children.
    fn len(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.len(),
            Node::Inner(inner) => inner.len,
        }
    }

    /// Members below it.
    fn count(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.len(),
            Node::Inner(inner) => inner.counts[..inner.len].iter().sum(),
        }
    }

    /// The first member; there is one.
    #[inline]
    fn first(&self) -> Entry {
        match self {
            Node::Leaf(leaf) => leaf.get(0),
            Node::Inner(inner) => inner.first_of(0),
        }
    }

    /// Puts an entry behind all those for which `before` holds; gives the second half when the node had to be split.
    pub(super) fn insert(&mut self, entry: Entry, before: &mut impl FnMut(Entry) -> bool) -> Option<Node> {
        match self {
            Node::Leaf(leaf) => {
                let index = leaf.partition(before);
                leaf.insert(index, entry).map(Node::Leaf)
            }
            Node::Inner(inner) => inner.insert(entry, before).map(Node::Inner),
        }
    }

    /// How many members `before` holds for.
    pub(super) fn partition(&self, before: &mut impl FnMut(Entry) -> bool) -> usize {
        let mut rank = 0;
        let mut node = self;
        loop {
            match node {
                Node::Leaf(leaf) => return rank + leaf.partition(before),
                Node::Inner(inner) => {
                    let index = inner.child_for(before);
                    rank += inner.counts[..index].iter().sum::<usize>();
                    node = inner.child(index);
                }
            }
        }
    }

    /// The entry of a rank, which is below the number of members.
    pub(super) fn get(&self, mut rank: usize) -> Entry {
        let mut node = self;
        loop {
            match node {
                Node::Leaf(leaf) => return leaf.get(rank),
                Node::Inner(inner) => {
                    let index;
                    (index, rank) = inner.child_of_rank(rank);
                    node = inner.child(index);
                }
            }
        }
    }

    /// Takes out the entry of a rank; the node may be empty afterwards.
    pub(super) fn remove(&mut self, rank: usize) -> Entry {
        match self {
            Node::Leaf(leaf) => leaf.remove(rank),
            Node::Inner(inner) => inner.remove(rank),
        }
    }

    /// Takes out the entries of a range of ranks, which is not empty; the node may be empty afterwards.
    pub(super) fn remove_range(&mut self, range: Range<usize>) {
        match self {
            Node::Leaf(leaf) => leaf.remove_range(range),
            Node::Inner(inner) => inner.remove_range(range),
        }
    }

    /// Gives the entry of a rank another number if it stays between its neighbours in its leaf; tells whether it does.
    pub(super) fn try_set_score(&mut self, mut rank: usize, score: f64) -> bool {
        let mut node = self;
        loop {
            match node {
                Node::Leaf(leaf) => return leaf.try_set_score(rank, score),
                Node::Inner(inner) => {
                    let index;
                    (index, rank) = inner.child_of_rank(rank);
                    node = inner.child_mut(index);
                }
            }
        }
    }

    /// The only child of a node that has no other.
    pub(super) fn take_only_child(&mut self) -> Option<Node> {
        match self {
            Node::Inner(inner) if inner.len == 1 => inner.children[0].take(),
            Node::Leaf(_) | Node::Inner(_) => None,
        }
    }

    /// Whether no child is left of an inner node.
    pub(super) fn is_childless(&self) -> bool {
        matches!(self, Node::Inner(inner) if inner.len == 0)
    }

    /// Adds what the next node under the same parent holds.
    fn append(&mut self, next: Node) {
        match (self, next) {
            (Node::Leaf(leaf), Node::Leaf(next)) => leaf.append(&next),
            (Node::Inner(inner), Node::Inner(mut next)) => inner.take_from(&mut next, 0),
            _ => unreachable!("all nodes under one parent are of one kind"),
        }
    }

    /// Calls `visit` for the members of a range of ranks.
    pub(super) fn visit<'a>(
        &'a self,
        range: Range<usize>,
        direction: Direction,
        visit: &mut impl FnMut(f64, ScoredBlobRef<'a>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            Node::Leaf(leaf) => {
                progress::count(range.len());
                leaf.visit(range, direction, visit)
            }
            Node::Inner(inner) => inner.visit(range, direction, visit),
        }
    }

    /// Bytes of memory.
    pub(super) fn memory(&self, looks: Looks) -> usize {
        match self {
            Node::Leaf(_) => size_of::<Leaf>(),
            Node::Inner(inner) => {
                let below = match inner.child(0) {
                    // No leaf need be looked at.
                    Node::Leaf(_) => inner.len * size_of::<Leaf>(),
                    Node::Inner(_) => looks.sum(inner.len, |index, looks| inner.child(index).memory(looks)),
                };
                size_of::<Inner>() + below
            }
        }
    }
}

impl Inner {
    fn new() -> Inner {
        Inner {
            len: 0,
            first_scores: [0.0; NODE_LEN_MAX],
            first_blobs: [NonNull::dangling(); NODE_LEN_MAX],
            counts: [0; NODE_LEN_MAX],
            children: [const { None }; NODE_LEN_MAX],
        }
    }

    /// The first member of a child.
    #[inline]
    fn first_of(&self, index: usize) -> Entry {
        Entry { score: self.first_scores[index], blob: self.first_blobs[index] }
    }

    /// Asks for all that a search for a rank reads at once, as a leaf does.
    #[inline]
    fn prefetch(&self) {
        let (numbers, counts) = (self.first_scores.as_ptr(), self.counts.as_ptr());
        for index in (0..NODE_LEN_MAX).step_by(8) {
            prefetch(numbers.wrapping_add(index).cast());
            prefetch(counts.wrapping_add(index).cast());
        }
    }

    #[inline]
    fn child(&self, index: usize) -> &Node {
        self.children[index].as_ref().expect("a child has a node")
    }

    #[inline]
    fn child_mut(&mut self, index: usize) -> &mut Node {
        self.children[index].as_mut().expect("a child has a node")
    }

    /// The child that holds the last member for which `before` holds; the first one if it holds for none. It is about to
    /// be searched.
    #[inline]
    fn child_for(&self, before: &mut impl FnMut(Entry) -> bool) -> usize {
        let index = partition_point(self.len, |index| before(self.first_of(index))).saturating_sub(1);
        match self.child(index) {
            Node::Leaf(leaf) => leaf.prefetch(),
            Node::Inner(inner) => inner.prefetch(),
        }
        index
    }

    /// The child that holds a rank, and the rank in it.
    #[inline]
    fn child_of_rank(&self, mut rank: usize) -> (usize, usize) {
        let mut index = 0;
        while rank >= self.counts[index] {
            rank -= self.counts[index];
            index += 1;
        }
        debug_assert!(index < self.len);
        (index, rank)
    }

    fn insert(&mut self, entry: Entry, before: &mut impl FnMut(Entry) -> bool) -> Option<Box<Inner>> {
        let index = self.child_for(before);
        let split = self.child_mut(index).insert(entry, before);
        let Some(new) = split else {
            self.note(index, self.counts[index] + 1);
            return None;
        };
        self.refresh(index);
        self.insert_child(index + 1, new)
    }

    /// Notes anew what a child holds.
    fn refresh(&mut self, index: usize) {
        self.note(index, self.child(index).count());
    }

    /// Notes a child's first member, and how many it has.
    fn note(&mut self, index: usize, count: usize) {
        let first = self.child(index).first();
        (self.first_scores[index], self.first_blobs[index]) = (first.score, first.blob);
        self.counts[index] = count;
    }

    fn insert_child(&mut self, index: usize, child: Node) -> Option<Box<Inner>> {
        if self.len < NODE_LEN_MAX {
            self.open(index, child);
            return None;
        }
        let at = split_at(index);
        let mut right = Box::new(Inner::new());
        right.take_from(self, at);
        if index < at {
            self.open(index, child);
        } else {
            right.open(index - at, child);
        }
        Some(right)
    }

    fn open(&mut self, index: usize, child: Node) {
        self.first_scores.copy_within(index..self.len, index + 1);
        self.first_blobs.copy_within(index..self.len, index + 1);
        self.counts.copy_within(index..self.len, index + 1);
        self.children[index..=self.len].rotate_right(1);
        self.len += 1;
        self.children[index] = Some(child);
        self.refresh(index);
    }

    fn close(&mut self, index: usize) -> Node {
        let child = self.children[index].take().expect("a child has a node");
        self.first_scores.copy_within(index + 1..self.len, index);
        self.first_blobs.copy_within(index + 1..self.len, index);
        self.counts.copy_within(index + 1..self.len, index);
        self.children[index..self.len].rotate_left(1);
        self.len -= 1;
        child
    }

    /// Moves the children of another node from `at` on to the end.
    fn take_from(&mut self, other: &mut Inner, at: usize) {
        let count = other.len - at;
        let end = self.len + count;
        self.first_scores[self.len..end].copy_from_slice(&other.first_scores[at..other.len]);
        self.first_blobs[self.len..end].copy_from_slice(&other.first_blobs[at..other.len]);
        self.counts[self.len..end].copy_from_slice(&other.counts[at..other.len]);
        self.children[self.len..end].swap_with_slice(&mut other.children[at..other.len]);
        self.len = end;
        other.len = at;
    }

    fn remove(&mut self, rank: usize) -> Entry {
        let (index, rank_there) = self.child_of_rank(rank);
        let child = self.child_mut(index);
        let entry = child.remove(rank_there);
        let len = child.len();
        if len == 0 {
            self.close(index);
            return entry;
        }
        self.note(index, self.counts[index] - 1);
        if len <= JOIN_LEN_MAX {
            self.join(index);
        }
        entry
    }

    /// Takes out a range of ranks, which is not empty: children that lie in it whole go as they are.
    fn remove_range(&mut self, range: Range<usize>) {
        let (first, start) = self.child_of_rank(range.start);
        let (last, end) = self.child_of_rank(range.end - 1);
        for index in (first..=last).rev() {
            let from = if index == first { start } else { 0 };
            let to = if index == last { end + 1 } else { self.counts[index] };
            if to - from == self.counts[index] {
                self.close(index);
            } else {
                self.child_mut(index).remove_range(from..to);
                self.refresh(index);
            }
        }
        // Of those that stay, one on each side of the range may have little left.
        for index in [first + 1, first] {
            if index < self.len && self.child(index).len() <= JOIN_LEN_MAX {
                self.join(index);
            }
        }
    }

    /// Joins a child with a neighbour, if there is one with room.
    fn join(&mut self, index: usize) {
        let fit =
            |left: usize| left + 1 < self.len && self.child(left).len() + self.child(left + 1).len() <= JOINED_LEN_MAX;
        let Some(left) = [index.checked_sub(1), Some(index)].into_iter().flatten().find(|&left| fit(left)) else {
            return;
        };
        let next = self.close(left + 1);
        self.child_mut(left).append(next);
        self.refresh(left);
    }

    fn visit<'a>(
        &'a self,
        range: Range<usize>,
        direction: Direction,
        visit: &mut impl FnMut(f64, ScoredBlobRef<'a>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if range.is_empty() {
            return ControlFlow::Continue(());
        }
        let (first, start) = self.child_of_rank(range.start);
        let (last, end) = self.child_of_rank(range.end - 1);
        let mut part = |index: usize| {
            let from = if index == first { start } else { 0 };
            let to = if index == last { end + 1 } else { self.counts[index] };
            self.child(index).visit(from..to, direction, visit)
        };
        match direction {
            Direction::Ascending => (first..=last).try_for_each(&mut part),
            Direction::Descending => (first..=last).rev().try_for_each(&mut part),
        }
    }
}

#[cfg(test)]
impl Node {
    /// Checks what is below: all leaves at one depth, the order, what parents note of their children. Gives the depth.
    pub(super) fn check(&self, last: &mut Option<Entry>) -> usize {
        match self {
            Node::Leaf(leaf) => {
                for index in 0..leaf.len() {
                    let entry = leaf.get(index);
                    assert!(last.is_none_or(|last| last.is_before(entry)), "members lie in order");
                    assert_eq!(entry.score, entry.view().score());
                    *last = Some(entry);
                }
                0
            }
            Node::Inner(inner) => {
                assert!(inner.len > 0);
                let mut depths = Vec::new();
                for index in 0..inner.len {
                    let child = inner.child(index);
                    assert!(child.len() > 0 && inner.counts[index] == child.count());
                    assert!(inner.first_of(index).is(child.first()));
                    depths.push(child.check(last));
                }
                assert!(depths.iter().all(|depth| *depth == depths[0]));
                assert!(inner.children[inner.len..].iter().all(Option::is_none));
                depths[0] + 1
            }
        }
    }

    /// How many leaves there are.
    pub(super) fn leaves(&self) -> usize {
        match self {
            Node::Leaf(_) => 1,
            Node::Inner(inner) => (0..inner.len).map(|index| inner.child(index).leaves()).sum(),
        }
    }
}
