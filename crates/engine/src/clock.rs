//! The present, read once a batch and passed down.

use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tenon_store::access::{AccessClock, Noting};

/// One instant.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Milliseconds since the UNIX epoch.
    pub now_ms: u64,
    /// The same instant on the monotonic clock.
    pub instant: Instant,
    /// The same instant for noting accesses.
    pub access: AccessClock,
}

impl Clock {
    /// The present.
    pub fn read(noting: Noting) -> Clock {
        let now_ms = now_us() / 1_000;
        Clock { now_ms, instant: Instant::now(), access: AccessClock::new(noting, now_ms) }
    }
}

/// Microseconds since the UNIX epoch.
pub fn now_us() -> u64 {
    // A system clock before 1970 is taken for 1970.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64)
}
