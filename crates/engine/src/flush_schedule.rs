//! Emptying database 0 at a time that was set before. Knows no command.

use crate::engine::Engine;
use crate::worker::Worker;
use std::sync::atomic::{AtomicU64, Ordering};

/// Nothing is scheduled.
const NEVER: u64 = u64::MAX;

/// When database 0 is to be emptied; one time at most, of which the last one set holds.
#[derive(Debug)]
pub struct FlushSchedule {
    at_ns: AtomicU64,
}

impl Default for FlushSchedule {
    fn default() -> FlushSchedule {
        FlushSchedule { at_ns: AtomicU64::new(NEVER) }
    }
}

impl FlushSchedule {
    /// Sets the time, in nanoseconds of the monotonic clock, which nobody sets; `None`: none any more.
    pub fn set(&self, at_ns: Option<u64>) {
        self.at_ns.store(at_ns.unwrap_or(NEVER), Ordering::Relaxed);
    }

    /// The time, if it has come.
    fn due(&self, now_ns: u64) -> Option<u64> {
        Some(self.at_ns.load(Ordering::Relaxed)).filter(|at_ns| *at_ns <= now_ns)
    }

    /// Sets this time no more; `false`: another one is set meanwhile, which holds.
    fn take(&self, at_ns: u64) -> bool {
        self.at_ns.compare_exchange(at_ns, NEVER, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Engine {
    /// Empties database 0 when its time has come; in a CLIENT PAUSE behind that. A tick does not wait for shards, which a script may
    /// hold until a client of this worker ends it: the next one comes to it.
    pub(crate) fn flush_if_due(&self, worker: &mut Worker) {
        if self.pause.is_active() {
            return;
        }
        if let Some(at_ns) = self.flush_schedule.due(worker.clock.now_ns)
            && let Some(held) = self.lock_everything_soon(worker)
            && self.flush_schedule.take(at_ns)
        {
            self.empty_database_in(worker, 0, held);
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
        assert_eq!(engine.flush_schedule.at_ns.load(Ordering::Relaxed), 1);
        assert!(engine.pause.end().is_empty());
        engine.flush_if_due(&mut worker);
        assert_eq!(engine.flush_schedule.at_ns.load(Ordering::Relaxed), NEVER);
    }
}
