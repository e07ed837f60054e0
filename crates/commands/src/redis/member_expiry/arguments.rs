//! The arguments that say which members, and until when. Knows no key.

use super::names::{Named, Names};
use crate::redis::string::options::TimeUnit;
use tenon_engine::args::Args;
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::{MEMBER_DEADLINE_MAX_MS, WithDeadlines};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// The arguments from this one to the last, each a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::redis) struct Members {
    first: usize,
    /// How many.
    pub count: usize,
}

/// What Redis says of a number of members that is none: HEXPIRE and its kin have words of their own for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::redis) enum NumberError {
    /// The number of fields must be a positive integer.
    Positive,
    /// The parameter should be greater than 0.
    GreaterThanZero,
}

impl Members {
    /// Reads `FIELDS numfields field [field ...]` from argument `at` to the end.
    ///
    /// # Errors
    /// In Redis's words, with the type's own for its members.
    pub fn parse(args: &Args<'_>, at: usize, names: Names, error: NumberError) -> Result<Members, CmdError> {
        let Names { list, number, members, .. } = names;
        if args.try_get(at).is_none_or(|word| !word.eq_ignore_ascii_case(list.as_bytes())) {
            let text = format!("ERR Mandatory argument {list} is missing or not at the right position");
            return Err(CmdError::new(text));
        }
        let count = args.try_get(at + 1).and_then(parse_i64).filter(|&count| count > 0);
        let Some(count) = count.and_then(|count| usize::try_from(count).ok()) else {
            return Err(CmdError::new(match error {
                NumberError::Positive => format!("ERR Number of {members} must be a positive integer"),
                NumberError::GreaterThanZero => {
                    let camel = number.replacen(members, &capitalised(members), 1);
                    format!("ERR Parameter `{camel}` should be greater than 0")
                }
            }));
        };
        if count != args.len() - (at + 2) {
            return Err(CmdError::new(format!("ERR The `{number}` parameter must match the number of arguments")));
        }
        Ok(Members { first: at + 2, count })
    }

    /// Answers the same for each member.
    pub fn reply_for_each(self, reply: &mut Reply<'_>, reply_one: impl Fn(&mut Reply<'_>)) {
        reply.array(self.count);
        (0..self.count).for_each(|_| reply_one(reply));
    }

    /// The members.
    pub fn of<'a>(self, args: &Args<'a>) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        args.from(self.first)
    }
}

fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_ascii_uppercase() + rest
}

/// The deadline that an amount of time says, in milliseconds since the UNIX epoch, for the command of this name in lower
/// case.
///
/// # Errors
/// When the amount is no integer, is negative, or leads beyond the latest deadline that a member can have.
pub(in crate::redis) fn parse_deadline(
    amount: &[u8],
    unit: TimeUnit,
    now_ms: u64,
    command: &'static str,
) -> Result<u64, CmdError> {
    let amount = parse_i64(amount).ok_or(CmdError::NotInteger)?;
    let Ok(amount) = u64::try_from(amount) else {
        return Err(CmdError::text("ERR invalid expire time, must be >= 0"));
    };
    let deadline_ms = match unit {
        TimeUnit::Seconds => amount.checked_mul(1_000).and_then(|ms| ms.checked_add(now_ms)),
        TimeUnit::Milliseconds => amount.checked_add(now_ms),
        TimeUnit::SecondsAt => amount.checked_mul(1_000),
        TimeUnit::MillisecondsAt => Some(amount),
    };
    deadline_ms.filter(|&ms| ms <= MEMBER_DEADLINE_MAX_MS).ok_or(CmdError::InvalidExpire(command))
}

/// When a member's deadline is to be changed at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::redis) enum Condition {
    /// In any case.
    Always,
    /// NX: it has none yet.
    NoneYet,
    /// XX: it has one.
    HasOne,
    /// GT: the new one is later.
    Later,
    /// LT: the new one is earlier.
    Earlier,
}

impl Condition {
    /// The condition of this name, in any case.
    pub fn named(word: &[u8]) -> Option<Condition> {
        const NAMES: [(&[u8], Condition); 4] = [
            (b"NX", Condition::NoneYet),
            (b"XX", Condition::HasOne),
            (b"GT", Condition::Later),
            (b"LT", Condition::Earlier),
        ];
        NAMES.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|&(_, condition)| condition)
    }

    /// Whether it holds. A member without deadline counts as one that expires after any other.
    pub fn holds(self, before_ms: Option<u64>, after_ms: u64) -> bool {
        match self {
            Condition::Always => true,
            Condition::NoneYet => before_ms.is_none(),
            Condition::HasOne => before_ms.is_some(),
            Condition::Later => before_ms.is_some_and(|before_ms| after_ms > before_ms),
            Condition::Earlier => before_ms.is_none_or(|before_ms| after_ms < before_ms),
        }
    }
}

/// The outcome of reading arguments; but what is wrong with them matters only where the key holds the right type, which
/// Redis looks at first.
pub(in crate::redis) fn type_first<F: Named, R>(
    cx: &mut KeyCx<'_>,
    parsed: Result<R, CmdError>,
) -> Result<R, CmdError> {
    if parsed.is_err()
        && let Some(slot) = cx.find()
    {
        cx.collection::<WithDeadlines<F>>(slot)?;
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_engine::args::OwnedArgs;
    use tenon_engine::store::types::{HashForm, SetForm};

    #[test]
    fn members_are_counted() {
        let parse = |words: &str, names| {
            let args = OwnedArgs::new(words.split(' '));
            let parsed = Members::parse(&args.view(), 2, names, NumberError::GreaterThanZero);
            parsed.map(|members| members.of(&args.view()).map(<[u8]>::to_vec).collect::<Vec<_>>())
        };
        assert_eq!(parse("HTTL k fields 2 a b", HashForm::NAMES), Ok(vec![b"a".to_vec(), b"b".to_vec()]));
        for (words, error) in [
            ("HTTL k MEMBERS 1 a", "ERR Mandatory argument FIELDS is missing or not at the right position"),
            ("HTTL k", "ERR Mandatory argument FIELDS is missing or not at the right position"),
            ("HTTL k FIELDS", "ERR Parameter `numFields` should be greater than 0"),
            ("HTTL k FIELDS 0 a", "ERR Parameter `numFields` should be greater than 0"),
            ("HTTL k FIELDS -1 a", "ERR Parameter `numFields` should be greater than 0"),
            ("HTTL k FIELDS x a", "ERR Parameter `numFields` should be greater than 0"),
            ("HTTL k FIELDS 1", "ERR The `numfields` parameter must match the number of arguments"),
            ("HTTL k FIELDS 2 a", "ERR The `numfields` parameter must match the number of arguments"),
            ("HTTL k FIELDS 1 a b", "ERR The `numfields` parameter must match the number of arguments"),
            ("HTTL k FIELDS 9223372036854775807 a", "ERR The `numfields` parameter must match the number of arguments"),
        ] {
            assert_eq!(parse(words, HashForm::NAMES).unwrap_err().to_string(), error, "{words}");
        }
        let error = parse("STTL k MEMBERS 0 a", SetForm::NAMES).unwrap_err();
        assert_eq!(error.to_string(), "ERR Parameter `numMembers` should be greater than 0");
    }

    #[test]
    fn deadlines_that_lead_out_of_range_are_refused() {
        const NOW_MS: u64 = 1_700_000_000_000;
        let deadline = |unit, amount: &str| parse_deadline(amount.as_bytes(), unit, NOW_MS, "hexpire");
        assert_eq!(deadline(TimeUnit::Seconds, "10"), Ok(NOW_MS + 10_000));
        assert_eq!(deadline(TimeUnit::Milliseconds, "0"), Ok(NOW_MS));
        assert_eq!(deadline(TimeUnit::SecondsAt, "10"), Ok(10_000));
        assert_eq!(deadline(TimeUnit::MillisecondsAt, "70368744177663"), Ok(MEMBER_DEADLINE_MAX_MS));
        for unit in [TimeUnit::Seconds, TimeUnit::Milliseconds, TimeUnit::SecondsAt, TimeUnit::MillisecondsAt] {
            for amount in ["70368744177664", "9223372036854775807"] {
                assert_eq!(deadline(unit, amount), Err(CmdError::InvalidExpire("hexpire")), "{unit:?} {amount}");
            }
            for amount in ["-1", "-9223372036854775808"] {
                let error = deadline(unit, amount).unwrap_err();
                assert_eq!(error.to_string(), "ERR invalid expire time, must be >= 0", "{unit:?} {amount}");
            }
            for amount in ["", "x", "1.5", "+1", " 1", "9223372036854775808"] {
                assert_eq!(deadline(unit, amount), Err(CmdError::NotInteger), "{unit:?} {amount:?}");
            }
        }
    }

    #[test]
    fn conditions_compare_with_the_deadline_before() {
        for (word, before, after, holds) in [
            ("nx", None, 1, true),
            ("NX", Some(1), 1, false),
            ("XX", None, 1, false),
            ("xx", Some(5), 1, true),
            ("GT", None, 9, false),
            ("GT", Some(5), 5, false),
            ("gt", Some(5), 6, true),
            ("LT", None, 9, true),
            ("LT", Some(5), 5, false),
            ("lt", Some(5), 4, true),
        ] {
            let condition = Condition::named(word.as_bytes()).unwrap();
            assert_eq!(condition.holds(before, after), holds, "{word} {before:?} {after}");
        }
        assert_eq!(Condition::named(b"PX"), None);
        assert!(Condition::Always.holds(Some(1), 0));
    }
}
