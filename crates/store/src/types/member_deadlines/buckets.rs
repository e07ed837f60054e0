//! Very many members with their deadlines: a table of runs, of which one is divided when there are too many members, and
//! two are put together when there are too few (linear hashing: W. Litwin, VLDB 1980). So no change moves more than two
//! runs, and no array is ever half empty.

use super::deadlines::MEMBER_DEADLINE_MAX_MS;
use super::earliest::{Earliest, NEVER};
use super::lean;
use super::run::Run;
use crate::hash::element_hash;
use std::ops::ControlFlow;

/// Members a run on average, at most: a search passes over as many, and the array of runs costs 24 bytes a run.
const MEMBERS_MAX: usize = 16;
/// Members a run on average, at least.
const MEMBERS_MIN: usize = 8;

/// Members with their deadlines, in no order.
#[derive(Debug)]
pub(super) struct Buckets {
    /// Never none.
    runs: Vec<Run>,
    /// The first deadline of each run.
    earliest: Earliest,
    /// The last deadline of each run, counted back from the last one that there can be.
    latest: Earliest,
    /// Members in all.
    len: usize,
    /// Bytes of the runs' allocations.
    bytes: usize,
}

impl Clone for Buckets {
    fn clone(&self) -> Buckets {
        let runs = self.runs.clone();
        // A clone has no room beside what it holds.
        let bytes = runs.iter().map(Run::capacity).sum();
        Buckets { runs, earliest: self.earliest.clone(), latest: self.latest.clone(), len: self.len, bytes }
    }
}

/// The bucket of a hash among so many.
fn bucket(hash: u64, buckets: usize) -> usize {
    let above = buckets.next_power_of_two();
    let at = hash as usize & (above - 1);
    // It has not been divided yet.
    if at < buckets { at } else { at & (above / 2 - 1) }
}

/// The bucket that the last of so many was divided from.
fn origin(buckets: usize) -> usize {
    let last = buckets - 1;
    last & !(1 << last.ilog2())
}

impl From<Run> for Buckets {
    fn from(run: Run) -> Buckets {
        let mut buckets = Buckets {
            runs: Vec::new(),
            earliest: Earliest::default(),
            latest: Earliest::default(),
            len: run.len(),
            bytes: 0,
        };
        buckets.push(run);
        while buckets.len > buckets.runs.len() * MEMBERS_MAX {
            buckets.divide();
        }
        buckets
    }
}

impl Buckets {
    /// How many members there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many allocations there are.
    pub(super) fn allocations(&self) -> usize {
        self.runs.len()
    }

    fn bucket_of(&self, member: &[u8]) -> usize {
        bucket(element_hash(member), self.runs.len())
    }

    /// The deadline of a member.
    pub(super) fn of(&self, member: &[u8]) -> Option<u64> {
        self.runs[self.bucket_of(member)].of(member)
    }

    /// The first deadline.
    pub(super) fn first_ms(&self) -> Option<u64> {
        self.earliest.first_ms()
    }

    /// Changes a run, and counts its bytes.
    fn change<R>(&mut self, at: usize, change: impl FnOnce(&mut Run) -> R) -> R {
        let run = &mut self.runs[at];
        self.bytes -= run.capacity();
        let result = change(run);
        self.bytes += run.capacity();
        result
    }

    /// The first and the last deadline of a run, as the trees have them.
    fn ends_of(&self, at: usize) -> (u64, u64) {
        self.runs[at].ends_ms().map_or((NEVER, NEVER), |(first, last)| (first, MEMBER_DEADLINE_MAX_MS - last))
    }

    fn note_ends(&mut self, at: usize) {
        let (first, last) = self.ends_of(at);
        self.earliest.set(at, first);
        self.latest.set(at, last);
    }

    /// Adds a run behind the others.
    fn push(&mut self, run: Run) {
        self.bytes += run.capacity();
        lean::make_room(&mut self.runs, 1);
        self.runs.push(run);
        let (first, last) = self.ends_of(self.runs.len() - 1);
        self.earliest.push(first);
        self.latest.push(last);
    }

    /// Gives a member a deadline.
    pub(super) fn set(&mut self, member: &[u8], deadline_ms: u64) {
        let at = self.bucket_of(member);
        if self.change(at, |run| run.set(member, deadline_ms)).is_none() {
            self.len += 1;
        }
        self.note_ends(at);
        if self.len > self.runs.len() * MEMBERS_MAX {
            self.divide();
        }
    }

    /// Takes a member's deadline away; tells whether it had one.
    pub(super) fn remove(&mut self, member: &[u8]) -> bool {
        let at = self.bucket_of(member);
        let had = self.change(at, |run| run.remove(member)).is_some();
        if had {
            self.note_ends(at);
            self.shrunk(1);
        }
        had
    }

    /// How many deadlines are past; does not count on once it has counted so many.
    pub(super) fn past(&self, now_ms: u64, at_most: usize) -> usize {
        let mut count = 0;
        let _ = self.earliest.for_each_past(now_ms, |at| {
            count += self.runs[at].iter().filter(|&(_, deadline_ms)| deadline_ms < now_ms).count();
            if count < at_most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        count.min(at_most)
    }

    /// Whether all deadlines are past.
    pub(super) fn are_past(&self, now_ms: u64) -> bool {
        self.latest.first_ms().is_none_or(|last| MEMBER_DEADLINE_MAX_MS - last < now_ms)
    }

    /// Takes out deadlines that are past, at most so many, and hands their members to `visit`; tells how many there were.
    pub(super) fn take_past(&mut self, now_ms: u64, at_most: usize, visit: &mut dyn FnMut(&[u8])) -> usize {
        let mut taken = 0;
        while taken < at_most
            && let Some(at) = self.earliest.any_past(now_ms)
        {
            taken += self.change(at, |run| run.take_past(now_ms, at_most - taken, visit));
            self.note_ends(at);
        }
        self.shrunk(taken);
        taken
    }

    /// Calls `visit` with the members of whole runs from one on until there have been so many, and with their deadlines;
    /// gives the run to go on from, `None` at the end.
    pub(super) fn for_each_from(
        &self,
        run: usize,
        at_least: usize,
        visit: &mut dyn FnMut(&[u8], u64),
    ) -> Option<usize> {
        let mut visited = 0;
        for (at, run) in self.runs.iter().enumerate().skip(run) {
            if visited >= at_least {
                return Some(at);
            }
            for (member, deadline_ms) in run.iter() {
                visit(member, deadline_ms);
                visited += 1;
            }
        }
        None
    }

    /// Makes two buckets of the one whose turn it is.
    fn divide(&mut self) {
        let buckets = self.runs.len() + 1;
        let from = origin(buckets);
        let mut moved = Run::default();
        self.change(from, |run| {
            run.retain(|member, deadline_ms| {
                let stays = bucket(element_hash(member), buckets) == from;
                if !stays {
                    moved.push(member, deadline_ms);
                }
                stays
            });
        });
        self.push(moved);
        self.note_ends(from);
    }

    /// Says that so many members are gone, and puts buckets together that are nearly empty by now.
    fn shrunk(&mut self, gone: usize) {
        self.len -= gone;
        while self.runs.len() > 1 && self.len < self.runs.len() * MEMBERS_MIN {
            let to = origin(self.runs.len());
            let last = self.runs.pop().expect("there are two");
            self.earliest.pop();
            self.latest.pop();
            self.bytes -= last.capacity();
            self.change(to, |run| last.iter().for_each(|(member, deadline_ms)| run.push(member, deadline_ms)));
            self.note_ends(to);
        }
        lean::fit(&mut self.runs);
    }

    /// Bytes of memory, those of this itself included.
    pub(super) fn memory(&self) -> usize {
        size_of::<Buckets>()
            + self.runs.capacity() * size_of::<Run>()
            + self.bytes
            + self.earliest.memory()
            + self.latest.memory()
    }
}
