//! YCSB's Zipfian numbers: rank 0 is the most frequent. Gray's approximation, for constants below 1; others are
//! `ZipfExact`'s.

use super::Random;

/// `ZipfianGenerator`, after "Quickly Generating Billion-Record Synthetic Databases", Gray et al, SIGMOD 1994.
#[derive(Clone, Debug)]
pub struct Zipfian {
    /// The number of ranks that it was made for. YCSB keeps using it in `eta` when the count grows.
    items: u64,
    theta: f64,
    alpha: f64,
    zeta_2: f64,
    eta: f64,
    zeta_n: f64,
    /// The number of ranks that `zeta_n` is the sum for.
    counted: u64,
    /// Where the second rank ends on the scale of `zeta_n`.
    second: f64,
}

/// YCSB's usual constant.
pub const USUAL_CONSTANT: f64 = 0.99;

impl Zipfian {
    /// Of the ranks below `items`, the frequency of rank r in proportion to (r + 1)^-theta, theta below 1.
    pub fn new(items: u64, theta: f64) -> Zipfian {
        Zipfian::with_zeta(items, theta, zeta(items, theta))
    }

    /// The same with the sum of the first `items` terms of zeta known.
    pub fn with_zeta(items: u64, theta: f64, zeta_n: f64) -> Zipfian {
        assert!(items > 0 && (0.0..1.0).contains(&theta), "Gray's approximation takes constants from 0 to below 1");
        let zeta_2 = zeta(2, theta);
        let mut zipfian = Zipfian {
            items,
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta_2,
            eta: 0.0,
            zeta_n,
            counted: items,
            second: 1.0 + 0.5f64.powf(theta),
        };
        zipfian.set_eta();
        zipfian
    }

    fn set_eta(&mut self) {
        let items = self.items as f64;
        self.eta = (1.0 - (2.0 / items).powf(1.0 - self.theta)) / (1.0 - self.zeta_2 / self.zeta_n);
    }

    /// The next rank.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> u64 {
        self.next_of(self.items, random)
    }

    /// The next rank of the first `count`, which may grow from call to call. With fewer ranks than before YCSB goes on
    /// with the larger sum.
    #[inline]
    pub fn next_of(&mut self, count: u64, random: &mut Random) -> u64 {
        if count > self.counted {
            self.zeta_n += (self.counted..count).map(|rank| ((rank + 1) as f64).powf(-self.theta)).sum::<f64>();
            self.counted = count;
            self.set_eta();
        }
        let drawn = random.next_f64();
        let on_scale = drawn * self.zeta_n;
        if on_scale < 1.0 {
            return 0;
        }
        if on_scale < self.second {
            return 1;
        }
        (count as f64 * (self.eta * drawn - self.eta + 1.0).powf(self.alpha)) as u64
    }
}

/// The sum of r^-theta for r from 1 to `count`: exact terms first, then Euler and Maclaurin's formula, so that the sum
/// for ten thousand million ranks takes no minutes.
pub fn zeta(count: u64, theta: f64) -> f64 {
    const EXACT: u64 = 100_000;
    let exact: f64 = (1..=count.min(EXACT)).rev().map(|rank| (rank as f64).powf(-theta)).sum();
    if count <= EXACT {
        return exact;
    }
    let (from, to) = (EXACT as f64, count as f64);
    let integral = if (theta - 1.0).abs() < 1e-12 {
        (to / from).ln()
    } else {
        (to.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta)
    };
    let ends = (to.powf(-theta) - from.powf(-theta)) / 2.0;
    let slopes = -theta * (to.powf(-theta - 1.0) - from.powf(-theta - 1.0)) / 12.0;
    exact + integral + ends + slopes
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::generators::chi_squared;

    /// What Gray's formula gives each of the first `cells` ranks of `items`.
    pub fn probabilities(items: u64, theta: f64, cells: u64) -> Vec<f64> {
        let zipfian = Zipfian::new(items, theta);
        let second_end = zipfian.second / zipfian.zeta_n;
        // The share of draws that give ranks below `rank`, once the first two are set apart.
        let below = |rank: u64| {
            let drawn = ((rank as f64 / items as f64).powf(1.0 / zipfian.alpha) - 1.0 + zipfian.eta) / zipfian.eta;
            drawn.clamp(second_end, 1.0)
        };
        let formula = |rank: u64| match rank {
            0 => 1.0 / zipfian.zeta_n + (below(1) - second_end),
            1 => (zipfian.second - 1.0) / zipfian.zeta_n + (below(2) - below(1)),
            _ => below(rank + 1) - below(rank),
        };
        (0..cells).map(formula).collect()
    }

    #[test]
    fn the_sum_is_exact_for_many_terms() {
        // YCSB's own figure for its ten thousand million ranks (and the one more that its generator has).
        assert!((zeta(10_000_000_000, 0.99) / 26.469_028_201_783_02 - 1.0).abs() < 1e-9);
        for theta in [0.5, 0.99, 1.0, 1.4] {
            let direct: f64 = (1..=1_000_000u64).rev().map(|rank| (rank as f64).powf(-theta)).sum();
            assert!((zeta(1_000_000, theta) / direct - 1.0).abs() < 1e-10, "{theta}");
        }
    }

    #[test]
    fn it_draws_what_grays_formula_says() {
        for (items, theta) in [(1_000, 0.99), (100_000, 0.99), (500, 0.5), (50, 0.8)] {
            let (mut random, mut zipfian) = (Random::new(items), Zipfian::new(items, theta));
            let expected = probabilities(items, theta, items.min(2_000));
            chi_squared::assert_fits(&expected, 500_000, || zipfian.next(&mut random) as usize);
        }
    }

    #[test]
    fn the_formula_is_near_zipfs_law() {
        let formula = probabilities(10_000, 0.99, 10_000);
        let sum = zeta(10_000, 0.99);
        let distance: f64 =
            formula.iter().zip(1u64..).map(|(share, rank)| (share - (rank as f64).powf(-0.99) / sum).abs()).sum();
        assert!(distance / 2.0 < 0.03, "{distance}");
        assert!((formula[0] * sum - 1.0).abs() < 1e-9 && (formula.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_growing_count_adds_its_terms() {
        let (mut random, mut grown) = (Random::new(1), Zipfian::new(1_000, 0.99));
        assert!((0..10_000).all(|_| grown.next_of(3_000, &mut random) < 3_000));
        assert!((grown.zeta_n / zeta(3_000, 0.99) - 1.0).abs() < 1e-12);
    }
}
