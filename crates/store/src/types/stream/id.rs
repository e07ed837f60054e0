//! The ids of a stream's entries. Knows no entry, and no text beyond how an id is shown.

use std::fmt;

/// An entry's id: the millisecond in which it was added, as its stream counts them, and its number among those of that
/// millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Milliseconds since the UNIX epoch, unless a client has chosen something else.
    pub ms: u64,
    /// The number among the ids of one millisecond.
    pub seq: u64,
}

impl StreamId {
    /// The lowest id, which no entry has: what is behind it is everything.
    pub const MIN: StreamId = StreamId { ms: 0, seq: 0 };
    /// The highest id.
    pub const MAX: StreamId = StreamId { ms: u64::MAX, seq: u64::MAX };

    /// The id of these parts.
    pub const fn new(ms: u64, seq: u64) -> StreamId {
        StreamId { ms, seq }
    }

    /// The next higher id; `None` above the highest.
    pub fn next(self) -> Option<StreamId> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(StreamId { seq, ..self }),
            None => Some(StreamId { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// The next lower id; `None` below the lowest.
    pub fn previous(self) -> Option<StreamId> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(StreamId { seq, ..self }),
            None => Some(StreamId { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }

    /// The id that an entry gets which is added at this time behind the last one; `None` when there is none left.
    pub fn following(self, now_ms: u64) -> Option<StreamId> {
        if now_ms > self.ms { Some(StreamId::new(now_ms, 0)) } else { self.next() }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_one_another() {
        let id = StreamId::new;
        for (lower, higher) in
            [(id(0, 0), id(0, 1)), (id(0, u64::MAX), id(1, 0)), (id(u64::MAX, u64::MAX - 1), StreamId::MAX)]
        {
            assert_eq!(lower.next(), Some(higher));
            assert_eq!(higher.previous(), Some(lower));
            assert!(lower < higher);
        }
        assert_eq!(StreamId::MAX.next(), None);
        assert_eq!(StreamId::MIN.previous(), None);
        assert_eq!(id(5, 7).following(5), Some(id(5, 8)), "time stands still");
        assert_eq!(id(5, 7).following(3), Some(id(5, 8)), "time goes back");
        assert_eq!(id(5, 7).following(6), Some(id(6, 0)));
        assert_eq!(StreamId::MAX.following(1), None);
        assert_eq!(id(5, 7).to_string(), "5-7");
    }
}
