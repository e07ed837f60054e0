//! Random numbers that are the same for the same seed, on any machine. Not for secrets.

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): one addition and three mixing steps a number.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Other seeds give other sequences, neighbouring seeds unrelated ones.
    pub fn new(seed: u64) -> Random {
        let mut random = Random { state: seed };
        // A thread's seed is its run's plus its index: the sequences must not be shifted copies of each other.
        random.state = random.next_u64() ^ seed.rotate_left(32);
        random
    }

    /// Any number.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// At least 0 and below 1, in steps of 2^-53, as Java's `nextDouble`.
    #[inline]
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Below `bound`, which is not 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product; its bias is below bound / 2^64.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::chi_squared;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [random.next_u64(), random.next_u64(), random.next_u64()]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn bounded_numbers_are_even() {
        let mut random = Random::new(3);
        let expected = vec![1.0 / 37.0; 37];
        chi_squared::assert_fits(&expected, 200_000, || random.below(37) as usize);
    }

    #[test]
    fn fractions_are_even_and_below_one() {
        let mut random = Random::new(4);
        let expected = vec![1.0 / 64.0; 64];
        chi_squared::assert_fits(&expected, 200_000, || (random.next_f64() * 64.0) as usize);
    }

    #[test]
    fn neighbouring_seeds_are_unrelated() {
        // Pairs of (this sequence, the next seed's) fill their square evenly.
        let (mut one, mut other) = (Random::new(100), Random::new(101));
        let expected = vec![1.0 / 64.0; 64];
        chi_squared::assert_fits(&expected, 200_000, || (one.below(8) * 8 + other.below(8)) as usize);
    }
}
