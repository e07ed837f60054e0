//! Zipfian popularity scattered over the keys, so that popular ones are no neighbours. YCSB's `zipfian`.

use super::zipfian::USUAL_CONSTANT;
use super::{Random, ZipfExact, Zipfian, fnv_hash};

/// `ScrambledZipfianGenerator`: the rank is one of ten thousand million whatever the number of keys, so that the same keys
/// stay popular when there are more.
#[derive(Clone, Debug)]
pub struct Scrambled {
    first: u64,
    count: u64,
    ranks: Ranks,
}

#[derive(Clone, Debug)]
enum Ranks {
    Gray(Zipfian),
    Exact(ZipfExact),
}

const ITEM_COUNT: u64 = 10_000_000_000;
/// What YCSB has instead of summing up ten thousand million terms.
const ZETA_USUAL: f64 = 26.469_028_201_783_02;

impl Scrambled {
    /// Of the numbers from `first` to `last`, both included. Constants from 1 on, which YCSB's formula does not know, are
    /// drawn from Zipf's law itself.
    pub fn new(first: u64, last: u64, constant: f64) -> Scrambled {
        assert!(first <= last, "a range holds a number");
        // YCSB gives the last rank where the count is asked for: there is one more.
        let items = ITEM_COUNT + 1;
        let ranks = if constant == USUAL_CONSTANT {
            Ranks::Gray(Zipfian::with_zeta(items, constant, ZETA_USUAL))
        } else if constant < 1.0 {
            Ranks::Gray(Zipfian::new(items, constant))
        } else {
            Ranks::Exact(ZipfExact::new(items, constant))
        };
        Scrambled { first, count: last - first + 1, ranks }
    }

    /// The next number.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> u64 {
        let rank = match &mut self.ranks {
            Ranks::Gray(zipfian) => zipfian.next(random),
            Ranks::Exact(zipf) => zipf.next(random),
        };
        self.first + fnv_hash(rank) % self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::chi_squared;
    use crate::generators::zipfian::tests::probabilities;

    #[test]
    fn ranks_are_scattered_by_their_hash() {
        const KEYS: u64 = 1_000;
        // The ranks that matter one by one; of the others each key has its share.
        let ranks = probabilities(ITEM_COUNT + 1, USUAL_CONSTANT, 1_000_000);
        let others = 1.0 - ranks.iter().sum::<f64>();
        let mut expected = vec![others / KEYS as f64; KEYS as usize];
        for (share, rank) in ranks.iter().zip(0..) {
            expected[(fnv_hash(rank) % KEYS) as usize] += share;
        }
        let (mut random, mut scrambled) = (Random::new(1), Scrambled::new(10, 10 + KEYS - 1, USUAL_CONSTANT));
        chi_squared::assert_fits(&expected, 400_000, || (scrambled.next(&mut random) - 10) as usize);
    }

    #[test]
    fn constants_above_one_are_steeper() {
        let hottest = |constant| {
            let (mut random, mut scrambled) = (Random::new(1), Scrambled::new(0, 999, constant));
            let hot = fnv_hash(0) % 1_000;
            (0..100_000).filter(|_| scrambled.next(&mut random) == hot).count()
        };
        // The first rank's share: 1 / zeta.
        assert!((3_300..4_500).contains(&hottest(0.99)), "{}", hottest(0.99));
        assert!((31_000..33_500).contains(&hottest(1.4)), "{}", hottest(1.4));
    }
}
