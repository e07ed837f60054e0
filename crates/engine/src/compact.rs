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
/// How long it rests at most. What the elements of large collections waste is not packed, so passes may win nothing
/// again and again: each of them doubles the rest.
const REST_MAX: Duration = Duration::from_secs(10);
/// A pass has won something when it has left less than this part of the waste that it found.
const LEFT_MAX: (usize, usize) = (7, 8);

/// How far a worker's packing has come.
#[derive(Debug)]
pub struct Compaction {
    /// The next shard to look at; `None`: no pass is under way.
    next_shard: Option<usize>,
    /// Not before this.
    rest_until: Instant,
    /// How long it rests after this pass if that wins nothing.
    rest: Duration,
    /// What was wasted when the pass began.
    waste: usize,
}

impl Compaction {
    /// Nothing to do yet.
    pub fn new(now: Instant) -> Compaction {
        Compaction { next_shard: None, rest_until: now, rest: REST, waste: 0 }
    }

    /// A pass is done and has left this waste.
    fn rest(&mut self, now: Instant, waste_left: usize) {
        let (part, whole) = LEFT_MAX;
        let has_won = waste_left / part < self.waste / whole;
        self.rest = if has_won { REST } else { (self.rest * 2).min(REST_MAX) };
        self.rest_until = now + self.rest;
        self.next_shard = None;
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
                worker.compaction.waste = slab::waste();
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
        worker.compaction.rest(Instant::now(), slab::waste());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_longer_after_each_pass_in_vain_and_no_more_once_one_wins() {
        let now = Instant::now();
        let mut compaction = Compaction::new(now);
        compaction.waste = 80 << 20;
        let mut rests = Vec::new();
        for _ in 0..12 {
            compaction.rest(now, 79 << 20);
            rests.push(compaction.rest_until - now);
        }
        assert!(rests.is_sorted() && rests[0] == 2 * REST && rests[11] == REST_MAX, "{rests:?}");
        compaction.rest(now, 40 << 20);
        assert_eq!(compaction.rest_until - now, REST);
    }
}
