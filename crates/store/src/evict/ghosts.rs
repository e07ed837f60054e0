//! Keys that were evicted of late, and how often each was used: four bits of that and twelve of its hash. Knows no key.
//!
//! ```text
//! a bucket, one word, the last one evicted first:
//! | fingerprint 12 | hits 4 | fingerprint 12 | hits 4 | fingerprint 12 | hits 4 | fingerprint 12 | hits 4 |
//! ```
//!
//! Workers write without waiting for each other: of two that change a bucket at the same time one may be lost, and one
//! key in a thousand is taken for another. Either is a key that is judged wrongly once.

use super::turnover::HITS_MAX;
use crate::hash::KeyHash;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys in a bucket.
const KEYS_A_BUCKET: usize = 4;
const KEY_BITS: u32 = 16;
const HITS_BITS: u32 = 4;

/// What is remembered of keys that have gone.
#[derive(Debug)]
pub struct Ghosts(Box<[AtomicU64]>);

impl Ghosts {
    /// Bytes a key.
    pub const BYTES: usize = 2;

    /// Room for so many keys, or a few more.
    pub fn new(keys: usize) -> Ghosts {
        Ghosts((0..keys.div_ceil(KEYS_A_BUCKET).max(1)).map(|_| AtomicU64::new(0)).collect())
    }

    /// How many keys there is room for.
    pub fn room(&self) -> usize {
        self.0.len() * KEYS_A_BUCKET
    }

    fn bucket(&self, hash: KeyHash) -> &AtomicU64 {
        // The tables' tags are the highest bits, which are as good here.
        &self.0[((u128::from(hash.bits()) * self.0.len() as u128) >> 64) as usize]
    }

    /// Never 0, so that an empty place is none.
    fn fingerprint(hash: KeyHash) -> u64 {
        (hash.bits() & 0xfff).max(1)
    }

    /// Remembers a key that goes, instead of the one in its bucket that went first.
    pub fn note(&self, hash: KeyHash, hits: u8) {
        let bucket = self.bucket(hash);
        let key = Ghosts::fingerprint(hash) << HITS_BITS | u64::from(hits.min(HITS_MAX));
        bucket.store(bucket.load(Ordering::Relaxed) << KEY_BITS | key, Ordering::Relaxed);
    }

    /// Forgets a key that comes again, and gives how often it was used before, if it is remembered.
    pub fn take(&self, hash: KeyHash) -> Option<u8> {
        let bucket = self.bucket(hash);
        let (word, wanted) = (bucket.load(Ordering::Relaxed), Ghosts::fingerprint(hash));
        let found = (0..KEYS_A_BUCKET as u32).find(|place| {
            let key = word >> (place * KEY_BITS);
            key >> HITS_BITS & 0xfff == wanted
        })?;
        let shift = found * KEY_BITS;
        bucket.store(word & !(0xffff << shift), Ordering::Relaxed);
        Some((word >> shift) as u8 & HITS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::KeyHasher;

    #[test]
    fn the_last_ones_are_remembered_with_their_hits() {
        const ROOM: u32 = if cfg!(miri) { 256 } else { 4_096 };
        let (ghosts, hasher) = (Ghosts::new(ROOM as usize), KeyHasher::new(5));
        assert_eq!(ghosts.room(), ROOM as usize);
        let hash = |n: u32| hasher.hash(&n.to_be_bytes());
        for n in 0..2 * ROOM {
            ghosts.note(hash(n), (n % 16) as u8);
        }
        let right =
            |keys: std::ops::Range<u32>| keys.filter(|n| ghosts.take(hash(*n)) == Some((n % 16) as u8)).count() as f64;
        // In a bucket of four that gets eight on average, hardly any of the first quarter is left, and most of the last.
        let (new, old) = (right(2 * ROOM - ROOM / 4..2 * ROOM), right(0..ROOM / 4));
        assert!(new > f64::from(ROOM) * 0.22, "{new}");
        assert!(old < f64::from(ROOM) * 0.06, "{old}");
        // What was taken is gone.
        let again = right(2 * ROOM - ROOM / 4..2 * ROOM);
        assert!(again < f64::from(ROOM) * 0.01, "{again}");
        assert_eq!(Ghosts::new(0).take(hash(1)), None);
    }
}
