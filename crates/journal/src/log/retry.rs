//! When something that failed is tried again. Knows not what it is.

use std::time::{Duration, Instant};

/// Between two attempts; each takes twice as long as the one before.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The next attempt, once one has failed.
#[derive(Debug, Default)]
pub(super) struct Retry {
    next: Option<(Instant, Duration)>,
}

impl Retry {
    pub(super) fn is_pending(&self) -> bool {
        self.next.is_some()
    }

    /// Whether it may be tried now.
    pub(super) fn is_due(&self) -> bool {
        self.next.is_none_or(|(at, _)| at <= Instant::now())
    }

    /// How long until then, after a failure.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.next.map(|(at, _)| at.saturating_duration_since(Instant::now()))
    }

    pub(super) fn has_failed(&mut self) {
        let pause = self.next.map_or(PAUSE_MIN, |(_, pause)| (pause * 2).min(PAUSE_MAX));
        self.next = Some((Instant::now() + pause, pause));
    }

    pub(super) fn has_succeeded(&mut self) {
        self.next = None;
    }
}
