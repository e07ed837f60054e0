//! The sharded store and who may touch it: one lock a shard, several always in the order of their indexes. Knows no
//! command.

mod held;

use crate::stray::Stray;
use crate::watch::Watched;
pub use held::{Held, Locked};
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tenon_ds::hash_table::Place;
use tenon_store::Slot;
use tenon_store::entry::EntryRef;
use tenon_store::hash::{KeyHash, KeyHasher};
use tenon_store::shard::Shard;

/// What a shard's lock protects.
#[derive(Default)]
pub struct ShardState {
    /// The keys.
    pub shard: Shard,
    /// Sessions that watch keys of this shard; almost always none.
    pub watched: Option<Box<Watched>>,
}

/// A shard in cache lines of its own, so that two workers on neighbouring shards do not disturb each other.
#[repr(align(64))]
struct Cell(Mutex<ShardState>);

const _: () = assert!(size_of::<Cell>() == 64);

/// All shards.
pub struct Shards {
    hasher: KeyHasher,
    cells: Box<[Cell]>,
    /// For each shard, where the slots of database 0 were when a batch last looked.
    places: Box<[LastPlace]>,
    /// For each shard a time before which none of its keys is due, in milliseconds; `u64::MAX`: none has a deadline.
    /// Lowered under the shard's lock; read without it by the ticks.
    due_ms: Box<[AtomicU64]>,
    /// For each part of the shards (one a worker: every so manieth shard) a time before which nothing in it is due, so
    /// that a tick with nothing to do looks at one word.
    parts: Box<[FirstDue]>,
    /// Which shards may have keys, a bit each: who looks for keys passes the others by. A bit is set under its shard's lock
    /// with the first key, and taken away by who finds the shard empty, not with its last key: so a key that comes and
    /// goes writes nothing here.
    with_keys: Box<[AtomicU64]>,
    /// In how many shards a key may have very many members with deadlines.
    with_many_deadlines: AtomicUsize,
    /// The script that may wait for any shard.
    pub(crate) stray: Stray,
}

/// Where a table was. The two parts may be of different times: then a prefetch goes astray, as it does when both are old.
#[derive(Default)]
struct LastPlace {
    address: AtomicUsize,
    homes: AtomicU32,
}

impl LastPlace {
    #[inline]
    fn last(&self) -> Place {
        Place { address: self.address.load(Ordering::Relaxed), homes: self.homes.load(Ordering::Relaxed) }
    }

    #[inline]
    fn note(&self, place: Place) {
        if self.last() != place {
            self.address.store(place.address, Ordering::Relaxed);
            self.homes.store(place.homes, Ordering::Relaxed);
        }
    }
}

/// Read by the ticks of one worker, lowered by any: on a cache line of its own.
#[repr(align(64))]
struct FirstDue(AtomicU64);

impl Shards {
    /// `count` empty shards (a power of two) whose hash starts from `seed`, expired in `parts` parts.
    pub fn new(count: usize, seed: u64, parts: usize) -> Shards {
        assert!(count.is_power_of_two(), "the shard is chosen by the hash's low bits");
        Shards {
            hasher: KeyHasher::new(seed),
            cells: (0..count).map(|_| Cell(Mutex::default())).collect(),
            places: (0..count).map(|_| LastPlace::default()).collect(),
            due_ms: (0..count).map(|_| AtomicU64::new(u64::MAX)).collect(),
            parts: (0..parts).map(|_| FirstDue(AtomicU64::new(u64::MAX))).collect(),
            with_keys: (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            with_many_deadlines: AtomicUsize::new(0),
            stray: Stray::default(),
        }
    }

    /// How many shards there are.
    #[inline]
    pub fn count(&self) -> usize {
        self.cells.len()
    }

    /// The hash of a key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.hasher.hash(key)
    }

    /// The shard of a hash.
    #[inline]
    pub fn index(&self, hash: KeyHash) -> usize {
        hash.shard(self.cells.len())
    }

    /// The shards of several keys.
    pub(crate) fn indexes(&self, hashes: &[KeyHash]) -> Vec<usize> {
        hashes.iter().map(|hash| self.index(*hash)).collect()
    }

    /// Locks the shard of this index.
    #[inline]
    pub fn lock(&self, index: usize) -> MutexGuard<'_, ShardState> {
        self.cells[index].0.lock()
    }

    /// Locks the shard of this index if nobody holds it.
    #[inline]
    pub fn try_lock(&self, index: usize) -> Option<MutexGuard<'_, ShardState>> {
        self.cells[index].0.try_lock()
    }

    /// Starts loading the shard's lock and table header, and the slots of database 0 where they were last.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        let index = self.index(hash);
        tenon_ds::hash_table::prefetch(std::ptr::from_ref(&self.cells[index]).cast());
        self.places[index].last().prefetch(hash.tag());
    }

    /// Starts loading the entry of a key of a database. `prefetch` was called for the key before; where this is done for
    /// several keys at once, none waits for another. Gives the slot in which it is to be looked for first.
    #[inline(always)]
    pub fn prefetch_entry(&self, database: usize, hash: KeyHash) -> Slot {
        let index = self.index(hash);
        // A shard that another worker holds is not waited for.
        if let Some(state) = self.try_lock(index)
            && let Some(keyspace) = state.shard.database(database)
        {
            if database == 0 {
                self.places[index].note(keyspace.place());
            }
            return keyspace.prefetch_entry(hash);
        }
        Slot::NOWHERE
    }

    /// Calls `visit` with the entry of a key, past its deadline or not, if it is there and nobody else holds its shard.
    #[inline]
    pub(crate) fn glance(&self, database: usize, hash: KeyHash, key: &[u8], visit: impl FnOnce(EntryRef<'_>)) {
        if let Some(state) = self.try_lock(self.index(hash))
            && let Some(keyspace) = state.shard.database(database)
            && let Some((_, entry)) = keyspace.find_entry(hash, key)
        {
            visit(entry);
        }
    }

    /// Locks the shard of this index, if that is possible within this time.
    pub(crate) fn try_lock_for(&self, index: usize, at_most: Duration) -> Option<MutexGuard<'_, ShardState>> {
        self.cells[index].0.try_lock_for(at_most)
    }

    /// Notes that a key of the shard is due at `deadline_ms`. The caller holds the shard's lock.
    #[inline]
    pub fn note_due(&self, index: usize, deadline_ms: u64) {
        let due = &self.due_ms[index];
        if deadline_ms < due.load(Ordering::Relaxed) {
            due.store(deadline_ms, Ordering::Relaxed);
            // Released, so that a tick that has taken this sees the shard's time too.
            self.parts[index % self.parts.len()].0.fetch_min(deadline_ms, Ordering::Release);
        }
    }

    /// Whether anything in a part may be due at `now_ms`. The caller then looks at all of the part's shards and says
    /// what it found with `set_first_due`.
    pub fn take_part_due(&self, part: usize, now_ms: u64) -> bool {
        let first = &self.parts[part].0;
        first.load(Ordering::Relaxed) <= now_ms && first.swap(u64::MAX, Ordering::Acquire) <= now_ms
    }

    /// When the first key of a part is due, as far as anybody has said; `u64::MAX` if none is.
    pub(crate) fn part_due_ms(&self, part: usize) -> u64 {
        self.parts[part].0.load(Ordering::Relaxed)
    }

    /// Says when the first key of a part is due, as far as the caller has seen.
    pub fn set_first_due(&self, part: usize, due_ms: u64) {
        self.parts[part].0.fetch_min(due_ms, Ordering::Relaxed);
    }

    /// Sets when the first key of the shard is due. The caller holds the shard's lock.
    pub fn set_due(&self, index: usize, due_ms: Option<u64>) {
        self.due_ms[index].store(due_ms.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Notes that the shard has a key. The caller holds its lock.
    #[inline]
    pub(crate) fn note_key(&self, index: usize) {
        let (word, bit) = (&self.with_keys[index / 64], 1 << (index % 64));
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Release);
        }
    }

    /// Notes that the shard has no keys, if it is so. The caller holds its lock.
    pub(crate) fn note_if_empty(&self, index: usize, shard: &Shard) {
        if shard.used_databases().next().is_none() {
            self.with_keys[index / 64].fetch_and(!(1 << (index % 64)), Ordering::Release);
        }
    }

    /// Whether the shard may have keys.
    #[inline]
    pub(crate) fn may_have_keys(&self, index: usize) -> bool {
        self.with_keys[index / 64].load(Ordering::Acquire) >> (index % 64) & 1 != 0
    }

    /// The first shard from this one on that may have keys; how many there are where none has.
    pub fn next_with_keys(&self, from: usize) -> usize {
        let mut at = from;
        while at < self.count() {
            let left = self.with_keys[at / 64].load(Ordering::Acquire) >> (at % 64);
            if left != 0 {
                return at + left.trailing_zeros() as usize;
            }
            at = (at / 64 + 1) * 64;
        }
        self.count()
    }

    /// All shards from this one on that may have keys, in order.
    pub fn with_keys_from(&self, from: usize) -> impl Iterator<Item = usize> {
        let next = |from| Some(self.next_with_keys(from)).filter(|&shard| shard < self.count());
        std::iter::successors(next(from), move |&shard| next(shard + 1))
    }

    /// Notes that a key of the shard has very many members with deadlines. The caller holds the shard's lock.
    pub(crate) fn note_many_deadlines(&self, shard: &mut Shard) {
        if !shard.has_many_deadlines() {
            shard.note_many_deadlines();
            self.with_many_deadlines.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Forgets that one had, if no key of the shard has members with deadlines any more. The caller holds its lock.
    pub(crate) fn forget_many_deadlines(&self, shard: &mut Shard) {
        if shard.has_many_deadlines() {
            shard.forget_many_deadlines();
            if !shard.has_many_deadlines() {
                self.with_many_deadlines.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Whether a key of any shard may have very many members with deadlines.
    #[inline]
    pub(crate) fn have_many_deadlines(&self) -> bool {
        self.with_many_deadlines.load(Ordering::Relaxed) > 0
    }

    /// A time before which no key of the shard is due, in milliseconds.
    #[inline]
    pub fn due_ms(&self, index: usize) -> u64 {
        self.due_ms[index].load(Ordering::Relaxed)
    }
}
