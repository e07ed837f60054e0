//! Emptying database 0 at a time that was set before. Knows no command.

use crate::engine::Engine;
use crate::worker::Worker;
use std::sync::atomic::{AtomicU64, Ordering};

/// Nothing is scheduled.
const NEVER: u64 = u64::MAX;

/// When database 0 is to be emptied; one time at most, of which the last one set holds.
#[derive(Debug)]
pub struct FlushSchedule {
    at_ms: AtomicU64,
}

impl Default for FlushSchedule {
    fn default() -> FlushSchedule {
        FlushSchedule { at_ms: AtomicU64::new(NEVER) }
    }
}

impl FlushSchedule {
    /// Sets the time, in milliseconds since the UNIX epoch; `None`: none any more.
    pub fn set(&self, at_ms: Option<u64>) {
        self.at_ms.store(at_ms.unwrap_or(NEVER), Ordering::Relaxed);
    }

    /// Whether the time has come; then it is set no more.
    fn take_if_due(&self, now_ms: u64) -> bool {
        let at_ms = self.at_ms.load(Ordering::Relaxed);
        // When another time is set meanwhile, that one holds.
        at_ms <= now_ms && self.at_ms.compare_exchange(at_ms, NEVER, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Engine {
    /// Empties database 0 when its time has come.
    pub(crate) fn flush_if_due(&self, worker: &mut Worker) {
        if self.flush_schedule.take_if_due(worker.clock.now_ms) {
            self.empty_database(worker, 0);
        }
    }
}
