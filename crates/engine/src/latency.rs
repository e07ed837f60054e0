//! The latency monitor: spikes of at least `latency-monitor-threshold` milliseconds, by event
//! (<https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/latency-monitor/>).

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::collections::VecDeque;

/// Spikes kept of each event, as in Redis.
const SAMPLES: usize = 160;

/// The spikes of one event.
#[derive(Clone, Debug, Default)]
pub struct Spikes {
    /// Second since the UNIX epoch and milliseconds, oldest first; one a second, the worst.
    pub samples: VecDeque<(u64, u64)>,
    /// The most milliseconds ever.
    pub max_ms: u64,
}

/// The monitor.
#[derive(Debug, Default)]
pub struct LatencyMonitor(Mutex<BTreeMap<&'static str, Spikes>>);

impl LatencyMonitor {
    /// Notes that an event took so long, if the threshold (0: off) is reached.
    pub fn note(&self, event: &'static str, duration_ms: u64, threshold_ms: u64, now_ms: u64) {
        if threshold_ms == 0 || duration_ms < threshold_ms {
            return;
        }
        let second = now_ms / 1_000;
        let mut events = self.0.lock();
        let spikes = events.entry(event).or_default();
        spikes.max_ms = spikes.max_ms.max(duration_ms);
        match spikes.samples.back_mut() {
            Some((last, ms)) if *last == second => *ms = (*ms).max(duration_ms),
            _ => spikes.samples.push_back((second, duration_ms)),
        }
        if spikes.samples.len() > SAMPLES {
            spikes.samples.pop_front();
        }
    }

    /// Every event with its spikes.
    pub fn events(&self) -> Vec<(&'static str, Spikes)> {
        self.0.lock().iter().map(|(event, spikes)| (*event, spikes.clone())).collect()
    }

    /// Forgets the spikes of these events, or of all when none is named; tells how many events were forgotten.
    pub fn reset(&self, names: &[String]) -> usize {
        let mut events = self.0.lock();
        let before = events.len();
        events.retain(|event, _| !names.is_empty() && !names.iter().any(|name| name.eq_ignore_ascii_case(event)));
        before - events.len()
    }
}
