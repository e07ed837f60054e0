//! Has writes wait before the ring is full: whoever finds no room waits in the middle of its command, with all that its thread
//! serves and with the shards that it holds. Knows not how writes wait.
//!
//! ```text
//!   used   0 ------------ 1/2 ------------ 3/4 ------------ 1
//!                          |                |
//!          writes go on <--+                +--> writes wait     what had begun has the rest
//! ```

use super::shared::Shared;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

impl Shared {
    /// What who has appended sees to, where it did not find room within one block: mostly nothing.
    #[inline]
    pub(super) fn has_appended(&self) {
        if self.ring.len() > self.ring.capacity() / 4 * 3 && !self.is_short.load(Ordering::Relaxed) {
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
            let capacity = self.ring.capacity();
            let most = if *told { capacity / 2 } else { capacity / 4 * 3 };
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
