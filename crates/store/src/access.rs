//! The 24 bits an entry keeps of how it was used: a clock for LRU, a decaying counter for LFU, as Redis keeps them
//! (<https://redis.io/docs/latest/develop/reference/eviction/>), or a tick and a count of hits. Knows no entry.

use crate::evict::turnover::{self, Turnover};

/// Bits of the clock.
const CLOCK_MASK: u32 = 0xff_ffff;
/// So much later than now an access may seem to be, in seconds: another worker's clock may be a moment ahead, and the system's
/// may have been set back.
const AHEAD_MAX_S: u32 = 3_600;
/// The longest time since an access that can be told, in seconds.
const IDLE_MAX_S: u32 = CLOCK_MASK - AHEAD_MAX_S;
/// Seconds of an idle time that is given (RESTORE's IDLETIME, a file's), at most, 164 days: what is longer would seem to be used
/// just now, and what is hardly shorter would before long. This has thirty days until then.
const IDLE_GIVEN_MAX_S: u32 = IDLE_MAX_S - 30 * 86_400;
/// The counter of a new key, so that it is not the first to go.
const LFU_INITIAL: u8 = 5;

/// How accesses are noted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noting {
    /// The time of the last access, in seconds.
    Clock,
    /// The frequency of accesses: eight bits of logarithmic counter behind sixteen of minutes.
    Frequency {
        /// `lfu-log-factor`: how much slower the counter grows the larger it is.
        log_factor: u32,
        /// `lfu-decay-time`: minutes for the counter to fall by one; 0: never.
        decay_minutes: u32,
    },
    /// The tick of the last access, by these, and how many hits there were.
    Turnover(&'static Turnover),
}

/// The present for noting accesses, read once a batch.
#[derive(Clone, Copy, Debug)]
pub struct AccessClock {
    noting: Noting,
    seconds: u32,
    minutes: u16,
    tick: u32,
}

impl AccessClock {
    /// The clock at `now_ms`, milliseconds since the UNIX epoch.
    pub fn new(noting: Noting, now_ms: u64) -> AccessClock {
        let seconds = now_ms / 1_000;
        let tick = match noting {
            Noting::Turnover(turnover) => turnover.tick(),
            Noting::Clock | Noting::Frequency { .. } => 0,
        };
        AccessClock { noting, seconds: seconds as u32 & CLOCK_MASK, minutes: (seconds / 60) as u16, tick }
    }

    /// Whether accesses are noted this way, and it is still the same tick.
    #[inline]
    pub fn notes(&self, noting: Noting) -> bool {
        self.noting == noting
            && match noting {
                Noting::Turnover(turnover) => turnover.tick() == self.tick,
                Noting::Clock | Noting::Frequency { .. } => true,
            }
    }

    /// Whether what is noted of an access depends on what is noted already.
    #[inline]
    pub fn counts(&self) -> bool {
        self.noting != Noting::Clock
    }

    /// Whether hits are counted beside a tick.
    #[inline]
    pub fn notes_turnover(&self) -> bool {
        matches!(self.noting, Noting::Turnover(_))
    }

    /// The tick it is.
    #[inline]
    pub fn tick(&self) -> u32 {
        self.tick
    }

    /// Whether frequencies are kept.
    pub fn notes_frequency(&self) -> bool {
        matches!(self.noting, Noting::Frequency { .. })
    }

    /// The bits of a key that is made now.
    #[inline]
    pub fn created(&self) -> u32 {
        match self.noting {
            Noting::Clock => self.seconds,
            Noting::Turnover(_) => turnover::bits(self.tick, 0),
            Noting::Frequency { .. } => u32::from(self.minutes) << 8 | u32::from(LFU_INITIAL),
        }
    }

    /// The bits of a key that is accessed now; `random` decides whether a frequency grows.
    #[inline]
    pub fn touched(&self, access: u32, random: u32) -> u32 {
        match self.noting {
            Noting::Clock => self.seconds,
            Noting::Turnover(turnover) => turnover.used_again(self.tick, access),
            Noting::Frequency { log_factor, .. } => {
                let counter = self.frequency(access);
                let above = u64::from(counter.saturating_sub(LFU_INITIAL));
                let odds_against = above * u64::from(log_factor) + 1;
                let grows = counter < u8::MAX && u64::from(random).saturating_mul(odds_against) < 1 << 32;
                u32::from(self.minutes) << 8 | u32::from(counter + u8::from(grows))
            }
        }
    }

    /// The frequency now, decayed since the last access.
    pub fn frequency(&self, access: u32) -> u8 {
        let counter = access as u8;
        match self.noting {
            Noting::Frequency { decay_minutes, .. } if decay_minutes > 0 => {
                let elapsed = self.minutes_since(access);
                counter.saturating_sub(u8::try_from(u32::from(elapsed) / decay_minutes).unwrap_or(u8::MAX))
            }
            _ => counter,
        }
    }

    /// Seconds since the last access; the clock wraps after 194 days.
    pub fn idle_seconds(&self, access: u32) -> u32 {
        match self.noting {
            Noting::Turnover(turnover) => turnover.seconds_since(self.tick, access),
            Noting::Clock | Noting::Frequency { .. } => {
                let elapsed = self.seconds.wrapping_sub(access) & CLOCK_MASK;
                if elapsed > IDLE_MAX_S { 0 } else { elapsed }
            }
        }
    }

    /// Minutes since the last access, where frequencies are kept.
    fn minutes_since(&self, access: u32) -> u16 {
        let elapsed = self.minutes.wrapping_sub((access >> 8) as u16);
        if u32::from(elapsed) > u32::from(u16::MAX) - AHEAD_MAX_S / 60 { 0 } else { elapsed }
    }

    /// Seconds since the last access as far as is known: where frequencies are kept, in steps of a minute.
    pub fn seconds_since(&self, access: u32) -> u32 {
        match self.noting {
            Noting::Clock | Noting::Turnover(_) => self.idle_seconds(access),
            Noting::Frequency { .. } => u32::from(self.minutes_since(access)) * 60,
        }
    }

    /// The bits of a key that was last accessed `seconds` ago (RESTORE's IDLETIME).
    pub fn idle_since(&self, seconds: u32) -> u32 {
        match self.noting {
            Noting::Turnover(turnover) => turnover.used_before(self.tick, seconds),
            Noting::Clock | Noting::Frequency { .. } => {
                self.seconds.wrapping_sub(seconds.min(IDLE_GIVEN_MAX_S)) & CLOCK_MASK
            }
        }
    }

    /// The bits of a key with this frequency now (RESTORE's FREQ).
    pub fn with_frequency(&self, frequency: u8) -> u32 {
        u32::from(self.minutes) << 8 | u32::from(frequency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_wraps() {
        let before = AccessClock::new(Noting::Clock, u64::from(CLOCK_MASK) * 1_000);
        let after = AccessClock::new(Noting::Clock, (u64::from(CLOCK_MASK) + 11) * 1_000);
        assert_eq!(after.idle_seconds(before.created()), 11);
        assert_eq!(after.idle_seconds(after.idle_since(30)), 30);
        let a_day_later = AccessClock::new(Noting::Clock, (u64::from(CLOCK_MASK) + 11 + 86_400) * 1_000);
        for longer in [IDLE_GIVEN_MAX_S, IDLE_GIVEN_MAX_S + 1, IDLE_MAX_S, IDLE_MAX_S + 1, CLOCK_MASK + 1, u32::MAX] {
            let access = after.idle_since(longer);
            assert_eq!(after.idle_seconds(access), IDLE_GIVEN_MAX_S, "{longer}");
            assert_eq!(a_day_later.idle_seconds(access), IDLE_GIVEN_MAX_S + 86_400, "{longer}");
        }
        assert_eq!(after.seconds_since(before.created()), 11);
    }

    #[test]
    fn what_was_used_a_moment_later_was_used_now() {
        let now_ms = 1_000_000_000_000;
        let clocks = |noting| (AccessClock::new(noting, now_ms), AccessClock::new(noting, now_ms + 60_000));
        let (now, later) = clocks(Noting::Clock);
        assert_eq!((now.idle_seconds(later.created()), now.seconds_since(later.created())), (0, 0));
        let (now, later) = clocks(Noting::Frequency { log_factor: 10, decay_minutes: 1 });
        let used = later.with_frequency(200);
        assert_eq!((now.frequency(used), now.seconds_since(used)), (200, 0));
        assert_eq!(now.frequency(now.touched(used, u32::MAX)), 200);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a million steps of safe code")]
    fn the_counter_grows_logarithmically_and_decays() {
        let noting = Noting::Frequency { log_factor: 10, decay_minutes: 1 };
        let clock = AccessClock::new(noting, 1_000_000);
        let mut access = clock.created();
        let mut random = 1u64;
        let mut after_100 = 0;
        for round in 0..1_000_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            access = clock.touched(access, (random >> 32) as u32);
            if round == 100 {
                after_100 = clock.frequency(access);
            }
        }
        // Redis documents about 10 after 100 hits and 255 after a million, with a factor of 10.
        assert!((8..=14).contains(&after_100), "{after_100}");
        assert!(clock.frequency(access) > 250);
        let later = AccessClock::new(noting, 1_000_000 + 100 * 60_000);
        assert_eq!(later.frequency(access), clock.frequency(access) - 100);
        assert_eq!(later.frequency(clock.created()), 0);
        assert_eq!(later.seconds_since(clock.created()), 6_000);
    }

    #[test]
    fn the_largest_factor_nearly_stops_the_counter() {
        let noting = Noting::Frequency { log_factor: i32::MAX as u32, decay_minutes: 0 };
        let clock = AccessClock::new(noting, 1_000_000);
        let full = clock.with_frequency(254);
        assert_eq!(clock.frequency(clock.touched(full, 1_000)), 254);
        assert_eq!(clock.frequency(clock.touched(full, u32::MAX)), 254);
        assert_eq!(clock.frequency(clock.touched(full, 0)), 255);
    }
}
