//! Whether anybody asks for anything: workers of a server at rest look after it less often, so that it costs next to nothing.

use crate::clock::monotonic_ns;
use crate::engine::Engine;
use crate::worker::Worker;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// For so long nobody must have sent anything to any worker, in nanoseconds.
const QUIET_AFTER_NS: u64 = 1_000_000_000;

/// How often a worker then does what it does now and then.
const PERIOD: Duration = Duration::from_millis(100);

/// How soon it does so when its own clients send something again.
const FIRST_PERIOD: Duration = Duration::from_millis(10);

/// When somebody has last sent something, as far as workers have noted it in their ticks; by the monotonic clock.
#[derive(Debug)]
pub(crate) struct Activity(AtomicU64);

impl Default for Activity {
    fn default() -> Activity {
        Activity(AtomicU64::new(monotonic_ns()))
    }
}

/// What one worker knows of its clients' activity.
#[derive(Debug, Default)]
pub(crate) struct KnownActivity {
    /// Bytes that they had sent at its last tick.
    input_bytes: u64,
    /// Whether the next tick is further away than others.
    rests: bool,
}

impl Engine {
    /// When a worker wants its next tick, that being `next` while somebody asks for something.
    pub(crate) fn tick_at_rest(&self, worker: &mut Worker, next: Duration) -> Duration {
        let now_ns = monotonic_ns();
        let input_bytes = worker.stats.all.input_bytes.get();
        let is_active = std::mem::replace(&mut worker.activity.input_bytes, input_bytes) != input_bytes;
        if is_active {
            self.activity.0.store(now_ns, Ordering::Relaxed);
        }
        let is_quiet = !is_active && now_ns.saturating_sub(self.activity.0.load(Ordering::Relaxed)) > QUIET_AFTER_NS;
        worker.activity.rests =
            is_quiet && next >= FIRST_PERIOD && !worker.compaction.is_under_way() && self.is_at_rest();
        if !worker.activity.rests {
            return next;
        }
        let due_ms = self.shards.part_due_ms(worker.index).saturating_sub(worker.clock.now_ms);
        PERIOD.min(Duration::from_millis(due_ms)).max(FIRST_PERIOD)
    }

    /// When a worker that rests wants its next tick after all, as its clients have sent something.
    #[inline]
    pub fn ends_rest(&self, worker: &Worker) -> Option<Duration> {
        let has_rested = worker.activity.rests && worker.stats.all.input_bytes.get() != worker.activity.input_bytes;
        has_rested.then_some(FIRST_PERIOD)
    }

    /// Whether nothing goes on that a tick may be waited for.
    fn is_at_rest(&self) -> bool {
        let goes_on = self.long_calls.are_there()
            || self.has_lent_calls()
            || self.pause.is_active()
            || self.pause.waits_for_log()
            || self.pause.is_busy()
            || self.saving.is_running()
            || self.snapshots.is_active()
            || self.is_loading();
        !goes_on && self.is_log_whole()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Machine};

    #[test]
    fn a_worker_rests_when_nobody_asks_for_anything() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let mut worker = engine.worker(0);
        let tick = |worker: &mut Worker| engine.tick_at_rest(worker, FIRST_PERIOD);
        assert_eq!(tick(&mut worker), FIRST_PERIOD, "it has just begun");
        let make_quiet = || engine.activity.0.store(0, Ordering::Relaxed);
        make_quiet();
        assert_eq!(tick(&mut worker), PERIOD);
        assert_eq!(engine.ends_rest(&worker), None);

        worker.stats.received(1);
        assert_eq!(engine.ends_rest(&worker), Some(FIRST_PERIOD));
        assert_eq!(tick(&mut worker), FIRST_PERIOD);
        assert_eq!(engine.ends_rest(&worker), None);
        assert_eq!(tick(&mut worker), FIRST_PERIOD, "it was a moment ago");

        make_quiet();
        assert_eq!(engine.tick_at_rest(&mut worker, Duration::ZERO), Duration::ZERO, "there is work");
        engine.shards.set_first_due(0, worker.clock.now_ms + 40);
        assert_eq!(tick(&mut worker), Duration::from_millis(40), "a key is due");
        engine.long_calls.begin();
        assert_eq!(tick(&mut worker), FIRST_PERIOD);
        assert!(engine.long_calls.end(|_| true).is_empty());
    }
}
