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
    /// A millisecond of the system's clock; the monotonic one said `anchor_ns` when it began. So the two change to the
    /// next millisecond together: a client that has just read the system's clock never finds this one behind it.
    anchor_ms: u64,
    anchor_ns: u64,
}

impl Clock {
    /// The present, by both clocks.
    pub fn read(noting: Noting) -> Clock {
        Clock::at(now_us(), monotonic_ns(), noting)
    }

    /// What the two clocks said at the same time.
    fn at(now_us: u64, now_ns: u64, noting: Noting) -> Clock {
        let now_ms = now_us / 1_000;
        let access = access_clock(noting, now_ms, now_ns);
        Clock { now_ms, now_ns, access, anchor_ms: now_ms, anchor_ns: now_ns.saturating_sub(now_us % 1_000 * 1_000) }
    }

    /// Milliseconds of the monotonic clock: of what is only held against other times of this process, and of nobody's deadline.
    #[inline]
    pub fn monotonic_ms(&self) -> u64 {
        self.now_ns / 1_000_000
    }

    /// Moves on to the present by the monotonic clock alone, within a turn of an event loop: each turn reads both. A deadline
    /// that is set by a time from before the system's was set may be past when it is set.
    #[inline]
    pub(crate) fn advance(&mut self, noting: Noting) {
        self.now_ns = monotonic_ns();
        let now_ms = self.ms_at(self.now_ns);
        if now_ms != self.now_ms || !self.access.notes(noting) {
            self.now_ms = now_ms;
            self.access = access_clock(noting, now_ms, self.now_ns);
        }
    }

    /// The same instant for another way of noting accesses.
    pub(crate) fn note_accesses_by(&mut self, noting: Noting) {
        if !self.access.notes(noting) {
            self.access = access_clock(noting, self.now_ms, self.now_ns);
        }
    }

    /// The system's milliseconds when the monotonic clock says `now_ns`.
    #[inline]
    fn ms_at(&self, now_ns: u64) -> u64 {
        self.anchor_ms + (now_ns - self.anchor_ns) / 1_000_000
    }
}

/// The clock for noting accesses. The seconds of a turnover are those of the monotonic clock: while the system's is set, workers
/// disagree about it.
fn access_clock(noting: Noting, now_ms: u64, now_ns: u64) -> AccessClock {
    if let Noting::Turnover(turnover) = noting {
        turnover.note_second((now_ns / 1_000_000_000) as u32);
    }
    AccessClock::new(noting, now_ms)
}

/// Nanoseconds of the monotonic clock, since some instant before the process began.
#[inline]
pub fn monotonic_ns() -> u64 {
    // `Instant` says nothing but differences, which cost more than the reading: this is read for every batch.
    ns_of(ClockId::Monotonic)
}

/// The same in milliseconds.
pub(crate) fn monotonic_ms() -> u64 {
    monotonic_ns() / 1_000_000
}

/// Nanoseconds for which the calling thread has had a core.
pub fn thread_cpu_ns() -> u64 {
    ns_of(ClockId::ThreadCPUTime)
}

/// Nanoseconds for which this process's threads have had a core, all of them together.
pub(crate) fn process_cpu_ns() -> u64 {
    ns_of(ClockId::ProcessCPUTime)
}

#[inline]
fn ns_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
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
    fn milliseconds_change_with_those_of_the_system_clock() {
        let clock = Clock::at(5_000_999, 70_000_000, Noting::Clock);
        let after_us = |us: u64| clock.ms_at(70_000_000 + us * 1_000);
        assert_eq!(
            (clock.now_ms, after_us(0), after_us(1), after_us(1_000), after_us(1_001)),
            (5_000, 5_000, 5_001, 5_001, 5_002)
        );
    }

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
}
