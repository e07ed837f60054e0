//! Sleeping until something has changed, at no cost for those who change it while nobody sleeps. Knows not what changes.

use super::sync::{AtomicU32, Condvar, Mutex, Ordering, after_write};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Signal {
    /// Threads within `wait`.
    waiting: AtomicU32,
    /// Counts what was raised, so that a sleeper sees that something was.
    raised: Mutex<u64>,
    changed: Condvar,
}

impl Signal {
    pub(super) fn new() -> Signal {
        Signal { waiting: AtomicU32::new(0), raised: Mutex::new(0), changed: Condvar::new() }
    }

    /// Sleeps until `is_there`, for a while, or until the next `raise`.
    pub(super) fn wait(&self, at_most: Duration, is_there: impl Fn() -> bool) {
        let mut raised = self.raised.lock().expect("nobody panics with it");
        self.waiting.fetch_add(1, Ordering::SeqCst);
        after_write();
        // Whoever raises does so after the change, and under the lock: the change is seen here or its raise below.
        let before = *raised;
        let mut in_time = true;
        while in_time && *raised == before && !is_there() {
            #[cfg(not(all(test, loom)))]
            {
                let (guard, waited) = self.changed.wait_timeout(raised, at_most).expect("nobody panics with it");
                (raised, in_time) = (guard, !waited.timed_out());
            }
            #[cfg(all(test, loom))]
            {
                // Loom has no time: whoever is not woken is a finding.
                let _ = at_most;
                (raised, in_time) = (self.changed.wait(raised).expect("nobody panics with it"), true);
            }
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        drop(raised);
    }

    /// Wakes all sleepers.
    pub(super) fn raise(&self) {
        let mut raised = self.raised.lock().expect("nobody panics with it");
        *raised += 1;
        self.changed.notify_all();
    }

    /// Wakes all sleepers, if there are any; to be called behind the change.
    pub(super) fn raise_if_waiting(&self) {
        after_write();
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.raise();
        }
    }
}
