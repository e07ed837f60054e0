//! Reading a sorted set in either form. Knows no command.

use super::bounds::{LexRange, ScoreRange};
use super::forms::Members;
use super::packed::{PackedMember, find, members};
use std::ops::{ControlFlow, Range};
use tenon_ds::packed::{Item, Packed};
use tenon_ds::scored_set::Direction;

/// A sorted set, for reading.
#[derive(Clone, Copy, Debug)]
pub enum ZsetRef<'a> {
    /// Few and short members.
    Packed(Packed<'a>),
    /// Many or long ones.
    Tree(&'a Members),
}

impl<'a> ZsetRef<'a> {
    /// How many members there are.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            ZsetRef::Packed(packed) => packed.len() / 2,
            ZsetRef::Tree(members) => members.len(),
        }
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The score of a member.
    #[inline]
    pub fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            ZsetRef::Packed(packed) => find(packed, Item::of(member)).map(|(_, found)| found.score),
            ZsetRef::Tree(members) => members.score(member),
        }
    }

    /// The rank of a member, 0 for the lowest, and its score.
    #[inline]
    pub fn rank(self, member: &[u8]) -> Option<(usize, f64)> {
        match self {
            ZsetRef::Packed(packed) => find(packed, Item::of(member)).map(|(rank, found)| (rank, found.score)),
            ZsetRef::Tree(members) => members.rank(member),
        }
    }

    /// The member of a rank and its score, if there are so many.
    pub fn at(self, rank: usize) -> Option<(Item<'a>, f64)> {
        match self {
            ZsetRef::Packed(packed) => members(packed).nth(rank).map(|found| (found.member, found.score)),
            ZsetRef::Tree(members) if rank < members.len() => {
                let (score, member) = members.at(rank);
                Some((Item::Bytes(member), score))
            }
            ZsetRef::Tree(_) => None,
        }
    }

    /// The ranks whose scores are in a range.
    pub fn ranks_by_score(self, range: ScoreRange) -> Range<usize> {
        match self {
            ZsetRef::Packed(packed) => super::packed::ranks_by_score(packed, range),
            ZsetRef::Tree(members) => {
                let start = members.partition(|score, _| range.is_above(score));
                let end = members.partition(|score, _| range.reaches(score));
                start.min(end)..end
            }
        }
    }

    /// The ranks whose members are in a range, where all scores are equal.
    pub fn ranks_by_lex(self, range: LexRange<'_>) -> Range<usize> {
        match self {
            ZsetRef::Packed(packed) => super::packed::ranks_by_lex(packed, range),
            ZsetRef::Tree(members) => {
                let start = members.partition(|_, blob| range.is_above(blob.bytes()));
                let end = members.partition(|_, blob| range.reaches(blob.bytes()));
                start.min(end)..end
            }
        }
    }

    /// Calls `visit` for the members of a range of ranks, with their scores.
    ///
    /// # Panics
    /// When there are not so many.
    #[inline]
    pub fn for_each_in(self, ranks: Range<usize>, direction: Direction, mut visit: impl FnMut(Item<'a>, f64)) {
        match (self, direction) {
            (ZsetRef::Packed(packed), Direction::Ascending) => {
                let found = members(packed).skip(ranks.start).take(ranks.len());
                found.for_each(|found| visit(found.member, found.score));
            }
            (ZsetRef::Packed(packed), Direction::Descending) => {
                // What lies behind one another can be read forwards only.
                let found: Vec<PackedMember<'a>> = members(packed).skip(ranks.start).take(ranks.len()).collect();
                found.into_iter().rev().for_each(|found| visit(found.member, found.score));
            }
            (ZsetRef::Tree(members), _) => {
                let _ = members.visit(ranks, direction, |score, member| {
                    visit(Item::Bytes(member), score);
                    ControlFlow::Continue(())
                });
            }
        }
    }

    /// Calls `visit` for all members in ascending order, with their scores.
    pub fn for_each(self, visit: impl FnMut(Item<'a>, f64)) {
        self.for_each_in(0..self.len(), Direction::Ascending, visit);
    }

    /// Calls `visit` with about `count` members from a cursor on, with their scores; gives the next cursor, 0 at the end.
    /// A packed set is one page.
    pub fn scan(self, cursor: u64, count: usize, mut visit: impl FnMut(Item<'a>, f64)) -> u64 {
        match self {
            ZsetRef::Packed(_) => {
                self.for_each(visit);
                0
            }
            ZsetRef::Tree(members) => members.scan(cursor, count, |score, member| visit(Item::Bytes(member), score)),
        }
    }

    /// Redis's name for the encoding.
    pub fn encoding(self) -> &'static str {
        match self {
            ZsetRef::Packed(_) => "listpack",
            ZsetRef::Tree(_) => "skiplist",
        }
    }
}
