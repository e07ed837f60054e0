//! How often what can come again and again is logged: now and then, with how often it was. Knows no log, and not what.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often at most the log tells of what strangers do: as often as Redis tells of HTTP.
const STRANGERS_PERIOD: Duration = Duration::from_secs(60);

/// One kind of line.
#[derive(Debug)]
pub struct LogLimit {
    period_ns: u64,
    /// When the next line may come, on the monotonic clock.
    next_ns: AtomicU64,
    /// What has happened since the last one.
    times: AtomicU64,
}

impl LogLimit {
    /// A line at most as often as that.
    pub const fn every(period: Duration) -> LogLimit {
        let period_ns = period.as_nanos() as u64;
        LogLimit { period_ns, next_ns: AtomicU64::new(0), times: AtomicU64::new(0) }
    }

    /// Notes that it has happened. If it is to be logged now, how often it has since the last line, this time included.
    pub fn note(&self, now_ns: u64) -> Option<u64> {
        self.times.fetch_add(1, Ordering::Relaxed);
        let next_ns = self.next_ns.load(Ordering::Relaxed);
        if now_ns < next_ns {
            return None;
        }
        // Of several threads one writes the line.
        let (order, after) = (Ordering::Relaxed, now_ns + self.period_ns);
        self.next_ns.compare_exchange(next_ns, after, order, order).ok()?;
        Some(self.times.swap(0, Ordering::Relaxed))
    }
}

/// What who has not said who it is can bring about as often as it likes.
#[derive(Debug)]
pub struct StrangersLog {
    /// Connections that protected mode refused.
    pub refused: LogLimit,
    /// HTTP on the RESP port.
    pub http: LogLimit,
    /// HTTP on memcached's port.
    pub memcached_http: LogLimit,
    /// Logins where the file of memcached's passwords cannot be read.
    pub password_file: LogLimit,
}

impl Default for StrangersLog {
    fn default() -> StrangersLog {
        let limit = || LogLimit::every(STRANGERS_PERIOD);
        StrangersLog { refused: limit(), http: limit(), memcached_http: limit(), password_file: limit() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_how_often_it_was() {
        let limit = LogLimit::every(Duration::from_nanos(100));
        let at = [5, 6, 104, 105, 106, 204, 205, 900].map(|now_ns| limit.note(now_ns));
        assert_eq!(at, [Some(1), None, None, Some(3), None, None, Some(3), Some(1)]);
    }
}
