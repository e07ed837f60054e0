//! How long calls took: a histogram that keeps two significant digits, laid out as Redis's, so that its figures are the
//! same (<https://github.com/HdrHistogram/HdrHistogram_c>). Knows no command.
//!
//! ```text
//! block      0          1            2            ...  23
//! ns         0 .. 127   128 .. 255   256 .. 511   ...  2^29 .. 2^30 - 1
//! a bucket   1          1            2            ...  2^22
//! ```
//!
//! Each block has 128 buckets, and memory from when a call first took as long.

use crate::stats::Counter;
use std::sync::OnceLock;

/// Buckets of a block.
const BUCKETS: usize = 128;
const BLOCKS: usize = 24;
/// What is longer counts as this, as in Redis.
const NS_MAX: u64 = 1_000_000_000;

type Block = [Counter; BUCKETS];

/// Calls by duration, counted by one thread.
#[derive(Debug, Default)]
pub struct Durations(OnceLock<Box<[OnceLock<Box<Block>>; BLOCKS]>>);

/// The bucket of a duration: its block, and where in it.
#[inline]
fn bucket_of(ns: u64) -> (usize, usize) {
    let ns = ns.clamp(1, NS_MAX);
    // The place of the highest bit that does not fit into a block's buckets.
    let block = (ns / BUCKETS as u64).checked_ilog2().map_or(0, |log| log as usize + 1);
    (block, (ns >> block.saturating_sub(1)) as usize % BUCKETS)
}

/// The shortest duration of a bucket, and the longest one.
fn bounds(bucket: usize) -> (u64, u64) {
    let (block, place) = (bucket / BUCKETS, bucket % BUCKETS);
    let width_log = block.saturating_sub(1);
    let first = if block == 0 { place } else { (BUCKETS + place) << width_log };
    (first as u64, (first + (1 << width_log) - 1) as u64)
}

impl Durations {
    /// Counts calls that took `each_ns` nanoseconds each, on the thread that owns the histogram.
    #[inline]
    pub fn add(&self, calls: u64, each_ns: u64) {
        let (block, place) = bucket_of(each_ns);
        let blocks = self.0.get_or_init(Box::default);
        blocks[block].get_or_init(|| Box::new(std::array::from_fn(|_| Counter::default())))[place].add(calls);
    }

    fn blocks(&self) -> impl Iterator<Item = (usize, &Block)> {
        let blocks = self.0.get().into_iter().flat_map(|blocks| blocks.iter().enumerate());
        blocks.filter_map(|(number, block)| Some((number, &**block.get()?)))
    }

    /// Every count back to 0.
    pub fn reset(&self) {
        self.blocks().for_each(|(_, block)| block.iter().for_each(Counter::reset));
    }
}

/// The calls of several threads by duration.
#[derive(Debug, Default)]
pub struct DurationCounts {
    /// Up to the last block that has calls: zeros for all of them are so long that they would have pages of their own, fresh ones each
    /// time that somebody asks.
    buckets: Vec<u64>,
    total: u64,
}

impl DurationCounts {
    /// Adds what one thread has counted.
    pub fn add(&mut self, durations: &Durations) {
        for (number, block) in durations.blocks() {
            let end = (number + 1) * BUCKETS;
            self.buckets.resize(end.max(self.buckets.len()), 0);
            for (sum, counter) in self.buckets[number * BUCKETS..].iter_mut().zip(block) {
                let count = counter.get();
                *sum += count;
                self.total += count;
            }
        }
    }

    /// How many calls there were.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The nanoseconds that so many percent of the calls do not exceed: the end of their bucket, of 0 percent its begin.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        let wanted = ((percent.min(100.0) / 100.0 * self.total as f64 + 0.5) as u64).max(1);
        let mut cumulative = 0;
        let reached = |count: &u64| {
            cumulative += count;
            cumulative >= wanted
        };
        let (first, last) = bounds(self.buckets.iter().position(reached).unwrap_or(0));
        if percent == 0.0 { first } else { last }
    }

    /// How many calls took no longer than so many microseconds, for each power of two from 1024 ns on that more calls
    /// reach than the one before. The bucket that begins with the power is counted, as in Redis, hence 33 and not 32.
    pub fn by_powers_us(&self) -> Vec<(u64, u64)> {
        let mut steps = Vec::new();
        let (mut from, mut cumulative) = (0, 0);
        for power in 10..=30 {
            let (block, place) = if power < 30 { bucket_of(1 << power) } else { (BLOCKS - 1, BUCKETS - 1) };
            let until = block * BUCKETS + place;
            let more: u64 = self.buckets.iter().take(until + 1).skip(from).sum();
            from = until + 1;
            if more > 0 {
                cumulative += more;
                steps.push((bounds(until).1 / 1_000, cumulative));
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(calls: &[(u64, u64)]) -> DurationCounts {
        let durations = Durations::default();
        calls.iter().for_each(|&(calls, ns)| durations.add(calls, ns));
        let mut counts = DurationCounts::default();
        counts.add(&durations);
        counts
    }

    #[test]
    fn buckets_follow_each_other_and_are_a_hundredth_wide_at_most() {
        let mut next = 0;
        for bucket in 0..BLOCKS * BUCKETS {
            let (first, last) = bounds(bucket);
            assert_eq!(first, next);
            assert!((last - first) * 100 <= first, "{first}..={last}");
            for ns in [first, last] {
                let (block, place) = bucket_of(ns);
                assert!(block * BUCKETS + place == bucket || !(1..=NS_MAX).contains(&ns), "{ns}");
            }
            next = last + 1;
        }
        assert_eq!(next, 1 << 30);
        assert_eq!(bucket_of(0), bucket_of(1));
        assert_eq!(bucket_of(u64::MAX), bucket_of(NS_MAX));
    }

    #[test]
    fn percentiles_are_redis_s() {
        // What Redis 7.0 and 8 say of DEBUG SLEEP 0.07, of one of 2 seconds, and of short commands.
        assert_eq!(counted(&[(4, 71_600_000)]).percentile_ns(50.0), 71_827_455);
        assert_eq!(counted(&[(1, 2_000_000_000)]).percentile_ns(50.0), 1_002_438_655);
        assert_eq!(counted(&[(1, 7_000)]).percentile_ns(100.0), 7_007);
        let set = counted(&[(1, 5_990), (8, 7_000), (1, 9_000)]);
        assert_eq!(
            [0.0, 10.0, 50.0, 90.0, 100.0].map(|percent| set.percentile_ns(percent)),
            [5_984, 6_015, 7_007, 7_007, 9_023]
        );
    }

    #[test]
    fn powers_of_two_are_cumulative() {
        let counts = counted(&[(1, 0), (2, 1_031), (3, 1_032), (4, 33_023), (5, 33_024), (1, u64::MAX)]);
        assert_eq!(counts.by_powers_us(), [(1, 3), (2, 6), (33, 10), (66, 15), (1_073_741, 16)]);
        assert_eq!(counts.total(), 16);
        assert!(counted(&[]).by_powers_us().is_empty());
    }

    #[test]
    fn a_reset_forgets_the_calls() {
        let durations = Durations::default();
        durations.add(3, 5_000);
        durations.reset();
        let mut counts = DurationCounts::default();
        counts.add(&durations);
        assert_eq!(counts.total(), 0);
        durations.add(2, 5_000);
        counts.add(&durations);
        assert_eq!(counts.total(), 2);
    }
}
