//! Threads that stand in for a worker while one of its commands takes long: each has a state and statistics of its own,
//! and the worker's index for all that belongs to its event loop. Knows no thread and no event loop.

use crate::engine::Engine;
use crate::snapshot::KnownSnapshot;
use crate::stats::WorkerStats;
use crate::worker::Worker;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenon_ds::slab;

/// How often a thread that stands in for nobody looks after the memory that it has allocated.
const REST: Duration = Duration::from_secs(1);
/// How often it does while there is something to do.
const AT_LEISURE: Duration = Duration::from_millis(10);
/// Blocks that others have freed which it takes back at once.
const COLLECTED_AT_ONCE: usize = 4_096;

/// What the stand-ins have counted: each with the worker that it stands in for.
#[derive(Debug, Default)]
pub(crate) struct StandIns {
    stats: Mutex<Vec<(usize, Arc<WorkerStats>)>>,
    count: AtomicUsize,
}

impl Engine {
    /// The state of one more thread that stands in for worker `index`, made on that thread.
    pub fn stand_in(&self, index: usize) -> Worker {
        let stats = Arc::new(WorkerStats::new(self.commands.all().len()));
        let number = {
            let mut all = self.stand_ins.stats.lock();
            all.push((index, Arc::clone(&stats)));
            self.stand_ins.count.store(all.len(), Ordering::Relaxed);
            self.workers() + all.len()
        };
        let mut worker = Worker::new(index, self.seed_of(number), stats, Arc::clone(&self.reaper));
        self.read_clock(&mut worker);
        worker
    }

    /// How many threads run commands or may: workers, those that stand in for them, and whoever is no worker.
    pub(crate) fn threads(&self) -> usize {
        self.workers() + 1 + self.stand_ins.count.load(Ordering::Relaxed)
    }

    /// The statistics of all that has run as worker `index`, one thread's after another.
    pub fn stats_of(&self, index: usize) -> Vec<Arc<WorkerStats>> {
        let all = self.stand_ins.stats.lock();
        let others = all.iter().filter(|(worker, _)| *worker == index).map(|(_, stats)| stats);
        self.worker_stats.get(index).into_iter().chain(others).cloned().collect()
    }

    /// Looks at every thread's statistics.
    pub fn each_stats(&self, mut look: impl FnMut(&WorkerStats)) {
        self.worker_stats.iter().for_each(|stats| look(stats));
        self.stand_ins.stats.lock().iter().for_each(|(_, stats)| look(stats));
    }

    /// What a thread does now and then that stands in for nobody at the moment: others free and move what it has
    /// allocated, and only it can pack that. Gives the time until it wants to be called again.
    pub fn rest(&self, worker: &mut Worker) -> Duration {
        self.read_clock(worker);
        self.follow_journal(worker);
        if !self.snapshots.is_active() {
            worker.snapshot = KnownSnapshot::default();
        }
        worker.sweep();
        if self.is_loading() || !self.housekeeping.load(Ordering::Relaxed) {
            return REST;
        }
        let is_left = self.tidy_interpreters(worker);
        self.collect_if_asked(worker);
        self.follow_remembered(worker);
        if slab::collect_some(COLLECTED_AT_ONCE) || is_left {
            return AT_LEISURE;
        }
        let pace = self.compact_tick(worker);
        if worker.compaction.is_under_way() { pace } else { REST }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Machine};

    #[test]
    fn a_stand_in_counts_for_itself_and_is_part_of_its_worker() {
        let machine = Machine::of_cores(2);
        let engine = Engine::new(Config::new(machine), &[], 1);
        let workers = engine.workers();
        let mut own = engine.worker(workers - 1);
        let mut other = engine.stand_in(workers - 1);
        assert_eq!(own.index, other.index);
        assert_ne!(own.random(), other.random(), "they have randomness of their own");
        own.stats.all.commands.add(2);
        other.stats.all.commands.add(3);
        engine.worker(workers).stats.all.commands.add(10);
        assert_eq!(engine.sum(|stats| stats.all.commands.get()), 15);
        let of = |index: usize| engine.stats_of(index).iter().map(|stats| stats.all.commands.get()).sum::<u64>();
        assert_eq!((of(workers - 1), engine.threads()), (5, workers + 2));
        engine.reset_stats();
        assert_eq!(of(workers - 1), 0);
        assert!(engine.rest(&mut other) > Duration::ZERO);
    }
}
