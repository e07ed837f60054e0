//! Expiry ahead of access: what each worker's tick does for its part of the shards.

use crate::engine::Engine;
use crate::notify::EventClass;
use crate::worker::Worker;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a worker looks for keys that are due.
const PERIOD: Duration = Duration::from_millis(10);
/// How long one tick may take; what is left then waits for the next, which comes at once.
const BUDGET: Duration = Duration::from_millis(3);
/// Keys expired in one go while a shard is locked.
const BATCH: usize = 64;

impl Engine {
    /// Removes keys that are due in the worker's part of the shards. Gives the time until it wants to be called again.
    pub fn expire_tick(&self, worker: &mut Worker) -> Duration {
        // In a CLIENT PAUSE data stays as it is, so that what waits for its end finds what was there when it began.
        if !self.active_expiry.load(Ordering::Relaxed) || self.pause.is_active() {
            return PERIOD;
        }
        let now_ms = worker.clock.now_ms;
        let part = worker.index;
        if !self.shards.take_part_due(part, now_ms) {
            return PERIOD;
        }
        let started = Instant::now();
        let mut first_due_ms = u64::MAX;
        let mut next = PERIOD;
        for index in (part..self.shards.count()).step_by(self.workers()) {
            while self.shards.due_ms(index) <= now_ms && next > Duration::ZERO {
                self.expire_shard(worker, index, now_ms);
                if started.elapsed() > BUDGET {
                    next = Duration::ZERO;
                }
            }
            first_due_ms = first_due_ms.min(self.shards.due_ms(index));
        }
        self.shards.set_first_due(part, first_due_ms);
        let threshold_ms = self.config.latency_monitor_threshold();
        self.latency.note("expire-cycle", started.elapsed().as_millis() as u64, threshold_ms, now_ms);
        next
    }

    /// Removes some of the due keys of one shard.
    fn expire_shard(&self, worker: &mut Worker, index: usize, now_ms: u64) {
        let mut state = self.shards.lock(index);
        let state = &mut *state;
        let mut done = true;
        for database in 0..state.shard.databases() {
            let watched = &state.watched;
            done &= state.shard.database_mut(database).expire_due(now_ms, BATCH, |entry| {
                let view = entry.view();
                if let Some(watched) = watched {
                    watched.changed(database, view.key(), &mut worker.ready);
                }
                self.notify(database, view.key(), EventClass::EXPIRED, "expired");
                worker.stats.expired(1, now_ms.saturating_sub(view.deadline_ms().unwrap_or(now_ms)));
                worker.discard(entry);
            });
        }
        self.shards.set_due(index, if done { state.shard.next_due_ms() } else { Some(0) });
    }
}
