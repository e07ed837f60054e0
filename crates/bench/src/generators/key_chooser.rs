//! The key choosers by the names people give them. Knows not what the keys are for.

use super::{Exponential, Hotspot, Inserted, Latest, Random, Scrambled, Uniform, ZipfExact, Zipfian};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often which key is named.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All equally often.
    Uniform,
    /// YCSB's scrambled Zipfian with this constant.
    Zipfian(f64),
    /// Zipf's law with this exponent over the keys in their order, the first the most popular.
    Ranked(f64),
    /// The newest most often.
    Latest,
    /// One after another, from the first again after the last.
    Sequential,
    /// This share of the keys by that share of the operations.
    Hotspot(f64, f64),
    /// So many per cent among this share of the newest keys.
    Exponential(f64, f64),
}

/// YCSB's usual figures for `hotspot` and `exponential`.
const HOTSPOT: Distribution = Distribution::Hotspot(0.2, 0.8);
const EXPONENTIAL: Distribution = Distribution::Exponential(95.0, 0.857_142_857_1);

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => write!(f, "uniform"),
            Distribution::Zipfian(constant) => write!(f, "zipfian:{constant}"),
            Distribution::Ranked(exponent) => write!(f, "ranked:{exponent}"),
            Distribution::Latest => write!(f, "latest"),
            Distribution::Sequential => write!(f, "sequential"),
            Distribution::Hotspot(keys, operations) => write!(f, "hotspot:{keys}:{operations}"),
            Distribution::Exponential(percentile, share) => write!(f, "exponential:{percentile}:{share}"),
        }
    }
}

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Distribution, String> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let numbers = words.map(|word| word.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0));
        let numbers: Option<Vec<f64>> = numbers.collect();
        let share = |number: f64| number <= 1.0;
        match (name, numbers.as_deref()) {
            ("uniform", Some([])) => Ok(Distribution::Uniform),
            ("zipfian", Some([])) => Ok(Distribution::Zipfian(super::zipfian::USUAL_CONSTANT)),
            ("zipfian", Some([constant])) => Ok(Distribution::Zipfian(*constant)),
            ("ranked", Some([])) => Ok(Distribution::Ranked(super::zipfian::USUAL_CONSTANT)),
            ("ranked", Some([exponent])) => Ok(Distribution::Ranked(*exponent)),
            ("latest", Some([])) => Ok(Distribution::Latest),
            ("sequential", Some([])) => Ok(Distribution::Sequential),
            ("hotspot", Some([])) => Ok(HOTSPOT),
            ("hotspot", Some([keys, operations])) if share(*keys) && share(*operations) => {
                Ok(Distribution::Hotspot(*keys, *operations))
            }
            ("exponential", Some([])) => Ok(EXPONENTIAL),
            ("exponential", Some([percentile, range])) if (0.0..100.0).contains(percentile) && *percentile > 0.0 => {
                Ok(Distribution::Exponential(*percentile, *range))
            }
            _ => Err(format!(
                "'{text}' is no distribution: uniform, zipfian[:CONSTANT], ranked[:EXPONENT], latest, sequential, \
                 hotspot[:KEYS:OPERATIONS] or exponential[:PERCENTILE:SHARE]"
            )),
        }
    }
}

/// Draws key numbers. Every thread has its own; clones share what counts over all threads.
#[derive(Clone, Debug)]
pub struct KeyChooser {
    kind: Kind,
    inserted: Arc<Inserted>,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform(Uniform),
    Scrambled(Box<Scrambled>),
    Gray(Box<Zipfian>),
    Exact(ZipfExact),
    Latest(Box<Latest>),
    Sequential { next: Arc<AtomicU64>, count: u64 },
    Hotspot(Hotspot),
    Exponential(Exponential),
}

impl KeyChooser {
    /// Among the keys that `inserted` says exist. `expected` more keys may be inserted while it is used: as in YCSB, a
    /// scrambled Zipfian chooser counts them in from the start, so that its popular keys stay the same.
    pub fn new(distribution: Distribution, inserted: &Arc<Inserted>, expected: u64) -> KeyChooser {
        let count = inserted.present();
        assert!(count > 0, "a key chooser needs a key");
        let last = count - 1;
        let kind = match distribution {
            Distribution::Uniform => Kind::Uniform(Uniform::new(0, last)),
            // YCSB's range ends one behind the last record, and whoever draws that one draws again. Which keys are popular
            // depends on the range's length, so it must be the same here.
            Distribution::Zipfian(constant) => Kind::Scrambled(Box::new(Scrambled::new(0, count + expected, constant))),
            Distribution::Ranked(exponent) if exponent < 1.0 => Kind::Gray(Box::new(Zipfian::new(count, exponent))),
            Distribution::Ranked(exponent) => Kind::Exact(ZipfExact::new(count, exponent)),
            Distribution::Latest => Kind::Latest(Box::new(Latest::new(Arc::clone(inserted)))),
            Distribution::Sequential => Kind::Sequential { next: Arc::new(AtomicU64::new(0)), count },
            Distribution::Hotspot(keys, operations) => Kind::Hotspot(Hotspot::new(0, last, keys, operations)),
            Distribution::Exponential(percentile, share) => {
                Kind::Exponential(Exponential::with_percentile(percentile, count as f64 * share))
            }
        };
        KeyChooser { kind, inserted: Arc::clone(inserted) }
    }

    /// The number of a key that exists.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> u64 {
        match &mut self.kind {
            Kind::Uniform(uniform) => uniform.next(random),
            Kind::Scrambled(scrambled) => loop {
                let key = scrambled.next(random);
                if key < self.inserted.present() {
                    return key;
                }
            },
            Kind::Gray(zipfian) => zipfian.next(random),
            Kind::Exact(zipf) => zipf.next(random),
            Kind::Latest(latest) => latest.next(random),
            Kind::Sequential { next, count } => next.fetch_add(1, Ordering::Relaxed) % *count,
            Kind::Hotspot(hotspot) => hotspot.next(random),
            Kind::Exponential(exponential) => loop {
                if let Some(key) = (self.inserted.present() - 1).checked_sub(exponential.next(random) as u64) {
                    return key;
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_popular_keys_are_those_of_ycsb() {
        // What `site.ycsb.Client` 0.17.0 asked for most often in workload A on 1,000 records, the most popular first: the hash
        // of rank 0, 1, 2 modulo 1,001.
        let inserted = Arc::new(Inserted::new(1_000));
        let mut chooser = KeyChooser::new(Distribution::Zipfian(0.99), &inserted, 0);
        let mut random = Random::new(9);
        let mut drawn = vec![0; 1_000];
        (0..50_000).for_each(|_| drawn[chooser.next(&mut random) as usize] += 1);
        let mut keys: Vec<u64> = (0..1_000).collect();
        keys.sort_by_key(|key| std::cmp::Reverse(drawn[*key as usize]));
        let popular = [0, 1, 2].map(|rank| crate::generators::fnv_hash(rank) % 1_001);
        assert_eq!(keys[..3], popular);
        let names = popular.map(|key| String::from_utf8_lossy(&crate::key::Key::record(key)).into_owned());
        let ends = ["120213", "138717", "034032"];
        assert!(names.iter().zip(ends).all(|(name, end)| name.ends_with(end)), "{names:?}");
    }

    #[test]
    fn names_are_read_and_written() {
        for name in
            ["uniform", "zipfian:0.99", "ranked:1.4", "latest", "sequential", "hotspot:0.2:0.8", "exponential:95:0.5"]
        {
            assert_eq!(name.parse::<Distribution>().unwrap().to_string(), name);
        }
        assert_eq!("zipfian".parse(), Ok(Distribution::Zipfian(0.99)));
        assert_eq!("hotspot".parse(), Ok(Distribution::Hotspot(0.2, 0.8)));
        for bad in
            ["", "zipf", "zipfian:x", "zipfian:-1", "zipfian:nan", "uniform:1", "hotspot:2:1", "exponential:100:1"]
        {
            assert!(bad.parse::<Distribution>().is_err(), "{bad}");
        }
    }

    #[test]
    fn every_chooser_names_keys_that_exist() {
        for name in [
            "uniform",
            "zipfian",
            "zipfian:1.2",
            "ranked",
            "ranked:1.4",
            "latest",
            "sequential",
            "hotspot",
            "exponential",
        ] {
            let inserted = Arc::new(Inserted::new(500));
            let mut random = Random::new(7);
            let mut chooser = KeyChooser::new(name.parse().unwrap(), &inserted, 1_000);
            for _ in 0..5_000 {
                let key = chooser.next(&mut random);
                assert!(key < inserted.present(), "{name}");
                if key.is_multiple_of(16) {
                    inserted.finish(inserted.begin());
                }
            }
        }
    }

    #[test]
    fn clones_of_a_sequence_share_it() {
        let (mut random, inserted) = (Random::new(1), Arc::new(Inserted::new(4)));
        let mut one = KeyChooser::new(Distribution::Sequential, &inserted, 0);
        let mut other = one.clone();
        let drawn: Vec<u64> = (0..3).flat_map(|_| [one.next(&mut random), other.next(&mut random)]).collect();
        assert_eq!(drawn, [0, 1, 2, 3, 0, 1]);
    }
}
