//! The deadlines of a collection's members, for reading, wherever they lie. Knows neither the collection nor the present.

use super::{MemberDeadlines, PackedDeadlines};

/// The deadlines of those members that have one, of which there is one at least.
#[derive(Clone, Copy, Debug)]
pub enum DeadlinesRef<'a> {
    /// In the order of the packed elements of a small collection.
    Packed(PackedDeadlines<'a>),
    /// By member.
    ByMember(&'a MemberDeadlines),
}

impl DeadlinesRef<'_> {
    /// How many members have a deadline.
    pub fn len(self) -> usize {
        match self {
            DeadlinesRef::Packed(packed) => packed.len(),
            DeadlinesRef::ByMember(deadlines) => deadlines.len(),
        }
    }

    /// Whether none has one.
    pub fn is_empty(self) -> bool {
        match self {
            DeadlinesRef::Packed(packed) => packed.is_empty(),
            DeadlinesRef::ByMember(deadlines) => deadlines.is_empty(),
        }
    }

    /// The deadline of a member in milliseconds since the UNIX epoch.
    pub fn of(self, member: &[u8]) -> Option<u64> {
        match self {
            DeadlinesRef::Packed(packed) => packed.of(member),
            DeadlinesRef::ByMember(deadlines) => deadlines.of(member),
        }
    }

    /// The first deadline.
    pub fn next_ms(self) -> Option<u64> {
        match self {
            DeadlinesRef::Packed(packed) => packed.next_ms(),
            DeadlinesRef::ByMember(deadlines) => deadlines.next_ms(),
        }
    }

    /// How many deadlines are past; does not count on once it has counted so many.
    pub fn past(self, now_ms: u64, at_most: usize) -> usize {
        match self {
            DeadlinesRef::Packed(packed) => packed.past(now_ms).min(at_most),
            DeadlinesRef::ByMember(deadlines) => deadlines.past(now_ms, at_most),
        }
    }

    /// How many allocations there are to free beside those of the elements.
    pub fn allocations(self) -> usize {
        match self {
            DeadlinesRef::Packed(_) => 1,
            DeadlinesRef::ByMember(deadlines) => deadlines.allocations(),
        }
    }

    /// Calls `visit` with each member that has a deadline and with that.
    pub fn for_each(self, mut visit: impl FnMut(&[u8], u64)) {
        self.for_each_from(0, usize::MAX, &mut visit);
    }

    /// Calls `visit` with members that have a deadline and with that, as [`MemberDeadlines::for_each_from`] does.
    pub fn for_each_from(self, place: usize, at_least: usize, visit: &mut dyn FnMut(&[u8], u64)) -> Option<usize> {
        match self {
            DeadlinesRef::Packed(packed) => {
                packed.for_each(visit);
                None
            }
            DeadlinesRef::ByMember(deadlines) => deadlines.for_each_from(place, at_least, visit),
        }
    }
}
