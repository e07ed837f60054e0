//! What came of a load. Knows not what was sent.

use crate::latency::Latency;
use std::time::Duration;

/// The length of one of [`Outcome::intervals`].
pub const INTERVAL: Duration = Duration::from_millis(100);

/// What came of a load. Every reply was checked.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Operations answered.
    pub operations: u64,
    /// From the first request to the last reply.
    pub elapsed: Duration,
    /// Latencies of each kind of operation: in a closed loop from the sending of a batch to the reply, in an open one from
    /// when the operation was due.
    pub kinds: Vec<(&'static str, Latency)>,
    /// Operations answered in each [`INTERVAL`] from the start; the last one is not whole.
    pub intervals: Vec<u64>,
    /// CPU time of all client threads, but for what they waited awake.
    pub client_cpu: Duration,
    /// The part of it in the kernel, of a closed loop; by the kernel's ticks of each thread.
    pub client_system: Option<Duration>,
    /// System calls of all client threads, of a closed loop without TLS.
    pub client_calls: Option<u64>,
    /// The share of the time in which the busiest client thread had something to do, on a core or waiting for one: near 1,
    /// it never waited for the server, and the client is the limit.
    pub client_busy: f64,
    /// The greatest share of the time that a client thread was ready and had no core.
    pub client_queued: f64,
    /// In an open loop, how late the client itself was with requests that were due: from then, or where all connections
    /// were taken, from when it was told of the reply that made room.
    pub late: Latency,
    /// In an open loop, the latencies up to its end of operations that were not answered, of whatever kind.
    pub unanswered: Latency,
    /// In an open loop, operations that were due and never sent, because server or client were too slow. Their latency up
    /// to the end of the load is recorded.
    pub unsent: u64,
}

impl Outcome {
    /// Of nothing yet.
    pub fn new(kinds: &'static [&'static str]) -> Outcome {
        Outcome {
            operations: 0,
            elapsed: Duration::ZERO,
            kinds: kinds.iter().map(|kind| (*kind, Latency::new())).collect(),
            intervals: Vec::new(),
            client_cpu: Duration::ZERO,
            client_system: Some(Duration::ZERO),
            client_calls: Some(0),
            client_busy: 0.0,
            client_queued: 0.0,
            late: Latency::new(),
            unanswered: Latency::new(),
            unsent: 0,
        }
    }

    /// Operations were answered.
    #[inline]
    pub fn answered(&mut self, kind: usize, operations: u64, latency_ns: u64, now_ns: u64) {
        self.operations += operations;
        self.kinds[kind].1.record(latency_ns, operations);
        let interval = (now_ns / INTERVAL.as_nanos() as u64) as usize;
        if self.intervals.len() <= interval {
            self.intervals.resize(interval + 1, 0);
        }
        self.intervals[interval] += operations;
    }

    /// Adds another thread's.
    pub fn add(&mut self, other: &Outcome) {
        self.operations += other.operations;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.kinds.iter_mut().zip(&other.kinds).for_each(|((_, sum), (_, more))| sum.add(more));
        if self.intervals.len() < other.intervals.len() {
            self.intervals.resize(other.intervals.len(), 0);
        }
        self.intervals.iter_mut().zip(&other.intervals).for_each(|(sum, more)| *sum += more);
        self.client_cpu += other.client_cpu;
        self.client_system = self.client_system.zip(other.client_system).map(|(sum, more)| sum + more);
        self.client_calls = self.client_calls.zip(other.client_calls).map(|(sum, more)| sum + more);
        self.client_busy = self.client_busy.max(other.client_busy);
        self.client_queued = self.client_queued.max(other.client_queued);
        self.late.add(&other.late);
        self.unanswered.add(&other.unanswered);
        self.unsent += other.unsent;
    }

    /// Operations a second.
    pub fn throughput(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Latencies of all kinds together, and of what was not answered.
    pub fn latency(&self) -> Latency {
        let mut all = self.unanswered.clone();
        self.kinds.iter().for_each(|(_, kind)| all.add(kind));
        all
    }

    /// The median's share that the slowest whole interval had: near 1, the throughput had no dip. `None` for less than
    /// five intervals.
    pub fn slowest_interval(&self) -> Option<f64> {
        let whole = self.intervals.split_last()?.1;
        least_over_median(whole.iter().map(|operations| *operations as f64))
    }
}

/// The median's share that the least of some figures has; `None` of less than five.
pub fn least_over_median(figures: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = figures.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    (sorted.len() >= 5).then(|| sorted[0] / sorted[sorted.len() / 2].max(f64::MIN_POSITIVE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up() {
        let mut one = Outcome::new(&["get", "set"]);
        one.answered(0, 2, 1_000, 50_000_000);
        let mut other = Outcome::new(&["get", "set"]);
        other.answered(1, 1, 3_000, 250_000_000);
        (one.elapsed, other.elapsed) = (Duration::from_secs(1), Duration::from_secs(3));
        (one.client_busy, other.client_busy) = (0.5, 0.25);
        (one.client_queued, other.client_queued) = (0.125, 0.25);
        other.unanswered.record(9_000, 1);
        one.add(&other);
        assert_eq!((one.client_busy, one.client_queued), (0.5, 0.25), "the busiest thread's");
        assert_eq!((one.operations, one.throughput(), one.latency().count()), (3, 1.0, 4));
        assert_eq!(one.intervals, [2, 0, 1]);
        assert_eq!((one.kinds[0].1.count(), one.kinds[1].1.count()), (2, 1));
    }

    #[test]
    fn a_dip_shows() {
        let mut outcome = Outcome::new(&["set"]);
        outcome.intervals = vec![100, 100, 40, 100, 100, 100, 1];
        assert_eq!(outcome.slowest_interval(), Some(0.4));
        outcome.intervals.truncate(5);
        assert_eq!(outcome.slowest_interval(), None);
    }
}
