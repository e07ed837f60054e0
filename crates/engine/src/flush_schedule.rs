//! Emptying a database, at once or at a time that was set before. Knows no command.

use crate::engine::Engine;
use crate::shards::Locked;
use crate::worker::Worker;
use std::sync::atomic::{AtomicU64, Ordering};
use tenon_store::keyspace::{Keyspace, is_past};

/// Keys from which on freeing them is another thread's work: it takes some 10 ms for a hundred thousand.
const FREED_ELSEWHERE_MIN: usize = 10_000;
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
    /// Removes all keys of a database at one instant: nobody sees some of them gone and others still there. No shard is
    /// locked.
    pub fn flush(&self, worker: &mut Worker, database: usize) {
        let now_ms = worker.clock.now_ms;
        let mut removed: Vec<Keyspace> = Vec::new();
        let mut keys = 0;
        let mut held = self.shards.lock_everything();
        held.each(&mut |index, state| {
            if state.shard.database(database).is_none_or(Keyspace::is_empty) {
                return true;
            }
            let keyspace = state.shard.take(database);
            if let Some(watched) = &state.watched {
                // Keys past their deadline were gone before.
                let there = |key: &[u8]| {
                    let slot = keyspace.find(self.shards.hash(key), key);
                    slot.is_some_and(|slot| !is_past(keyspace.entry(slot).deadline_ms(), now_ms))
                };
                watched.changed_if(database, there);
            }
            self.shards.set_due(index, state.shard.next_due_ms());
            keys += keyspace.len();
            removed.push(keyspace);
            true
        });
        drop(held);
        worker.stats.all.changes.add(keys as u64);
        if keys >= FREED_ELSEWHERE_MIN {
            // Where no thread is to be had, the keys are freed here.
            let _ = std::thread::Builder::new().name("free".to_owned()).spawn(move || drop(removed));
        }
    }

    /// Empties database 0 when its time has come.
    pub(crate) fn flush_if_due(&self, worker: &mut Worker) {
        if self.flush_schedule.take_if_due(worker.clock.now_ms) {
            self.flush(worker, 0);
        }
    }
}
