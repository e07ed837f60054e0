//! Packing memory that frequent changes have left half used, in small steps. Knows no command.
//!
//! Shards' tables grow through the same sizes at about the same time and leave the old ones' memory half empty;
//! values that change size do the same to entries. Each worker packs the memory that it has allocated itself.

use crate::engine::Engine;
use crate::worker::Worker;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tenon_ds::{extents, memory, slab};

/// Waste that is not worth packing, in bytes.
const WASTE_MIN: usize = 64 << 10;
/// Nor is less than this part of all memory.
const WASTE_PART_MIN: usize = 512;
/// A pass moves no more than this part of all memory, or half of what is wasted if that is more: until its spans are empty,
/// which they are at its end, what it has moved takes memory twice.
const MOVED_PART_MAX: usize = 128;
/// How long one step may take.
const BUDGET: Duration = Duration::from_micros(500);
/// How long packing rests when a pass is done, so that it costs little where it wins little.
const REST: Duration = Duration::from_millis(20);
/// How long it rests at most. What the elements of large collections waste is not packed, so passes may win nothing
/// again and again: each of them doubles the rest.
const REST_MAX: Duration = Duration::from_secs(10);
/// A pass has won something when it has left less than this part of the spans that it was to empty.
const LEFT_MAX: (usize, usize) = (7, 8);
/// How long it waits between two steps: a twentieth of the CPU.
const AT_LEISURE: Duration = Duration::from_millis(10);
/// And where what is used and wasted together exceeds `maxmemory` by more than this part of it, a ninth and a third:
/// resident memory is to stay within a tenth of the limit. The least urgent first.
const PACES: [(usize, Duration); 2] = [(32, Duration::from_millis(4)), (16, URGENT)];
const URGENT: Duration = Duration::from_millis(1);

/// What is moved. Tables first: growing leaves little-used spans of their sizes, and where these are empty then, no entry has
/// to be looked at, of which there are some hundred times as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moves {
    Tables,
    Entries,
}

/// How far a worker's packing has come.
#[derive(Debug)]
pub struct Compaction {
    /// What the pass moves now, and the next shard to look at; `None`: no pass is under way.
    next: Option<(Moves, usize)>,
    /// Not before this.
    rest_until: Instant,
    /// How long it rests after this pass if that wins nothing.
    rest: Duration,
    /// How many spans the pass is to empty.
    spans: usize,
}

impl Compaction {
    /// Nothing to do yet.
    pub fn new(now: Instant) -> Compaction {
        Compaction { next: None, rest_until: now, rest: REST, spans: 0 }
    }

    /// Whether a pass is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.next.is_some()
    }

    /// A pass is done and has left so many of its spans. What is wasted at its end says nothing: changes go on meanwhile.
    fn rest(&mut self, now: Instant, left: usize) {
        let (part, whole) = LEFT_MAX;
        let has_won = left * whole < self.spans * part;
        self.rest = if has_won { REST } else { (self.rest * 2).min(REST_MAX) };
        self.rest_until = now + self.rest;
        self.next = None;
    }
}

impl Engine {
    /// Does a step of packing if there is something to win; tells how soon it wants to go on.
    pub fn compact_tick(&self, worker: &mut Worker) -> Duration {
        let started = Instant::now();
        self.wasted_memory.store(slab::waste_of_all() + extents::kept(), Ordering::Relaxed);
        let (mut moves, mut from) = match worker.compaction.next {
            Some(next) => next,
            None => {
                slab::release_ready();
                if started < worker.compaction.rest_until
                    || slab::waste() < WASTE_MIN.max(memory::used() / WASTE_PART_MIN)
                    || !slab::start_draining((memory::used() / MOVED_PART_MAX).max(slab::waste() / 2))
                {
                    return AT_LEISURE;
                }
                worker.compaction.spans = slab::draining_spans();
                (Moves::Tables, 0)
            }
        };
        loop {
            for index in from..self.shards.count() {
                if started.elapsed() > BUDGET {
                    worker.compaction.next = Some((moves, index));
                    return self.pace();
                }
                self.relocate(index, moves);
            }
            if moves == Moves::Entries || slab::draining_spans() == 0 {
                break;
            }
            (moves, from) = (Moves::Entries, 0);
        }
        let left = slab::draining_spans();
        slab::stop_draining();
        worker.compaction.rest(Instant::now(), left);
        let pace = self.pace();
        if pace == URGENT && worker.compaction.rest == REST {
            worker.compaction.rest_until = started;
        }
        pace
    }

    /// Whether resident memory is far beyond the limit by what this worker wastes.
    pub(crate) fn packing_is_urgent(&self) -> bool {
        self.pace() == URGENT
    }

    /// How soon the next step should follow.
    fn pace(&self) -> Duration {
        // At the limit that is the limit and what this worker wastes: eviction makes up for what counts of all waste. The others'
        // is not its to pack, and with two workers reckoning it in cost 8 to 24 % more CPU a request.
        pace(
            memory::used() + self.waste_counted() + slab::waste(),
            self.reach(self.config.maxmemory() as usize),
            self.config.maxmemory() as usize,
        )
    }

    fn relocate(&self, shard: usize, moves: Moves) {
        // What somebody holds is left as it is: a script may hold it, and for long.
        let Some(mut state) = self.shards.try_lock(shard) else { return };
        for (_, keyspace) in state.shard.databases_mut() {
            match moves {
                Moves::Tables => keyspace.relocate_table(),
                Moves::Entries => keyspace.relocate_entries(),
            }
        }
    }
}

/// How soon the next step should follow when so much is taken of what may be taken at a limit, of which 0 is none.
fn pace(taken: usize, reach: usize, limit: usize) -> Duration {
    let exceeds = |part: usize| limit > 0 && taken > reach.saturating_add(limit / part);
    PACES.iter().rev().find(|(part, _)| exceeds(*part)).map_or(AT_LEISURE, |(_, pace)| *pace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Machine};
    use crate::context::Deadline;
    use tenon_store::entry::{NewValue, ValueRef};

    #[test]
    fn what_growing_tables_and_changing_values_have_left_is_packed() {
        const KEYS: u32 = 40_000;
        // A heap of its own, whose waste is this test's alone.
        let check = || {
            let engine = Engine::new(Config::new(Machine::of_cores(1)), &[], 1);
            let mut worker = engine.worker(0);
            let set = |worker: &mut Worker, number: u32, len: usize| {
                let key = number.to_le_bytes();
                engine.with_key(worker, 0, engine.shards.hash(&key), &key, |cx| {
                    cx.set(NewValue::Bytes(&vec![number as u8; len]), Deadline::Clear);
                });
            };
            let pack = |worker: &mut Worker| {
                let before = slab::waste();
                for _ in 0..1_000 {
                    worker.compaction.rest_until = Instant::now();
                    engine.compact_tick(worker);
                    if worker.compaction.next.is_none() && slab::waste() < 2 * WASTE_MIN {
                        break;
                    }
                }
                (before, slab::waste())
            };
            (0..KEYS).for_each(|number| set(&mut worker, number, 50));
            let (before, after) = pack(&mut worker);
            assert!(after < before / 2 && after < 3 * WASTE_MIN, "{before} bytes are now {after}");
            // Two of three are longer now and lie elsewhere.
            (0..KEYS).filter(|number| number % 3 > 0).for_each(|number| set(&mut worker, number, 90));
            let (before, after) = pack(&mut worker);
            assert!(before > 20 * WASTE_MIN && after < 3 * WASTE_MIN, "{before} bytes are now {after}");
            for number in 0..KEYS {
                let (key, len) = (number.to_le_bytes(), if number % 3 > 0 { 90 } else { 50 });
                engine.with_key(&mut worker, 0, engine.shards.hash(&key), &key, |cx| {
                    let value = cx.read_string().expect("it is a string").expect("it is there");
                    assert!(matches!(value, ValueRef::Bytes(bytes) if *bytes == vec![number as u8; len]));
                });
            }
        };
        std::thread::spawn(check).join().expect("it is packed");
    }

    #[test]
    fn packs_the_faster_the_more_is_taken_beyond_the_limit() {
        let paces = [1_000, 1_031, 1_032, 1_062, 1_063, 9_000].map(|taken| pace(taken, 1_000, 1_000));
        assert_eq!(paces[..2], [AT_LEISURE; 2]);
        assert_eq!(paces[2..4], [PACES[0].1; 2]);
        assert_eq!(paces[4..], [URGENT; 2]);
        assert_eq!(pace(9_000, 0, 0), AT_LEISURE, "there is no limit");
        assert_eq!(pace(9_000, 8_990, 400), AT_LEISURE, "what the start took does not count");
    }

    #[test]
    fn rests_longer_after_each_pass_in_vain_and_no_more_once_one_wins() {
        let now = Instant::now();
        let mut compaction = Compaction::new(now);
        compaction.spans = 80;
        let mut rests = Vec::new();
        for _ in 0..12 {
            compaction.rest(now, 79);
            rests.push(compaction.rest_until - now);
        }
        assert!(rests.is_sorted() && rests[0] == 2 * REST && rests[11] == REST_MAX, "{rests:?}");
        compaction.rest(now, 40);
        assert_eq!(compaction.rest_until - now, REST);
    }
}
