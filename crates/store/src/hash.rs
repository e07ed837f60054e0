//! The seeded hashes of keys and of the elements of collections, and which bits of them choose what. Knows no table.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// Hashes keys with a seed of its own, so that nobody outside can choose keys that collide.
#[derive(Debug)]
pub struct KeyHasher(RapidSecrets);

/// The hash of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyHash(u64);

impl KeyHasher {
    /// A hasher; the seed comes from the system's randomness except in tests.
    pub fn new(seed: u64) -> KeyHasher {
        KeyHasher(RapidSecrets::seed(seed))
    }

    /// The hash of a key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        KeyHash(rapidhash_v3_seeded(key, &self.0))
    }
}

impl KeyHash {
    /// The shard of the key among `shards`, which is a power of two.
    #[inline]
    pub fn shard(self, shards: usize) -> usize {
        debug_assert!(shards.is_power_of_two());
        self.0 as usize & (shards - 1)
    }

    /// All bits of it.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The tag of the key in its shard's table: bits that choose no shard.
    #[inline]
    pub fn tag(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

/// The hash of an element of a large collection: all of its 64 bits are good.
///
/// Its seed is the process's, drawn from the standard library's randomness when it is first needed. Elements are not
/// what a test or a restart could want to find in the same order, so nobody has to hand a seed down to every search.
#[inline]
pub fn element_hash(element: &[u8]) -> u64 {
    static SECRETS: LazyLock<RapidSecrets> = LazyLock::new(|| RapidSecrets::seed(RandomState::new().hash_one(0)));
    rapidhash_v3_seeded(element, &SECRETS)
}
