//! Whether anybody looks on while commands run: one word for all who do, so that each command asks once. Knows not what
//! they see.

use std::sync::atomic::{AtomicU8, Ordering};

/// Who looks on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Onlooker {
    /// Clients to which every command is shown (MONITOR).
    Monitors = 1,
    /// The search for busy keys (HOTKEYS).
    HotKeys = 1 << 1,
}

/// Those who look on now.
#[derive(Debug, Default)]
pub struct Onlookers(AtomicU8);

impl Onlookers {
    /// Whether there is anybody.
    #[inline]
    pub fn are_there(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Says whether one of them is there. Whoever knows it of one of them holds a lock meanwhile.
    pub(crate) fn set(&self, who: Onlooker, is_there: bool) {
        if is_there {
            self.0.fetch_or(who as u8, Ordering::Relaxed);
        } else {
            self.0.fetch_and(!(who as u8), Ordering::Relaxed);
        }
    }
}
