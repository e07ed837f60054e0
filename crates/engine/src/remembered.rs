//! What `allkeys-tenon` goes by beside the entries: the keys that were evicted of late, how fast others come, where the
//! hands are and how bad a key must be. Knows neither the limit's reach nor which key goes.

use crate::engine::Engine;
use crate::worker::Worker;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use tenon_store::entry::EntryRef;
use tenon_store::evict::aging;
use tenon_store::evict::hand::Bar;
use tenon_store::evict::turnover::{self, Turnover};
use tenon_store::evict::{Ghosts, worth};
use tenon_store::hash::KeyHash;

/// Keys remembered for each that is there.
const GHOSTS_A_KEY: usize = 2;
/// What remembering may take at most, as a part of `maxmemory`: where keys are very small they are worth more themselves.
const GHOSTS_OF_LIMIT: usize = 64;
/// Ticks from one look at how many keys there are to the next; a power of two.
const TICKS_BETWEEN_COUNTS: u32 = 64;
/// Shards whose keys a tick looks at for their age at most.
const SHARDS_AGED_AT_ONCE: u32 = 8;
/// How often it is looked whether there is room for as many as there should be.
const FIT_EVERY_MS: u64 = 1_000;
/// There is much too much room when it is so many times what it should be, and too little when it is less than half.
const SURPLUS_MAX: usize = 4;

/// What is remembered. All of it is empty until something is evicted under `allkeys-tenon`.
pub(crate) struct Remembered {
    turnover: &'static Turnover,
    ghosts: RwLock<Option<Arc<Ghosts>>>,
    /// Changes with `ghosts`, so that workers need not look there.
    number: AtomicU64,
    /// When it was last looked how many there should be.
    fitted_ms: AtomicU64,
    bar: Bar,
    /// Shards that hands have gone to.
    shards_begun: AtomicUsize,
    /// Up to which shard keys were looked at for their age, counted on from round to round.
    aged_to: AtomicU32,
}

/// Where a worker looks for the next key to evict: each walks through a shard, and then goes on to the next one where
/// none has been for longest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hand {
    pub(crate) shard: usize,
    pub(crate) database: usize,
    /// Of keys before this tag it has seen all.
    pub(crate) tag: u16,
}

impl Default for Remembered {
    fn default() -> Remembered {
        Remembered {
            // Every clock names it, and a clock is copied for every command; a server has one, for as long as it runs.
            turnover: Box::leak(Box::default()),
            ghosts: RwLock::default(),
            number: AtomicU64::new(0),
            fitted_ms: AtomicU64::new(0),
            bar: Bar::default(),
            shards_begun: AtomicUsize::new(0),
            aged_to: AtomicU32::new(0),
        }
    }
}

/// What a worker knows of it.
#[derive(Default)]
pub(crate) struct KnownRemembered {
    number: u64,
    ghosts: Option<Arc<Ghosts>>,
    /// Keys that have come through this worker since it last turned the tick.
    came: u64,
    pub(crate) hand: Option<Hand>,
}

impl Hand {
    fn before(shard: usize) -> Hand {
        Hand { shard, database: 0, tag: 0 }
    }

    /// The beginning of the shard behind this one, of so many.
    pub(crate) fn behind(self, shards: usize) -> Hand {
        Hand::before((self.shard + 1) & (shards - 1))
    }
}

impl Remembered {
    pub(crate) fn turnover(&self) -> &'static Turnover {
        self.turnover
    }

    /// How bad a key must be to go.
    pub(crate) fn bar(&self) -> &Bar {
        &self.bar
    }

    /// The beginning of the shard that a hand goes to, of so many.
    pub(crate) fn next_shard(&self, shards: usize) -> Hand {
        Hand::before(self.shards_begun.fetch_add(1, Ordering::Relaxed) & (shards - 1))
    }

    #[inline]
    fn known_to<'k>(&self, known: &'k mut KnownRemembered) -> Option<&'k Ghosts> {
        self.follow(known);
        known.ghosts.as_deref()
    }

    #[inline]
    fn follow(&self, known: &mut KnownRemembered) {
        let number = self.number.load(Ordering::Acquire);
        if known.number != number {
            known.ghosts = self.ghosts.read().clone();
            known.number = number;
        }
    }

    fn replace(&self, ghosts: Option<Ghosts>) {
        let mut place = self.ghosts.write();
        *place = ghosts.map(Arc::new);
        self.number.fetch_add(1, Ordering::Release);
    }
}

impl Engine {
    /// The access bits of a key that is made now, which may be one that was evicted of late.
    #[inline]
    pub(crate) fn access_of_new(&self, worker: &mut Worker, hash: KeyHash) -> u32 {
        if worker.clock.access.notes_turnover() {
            self.access_of_coming(worker, hash)
        } else {
            worker.clock.access.created()
        }
    }

    #[inline(never)]
    fn access_of_coming(&self, worker: &mut Worker, hash: KeyHash) -> u32 {
        worker.remembered.came += 1;
        let keys_to_tick = turnover::keys_to_tick(self.config.maxmemory());
        if worker.remembered.came >= keys_to_tick {
            worker.remembered.came = 0;
            if self.remembered.turnover.advance().is_multiple_of(TICKS_BETWEEN_COUNTS) {
                self.remembered.turnover.note_round(self.keys_about() / keys_to_tick);
            }
        }
        let ghosts = self.remembered.known_to(&mut worker.remembered);
        let hits = ghosts.and_then(|ghosts| ghosts.take(hash)).map_or(0, worth::hits_again);
        turnover::bits(worker.clock.access.tick(), hits)
    }

    /// Remembers a key that is evicted.
    #[inline]
    pub(crate) fn remember(&self, worker: &mut Worker, entry: EntryRef<'_>) {
        if worker.clock.access.notes_turnover()
            && let Some(ghosts) = self.remembered.known_to(&mut worker.remembered)
        {
            ghosts.note(self.shards.hash(entry.key()), turnover::hits(entry.access()));
        }
    }

    /// Lets go of what is not remembered any more: a thread without evictions would keep it for good.
    pub(crate) fn follow_remembered(&self, worker: &mut Worker) {
        self.remembered.follow(&mut worker.remembered);
    }

    /// Goes round all keys, a few shards at a time: the clock begins anew some time, and what nobody had used for so long would seem
    /// to be used just now. A shard that is held is passed by for this round. For a tick.
    pub(crate) fn age_keys(&self, worker: &Worker) {
        if !worker.clock.access.notes_turnover() {
            return;
        }
        let shards = self.shards.count();
        let ticks_each = (turnover::TICKS_OF_AGING / shards as u32).max(1);
        let steps = turnover::TICKS / ticks_each;
        let tick = self.remembered.turnover.tick();
        let from = self.remembered.aged_to.load(Ordering::Relaxed);
        let due = (tick / ticks_each).wrapping_sub(from) % steps;
        let due = due.min(SHARDS_AGED_AT_ONCE);
        for step in from..from + due {
            if let Some(mut state) = self.shards.try_lock(step as usize % shards) {
                state.shard.databases_mut().for_each(|(_, keyspace)| aging::keep_old(keyspace, tick));
            }
        }
        if due > 0 {
            self.remembered.aged_to.store((from + due) % steps, Ordering::Relaxed);
        }
    }

    /// Makes room for as many keys as should be remembered, if there is much too much or too little, once a second.
    /// No shard is locked.
    pub(crate) fn fit_remembered(&self, worker: &Worker) {
        let remembered = &self.remembered;
        let now_ms = worker.clock.now_ms;
        let is_due = now_ms.abs_diff(remembered.fitted_ms.load(Ordering::Relaxed)) >= FIT_EVERY_MS;
        if is_due && remembered.number.load(Ordering::Relaxed) != 0 {
            self.fit(now_ms);
        }
    }

    /// Begins to remember, as this is the first key that is evicted. No shard is locked.
    #[inline]
    pub(crate) fn begin_to_remember(&self, worker: &Worker) {
        if self.remembered.number.load(Ordering::Relaxed) == 0 {
            self.fit(worker.clock.now_ms);
        }
    }

    #[cold]
    fn fit(&self, now_ms: u64) {
        self.remembered.fitted_ms.store(now_ms, Ordering::Relaxed);
        let room = self.remembered.ghosts.read().as_ref().map_or(0, |ghosts| ghosts.room());
        let limit = self.config.maxmemory() as usize;
        if !self.policy().remembers() || limit == 0 {
            if room > 0 {
                self.remembered.replace(None);
            }
            return;
        }
        // Shards that somebody holds are left out: a script may hold them for long.
        let lengths = (0..self.shards.count()).filter_map(|index| Some(self.shards.try_lock(index)?.shard.keys()));
        let wanted = (lengths.sum::<usize>() * GHOSTS_A_KEY).min(limit / GHOSTS_OF_LIMIT / Ghosts::BYTES);
        // What was remembered is lost, so it must be worth it. The first time says that somebody has looked.
        let is_first = self.remembered.number.load(Ordering::Relaxed) == 0;
        if is_first || wanted > 2 * room || wanted * SURPLUS_MAX < room {
            self.remembered.replace((wanted > 0).then(|| Ghosts::new(wanted)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Caller, Config, Machine};
    use tenon_store::entry::{Meta, NewValue};

    #[test]
    fn a_round_is_as_many_ticks_as_the_keys_that_are_there_make() {
        let engine = Engine::new(Config::new(Machine::of_cores(1)), &[], 1);
        let settings: [(&[u8], &[u8]); 2] = [(b"maxmemory", b"8mb"), (b"maxmemory-policy", b"allkeys-tenon")];
        engine.set_config(&settings, Caller::Local).expect("they are valid values");
        let mut worker = engine.worker(0);
        engine.read_clock(&mut worker);
        for number in 0..12_800_u32 {
            engine.access_of_new(&mut worker, engine.shards.hash(&number.to_be_bytes()));
            worker.stats.keys.added(0);
        }
        // Two keys make a tick, so a round is 6,400 ticks and a part of it, within which a hit counts nothing, 200.
        let counted = |gap: u32| {
            turnover::hits(engine.remembered.turnover().used_again(1_000 + gap, turnover::bits(1_000, 1))) - 1
        };
        assert_eq!([190_u32, 205, 790, 805].map(counted), [0, 1, 1, 2]);
    }

    #[test]
    fn who_is_not_used_stays_old_however_long() {
        let engine = Engine::new(Config::new(Machine::of_cores(1)), &[], 1);
        let settings: [(&[u8], &[u8]); 1] = [(b"maxmemory-policy", b"allkeys-tenon")];
        engine.set_config(&settings, Caller::Local).expect("it is a valid value");
        let turnover = engine.remembered.turnover();
        let names: Vec<[u8; 4]> = (0..100_u32).map(u32::to_be_bytes).collect();
        for key in &names {
            let hash = engine.shards.hash(key);
            let meta = Meta { access: turnover::bits(turnover.tick(), 3), ..Meta::default() };
            let mut state = engine.shards.lock(engine.shards.index(hash));
            state.shard.database_mut(3).insert(hash, key, NewValue::Bytes(b"value"), &meta, 0);
        }
        let mut worker = engine.worker(0);
        engine.read_clock(&mut worker);
        for passed in 1..=3 * turnover::TICKS {
            turnover.advance();
            if passed % 16 == 0 {
                engine.age_keys(&worker);
            }
            if passed % 100_000 == 0 {
                for key in &names {
                    let hash = engine.shards.hash(key);
                    let state = engine.shards.lock(engine.shards.index(hash));
                    let keyspace = state.shard.database(3).expect("it was used");
                    let access = keyspace.entry(keyspace.find(hash, key).expect("it is there")).access();
                    let age = turnover::age(turnover.tick(), access);
                    assert_eq!(turnover::hits(access), 3);
                    assert!(age >= passed.min(turnover::AGE_KEPT), "{age} after {passed}");
                }
            }
        }
    }

    /// A thread that nothing comes to any more knew for good what it had known at the end.
    #[test]
    fn what_was_remembered_goes_with_the_keys_from_every_thread() {
        let machine = Machine::of_cores(2);
        let engine = Engine::new(Config::new(machine), &[], 1);
        let settings: [(&[u8], &[u8]); 2] = [(b"maxmemory", b"1gb"), (b"maxmemory-policy", b"allkeys-tenon")];
        engine.set_config(&settings, Caller::Local).expect("they are valid values");
        for number in 0..1_000_u32 {
            let key = number.to_be_bytes();
            let hash = engine.shards.hash(&key);
            let mut state = engine.shards.lock(engine.shards.index(hash));
            state.shard.database_mut(0).insert(hash, &key, NewValue::Bytes(b"value"), &Meta::default(), 0);
        }
        let (mut worker, mut other, mut stand_in) = (engine.worker(0), engine.worker(1), engine.stand_in(0));
        engine.begin_to_remember(&worker);
        for thread in [&mut worker, &mut other, &mut stand_in] {
            engine.read_clock(thread);
            engine.access_of_new(thread, engine.shards.hash(b"new"));
            assert!(thread.remembered.ghosts.as_ref().is_some_and(|ghosts| ghosts.room() >= 2_000));
        }
        let ghosts = Arc::downgrade(engine.remembered.ghosts.read().as_ref().expect("keys are remembered"));

        (0..engine.shards.count()).for_each(|index| drop(engine.shards.lock(index).shard.take(0)));
        engine.remembered.fitted_ms.store(0, Ordering::Relaxed);
        engine.tick(&mut worker);
        engine.tick(&mut other);
        engine.rest(&mut stand_in);
        assert!(ghosts.upgrade().is_none(), "{} threads have what was remembered", ghosts.strong_count());
        // There is nothing to be made smaller any more.
        let number = engine.remembered.number.load(Ordering::Relaxed);
        engine.remembered.fitted_ms.store(0, Ordering::Relaxed);
        engine.tick(&mut worker);
        assert_eq!(engine.remembered.number.load(Ordering::Relaxed), number);
    }
}
