//! The present, read once for many commands and passed down.

use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};
use tenon_store::access::{AccessClock, Noting};

/// One instant.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Milliseconds since the UNIX epoch.
    pub now_ms: u64,
    /// The same instant on the monotonic clock, in nanoseconds.
    pub now_ns: u64,
    /// The same instant for noting accesses.
    pub access: AccessClock,
    /// How far the system's clock was ahead of the monotonic one when both were read, in nanoseconds: counted in
    /// milliseconds the present would lag behind what clients read off their clocks.
    ahead_ns: u64,
}

impl Clock {
    /// The present, by both clocks.
    pub fn read(noting: Noting) -> Clock {
        let (now_us, now_ns) = (now_us(), monotonic_ns());
        let now_ms = now_us / 1_000;
        let access = AccessClock::new(noting, now_ms);
        Clock { now_ms, now_ns, access, ahead_ns: (now_us * 1_000).saturating_sub(now_ns) }
    }

    /// Moves on to the present by the monotonic clock alone. Whoever ticks reads both now and then, so a change of the
    /// system's time is seen soon.
    #[inline]
    pub(crate) fn advance(&mut self, noting: Noting) {
        self.now_ns = monotonic_ns();
        let now_ms = (self.now_ns + self.ahead_ns) / 1_000_000;
        if now_ms != self.now_ms || !self.access.notes(noting) {
            self.now_ms = now_ms;
            self.access = AccessClock::new(noting, now_ms);
        }
    }
}

/// Nanoseconds of the monotonic clock, since some instant before the process began.
#[inline]
pub fn monotonic_ns() -> u64 {
    // `Instant` says nothing but differences, which cost more than the reading: this is read for every batch.
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Microseconds since the UNIX epoch.
pub fn now_us() -> u64 {
    // A system clock before 1970 is taken for 1970.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advancing_follows_the_system_clock() {
        let mut clock = Clock::read(Noting::Clock);
        for _ in 0..5 {
            std::thread::sleep(std::time::Duration::from_millis(3));
            let before = clock;
            clock.advance(Noting::Clock);
            assert!(clock.now_ns >= before.now_ns + 3_000_000);
            assert!(clock.now_ms >= before.now_ms + 2);
            assert!(clock.now_ms <= now_us() / 1_000 + 1);
        }
    }

    #[test]
    fn advancing_does_not_fall_behind() {
        // A part of a millisecond that is left out when the clocks are read must not be missing ever after. Where the
        // thread had to wait between the two readings it may be behind for once.
        let behind = (0..1_000).filter(|_| {
            let mut clock = Clock::read(Noting::Clock);
            std::thread::sleep(std::time::Duration::from_micros(130));
            let before_us = now_us();
            clock.advance(Noting::Clock);
            clock.now_ms < (before_us - 100) / 1_000
        });
        let behind = behind.count();
        assert!(behind < 20, "behind {behind} times of 1,000");
    }
}
