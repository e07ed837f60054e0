//! The seeded hash of a key, and which of its bits choose what. Knows no table.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

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

    /// The tag of the key in its shard's table: bits that choose no shard.
    #[inline]
    pub fn tag(self) -> u16 {
        (self.0 >> 48) as u16
    }
}
