//! The newest keys are the most popular. Knows who inserts only by its counter.

use super::zipfian::USUAL_CONSTANT;
use super::{Inserted, Random, Zipfian};
use std::sync::Arc;

/// `SkewedLatestGenerator`.
#[derive(Clone, Debug)]
pub struct Latest {
    inserted: Arc<Inserted>,
    distances: Zipfian,
}

impl Latest {
    /// Of the keys that exist, which must be at least two.
    pub fn new(inserted: Arc<Inserted>) -> Latest {
        let last = inserted.present().saturating_sub(1);
        Latest { inserted, distances: Zipfian::new(last.max(1), USUAL_CONSTANT) }
    }

    /// The next key's number.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> u64 {
        let last = self.inserted.present() - 1;
        last - self.distances.next_of(last, random).min(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::chi_squared;
    use crate::generators::zipfian::tests::probabilities;

    #[test]
    fn popularity_falls_with_age() {
        let inserted = Arc::new(Inserted::new(1_001));
        let (mut random, mut latest) = (Random::new(1), Latest::new(Arc::clone(&inserted)));
        let expected = probabilities(1_000, USUAL_CONSTANT, 1_000);
        chi_squared::assert_fits(&expected, 300_000, || (1_000 - latest.next(&mut random)) as usize);
    }

    #[test]
    fn new_keys_become_the_popular_ones() {
        let inserted = Arc::new(Inserted::new(100));
        let (mut random, mut latest) = (Random::new(1), Latest::new(Arc::clone(&inserted)));
        (0..1_000).for_each(|_| inserted.finish(inserted.begin()));
        let new = (0..10_000).filter(|_| latest.next(&mut random) >= 1_000).count();
        assert!(new > 5_000, "{new}");
        assert!((0..10_000).all(|_| latest.next(&mut random) < 1_100));
    }
}
