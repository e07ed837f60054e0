//! The one script that may wait for any shard while it holds others. Knows no script.
//!
//! Everybody else who holds shards waits for later ones only, so that nobody waits in a circle. A script that has changed
//! data and then touches a key that it did not declare cannot start anew, and the key's shard may be an earlier one. So
//! one script at a time, the stray, may wait for any shard, and the others make way:
//!
//! - A script that reaches for undeclared keys before its first write, or has in an earlier call (scripting/reaching.rs),
//!   becomes the stray with that write: so it meets no other. Where there is one it lets go of all, waits for that one's
//!   end, and starts anew as the stray.
//! - Who waits for a shard and has changed nothing yet (a command on several keys, EXEC before it runs, a script before
//!   its first write) lets go of what it holds when it learns that a stray waits for some of it, and takes it again when that
//!   has ended, which keeps it until then. (Taken again at once it was mostly had before the stray had woken: on a busy machine both
//!   went on so for minutes.)
//! - Who holds all its shards runs to its end without waiting.
//! - A script that strays for the first time behind its first write, so declares some of its keys, waits for the stray's end.
//!   If that one waits for what it holds, neither could go on: then it lets go and takes all shards, in order. Only then can
//!   anybody see what a script has changed before its end: the stray, or who is quick enough to take a shard in between. It
//!   happens in calls of a script that began before it was seen to stray.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// No shard.
const NONE: usize = usize::MAX;
/// The number of no stray.
const NOBODY: usize = 0;

/// Whether there is a stray, and what it waits for.
#[derive(Debug)]
pub struct Stray {
    /// The number of the stray that there is.
    current: AtomicUsize,
    /// How many there have been.
    begun: AtomicUsize,
    wanted: AtomicUsize,
    state: Mutex<()>,
    changed: Condvar,
}

impl Default for Stray {
    fn default() -> Stray {
        Stray {
            current: AtomicUsize::new(NOBODY),
            begun: AtomicUsize::new(NOBODY),
            wanted: AtomicUsize::new(NONE),
            state: Mutex::new(()),
            changed: Condvar::new(),
        }
    }
}

impl Stray {
    /// The number of the stray that there is, which no other one has.
    pub(crate) fn current(&self) -> Option<usize> {
        Some(self.current.load(Ordering::Acquire)).filter(|number| *number != NOBODY)
    }

    /// Becomes the stray, if there is none.
    pub(crate) fn try_begin(&self) -> bool {
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        self.current.compare_exchange(NOBODY, number, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Is the stray no more.
    pub(crate) fn end(&self) {
        self.wants(None);
        self.current.store(NOBODY, Ordering::Release);
        let _state = self.state.lock();
        self.changed.notify_all();
    }

    /// Says which shard the stray waits for.
    pub(crate) fn wants(&self, shard: Option<usize>) {
        self.wanted.store(shard.unwrap_or(NONE), Ordering::Release);
        // Who waits may hold that shard.
        let _state = self.state.lock();
        self.changed.notify_all();
    }

    /// The shard that the stray waits for.
    pub(crate) fn wanted(&self) -> Option<usize> {
        Some(self.wanted.load(Ordering::Acquire)).filter(|shard| *shard != NONE)
    }

    /// Waits until the stray wants something else, or nothing, or is none any more, for so long at most.
    pub(crate) fn wait(&self, at_most: Duration) {
        let mut state = self.state.lock();
        if self.current().is_some() {
            self.changed.wait_for(&mut state, at_most);
        }
    }
}
