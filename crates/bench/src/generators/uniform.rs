//! Every number of a range equally often. Knows no key.

use super::Random;

/// `UniformLongGenerator`.
#[derive(Clone, Debug)]
pub struct Uniform {
    first: u64,
    count: u64,
}

impl Uniform {
    /// Of the numbers from `first` to `last`, both included.
    pub fn new(first: u64, last: u64) -> Uniform {
        assert!(first <= last, "a range holds a number");
        Uniform { first, count: last - first + 1 }
    }

    /// The next number.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> u64 {
        self.first + random.below(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::chi_squared;

    #[test]
    fn it_is_even_and_stays_in_its_range() {
        let (mut random, mut uniform) = (Random::new(1), Uniform::new(100, 299));
        chi_squared::assert_fits(&[1.0 / 200.0; 200], 400_000, || (uniform.next(&mut random) - 100) as usize);
    }
}
