//! Keeping below `maxmemory`: evicting, or refusing. Knows no command.

use crate::config::MaxmemoryPolicy;
use crate::engine::Engine;
use crate::shards::ShardState;
use crate::worker::Worker;
use std::time::{Duration, Instant};
use tenon_ds::memory;
use tenon_store::evict::{Policy, Sampling, victim};

/// Keys evicted for one command at most: what is still over the limit then, the next ones take off.
const EVICTIONS_MAX: usize = 64;
/// How long a command that nothing can be evicted for waits for memory that is being freed in the background.
const REAPER_WAIT: Duration = Duration::from_millis(50);

impl Engine {
    /// The policy in force.
    pub fn policy(&self) -> Policy {
        match self.config.maxmemory_policy() {
            MaxmemoryPolicy::VolatileLru => Policy::VolatileLru,
            MaxmemoryPolicy::VolatileLfu => Policy::VolatileLfu,
            MaxmemoryPolicy::VolatileRandom => Policy::VolatileRandom,
            MaxmemoryPolicy::VolatileTtl => Policy::VolatileTtl,
            MaxmemoryPolicy::AllkeysLru => Policy::AllKeysLru,
            MaxmemoryPolicy::AllkeysLfu => Policy::AllKeysLfu,
            MaxmemoryPolicy::AllkeysRandom => Policy::AllKeysRandom,
            MaxmemoryPolicy::NoEviction => Policy::NoEviction,
        }
    }

    /// Whether a command that needs memory may run, after evicting what the policy lets go. No shard is locked.
    #[inline]
    pub fn make_room(&self, worker: &mut Worker) -> bool {
        let limit = self.config.maxmemory() as usize;
        limit == 0 || memory::used() <= limit || self.evict(worker, limit)
    }

    #[cold]
    fn evict(&self, worker: &mut Worker, limit: usize) -> bool {
        let how = Sampling {
            policy: self.policy(),
            samples: self.config.maxmemory_samples() as usize,
            clock: worker.clock.access,
        };
        if how.policy == Policy::NoEviction {
            return self.reaper.wait_until(|| memory::used() <= limit, REAPER_WAIT);
        }
        let started = Instant::now();
        let mut evicted = 0;
        while evicted < EVICTIONS_MAX && memory::used() > limit {
            if !self.evict_one(worker, &how) {
                break;
            }
            evicted += 1;
        }
        let elapsed = started.elapsed();
        worker.stats.all.evicted.add(evicted as u64);
        worker.stats.all.eviction_us.add(elapsed.as_micros() as u64);
        let threshold_ms = self.config.latency_monitor_threshold();
        self.latency.note("eviction-cycle", elapsed.as_millis() as u64, threshold_ms, worker.clock.now_ms);
        // With some room made the command may run: as in Redis the limit is then approached over several commands.
        evicted > 0 || self.reaper.wait_until(|| memory::used() <= limit, REAPER_WAIT)
    }

    /// Evicts one key from a shard chosen at random, or from the next one that has a key to let go.
    fn evict_one(&self, worker: &mut Worker, how: &Sampling) -> bool {
        let shards = self.shards.count();
        let start = worker.random() as usize;
        for step in 0..shards {
            let index = (start + step) & (shards - 1);
            if how.policy.volatile_only() && self.shards.due_ms(index) == u64::MAX {
                continue;
            }
            let evicted = evict_from(&mut self.shards.lock(index), worker, how);
            if evicted {
                worker.sweep();
                return true;
            }
        }
        false
    }
}

/// Evicts the worst of a few keys of one shard, of whichever database it is in.
fn evict_from(state: &mut ShardState, worker: &mut Worker, how: &Sampling) -> bool {
    let mut worst = None;
    for database in 0..state.shard.databases() {
        let Some(keyspace) = state.shard.database(database) else { continue };
        if let Some((slot, badness)) = victim(keyspace, how, || worker.random())
            && worst.is_none_or(|(_, _, most)| badness > most)
        {
            worst = Some((database, slot, badness));
        }
    }
    let Some((database, slot, _)) = worst else { return false };
    let entry = state.shard.database_mut(database).remove(slot);
    if let Some(watched) = &state.watched {
        watched.changed(database, entry.view().key());
    }
    worker.discard(entry);
    true
}
