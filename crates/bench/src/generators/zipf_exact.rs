//! Zipf's law without approximation and for any exponent, above 1 too, where YCSB's formula ends.

use super::Random;

/// Rejection-inversion after Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", TOMACS 1996: about one draw a number, however many ranks there are.
#[derive(Clone, Debug)]
pub struct ZipfExact {
    items: f64,
    exponent: f64,
    /// The integral of the hat from 1 to 1.5, less the first rank's own share.
    hat_first: f64,
    /// The integral of the hat up to the last rank.
    hat_last: f64,
    squeeze: f64,
}

impl ZipfExact {
    /// Of the ranks below `items`, the frequency of rank r in proportion to (r + 1)^-exponent.
    pub fn new(items: u64, exponent: f64) -> ZipfExact {
        assert!(items > 0 && exponent >= 0.0, "Zipf's law needs a rank and an exponent of 0 or more");
        let mut zipf = ZipfExact { items: items as f64, exponent, hat_first: 0.0, hat_last: 0.0, squeeze: 0.0 };
        zipf.hat_first = zipf.integral(1.5) - 1.0;
        zipf.hat_last = zipf.integral(zipf.items + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// The next rank.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> u64 {
        loop {
            let drawn = self.hat_last + random.next_f64() * (self.hat_first - self.hat_last);
            let at = self.inverse(drawn);
            let rank = (at + 0.5).floor().clamp(1.0, self.items);
            if rank - at <= self.squeeze || drawn >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn density(&self, at: f64) -> f64 {
        at.powf(-self.exponent)
    }

    /// An integral of the density: (x^(1-s) - 1) / (1 - s), and ln x for s = 1.
    fn integral(&self, at: f64) -> f64 {
        let log = at.ln();
        exp_m1_over((1.0 - self.exponent) * log) * log
    }

    fn inverse(&self, area: f64) -> f64 {
        // Rounding may push the argument past the pole.
        let scaled = (area * (1.0 - self.exponent)).max(-1.0);
        (ln_1p_over(scaled) * area).exp()
    }
}

/// (e^x - 1) / x, also near 0.
fn exp_m1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 * (1.0 + x / 3.0) }
}

/// ln(1 + x) / x, also near 0.
fn ln_1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x * (0.5 - x / 3.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::chi_squared;
    use crate::generators::zipfian::zeta;

    #[test]
    fn one_rank_is_always_drawn() {
        let (mut random, mut zipf) = (Random::new(1), ZipfExact::new(1, 2.0));
        assert!((0..1_000).all(|_| zipf.next(&mut random) == 0));
    }

    #[test]
    fn it_is_zipfs_law() {
        for (items, exponent) in [(1_000, 0.0), (1_000, 0.5), (1_000, 0.99), (1_000, 1.0), (1_000_000, 1.2), (50, 1.4)]
        {
            let (mut random, mut zipf) = (Random::new(items), ZipfExact::new(items, exponent));
            let sum = zeta(items, exponent);
            let expected: Vec<f64> = (1..=items.min(2_000)).map(|rank| (rank as f64).powf(-exponent) / sum).collect();
            chi_squared::assert_fits(&expected, 500_000, || {
                let rank = zipf.next(&mut random);
                assert!(rank < items);
                rank as usize
            });
        }
    }
}
