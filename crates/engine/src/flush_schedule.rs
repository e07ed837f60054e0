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
    /// Empties database 0 when its time has come; in a CLIENT PAUSE behind that.
    pub(crate) fn flush_if_due(&self, worker: &mut Worker) {
        if !self.pause.is_active() && self.flush_schedule.take_if_due(worker.clock.now_ms) {
            self.empty_database(worker, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Machine};
    use crate::pause::PauseMode;

    #[test]
    fn what_is_due_in_a_pause_comes_behind_it() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let mut worker = engine.worker(0);
        engine.flush_schedule.set(Some(1));
        engine.pause.start(u64::MAX, PauseMode::Write, 0);
        engine.flush_if_due(&mut worker);
        assert_eq!(engine.flush_schedule.at_ms.load(Ordering::Relaxed), 1);
        assert!(engine.pause.end().is_empty());
        engine.flush_if_due(&mut worker);
        assert_eq!(engine.flush_schedule.at_ms.load(Ordering::Relaxed), NEVER);
    }
}
