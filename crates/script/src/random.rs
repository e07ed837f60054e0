//! The numbers of `math.random`: the 48-bit generator that Redis gives its scripts. Knows no Lua.

/// A linear congruential generator modulo 2^48, of which the upper 31 bits count (POSIX `lrand48`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

const MASK: u64 = (1 << 48) - 1;

impl Random {
    /// One that goes on from this state, of which 48 bits count.
    pub const fn new(state: u64) -> Random {
        Random { state: state & MASK }
    }

    /// The one that `math.randomseed` asks for.
    pub(crate) const fn seeded(seed: i32) -> Random {
        Random::new((seed as u32 as u64) << 16 | 0x330E)
    }

    /// A number from 0 to 1, 1 excluded.
    pub(crate) fn next(&mut self) -> f64 {
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
        let mut random = Random::new(0x1234_ABCD_330E);
        assert_eq!(format!("{:.13}", random.next()), "0.3964647736384");
        random.next();
        assert_eq!(format!("{:.13}", random.next()), "0.3533360973715");
        let mut random = Random::seeded(0);
        assert_eq!(format!("{:.13}", random.next()), "0.1708280361122");
    }
}
