//! Fast random numbers, not for secrets. Knows not what they decide.

/// A source of random numbers: xorshift64* (Marsaglia, 2003; Vigna, 2016).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// A source that starts from this seed.
    pub fn new(seed: u64) -> Random {
        // Zero would stay zero.
        Random(seed | 1)
    }

    /// 64 random bits, of which the upper ones are better.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Another source, for where this one is out of reach.
    #[inline]
    pub fn split(&mut self) -> Random {
        Random::new(self.bits())
    }
}
