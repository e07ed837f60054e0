//! Packing memory that frequent changes have left half used, in small steps. Knows no command.
//!
//! Shards' tables grow through the same sizes at about the same time and leave the old ones' memory half empty;
//! values that change size do the same to entries. Each worker packs the memory that it has allocated itself.

use crate::engine::Engine;
use crate::worker::Worker;
use std::time::{Duration, Instant};
use tenon_ds::{memory, slab};

/// Waste that is not worth packing, in bytes.
const WASTE_MIN: usize = 1 << 20;
/// Nor is less than this part of all memory.
const WASTE_PART_MIN: usize = 512;
/// How long one step may take.
const BUDGET: Duration = Duration::from_micros(500);
/// How long packing rests when a pass is done, so that it costs little where it wins little.
const REST: Duration = Duration::from_millis(20);

/// How far a worker's packing has come.
#[derive(Debug)]
pub struct Compaction {
    /// The next shard to look at; `None`: no pass is under way.
    next_shard: Option<usize>,
    /// Not before this.
    rest_until: Instant,
}

impl Compaction {
    /// Nothing to do yet.
    pub fn new(now: Instant) -> Compaction {
        Compaction { next_shard: None, rest_until: now }
    }
}

impl Engine {
    /// Does a step of packing if there is something to win.
    pub fn compact_tick(&self, worker: &mut Worker) {
        let started = Instant::now();
        let from = match worker.compaction.next_shard {
            Some(shard) => shard,
            None => {
                if started < worker.compaction.rest_until
                    || slab::waste() < WASTE_MIN.max(memory::used() / WASTE_PART_MIN)
                    || !slab::start_draining()
                {
                    return;
                }
                0
            }
        };
        for index in from..self.shards.count() {
            if started.elapsed() > BUDGET {
                worker.compaction.next_shard = Some(index);
                return;
            }
            // What somebody holds is left as it is: a script may hold it, and for long.
            let Some(mut state) = self.shards.try_lock(index) else { continue };
            for database in 0..state.shard.databases() {
                state.shard.database_mut(database).relocate();
            }
        }
        slab::stop_draining();
        worker.compaction = Compaction { next_shard: None, rest_until: Instant::now() + REST };
    }
}
