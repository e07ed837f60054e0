//! Members with their deadlines, one behind the other in one allocation: what few of them lie in, and what many are
//! divided into.
//!
//! ```text
//! +------------------+----------+--------+---
//! | deadline, 6 B LE | length   | member | ...
//! +------------------+----------+--------+---
//!
//! length:  0x00..=0xfe       that many bytes
//!          0xff, 4 B LE      more
//! ```

use super::lean;
use std::ops::Range;

/// Bytes of a deadline in milliseconds since the UNIX epoch.
pub(super) const DEADLINE_LEN: usize = 6;
const LONG: u8 = 0xff;

/// Members with their deadlines, in no order.
#[derive(Clone, Debug, Default)]
pub(super) struct Run(Vec<u8>);

/// A member with its deadline, and the bytes that both take in their run.
struct Record<'a> {
    place: Range<usize>,
    deadline_ms: u64,
    member: &'a [u8],
}

pub(super) fn deadline_bytes(deadline_ms: u64) -> [u8; DEADLINE_LEN] {
    *deadline_ms.to_le_bytes().first_chunk().expect("a word is longer")
}

pub(super) fn deadline_of(bytes: [u8; DEADLINE_LEN]) -> u64 {
    let mut word = [0; size_of::<u64>()];
    word[..DEADLINE_LEN].copy_from_slice(&bytes);
    u64::from_le_bytes(word)
}

fn head_len(member: &[u8]) -> usize {
    DEADLINE_LEN + if member.len() < LONG.into() { 1 } else { 5 }
}

impl Run {
    /// No members, with room for so many bytes.
    pub(super) fn with_room_for(bytes: usize) -> Run {
        Run(Vec::with_capacity(bytes))
    }

    /// Whether there is no member.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many members there are; passes over all of them.
    pub(super) fn len(&self) -> usize {
        self.records().count()
    }

    /// Bytes that the members take with their deadlines.
    pub(super) fn used(&self) -> usize {
        self.0.len()
    }

    /// Gives back the allocation's room beside what it holds.
    pub(super) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    /// Bytes of the allocation.
    pub(super) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    fn record_at(&self, at: usize) -> Option<Record<'_>> {
        let (deadline, rest) = self.0.get(at..)?.split_first_chunk::<DEADLINE_LEN>()?;
        let (&first, rest) = rest.split_first()?;
        let (len, rest) = match first {
            LONG => {
                let (len, rest) = rest.split_first_chunk::<4>()?;
                (u32::from_le_bytes(*len) as usize, rest)
            }
            len => (len.into(), rest),
        };
        let member = &rest[..len];
        let end = at + head_len(member) + len;
        Some(Record { place: at..end, deadline_ms: deadline_of(*deadline), member })
    }

    fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let record = self.record_at(at)?;
            at = record.place.end;
            Some(record)
        })
    }

    fn find(&self, member: &[u8]) -> Option<Record<'_>> {
        self.records().find(|record| record.member == member)
    }

    /// The members with their deadlines.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.records().map(|record| (record.member, record.deadline_ms))
    }

    /// The deadline of a member.
    pub(super) fn of(&self, member: &[u8]) -> Option<u64> {
        self.find(member).map(|record| record.deadline_ms)
    }

    /// The first deadline.
    pub(super) fn first_ms(&self) -> Option<u64> {
        self.ends_ms().map(|(first_ms, _)| first_ms)
    }

    /// The first deadline and the last one.
    pub(super) fn ends_ms(&self) -> Option<(u64, u64)> {
        let each = self.records().map(|record| (record.deadline_ms, record.deadline_ms));
        each.reduce(|(first, last), (other, _)| (first.min(other), last.max(other)))
    }

    /// Gives a member a deadline; gives the one that it had.
    pub(super) fn set(&mut self, member: &[u8], deadline_ms: u64) -> Option<u64> {
        if let Some(Record { place, deadline_ms: before, .. }) = self.find(member) {
            self.0[place.start..place.start + DEADLINE_LEN].copy_from_slice(&deadline_bytes(deadline_ms));
            return Some(before);
        }
        self.push(member, deadline_ms);
        None
    }

    /// Adds a member that is not there.
    pub(super) fn push(&mut self, member: &[u8], deadline_ms: u64) {
        lean::make_room(&mut self.0, head_len(member) + member.len());
        self.0.extend_from_slice(&deadline_bytes(deadline_ms));
        if member.len() < LONG.into() {
            self.0.push(member.len() as u8);
        } else {
            let len = u32::try_from(member.len()).expect("a member is shorter than 4 GiB");
            self.0.push(LONG);
            self.0.extend_from_slice(&len.to_le_bytes());
        }
        self.0.extend_from_slice(member);
    }

    /// Takes a member out; gives the deadline that it had.
    pub(super) fn remove(&mut self, member: &[u8]) -> Option<u64> {
        let Record { place, deadline_ms, .. } = self.find(member)?;
        self.0.drain(place);
        lean::fit(&mut self.0);
        Some(deadline_ms)
    }

    /// Takes out members whose deadlines are past, at most so many, and hands them to `visit`; tells how many there were.
    pub(super) fn take_past(&mut self, now_ms: u64, at_most: usize, visit: &mut dyn FnMut(&[u8])) -> usize {
        let mut taken = 0;
        self.retain(|member, deadline_ms| {
            let stays = deadline_ms >= now_ms || taken == at_most;
            if !stays {
                taken += 1;
                visit(member);
            }
            stays
        });
        taken
    }

    /// Keeps the members that `keeps` says.
    pub(super) fn retain(&mut self, mut keeps: impl FnMut(&[u8], u64) -> bool) {
        let (mut at, mut to) = (0, 0);
        while let Some(record) = self.record_at(at) {
            let Range { start, end } = record.place;
            if keeps(record.member, record.deadline_ms) {
                self.0.copy_within(start..end, to);
                to += end - start;
            }
            at = end;
        }
        self.0.truncate(to);
        lean::fit(&mut self.0);
    }
}
