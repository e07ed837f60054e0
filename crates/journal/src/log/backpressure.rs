//! Has writes wait before the ring is full: whoever finds no room waits in the middle of its command, with all that its thread
//! serves and with the shards that it holds. Knows not how writes wait.
//!
//! ```text
//!   used   0 ---------- 3/8 ---------- 5/8 ---------- 7/8 ---------- 1
//!                        |              |              |
//!        writes go on <--+              +--> they wait +--> so do ticks    what had begun has the rest
//! ```
//!
//! What expires is deleted by ticks: would they wait with the writes, then on a disk that is always behind keys came faster than they
//! went. They have as much room for themselves as a round of writes.

use super::Log;
use super::shared::Shared;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Eighths of the ring: from where on writes wait, to where they do, and from where on ticks wait.
const WRITES_WAIT_FROM: u64 = 5;
const WRITES_WAIT_TO: u64 = 3;
const TICKS_WAIT_FROM: u64 = 7;

impl Log {
    /// Whether what nobody has asked for, as keys expire, finds room.
    pub fn has_room_for_ticks(&self) -> bool {
        self.shared.ring.len() <= self.shared.eighths(TICKS_WAIT_FROM)
    }
}

impl Shared {
    fn eighths(&self, count: u64) -> u64 {
        self.ring.capacity() / 8 * count
    }

    /// What who has appended sees to, where it did not find room within one block: mostly nothing.
    #[inline]
    pub(super) fn has_appended(&self) {
        if self.ring.len() > self.eighths(WRITES_WAIT_FROM) && !self.is_short.load(Ordering::Relaxed) {
            self.look_at_room();
        }
    }

    /// What the writer sees to when it has given room back, or need not have any.
    pub(super) fn has_released(&self) {
        if self.is_short.load(Ordering::SeqCst) {
            self.look_at_room();
        }
    }

    /// Says that writes are to wait, or that they need not any more. Nobody waits while nothing can be written: writes are
    /// refused then.
    #[cold]
    fn look_at_room(&self) {
        let mut told = self.told_short.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let most = self.eighths(if *told { WRITES_WAIT_TO } else { WRITES_WAIT_FROM });
            let is_waited_for = !self.failing.load(Ordering::Acquire) && !self.control().ended;
            let is_short = is_waited_for && self.ring.len() > most;
            if is_short == *told {
                return;
            }
            *told = is_short;
            // Before it is looked once more: either the writer sees this, or what it has released since is seen here.
            self.is_short.store(is_short, Ordering::SeqCst);
            self.hooks.room_is_short(is_short);
        }
    }
}
