//! A hot part of the keys that most operations go to. Knows no server.

use super::Random;

/// `HotspotIntegerGenerator`.
#[derive(Clone, Debug)]
pub struct Hotspot {
    first: u64,
    hot: u64,
    cold: u64,
    hot_operations: f64,
}

impl Hotspot {
    /// Of the numbers from `first` to `last`: the first `hot_keys` (a share) are named by `hot_operations` (a share) of all
    /// draws, the others by the rest.
    pub fn new(first: u64, last: u64, hot_keys: f64, hot_operations: f64) -> Hotspot {
        assert!(first <= last, "a range holds a number");
        let shares = [hot_keys, hot_operations];
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "shares are from 0 to 1");
        let count = last - first + 1;
        let hot = (count as f64 * hot_keys) as u64;
        // YCSB divides by zero where one of the parts is empty; here everything goes to the other part.
        let hot_operations = match (hot, count - hot) {
            (0, _) => 0.0,
            (_, 0) => 1.0,
            _ => hot_operations,
        };
        Hotspot { first, hot, cold: count - hot, hot_operations }
    }

    /// The next number.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> u64 {
        if random.next_f64() < self.hot_operations {
            self.first + random.below(self.hot)
        } else {
            self.first + self.hot + random.below(self.cold)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::chi_squared;

    #[test]
    fn hot_keys_have_their_share() {
        let (mut random, mut hotspot) = (Random::new(1), Hotspot::new(5, 204, 0.2, 0.8));
        let expected: Vec<f64> = (0..200).map(|key| if key < 40 { 0.8 / 40.0 } else { 0.2 / 160.0 }).collect();
        chi_squared::assert_fits(&expected, 400_000, || (hotspot.next(&mut random) - 5) as usize);
    }

    #[test]
    fn an_empty_part_is_never_drawn_from() {
        let mut random = Random::new(1);
        for shares in [(0.0, 0.8), (1.0, 0.2), (0.001, 0.5)] {
            let mut hotspot = Hotspot::new(0, 9, shares.0, shares.1);
            assert!((0..1_000).all(|_| hotspot.next(&mut random) < 10));
        }
    }
}
