//! How long a blocking command waits, as clients write it. Knows no clock.

use crate::errors::CmdError;
use crate::long_double::LongDouble;
use std::num::NonZeroU64;
use tenon_wire::resp::number::parse_i64;

const NEGATIVE: CmdError = CmdError::text("ERR timeout is negative");
const OUT_OF_RANGE: CmdError = CmdError::text("ERR timeout is out of range");
const NOT_A_FLOAT: CmdError = CmdError::text("ERR timeout is not a float or out of range");
const NOT_AN_INTEGER: CmdError = CmdError::text("ERR timeout is not an integer or out of range");

/// How long a command waits, in milliseconds; for ever without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout(Option<NonZeroU64>);

impl Timeout {
    /// The time that a text says, in seconds and parts of them, rounded up to milliseconds; 0 is for ever.
    ///
    /// # Errors
    /// When it is no number, negative, or ends after the last millisecond that i64 counts.
    pub fn of_seconds(text: &[u8], now_ms: u64) -> Result<Timeout, CmdError> {
        let seconds = LongDouble::parse(text).ok_or(NOT_A_FLOAT)?;
        let ms = seconds.thousandfold().and_then(LongDouble::ceil);
        match ms {
            Some(ms) => Timeout::of_number(ms, now_ms),
            // As in Redis what is far below zero is as negative as what is just below.
            None if seconds.is_negative() => Err(NEGATIVE),
            None => Err(OUT_OF_RANGE),
        }
    }

    /// The time that a text says, in milliseconds; 0 is for ever.
    ///
    /// # Errors
    /// When it is no integer, negative, or ends after the last millisecond that i64 counts.
    pub fn of_milliseconds(text: &[u8], now_ms: u64) -> Result<Timeout, CmdError> {
        Timeout::of_number(parse_i64(text).ok_or(NOT_AN_INTEGER)?, now_ms)
    }

    fn of_number(ms: i64, now_ms: u64) -> Result<Timeout, CmdError> {
        let ms = u64::try_from(ms).map_err(|_| NEGATIVE)?;
        if ms > 0 && ms > i64::MAX as u64 - now_ms {
            return Err(OUT_OF_RANGE);
        }
        Ok(Timeout(NonZeroU64::new(ms)))
    }

    /// When it is over, for a wait that begins at `now_ns`; `None` for never.
    pub(crate) fn end_ns(self, now_ns: u64) -> Option<u64> {
        self.0.map(|ms| now_ns.saturating_add(ms.get().saturating_mul(1_000_000)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up_to_milliseconds() {
        let ms = |text: &str| Timeout::of_seconds(text.as_bytes(), 0).map(|timeout| timeout.0.map(NonZeroU64::get));
        for (text, expected) in [
            ("0", None),
            ("0.0", None),
            ("-0", None),
            ("-0.0001", None),
            ("1", Some(1_000)),
            ("0.001", Some(1)),
            ("0.0001", Some(1)),
            ("0.07", Some(70)),
            ("1.0000001", Some(1_001)),
            ("0x1p-1", Some(500)),
            ("1e3", Some(1_000_000)),
        ] {
            assert_eq!(ms(text), Ok(expected), "{text}");
        }
        for (text, error) in [
            ("", NOT_A_FLOAT),
            ("x", NOT_A_FLOAT),
            ("1 ", NOT_A_FLOAT),
            ("nan", NOT_A_FLOAT),
            ("-1", NEGATIVE),
            ("-1e30", NEGATIVE),
            ("inf", OUT_OF_RANGE),
            ("9223372036854775808", OUT_OF_RANGE),
        ] {
            assert_eq!(ms(text), Err(error), "{text}");
        }
    }

    #[test]
    fn the_end_is_within_the_reach_of_i64() {
        assert!(Timeout::of_milliseconds(b"9223372036854775807", 0).is_ok());
        assert_eq!(Timeout::of_milliseconds(b"9223372036854775807", 1), Err(OUT_OF_RANGE));
        assert_eq!(Timeout::of_milliseconds(b"9223372036854775808", 0), Err(NOT_AN_INTEGER));
        assert_eq!(Timeout::of_milliseconds(b"1.5", 0), Err(NOT_AN_INTEGER));
        assert_eq!(Timeout::of_milliseconds(b"-1", 0), Err(NEGATIVE));
        assert_eq!(Timeout::of_milliseconds(b"7", 0).map(|timeout| timeout.end_ns(5)), Ok(Some(7_000_005)));
        assert_eq!(Timeout::of_milliseconds(b"0", 0).map(|timeout| timeout.end_ns(5)), Ok(None));
    }
}
