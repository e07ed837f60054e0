//! When an item expires, from the seconds a client gives. Has no clock: the present is passed in.

/// Seconds up to which a time counts from now; longer ones count from the UNIX epoch (memcached's `REALTIME_MAXDELTA`).
const RELATIVE_MAX_S: i64 = 60 * 60 * 24 * 30;

/// The latest deadline, in milliseconds since the UNIX epoch: the log and Redis's files have a signed number for it.
const DEADLINE_MAX_MS: u64 = i64::MAX as u64;

/// When an item expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// It does not.
    Never,
    /// Then, in milliseconds since the UNIX epoch.
    At(u64),
    /// It has already.
    Over,
}

impl Expiry {
    /// The expiry that `exptime` means at `now_ms`, milliseconds since the UNIX epoch.
    ///
    /// Times are 64 bits: those past January 2038 lie in the future, where memcached 1.6.18 takes them for the past.
    #[inline]
    pub fn of(exptime: i64, now_ms: u64) -> Expiry {
        match exptime {
            0 => Expiry::Never,
            1..=RELATIVE_MAX_S => Expiry::At(now_ms + exptime.unsigned_abs() * 1_000),
            ..0 => Expiry::Over,
            _ => {
                let at_ms = exptime.unsigned_abs().saturating_mul(1_000).min(DEADLINE_MAX_MS);
                if at_ms > now_ms { Expiry::At(at_ms) } else { Expiry::Over }
            }
        }
    }
}

impl Expiry {
    /// Whether a time counts from now.
    pub fn is_relative(exptime: i64) -> bool {
        (1..=RELATIVE_MAX_S).contains(&exptime)
    }

    /// Of an item with this deadline, in milliseconds since the UNIX epoch.
    pub fn of_deadline(deadline_ms: Option<u64>) -> Expiry {
        deadline_ms.map_or(Expiry::Never, Expiry::At)
    }

    /// Seconds that are left at `now_ms`, begun ones counted; `None` when there is no end.
    pub fn seconds_left(self, now_ms: u64) -> Option<u64> {
        match self {
            Expiry::Never => None,
            Expiry::At(ms) => Some(ms.saturating_sub(now_ms).div_ceil(1_000)),
            Expiry::Over => Some(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_count_from_now_up_to_thirty_days_and_from_the_epoch_beyond() {
        let now_ms = 1_800_000_000_500;
        for (exptime, expiry) in [
            (0, Expiry::Never),
            (1, Expiry::At(now_ms + 1_000)),
            (RELATIVE_MAX_S, Expiry::At(now_ms + 2_592_000_000)),
            (RELATIVE_MAX_S + 1, Expiry::Over),
            (1_800_000_000, Expiry::Over),
            (1_800_000_001, Expiry::At(1_800_000_001_000)),
            (4_000_000_000, Expiry::At(4_000_000_000_000)),
            (i64::MAX / 1_000, Expiry::At(9_223_372_036_854_775_000)),
            (i64::MAX, Expiry::At(9_223_372_036_854_775_807)),
            (-1, Expiry::Over),
            (i64::MIN, Expiry::Over),
        ] {
            assert_eq!(Expiry::of(exptime, now_ms), expiry, "{exptime}");
        }
    }
}
