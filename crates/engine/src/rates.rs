//! Commands and bytes a second, averaged over the last second or two. Reads no clock and no counter: both are given.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// Time between two samples, and how many of them an average is of: Redis's.
const PERIOD: Duration = Duration::from_millis(100);
const SAMPLES: usize = 16;

/// Sums since the start, or numbers a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Commands run.
    pub commands: u64,
    /// Bytes received.
    pub input_bytes: u64,
    /// Bytes sent.
    pub output_bytes: u64,
}

impl Totals {
    fn of_each(self, other: Totals, f: impl Fn(u64, u64) -> u64) -> Totals {
        Totals {
            commands: f(self.commands, other.commands),
            input_bytes: f(self.input_bytes, other.input_bytes),
            output_bytes: f(self.output_bytes, other.output_bytes),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    last: Option<(Instant, Totals)>,
    /// Numbers a second.
    samples: [Totals; SAMPLES],
    next: usize,
}

/// The sampler.
#[derive(Debug, Default)]
pub struct Rates(Mutex<State>);

impl Rates {
    /// Takes a sample when it is time for one.
    pub fn note(&self, now: Instant, totals: impl FnOnce() -> Totals) {
        let mut state = self.0.lock();
        let state = &mut *state;
        let elapsed = state.last.map(|(then, _)| now.saturating_duration_since(then));
        if elapsed.is_some_and(|elapsed| elapsed < PERIOD) {
            return;
        }
        let totals = totals();
        if let (Some((_, before)), Some(elapsed)) = (state.last, elapsed) {
            // CONFIG RESETSTAT may have lowered the sums.
            let more = totals.of_each(before, u64::saturating_sub);
            let micros = elapsed.as_micros().max(1);
            let a_second = |count: u64, _| (u128::from(count) * 1_000_000 / micros) as u64;
            state.samples[state.next] = more.of_each(Totals::default(), a_second);
            state.next = (state.next + 1) % SAMPLES;
        }
        state.last = Some((now, totals));
    }

    /// Numbers a second: the average of the last samples.
    pub fn a_second(&self) -> Totals {
        let state = self.0.lock();
        let sum = state.samples.iter().fold(Totals::default(), |sum, sample| sum.of_each(*sample, u64::saturating_add));
        sum.of_each(Totals::default(), |sum, _| sum / SAMPLES as u64)
    }

    /// Forgets the samples (CONFIG RESETSTAT).
    pub fn reset(&self) {
        *self.0.lock() = State::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_over_sixteen_samples() {
        let rates = Rates::default();
        let start = Instant::now();
        let note = |ms: u64, commands: u64| {
            let totals = Totals { commands, input_bytes: commands * 10, output_bytes: 0 };
            rates.note(start + Duration::from_millis(ms), || totals);
        };
        note(0, 1_000);
        assert_eq!(rates.a_second(), Totals::default(), "one sample is no rate");
        note(50, 5_000);
        assert_eq!(rates.a_second(), Totals::default(), "it is too early for another");
        for step in 1..=16 {
            note(step * 100, 1_000 + step * 20);
        }
        assert_eq!(rates.a_second(), Totals { commands: 200, input_bytes: 2_000, output_bytes: 0 });
        // A reset of the statistics is no negative rate.
        note(1_700, 0);
        assert_eq!(rates.a_second().commands, 200 * 15 / 16);
        rates.reset();
        assert_eq!(rates.a_second(), Totals::default());
    }
}
