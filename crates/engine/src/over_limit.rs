//! For how long memory in use has been above `maxmemory`, as Redis tells it. Knows no policy.

use std::sync::atomic::{AtomicU64, Ordering};

/// Time above the limit, noted by whoever ticks, so to within a tick. On the monotonic clock.
#[derive(Debug, Default)]
pub struct OverLimit {
    /// Since when it has been above; 0: it is not.
    since_ns: AtomicU64,
    /// How long it was in all, up to when it was below last.
    total_ns: AtomicU64,
}

impl OverLimit {
    /// Notes whether memory is above the limit now. Only one thread does.
    pub(crate) fn note(&self, is_over: bool, now_ns: u64) {
        let since_ns = self.since_ns.load(Ordering::Relaxed);
        match (since_ns, is_over) {
            (0, true) => self.since_ns.store(now_ns, Ordering::Relaxed),
            (0, false) | (1.., true) => {}
            (1.., false) => {
                self.total_ns.fetch_add(now_ns.saturating_sub(since_ns), Ordering::Relaxed);
                self.since_ns.store(0, Ordering::Relaxed);
            }
        }
    }

    /// For how many milliseconds it has been above now, and in all.
    pub fn current_and_total_ms(&self, now_ns: u64) -> [u64; 2] {
        let current_ns = match self.since_ns.load(Ordering::Relaxed) {
            0 => 0,
            since_ns => now_ns.saturating_sub(since_ns),
        };
        [current_ns, self.total_ns.load(Ordering::Relaxed) + current_ns].map(|ns| ns / 1_000_000)
    }

    /// Begins anew (CONFIG RESETSTAT).
    pub(crate) fn reset(&self) {
        self.since_ns.store(0, Ordering::Relaxed);
        self.total_ns.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up() {
        let over = OverLimit::default();
        let at = |ms: u64| over.current_and_total_ms(ms * 1_000_000);
        let note = |is_over, ms: u64| over.note(is_over, ms * 1_000_000);
        note(false, 5);
        assert_eq!(at(10), [0, 0]);
        note(true, 10);
        note(true, 20);
        assert_eq!(at(30), [20, 20]);
        note(false, 40);
        assert_eq!(at(100), [0, 30]);
        note(true, 200);
        assert_eq!(at(205), [5, 35]);
        over.reset();
        assert_eq!(at(300), [0, 0]);
    }
}
