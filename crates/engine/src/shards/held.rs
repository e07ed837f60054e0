//! Shards that are locked together. Knows nothing of when they may be.

use super::{ShardState, Shards};
use parking_lot::MutexGuard;
use tenon_store::hash::KeyHash;

/// Of how many keys the entries are loaded ahead: a few lines each, which together are to fit into the nearest cache.
const PREFETCH_MAX: usize = 128;

/// So many shards that were taken one after the other are quickly found in a list.
const LISTED_MAX: usize = 16;

/// Shards that are locked together, however they are held.
pub trait Locked {
    /// Whether the shard of this index is held.
    fn holds(&self, index: usize) -> bool;

    /// The shard of this index, which must be held.
    ///
    /// # Panics
    /// When it is not: the command's declaration does not name a key that its handler touches.
    fn shard(&mut self, index: usize) -> &mut ShardState;

    /// The shard of this index, for reading: several at the same time.
    ///
    /// # Panics
    /// As `shard` does.
    fn shard_ref(&self, index: usize) -> &ShardState;

    /// Every held shard with its index, in order, until `visit` answers `false`.
    fn each(&mut self, visit: &mut dyn FnMut(usize, &mut ShardState) -> bool);

    /// Lets all of them go.
    fn let_go(&mut self);
}

/// Shards that are locked together.
pub struct Held<'a>(Guards<'a>);

enum Guards<'a> {
    /// In the order of their indexes: those that a command needs, or all.
    Listed { indexes: Vec<usize>, guards: Vec<MutexGuard<'a, ShardState>>, ranks: Option<Ranks> },
    /// Each at its index: those of a script that has taken many, one after the other.
    Spread { guards: Box<[Option<MutexGuard<'a, ShardState>>]>, len: usize },
}

impl<'a> Held<'a> {
    /// The shards of these indexes, in order, and their guards.
    pub(crate) fn new(indexes: Vec<usize>, guards: Vec<MutexGuard<'a, ShardState>>) -> Held<'a> {
        debug_assert!(indexes.len() == guards.len() && indexes.is_sorted());
        // Where every shard is held, each is at its index.
        let is_every = indexes.last().is_some_and(|last| last + 1 == indexes.len());
        let ranks = (indexes.len() > LISTED_MAX && !is_every).then(|| Ranks::of(&indexes));
        Held(Guards::Listed { indexes, guards, ranks })
    }

    /// None.
    pub(crate) fn none() -> Held<'a> {
        Held::new(Vec::new(), Vec::new())
    }

    /// How many shards are held.
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Guards::Listed { indexes, .. } => indexes.len(),
            Guards::Spread { len, .. } => *len,
        }
    }

    /// Which shards are held, in order.
    pub(crate) fn indexes(&self) -> Vec<usize> {
        match &self.0 {
            Guards::Listed { indexes, .. } => indexes.clone(),
            Guards::Spread { guards, .. } => (0..guards.len()).filter(|index| guards[*index].is_some()).collect(),
        }
    }

    /// Adds a shard that is not held yet, of so many that there are.
    pub(crate) fn add(&mut self, index: usize, guard: MutexGuard<'a, ShardState>, count: usize) {
        if let Guards::Listed { indexes, guards, .. } = &mut self.0 {
            if indexes.len() < LISTED_MAX {
                let at = indexes.binary_search(&index).expect_err("a shard is locked once");
                indexes.insert(at, index);
                guards.insert(at, guard);
                return;
            }
            let mut spread: Box<[_]> = (0..count).map(|_| None).collect();
            let len = indexes.len();
            indexes.drain(..).zip(guards.drain(..)).for_each(|(index, guard)| spread[index] = Some(guard));
            self.0 = Guards::Spread { guards: spread, len };
        }
        if let Guards::Spread { guards, len } = &mut self.0 {
            let before = guards[index].replace(guard);
            debug_assert!(before.is_none(), "a shard is locked once");
            *len += 1;
        }
    }

    /// Which shards are wanting to serve those who wait in these.
    pub(crate) fn further(&self) -> Vec<usize> {
        let mut further = Vec::new();
        let look = |state: &MutexGuard<'_, ShardState>| {
            // Almost always there is none, and thousands of shards may be held.
            if let Some(watched) = &state.watched {
                further.extend(watched.further().filter(|index| !self.holds(*index)));
            }
        };
        match &self.0 {
            Guards::Listed { guards, .. } => guards.iter().for_each(look),
            Guards::Spread { guards, .. } => guards.iter().flatten().for_each(look),
        }
        further
    }

    /// All of them where those are among them which serving needs who waits in these; else lets them go, and gives which shards are
    /// wanted instead. Once they are held they may name others: nobody comes or goes in a shard that is held.
    pub(crate) fn with_further(self) -> Result<Self, Vec<usize>> {
        let further = self.further();
        if further.is_empty() {
            return Ok(self);
        }
        let mut indexes = self.into_indexes();
        indexes.extend(further);
        Err(indexes)
    }

    /// Lets all of them go; gives which they were.
    pub(crate) fn into_indexes(self) -> Vec<usize> {
        match self.0 {
            Guards::Listed { indexes, .. } => indexes,
            Guards::Spread { .. } => self.indexes(),
        }
    }

    /// Starts loading the entries of these keys of a database, which lie in held shards. None waits for another then, but
    /// a cache holds only so many.
    pub(crate) fn prefetch_entries(&self, shards: &Shards, database: usize, hashes: &[KeyHash]) {
        // One alone is looked for at once.
        let hashes = if hashes.len() > 1 { hashes } else { &[] };
        for &hash in hashes.iter().take(PREFETCH_MAX) {
            if let Some(keyspace) = self.shard_ref(shards.index(hash)).shard.database(database) {
                keyspace.prefetch_entry(hash);
            }
        }
    }
}

/// What a handler touches that its declaration does not name.
const NOT_NAMED: &str = "a handler touches only keys that its declaration names";

/// Where shards are in a list of many that are held: for each 64 shards a bit for each that is, and how many are before them.
struct Ranks(Box<[(u64, u32)]>);

impl Ranks {
    fn of(indexes: &[usize]) -> Ranks {
        let words = indexes.last().map_or(0, |last| last / 64 + 1);
        let mut ranks = vec![(0u64, 0); words].into_boxed_slice();
        for (index, place) in indexes.iter().zip(0u32..) {
            let (held, before) = &mut ranks[index / 64];
            if *held == 0 {
                *before = place;
            }
            *held |= 1 << (index % 64);
        }
        Ranks(ranks)
    }

    #[inline]
    fn place_of(&self, index: usize) -> Option<usize> {
        let (held, before) = *self.0.get(index / 64)?;
        let bit = 1 << (index % 64);
        (held & bit != 0).then(|| before as usize + (held & (bit - 1)).count_ones() as usize)
    }
}

/// Where a shard is in a list of those that are held.
#[inline]
fn place_of(indexes: &[usize], ranks: Option<&Ranks>, index: usize) -> Option<usize> {
    match ranks {
        Some(ranks) => ranks.place_of(index),
        // Either every shard is held or a few.
        None if indexes.get(index) == Some(&index) => Some(index),
        None => indexes.binary_search(&index).ok(),
    }
}

impl Locked for Held<'_> {
    #[inline]
    fn holds(&self, index: usize) -> bool {
        match &self.0 {
            Guards::Listed { indexes, ranks, .. } => place_of(indexes, ranks.as_ref(), index).is_some(),
            Guards::Spread { guards, .. } => guards[index].is_some(),
        }
    }

    fn shard(&mut self, index: usize) -> &mut ShardState {
        match &mut self.0 {
            Guards::Listed { indexes, guards, ranks } => {
                &mut guards[place_of(indexes, ranks.as_ref(), index).expect(NOT_NAMED)]
            }
            Guards::Spread { guards, .. } => guards[index].as_mut().expect(NOT_NAMED),
        }
    }

    fn shard_ref(&self, index: usize) -> &ShardState {
        match &self.0 {
            Guards::Listed { indexes, guards, ranks } => {
                &guards[place_of(indexes, ranks.as_ref(), index).expect(NOT_NAMED)]
            }
            Guards::Spread { guards, .. } => guards[index].as_ref().expect(NOT_NAMED),
        }
    }

    fn each(&mut self, visit: &mut dyn FnMut(usize, &mut ShardState) -> bool) {
        match &mut self.0 {
            Guards::Listed { indexes, guards, .. } => {
                let mut held = indexes.iter().zip(guards);
                _ = held.all(|(index, guard)| visit(*index, guard));
            }
            Guards::Spread { guards, .. } => {
                let mut held =
                    guards.iter_mut().enumerate().filter_map(|(index, guard)| Some((index, guard.as_mut()?)));
                _ = held.all(|(index, guard)| visit(index, guard));
            }
        }
    }

    fn let_go(&mut self) {
        *self = Held::none();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn few_and_many_are_held_alike() {
        let shards = Shards::new(64, 7, 1);
        let lock = |index: usize| shards.try_lock(index).expect("nobody holds it");
        let mut held = Held::new(vec![5, 40], vec![lock(5), lock(40)]);
        let mut model = BTreeSet::from([5, 40]);
        for step in 0..64 {
            // Each shard once, in no order.
            let index = (step * 29 + 3) % 64;
            if model.insert(index) {
                assert!(!held.holds(index));
                held.add(index, lock(index), shards.count());
            }
            assert!((0..64).all(|index| held.holds(index) == model.contains(&index)));
            assert_eq!((held.len(), held.indexes()), (model.len(), model.iter().copied().collect()));
            let mut seen = Vec::new();
            held.each(&mut |index, _| {
                seen.push(index);
                seen.len() < 20
            });
            assert!(seen.iter().eq(model.iter().take(20)));
            let addresses =
                [std::ptr::from_mut(held.shard(index)).addr(), std::ptr::from_ref(held.shard_ref(index)).addr()];
            assert_eq!(addresses[0], addresses[1]);
            assert!(model.iter().all(|index| shards.try_lock(*index).is_none()));
        }
        held.let_go();
        assert_eq!(held.len(), 0);
        held.add(9, lock(9), shards.count());
        assert_eq!(held.into_indexes(), [9]);
        assert!((0..64).all(|index| shards.try_lock(index).is_some()));
        // All that are locked at once, few or many.
        for step in [1, 3, 7, 60] {
            let indexes: Vec<usize> = (2..64).step_by(step).collect();
            let mut held = Held::new(indexes.clone(), indexes.iter().map(|index| lock(*index)).collect());
            for index in 0..64 {
                assert_eq!(held.holds(index), indexes.contains(&index), "{index} of every {step}");
            }
            for &index in &indexes {
                let addresses =
                    [std::ptr::from_mut(held.shard(index)).addr(), std::ptr::from_ref(held.shard_ref(index)).addr()];
                assert_eq!(addresses[0], addresses[1]);
                assert_eq!(addresses[0], shards.cells[index].0.data_ptr().addr());
            }
        }
        let mut held = Held::new(Vec::new(), Vec::new());
        (0..20).rev().for_each(|index| held.add(index, lock(index), shards.count()));
        assert!(held.into_indexes().into_iter().eq(0..20));
    }
}
