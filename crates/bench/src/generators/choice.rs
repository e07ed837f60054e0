//! One of several things, each with its share. Knows not what they are.

use super::Random;

/// `DiscreteGenerator`.
#[derive(Clone, Debug)]
pub struct Choice<T> {
    /// Where each thing's part of the unit interval ends.
    ends: Vec<(f64, T)>,
}

impl<T: Copy> Choice<T> {
    /// The weights need not add up to 1; a thing of weight 0 is never drawn.
    pub fn new(weighted: impl IntoIterator<Item = (f64, T)>) -> Choice<T> {
        let weighted: Vec<(f64, T)> = weighted.into_iter().filter(|(weight, _)| *weight > 0.0).collect();
        let sum: f64 = weighted.iter().map(|(weight, _)| weight).sum();
        assert!(sum > 0.0, "something must have a weight");
        let mut end = 0.0;
        let ends = weighted.into_iter().map(|(weight, thing)| {
            end += weight / sum;
            (end, thing)
        });
        Choice { ends: ends.collect() }
    }

    /// The next thing.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> T {
        if let [(_, only)] = self.ends[..] {
            return only;
        }
        let drawn = random.next_f64();
        let found = self.ends.iter().find(|(end, _)| drawn < *end);
        // Rounding may leave the last end just below 1.
        found.unwrap_or(&self.ends[self.ends.len() - 1]).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::chi_squared;

    #[test]
    fn shares_are_kept() {
        let (mut random, mut choice) = (Random::new(1), Choice::new([(5.0, 0), (0.0, 1), (95.0, 2)]));
        chi_squared::assert_fits(&[0.05, 0.0, 0.95], 200_000, || choice.next(&mut random));
    }
}
