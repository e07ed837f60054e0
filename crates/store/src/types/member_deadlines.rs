//! When the members of a collection expire: a deadline for some of them, found by member and in order of time. Knows
//! neither the collection nor the present.
//!
//! It is a sorted set whose scores are the deadlines, so few of them lie packed in one allocation, and many cost what
//! members of a sorted set cost: about 60 bytes each at ten bytes a member. Milliseconds since the epoch are exact in
//! an `f64` for the next 285,000 years.

use super::MemberForm;
use super::zset::{Direction, ScoreBound, ScoreRange, ZsetForm, ZsetLimits};
use std::ops::Range;
use tenon_ds::packed::IntText;

/// The latest deadline that a member can have, in milliseconds since the UNIX epoch: the year 4199. It is Redis's bound
/// (`HFE_MAX_ABS_TIME_MSEC`).
pub const MEMBER_DEADLINE_MAX_MS: u64 = (1 << 46) - 1;

/// Up to where deadlines lie packed: finding one passes over the others.
const LIMITS: ZsetLimits = ZsetLimits { members: 64, bytes: 64 };

/// The deadlines of those members that have one.
#[derive(Clone, Debug, Default)]
pub struct MemberDeadlines(ZsetForm);

/// The deadlines that are past at this time: Redis keeps a member through the millisecond of its deadline.
fn past(now_ms: u64) -> ScoreRange {
    ScoreRange { min: ScoreBound::Inclusive(0.0), max: ScoreBound::Exclusive(now_ms as f64) }
}

impl MemberDeadlines {
    /// How many members have a deadline.
    pub fn len(&self) -> usize {
        self.0.view().len()
    }

    /// Whether none has one.
    pub fn is_empty(&self) -> bool {
        self.0.view().is_empty()
    }

    /// The deadline of a member in milliseconds since the UNIX epoch.
    pub fn of(&self, member: &[u8]) -> Option<u64> {
        self.0.view().score(member).map(|score| score as u64)
    }

    /// The first deadline.
    pub fn next_ms(&self) -> Option<u64> {
        self.0.view().at(0).map(|(_, score)| score as u64)
    }

    /// How many deadlines are past.
    pub fn past(&self, now_ms: u64) -> usize {
        self.0.view().ranks_by_score(past(now_ms)).len()
    }

    /// Gives a member a deadline.
    ///
    /// # Panics
    /// When it is later than [`MEMBER_DEADLINE_MAX_MS`].
    pub fn set(&mut self, member: &[u8], deadline_ms: u64) {
        assert!(deadline_ms <= MEMBER_DEADLINE_MAX_MS, "a deadline is checked where it is read");
        self.0.update(member, LIMITS, |_| Some(deadline_ms as f64));
    }

    /// Takes a member's deadline away; tells whether it had one.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        self.0.remove(member).is_some()
    }

    /// Takes out deadlines that are past, the first ones first and at most so many, and hands their members to `visit`;
    /// tells how many there were.
    pub fn take_past(&mut self, now_ms: u64, at_most: usize, mut visit: impl FnMut(&[u8])) -> usize {
        let count = self.past(now_ms).min(at_most);
        let mut room: IntText = IntText::new();
        self.0.remove_ranks(0..count, Direction::Ascending, |member, _| visit(member.as_bytes(&mut room)));
        count
    }

    /// Calls `visit` with each member that has a deadline and with that, the first ones first.
    pub fn for_each(&self, mut visit: impl FnMut(&[u8], u64)) {
        let mut room: IntText = IntText::new();
        self.0.view().for_each(|member, score| visit(member.as_bytes(&mut room), score as u64));
    }

    /// Calls `visit` with some of the members that have a deadline and with that: those of these ranks, by time.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn for_each_in(&self, ranks: Range<usize>, mut visit: impl FnMut(&[u8], u64)) {
        let mut room: IntText = IntText::new();
        let view = self.0.view();
        view.for_each_in(ranks, Direction::Ascending, |member, score| visit(member.as_bytes(&mut room), score as u64));
    }

    /// Bytes of memory, those of this itself included.
    pub fn memory(&self) -> usize {
        size_of::<MemberDeadlines>() + self.0.memory()
    }
}
