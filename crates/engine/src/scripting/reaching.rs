//! What is known of the keys that a script's calls touch, which says what its next call begins with.

use std::sync::atomic::{AtomicU8, Ordering};

/// How far a script has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Reached {
    /// No further than to the shards of the keys that it declared.
    Declared,
    /// To others: from now on it is the stray (stray.rs) before it changes anything.
    Undeclared,
    /// To the whole keyspace: from now on it begins with all shards.
    Everything,
}

/// How far a script has ever reached.
#[derive(Debug)]
pub struct Reaching(AtomicU8);

impl Reaching {
    /// Of a script that has not run.
    pub(crate) const fn new() -> Reaching {
        Reaching(AtomicU8::new(Reached::Declared as u8))
    }

    /// The furthest.
    pub(crate) fn furthest(&self) -> Reached {
        match self.0.load(Ordering::Relaxed) {
            0 => Reached::Declared,
            1 => Reached::Undeclared,
            _ => Reached::Everything,
        }
    }

    /// Notes how far a call has reached.
    pub(crate) fn note(&self, reached: Reached) {
        // All calls of a script share it, and most have nothing new to say.
        if self.furthest() < reached {
            self.0.fetch_max(reached as u8, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_furthest_stays() {
        let reaching = Reaching::new();
        assert_eq!(reaching.furthest(), Reached::Declared);
        for (noted, furthest) in [
            (Reached::Undeclared, Reached::Undeclared),
            (Reached::Declared, Reached::Undeclared),
            (Reached::Everything, Reached::Everything),
            (Reached::Undeclared, Reached::Everything),
        ] {
            reaching.note(noted);
            assert_eq!(reaching.furthest(), furthest);
        }
    }
}
