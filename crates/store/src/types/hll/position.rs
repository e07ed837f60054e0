//! Which register an element belongs to and what it raises it to: MurmurHash64A with Redis's seed. Knows no register.

use super::registers::REGISTERS;
use tenon_ds::progress;

/// Bits of the hash that choose the register.
const REGISTER_BITS: u32 = REGISTERS.trailing_zeros();
/// The largest count: the remaining bits are all zero.
pub(super) const COUNT_MAX: u8 = (64 - REGISTER_BITS + 1) as u8;
const SEED: u64 = 0xadc8_3b19;

/// A register, and what it is to be at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The register's index.
    pub register: usize,
    /// One more than the zeros that the rest of the element's hash ends in: 1 to 51.
    pub count: u8,
}

impl Position {
    /// Where an element belongs.
    pub fn of(element: &[u8]) -> Position {
        progress::count(1);
        let hash = murmur_hash_64a(element, SEED);
        let rest = hash >> REGISTER_BITS | 1 << (64 - REGISTER_BITS);
        Position { register: hash as usize % REGISTERS, count: rest.trailing_zeros() as u8 + 1 }
    }
}

/// MurmurHash2, 64-bit version (Austin Appleby, public domain), reading words as little-endian on every machine.
fn murmur_hash_64a(bytes: &[u8], seed: u64) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    for word in words {
        let mut mixed = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        mixed ^= mixed >> SHIFT;
        hash = (hash ^ mixed.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ hash >> SHIFT).wrapping_mul(MULTIPLIER);
    hash ^ hash >> SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_within_their_range() {
        let mut seen = [0; COUNT_MAX as usize + 1];
        for element in 0..20_000u32 {
            let position = Position::of(&element.to_le_bytes());
            assert!(position.register < REGISTERS);
            seen[usize::from(position.count)] += 1;
        }
        assert_eq!(seen[0], 0);
        // Half of all hashes end in a 1, a quarter in 10, and so on.
        assert!((9_000..11_000).contains(&seen[1]) && (4_000..6_000).contains(&seen[2]), "{seen:?}");
    }
}
