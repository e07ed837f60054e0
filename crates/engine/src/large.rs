//! The largest keys, kept while the server runs: whoever changes a large value notes it, so that nobody has to look through
//! all keys for it. What is noted are candidates; whoever asks looks at each anew. Knows no command.
//!
//! Every key lies in one of `STRIPES` lists of up to `CANDIDATES` keys. When a list is full, a larger key displaces the
//! smallest. Keys that have gone make way when a tick looks through a list that has refused a key, when somebody asks, or with
//! all of their database.
//!
//! How much a collection takes is known only by adding up its parts. So a change looks only now and then: with a
//! probability that grows with the bytes that it has allocated or freed, which the thread's count of memory tells at no
//! cost, and falls with the steps that the adding takes. A value that doubles is looked at some sixteen times on the way.

use crate::context::{KeyCx, ServerCx};
use crate::engine::Engine;
use crate::worker::Worker;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tenon_ds::memory::counted_here;
use tenon_store::Slot;
use tenon_store::entry::ValueRef;
use tenon_store::hash::KeyHash;
use tenon_store::keyspace::is_past;
use tenon_store::types::ValueType;

/// Bytes from which a key counts as large.
pub const LARGE_MIN: usize = 16 * 1024;
/// A key with a longer name is not noted, in bytes: 4,096 of them would take much memory, and they stay when it goes.
const NAME_LEN_MAX: usize = 1024;
/// How many lists there are.
const STRIPES: usize = 64;
/// A change of so many bytes for each step of adding up is always looked at.
const CERTAIN_BYTES: u64 = 512;
/// A change counts as at least so many bytes: what a full list has refused gets another chance now and then.
const COUNTED_LEAST: u64 = 8;
/// Steps that are taken to know how much a value takes that a key has just got.
const EXACT_STEPS_MAX: usize = 64;
/// Keys in a list. The keys are spread by their hashes: the largest 128 of all are hardly ever more than twenty in one.
const CANDIDATES: usize = 64;

/// A key that was large when it changed last.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    hash: KeyHash,
    database: usize,
    key: Box<[u8]>,
    /// What it took then.
    bytes: usize,
}

/// The large keys of a part of the shards.
#[derive(Debug, Default)]
struct Stripe {
    candidates: Mutex<Vec<Candidate>>,
    /// Whether it had no room for a key of late.
    has_refused: AtomicBool,
}

/// The large keys of all databases.
#[derive(Debug)]
pub struct LargeKeys {
    stripes: Box<[Stripe]>,
}

impl Default for LargeKeys {
    fn default() -> LargeKeys {
        LargeKeys { stripes: (0..STRIPES).map(|_| Stripe::default()).collect() }
    }
}

/// A large key as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeKey {
    /// In which database it is.
    pub database: usize,
    /// The key.
    pub key: Box<[u8]>,
    /// Bytes of memory, its place in the tables included.
    pub bytes: usize,
    /// What it holds.
    pub value_type: ValueType,
}

impl LargeKeys {
    fn stripe(&self, shard: usize) -> &Stripe {
        &self.stripes[shard % STRIPES]
    }

    /// Notes what a key takes. The caller holds its shard.
    #[cold]
    fn note(&self, shard: usize, hash: KeyHash, database: usize, key: &[u8], bytes: usize) {
        let stripe = self.stripe(shard);
        let mut candidates = stripe.candidates.lock();
        let known = candidates.iter_mut().find(|it| it.hash == hash && it.database == database && *it.key == *key);
        if let Some(known) = known {
            known.bytes = bytes;
            return;
        }
        if bytes < LARGE_MIN || key.len() > NAME_LEN_MAX {
            return;
        }
        let candidate = || Candidate { hash, database, key: key.into(), bytes };
        if candidates.len() < CANDIDATES {
            candidates.push(candidate());
        } else if let Some(least) = candidates.iter_mut().min_by_key(|it| it.bytes) {
            stripe.has_refused.store(true, Ordering::Relaxed);
            if least.bytes < bytes {
                *least = candidate();
            }
        }
    }

    /// Forgets the keys of a database, or of all. The caller holds all shards.
    pub(crate) fn forget(&self, database: Option<usize>) {
        for stripe in &self.stripes {
            stripe
                .candidates
                .lock()
                .retain(|candidate| database.is_some_and(|database| candidate.database != database));
        }
    }

    /// Notes that two databases have exchanged their keys.
    pub fn swap(&self, first: usize, second: usize) {
        for stripe in &self.stripes {
            for candidate in stripe.candidates.lock().iter_mut() {
                candidate.database = match candidate.database {
                    database if database == first => second,
                    database if database == second => first,
                    database => database,
                };
            }
        }
    }

    /// Sets right what is noted of a key, or forgets it.
    fn correct(&self, shard: usize, candidate: &Candidate, bytes: Option<usize>) {
        let mut candidates = self.stripe(shard).candidates.lock();
        let place = candidates
            .iter()
            .position(|it| it.hash == candidate.hash && it.database == candidate.database && it.key == candidate.key);
        match (place, bytes) {
            (Some(place), Some(bytes)) => candidates[place].bytes = bytes,
            (Some(place), None) => _ = candidates.swap_remove(place),
            (None, _) => {}
        }
    }
}

/// Whether a value whose size takes so many steps to add up is looked at after a change by so many bytes.
#[inline]
fn is_looked_at(steps: usize, bytes: usize, random: u32) -> bool {
    let changed = (bytes as u64).clamp(COUNTED_LEAST, u32::MAX.into());
    changed << 32 > u64::from(random).saturating_mul(CERTAIN_BYTES * steps as u64)
}

/// What is remembered while a value is changed: how much this thread had allocated before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeBefore {
    counted: isize,
}

impl SizeBefore {
    /// The moment before the change.
    #[inline]
    pub(crate) fn now() -> SizeBefore {
        SizeBefore { counted: counted_here() }
    }

    /// By how many bytes what the thread has allocated has changed since.
    #[inline]
    fn changed_by(self) -> usize {
        counted_here().abs_diff(self.counted)
    }
}

impl KeyCx<'_> {
    /// Notes the key if its value, which has just changed, is large.
    #[inline]
    pub(crate) fn note_size(&mut self, slot: Slot, before: SizeBefore) {
        let (bytes, random) = (before.changed_by(), self.worker.random());
        if is_looked_at(1, bytes, random) {
            self.look_if_due(slot, bytes, random);
        }
    }

    #[cold]
    fn look_if_due(&self, slot: Slot, bytes: usize, random: u32) {
        let ValueRef::Object(object) = self.entry(slot).value() else { return };
        if is_looked_at(object.memory_steps(), bytes, random) {
            self.look_at_size(slot);
        }
    }

    /// Notes the key if its value is large.
    #[cold]
    pub(crate) fn look_at_size(&self, slot: Slot) {
        self.note_bytes(self.entry(slot).memory());
    }

    /// Notes the key if its value, which it got just now, is large. Of one with very many parts that is known about: it may have
    /// been another key's before, and changing the name is to take no longer for it. Whoever asks looks anew.
    pub(crate) fn look_at_new_size(&self, slot: Slot) {
        let entry = self.entry(slot);
        let is_quick = !matches!(entry.value(), ValueRef::Object(object) if object.memory_steps() > EXACT_STEPS_MAX);
        self.note_bytes(if is_quick { entry.memory() } else { entry.rough_memory() });
    }

    fn note_bytes(&self, bytes: usize) {
        let shard = self.engine.shards.index(self.hash);
        let large = &self.engine.large;
        // A key that has shrunk may be noted as a large one.
        if bytes >= LARGE_MIN / 2 {
            large.note(shard, self.hash, self.database, self.key, bytes);
        }
    }
}

impl Engine {
    /// Lets keys that have gone make way in a list that has refused one. Looks through one list at most.
    pub(crate) fn weed_large_keys(&self, worker: &Worker) {
        let Some(stripe) = self.large.stripes.iter().find(|it| it.has_refused.load(Ordering::Relaxed)) else { return };
        stripe.has_refused.store(false, Ordering::Relaxed);
        let candidates = stripe.candidates.lock().clone();
        for candidate in candidates {
            let shard = self.shards.index(candidate.hash);
            let Some(state) = self.shards.try_lock(shard) else { continue };
            let keyspace = state.shard.database(candidate.database);
            let entry = keyspace.and_then(|keyspace| keyspace.find_entry(candidate.hash, &candidate.key));
            let is_there = entry.is_some_and(|(_, entry)| !is_past(entry.deadline_ms(), worker.clock.now_ms));
            drop(state);
            if !is_there {
                self.large.correct(shard, &candidate, None);
            }
        }
    }
}

/// The largest `count` keys, of one type or of any, as they are now, the largest first. Looks at every candidate.
pub fn largest_keys(cx: &mut ServerCx<'_>, count: usize, value_type: Option<ValueType>) -> Vec<LargeKey> {
    let engine = cx.engine;
    let now_ms = cx.worker.clock.now_ms;
    let mut found = Vec::new();
    for stripe in &engine.large.stripes {
        // Whoever notes a key holds its shard: the list is not held while a shard is asked for.
        let candidates = stripe.candidates.lock().clone();
        for candidate in candidates {
            let shard = engine.shards.index(candidate.hash);
            let large = cx.one_shard(shard, |_, state| {
                let keyspace = state.shard.database(candidate.database)?;
                let (_, entry) = keyspace.find_entry(candidate.hash, &candidate.key)?;
                let bytes = entry.memory() + keyspace.overhead().div_ceil(keyspace.len());
                let is_there = !is_past(entry.deadline_ms(), now_ms);
                (is_there && bytes >= LARGE_MIN).then(|| (bytes, ValueType::of(entry.value())))
            });
            engine.large.correct(shard, &candidate, large.map(|(bytes, _)| bytes));
            let Some((bytes, of_type)) = large else { continue };
            if value_type.is_none_or(|wanted| wanted == of_type) {
                let Candidate { database, key, .. } = candidate;
                found.push(LargeKey { database, key, bytes, value_type: of_type });
            }
        }
    }
    found.sort_unstable_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.key.cmp(&other.key)));
    found.truncate(count);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_store::hash::KeyHasher;

    #[test]
    fn what_is_emptied_is_forgotten_and_long_names_are_never_kept() {
        let large = LargeKeys::default();
        let names = || -> Vec<(usize, usize)> {
            let lists = large.stripes.iter().map(|stripe| stripe.candidates.lock().clone());
            let mut names: Vec<_> = lists.flatten().map(|it| (it.database, it.key.len())).collect();
            names.sort_unstable();
            names
        };
        let fill = || {
            for (database, len) in [(0, 1), (0, NAME_LEN_MAX), (0, NAME_LEN_MAX + 1), (3, 2), (3, 1 << 20)] {
                let key = vec![b'k'; len];
                large.note(len, KeyHasher::new(1).hash(&key), database, &key, 2 << 20);
            }
        };
        fill();
        assert_eq!(names(), [(0, 1), (0, NAME_LEN_MAX), (3, 2)]);
        large.forget(Some(0));
        assert_eq!(names(), [(3, 2)]);
        fill();
        large.forget(None);
        assert_eq!(names(), []);
    }
}
