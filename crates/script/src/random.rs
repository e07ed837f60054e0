//! The numbers of `math.random`: the 48-bit generator that Redis gives its scripts. Knows no Lua.

/// A linear congruential generator modulo 2^48, of which the upper 31 bits count (POSIX `lrand48`).
#[derive(Clone, Copy, Debug)]
pub struct Random {
    state: u64,
}

const MASK: u64 = (1 << 48) - 1;

impl Random {
    /// The state that a server starts with.
    pub const fn new() -> Random {
        Random { state: 0x1234_ABCD_330E }
    }

    /// Starts over from a seed.
    pub fn seed(&mut self, seed: i32) {
        self.state = u64::from(seed as u32) << 16 | 0x330E;
    }

    /// A number from 0 to 1, 1 excluded.
    pub fn next(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & MASK;
        let limit = i32::MAX as u64;
        ((self.state >> 17) % limit) as f64 / limit as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_through_the_known_numbers() {
        let mut random = Random::new();
        assert_eq!(format!("{:.13}", random.next()), "0.3964647736384");
        random.next();
        assert_eq!(format!("{:.13}", random.next()), "0.3533360973715");
        random.seed(0);
        assert_eq!(format!("{:.13}", random.next()), "0.1708280361122");
    }
}
