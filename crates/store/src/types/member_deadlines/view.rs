//! The deadlines of a collection's members, for reading, wherever they lie. Knows neither the collection nor the present.

use super::{MemberDeadlines, PackedDeadlines};

/// The deadlines of those members that have one, of which there is one at least.
#[derive(Clone, Copy, Debug)]
pub enum DeadlinesRef<'a> {
    /// Behind the packed elements of a small collection.
    Packed(PackedDeadlines<'a>),
    /// Beside the elements of an object.
    Beside(&'a MemberDeadlines),
}

impl DeadlinesRef<'_> {
    /// How many members have a deadline.
    pub fn len(self) -> usize {
        match self {
            DeadlinesRef::Packed(packed) => packed.len(),
            DeadlinesRef::Beside(deadlines) => deadlines.len(),
        }
    }

    /// Whether none has one.
    pub fn is_empty(self) -> bool {
        match self {
            DeadlinesRef::Packed(packed) => packed.is_empty(),
            DeadlinesRef::Beside(deadlines) => deadlines.is_empty(),
        }
    }

    /// The deadline of a member in milliseconds since the UNIX epoch.
    pub fn of(self, member: &[u8]) -> Option<u64> {
        match self {
            DeadlinesRef::Packed(packed) => packed.of(member),
            DeadlinesRef::Beside(deadlines) => deadlines.of(member),
        }
    }

    /// The first deadline.
    pub fn next_ms(self) -> Option<u64> {
        match self {
            DeadlinesRef::Packed(packed) => packed.next_ms(),
            DeadlinesRef::Beside(deadlines) => deadlines.next_ms(),
        }
    }

    /// Calls `visit` with members that have a deadline and with that, as [`MemberDeadlines::for_each_from`] does.
    pub fn for_each_from(self, place: usize, at_least: usize, visit: &mut dyn FnMut(&[u8], u64)) -> Option<usize> {
        match self {
            DeadlinesRef::Packed(packed) => {
                packed.for_each(visit);
                None
            }
            DeadlinesRef::Beside(deadlines) => deadlines.for_each_from(place, at_least, visit),
        }
    }
}
