//! Exponentially distributed numbers: gaps between arrivals, and distances back from the newest key.

use super::Random;

/// `ExponentialGenerator`.
#[derive(Clone, Debug)]
pub struct Exponential {
    mean: f64,
}

impl Exponential {
    /// With this mean.
    pub fn with_mean(mean: f64) -> Exponential {
        Exponential { mean }
    }

    /// So that `percentile` per cent of all numbers are below `range`.
    pub fn with_percentile(percentile: f64, range: f64) -> Exponential {
        Exponential { mean: range / -(1.0 - percentile / 100.0).ln() }
    }

    /// The next number.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> f64 {
        // 1 - u is never 0, whose logarithm Java's formula may meet.
        -(1.0 - random.next_f64()).ln() * self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::chi_squared;

    #[test]
    fn it_falls_exponentially() {
        let (mut random, mut exponential) = (Random::new(1), Exponential::with_mean(20.0));
        let expected: Vec<f64> =
            (0..200).map(|at| (-f64::from(at) / 20.0).exp() - (-f64::from(at + 1) / 20.0).exp()).collect();
        chi_squared::assert_fits(&expected, 400_000, || exponential.next(&mut random) as usize);
    }

    #[test]
    fn the_percentile_is_where_it_was_asked_for() {
        let (mut random, mut exponential) = (Random::new(1), Exponential::with_percentile(95.0, 1_000.0));
        chi_squared::assert_fits(&[0.95, 0.05], 100_000, || usize::from(exponential.next(&mut random) >= 1_000.0));
    }
}
