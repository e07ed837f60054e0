//! The options that SET, GETEX and MSETEX share: when to write, and what becomes of the expiry. Knows no key.

use super::condition::{Comparison, Condition};
use tenon_engine::args::Args;
use tenon_engine::context::Deadline;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::number::parse_i64;

/// When a value is written.
#[derive(Clone, Copy, Debug)]
pub enum When<'a> {
    /// In any case.
    Always,
    /// NX: when the key is not there.
    Absent,
    /// XX: when it is.
    Present,
    /// When its value, or its digest, is or is not this.
    If(Condition<'a>),
}

/// How the time of an expiry is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// EX: seconds from now.
    Seconds,
    /// PX: milliseconds from now.
    Milliseconds,
    /// EXAT: seconds since the UNIX epoch.
    SecondsAt,
    /// PXAT: milliseconds since the UNIX epoch.
    MillisecondsAt,
}

/// An expiry as the client gave it.
#[derive(Clone, Copy, Debug)]
pub struct Expiry<'a> {
    /// In which unit.
    pub unit: TimeUnit,
    /// How much, as text.
    pub amount: &'a [u8],
}

/// What becomes of the key's expiry.
#[derive(Clone, Copy, Debug)]
pub enum Expire<'a> {
    /// No option says.
    Unsaid,
    /// KEEPTTL: it stays.
    Keep,
    /// PERSIST: there is none any more.
    Persist,
    /// The key expires then.
    After(Expiry<'a>),
}

/// The options of a command.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// When it writes.
    pub when: When<'a>,
    /// GET: whether it answers the value before.
    pub get: bool,
    /// What becomes of the expiry.
    pub expire: Expire<'a>,
}

/// Which options a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// NX, XX, the conditions on the value, GET, expiry and KEEPTTL.
    Set,
    /// NX, XX, expiry and KEEPTTL.
    MSetEx,
    /// Expiry and PERSIST.
    GetEx,
}

impl TimeUnit {
    /// The unit of the option of this name, in any case.
    pub fn named(word: &[u8]) -> Option<TimeUnit> {
        const NAMES: [(&[u8], TimeUnit); 4] = [
            (b"EX", TimeUnit::Seconds),
            (b"PX", TimeUnit::Milliseconds),
            (b"EXAT", TimeUnit::SecondsAt),
            (b"PXAT", TimeUnit::MillisecondsAt),
        ];
        NAMES.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|&(_, unit)| unit)
    }
}

impl Expiry<'_> {
    /// The deadline in milliseconds since the UNIX epoch, for the command of this name in lower case.
    ///
    /// # Errors
    /// When the amount is no integer, is not positive, or leads out of i64.
    pub fn deadline_ms(&self, now_ms: u64, command: &'static str) -> Result<u64, CmdError> {
        let amount = parse_i64(self.amount).ok_or(CmdError::NotInteger)?;
        let invalid = CmdError::InvalidExpire(command);
        if amount <= 0 {
            return Err(invalid);
        }
        let deadline = match self.unit {
            TimeUnit::Seconds => amount.checked_mul(1_000).and_then(|ms| ms.checked_add(now_ms as i64)),
            TimeUnit::Milliseconds => amount.checked_add(now_ms as i64),
            TimeUnit::SecondsAt => amount.checked_mul(1_000),
            TimeUnit::MillisecondsAt => Some(amount),
        };
        deadline.map(|ms| ms as u64).ok_or(invalid)
    }
}

impl Expire<'_> {
    /// What a write does to the deadline, for the command of this name in lower case.
    ///
    /// # Errors
    /// As [`Expiry::deadline_ms`].
    pub fn deadline(&self, now_ms: u64, command: &'static str) -> Result<Deadline, CmdError> {
        Ok(match self {
            Expire::Unsaid | Expire::Persist => Deadline::Clear,
            Expire::Keep => Deadline::Keep,
            Expire::After(expiry) => Deadline::At(expiry.deadline_ms(now_ms, command)?),
        })
    }
}

impl<'a> Options<'a> {
    /// Reads the options from argument `from` on. An option may be repeated; the last one counts.
    ///
    /// # Errors
    /// For an option that is unknown, lacks its argument or contradicts an earlier one.
    pub fn parse(args: &Args<'a>, from: usize, accepts: Accepts) -> Result<Options<'a>, CmdError> {
        let mut options = Options { when: When::Always, get: false, expire: Expire::Unsaid };
        let mut at = from;
        while let Some(word) = args.try_get(at) {
            let operand = || args.try_get(at + 1).ok_or(CmdError::Syntax);
            let mut used = 1;
            if let Some(unit) = TimeUnit::named(word) {
                options.set_expire(Expire::After(Expiry { unit, amount: operand()? }))?;
                used = 2;
            } else if accepts == Accepts::GetEx {
                if !word.eq_ignore_ascii_case(b"PERSIST") {
                    return Err(CmdError::Syntax);
                }
                options.set_expire(Expire::Persist)?;
            } else if word.eq_ignore_ascii_case(b"NX") {
                options.set_when(When::Absent)?;
            } else if word.eq_ignore_ascii_case(b"XX") {
                options.set_when(When::Present)?;
            } else if word.eq_ignore_ascii_case(b"KEEPTTL") {
                options.set_expire(Expire::Keep)?;
            } else if accepts == Accepts::Set && word.eq_ignore_ascii_case(b"GET") {
                options.get = true;
            } else if accepts == Accepts::Set
                && let Some(comparison) = Comparison::named(word)
            {
                options.set_when(When::If(Condition::new(comparison, operand()?)))?;
                used = 2;
            } else {
                return Err(CmdError::Syntax);
            }
            at += used;
        }
        Ok(options)
    }

    fn set_when(&mut self, when: When<'a>) -> Result<(), CmdError> {
        let agrees = match (self.when, when) {
            (When::Always, _) | (When::Absent, When::Absent) | (When::Present, When::Present) => true,
            (When::If(before), When::If(now)) => before.comparison() == now.comparison(),
            _ => false,
        };
        self.when = when;
        if agrees { Ok(()) } else { Err(CmdError::Syntax) }
    }

    fn set_expire(&mut self, expire: Expire<'a>) -> Result<(), CmdError> {
        let agrees = match (self.expire, expire) {
            (Expire::Unsaid, _) | (Expire::Keep, Expire::Keep) | (Expire::Persist, Expire::Persist) => true,
            (Expire::After(before), Expire::After(now)) => before.unit == now.unit,
            _ => false,
        };
        self.expire = expire;
        if agrees { Ok(()) } else { Err(CmdError::Syntax) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_that_lead_out_of_range_are_refused() {
        const NOW_MS: u64 = 1_700_000_000_000;
        let deadline = |unit, amount: &str| Expiry { unit, amount: amount.as_bytes() }.deadline_ms(NOW_MS, "set");
        assert_eq!(deadline(TimeUnit::Seconds, "10"), Ok(NOW_MS + 10_000));
        assert_eq!(deadline(TimeUnit::Milliseconds, "10"), Ok(NOW_MS + 10));
        assert_eq!(deadline(TimeUnit::SecondsAt, "10"), Ok(10_000));
        assert_eq!(deadline(TimeUnit::MillisecondsAt, "9223372036854775807"), Ok(i64::MAX as u64));
        for amount in ["0", "-1", "-9223372036854775808"] {
            for unit in [TimeUnit::Seconds, TimeUnit::Milliseconds, TimeUnit::SecondsAt, TimeUnit::MillisecondsAt] {
                assert_eq!(deadline(unit, amount), Err(CmdError::InvalidExpire("set")), "{unit:?} {amount}");
            }
        }
        for (unit, amount) in [
            (TimeUnit::Seconds, "9223372036854775"),
            (TimeUnit::SecondsAt, "9223372036854776"),
            (TimeUnit::Milliseconds, "9223372036854775807"),
        ] {
            assert_eq!(deadline(unit, amount), Err(CmdError::InvalidExpire("set")), "{unit:?} {amount}");
        }
        for amount in ["", "x", "1.5", "+1", " 1", "9223372036854775808"] {
            assert_eq!(deadline(TimeUnit::MillisecondsAt, amount), Err(CmdError::NotInteger), "{amount:?}");
        }
    }
}
