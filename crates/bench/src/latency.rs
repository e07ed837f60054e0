//! How long operations took: a histogram with three digits, and the figures that are shown of it. Knows no operation.

use hdrhistogram::Histogram;

/// Latencies in nanoseconds, up to an hour.
#[derive(Clone, Debug)]
pub struct Latency {
    histogram: Histogram<u64>,
}

const NS_MAX: u64 = 3_600_000_000_000;

/// What is shown of a [`Latency`], in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Operations recorded.
    pub count: u64,
    /// The mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// 95 per cent took no longer.
    pub p95_us: f64,
    /// 99 per cent took no longer.
    pub p99_us: f64,
    /// 99.9 per cent took no longer.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency::new()
    }
}

impl Latency {
    /// Without a record.
    pub fn new() -> Latency {
        Latency { histogram: Histogram::new_with_max(NS_MAX, 3).expect("the bounds are constant and sound") }
    }

    /// So many operations took so long.
    #[inline]
    pub fn record(&mut self, ns: u64, operations: u64) {
        self.histogram.saturating_record_n(ns, operations);
    }

    /// Adds what another thread recorded.
    pub fn add(&mut self, other: &Latency) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
    }

    /// What was recorded: latencies in nanoseconds, to three digits, and how many operations took so long.
    pub fn counts(&self) -> Vec<(u64, u64)> {
        self.histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
    }

    /// With what [`Latency::counts`] gave.
    pub fn of(counts: &[(u64, u64)]) -> Latency {
        let mut latency = Latency::new();
        counts.iter().for_each(|&(ns, operations)| latency.record(ns, operations));
        latency
    }

    /// Operations recorded.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// How many took at least so long.
    pub fn count_from(&self, ns: u64) -> u64 {
        self.histogram.count_between(ns, u64::MAX)
    }

    /// The latency that this share of the operations did not exceed, in nanoseconds.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        self.histogram.value_at_quantile(share)
    }

    /// The figures that are shown.
    pub fn summary(&self) -> Summary {
        if self.histogram.is_empty() {
            return Summary::default();
        }
        let us = |ns: u64| ns as f64 / 1e3;
        Summary {
            count: self.count(),
            mean_us: self.histogram.mean() / 1e3,
            p50_us: us(self.quantile_ns(0.5)),
            p95_us: us(self.quantile_ns(0.95)),
            p99_us: us(self.quantile_ns(0.99)),
            p999_us: us(self.quantile_ns(0.999)),
            max_us: us(self.histogram.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::{Exponential, Random};

    /// The smallest recorded value that at least this share of all values does not exceed.
    fn exact(sorted: &[u64], share: f64) -> u64 {
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted[rank.clamp(1, sorted.len()) - 1]
    }

    fn assert_near(figure: f64, exact: f64) {
        assert!((figure - exact).abs() <= exact / 1000.0, "{figure} for {exact}");
    }

    #[test]
    fn quantiles_are_exact_to_three_digits() {
        let mut random = Random::new(1);
        // Microseconds with a long tail, evenly spread nanoseconds, and two far apart heaps.
        let mut exponential = Exponential::with_mean(80_000.0);
        type Shape = Box<dyn FnMut(&mut Random) -> u64>;
        let shapes: [Shape; 3] = [
            Box::new(move |random| exponential.next(random) as u64 + 5_000),
            Box::new(|random| random.below(2_000_000)),
            Box::new(|random| if random.below(100) < 97 { 50_000 + random.below(100) } else { 900_000_000 }),
        ];
        for mut draw in shapes {
            let (mut one, mut other, mut all) = (Latency::new(), Latency::new(), Vec::new());
            for index in 0..100_000 {
                let ns = draw(&mut random);
                if index % 2 == 0 {
                    one.record(ns, 1)
                } else {
                    other.record(ns, 1)
                }
                all.push(ns);
            }
            one.add(&other);
            all.sort_unstable();
            assert_eq!(one.count(), 100_000);
            for share in [0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0] {
                assert_near(one.quantile_ns(share) as f64, exact(&all, share) as f64);
            }
            let summary = one.summary();
            assert_near(summary.mean_us, all.iter().sum::<u64>() as f64 / 1e5 / 1e3);
            assert_near(summary.max_us, *all.last().unwrap() as f64 / 1e3);
            assert_near(summary.p999_us, exact(&all, 0.999) as f64 / 1e3);
        }
    }

    #[test]
    fn a_batch_counts_each_of_its_operations() {
        let mut latency = Latency::new();
        latency.record(1_000, 16);
        latency.record(9_000, 1);
        assert_eq!((latency.count(), latency.count_from(2_000), latency.quantile_ns(0.9) / 100), (17, 1, 10));
        assert_eq!(Latency::new().summary(), Summary::default());
    }

    #[test]
    fn what_is_too_long_is_kept_as_the_longest() {
        let mut latency = Latency::new();
        latency.record(u64::MAX, 1);
        assert!(latency.quantile_ns(1.0) >= NS_MAX);
    }
}
