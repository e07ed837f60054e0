//! How far a consumer group has read, in entries: its own count, and how many are ahead of it. Both can be told only
//! while no entry was deleted out of the middle; the rules are Redis's (`t_stream.c`). Knows no entry.

use super::group::COUNT_MAX;
use super::id::StreamId;

/// What a stream's counters say at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counters {
    /// Entries that are there.
    pub(super) len: u64,
    /// Entries that were ever added.
    pub(super) added: u64,
    /// The first entry's id; the lowest when there is none.
    pub(super) first: StreamId,
    /// The highest id ever added.
    pub(super) last: StreamId,
    /// The highest id that was deleted, but not by trimming.
    pub(super) max_deleted: StreamId,
}

impl Counters {
    /// Whether an entry from `from` on may have been deleted.
    fn has_gap_from(&self, from: StreamId) -> bool {
        self.len > 0 && self.max_deleted != StreamId::MIN && from <= self.max_deleted
    }

    /// How many entries were ever added up to this id; `None` when that cannot be told.
    pub(super) fn added_up_to(&self, id: StreamId) -> Option<u64> {
        if self.added == 0 {
            return Some(0);
        }
        if self.len == 0 && id <= self.last {
            return Some(self.added);
        }
        if id != StreamId::MIN && id < self.max_deleted {
            return None;
        }
        if id >= self.last {
            return (id == self.last).then_some(self.added);
        }
        if self.max_deleted == StreamId::MIN || self.max_deleted < self.first {
            // All that was deleted is ahead of the first entry.
            if id < self.first {
                return self.added.checked_sub(self.len);
            }
            if id == self.first {
                return self.added.checked_sub(self.len).map(|before| before + 1);
            }
        }
        None
    }

    /// How many entries a group has read once it has read the one with this id, the next behind `before`.
    pub(super) fn read_up_to(&self, id: StreamId, before: StreamId, read: Option<u64>) -> Option<u64> {
        match read {
            // What was trimmed ahead of the first entry was not read.
            Some(read) if before >= self.first && !self.has_gap_from(before) => {
                Some(read.saturating_add(1).min(COUNT_MAX))
            }
            _ if self.added > 0 => self.added_up_to(id),
            read => read,
        }
    }

    /// How many entries are ahead of a group that has read `read` entries up to `last`; `None` when that cannot be told.
    pub(super) fn lag(&self, last: StreamId, read: Option<u64>) -> Option<i64> {
        if self.added == 0 || self.len == 0 {
            return Some(0);
        }
        if last < self.first && self.max_deleted < self.first {
            return Some(self.len as i64);
        }
        let read = match read {
            Some(read) if !self.has_gap_from(last) => read,
            _ => self.added_up_to(last)?,
        };
        Some(self.added.wrapping_sub(read) as i64)
    }
}
