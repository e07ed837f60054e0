//! The arguments that say which members, and until when. Knows no key.

use super::names::{Named, Names};
use crate::redis::string::options::TimeUnit;
use tenon_engine::args::Args;
use tenon_engine::context::KeyCx;
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::store::types::{MEMBER_DEADLINE_MAX_MS, WithDeadlines};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// So many arguments from this one on, each a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::redis) struct Members {
    first: usize,
    /// How many.
    pub count: usize,
}

impl Members {
    /// Reads `FIELDS numfields field [field ...]` from argument `at` to the end.
    ///
    /// # Errors
    /// In Redis's words, with the type's own for its members.
    pub fn parse(args: &Args<'_>, at: usize, names: Names) -> Result<Members, CmdError> {
        let Names { list, number, members, .. } = names;
        if args.try_get(at).is_none_or(|word| !word.eq_ignore_ascii_case(list.as_bytes())) {
            let text = format!("ERR Mandatory argument {list} is missing or not at the right position");
            return Err(CmdError::new(text));
        }
        let count = args.try_get(at + 1).and_then(parse_i64).filter(|&count| count > 0);
        let Some(count) = count.and_then(|count| usize::try_from(count).ok()) else {
            return Err(CmdError::new(format!("ERR Number of {members} must be a positive integer")));
        };
        if count != args.len() - (at + 2) {
            return Err(CmdError::new(format!("ERR The `{number}` parameter must match the number of arguments")));
        }
        Ok(Members { first: at + 2, count })
    }

    /// Reads what stands behind the word at argument `at` that says that members follow, of a command that takes options
    /// before and behind them; `pair` of them belong to each member. Gives where the next option is.
    ///
    /// # Errors
    /// When there are fewer, and `wrong_number` when their number is none.
    fn parse_within(
        args: &Args<'_>,
        at: usize,
        pair: usize,
        wrong_number: impl FnOnce() -> CmdError,
    ) -> Result<(Members, usize), CmdError> {
        let count = args.try_get(at + 1).and_then(parse_i64).filter(|count| (1..=i64::from(i32::MAX)).contains(count));
        let count = count.ok_or_else(wrong_number)? as usize;
        let (first, end) = (at + 2, at + 2 + count * pair);
        if end > args.len() {
            return Err(CmdError::text("ERR wrong number of arguments"));
        }
        Ok((Members { first, count }, end))
    }

    /// The same of a command, by its name in lower case, that answers each mistake by itself; `is_second`: it has read some.
    ///
    /// # Errors
    /// In the words of HGETEX and HSETEX, with the type's own for its members.
    pub fn parse_once(
        args: &Args<'_>,
        at: usize,
        pair: usize,
        names: Names,
        command: &str,
        is_second: bool,
    ) -> Result<(Members, usize), CmdError> {
        if is_second {
            return Err(named_twice(names));
        }
        if at + 1 >= args.len() {
            return Err(CmdError::Arity(command.to_owned()));
        }
        let wrong_number = || CmdError::new(format!("ERR invalid number of {}", names.members));
        Members::parse_within(args, at, pair, wrong_number)
    }

    /// Which argument is the first of them.
    pub fn first(self) -> usize {
        self.first
    }

    /// Answers the same for each member.
    pub fn reply_for_each(self, reply: &mut Reply<'_>, reply_one: impl Fn(&mut Reply<'_>)) {
        reply.array(self.count);
        (0..self.count).for_each(|_| reply_one(reply));
    }

    /// The members.
    pub fn of<'a>(self, args: &Args<'a>) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        args.from(self.first).take(self.count)
    }
}

fn number_too_low(names: Names) -> CmdError {
    let Names { number, members, .. } = names;
    let camel = number.replacen(members, &capitalised(members), 1);
    CmdError::new(format!("ERR Parameter `{camel}` should be greater than 0"))
}

/// The error for an argument that is no option.
pub(in crate::redis) fn unknown(argument: &[u8]) -> CmdError {
    CmdError::new(format!("ERR unknown argument: {}", shown(argument)))
}

/// The error for members that are named in two places.
fn named_twice(names: Names) -> CmdError {
    CmdError::new(format!("ERR {} keyword specified multiple times", names.list))
}

/// Reads `[NX | XX | GT | LT] FIELDS numfields field [field ...]` from argument 3 on, in any order.
///
/// # Errors
/// In Redis's words, with the type's own for its members.
pub(in crate::redis) fn parse_members_and_condition(
    args: &Args<'_>,
    names: Names,
) -> Result<(Members, Condition), CmdError> {
    let Names { list, number, members, .. } = names;
    let (mut found, mut condition, mut are_several) = (None, None, false);
    let mut at = 3;
    while at < args.len() {
        if args.is(at, list) {
            if found.is_some() {
                return Err(named_twice(names));
            }
            if at + 2 >= args.len() {
                let one = members.trim_end_matches('s');
                return Err(CmdError::new(format!("ERR {list} requires at least {number} and one {one} argument")));
            }
            let (some, next) = Members::parse_within(args, at, 1, || number_too_low(names))?;
            (found, at) = (Some(some), next);
            continue;
        }
        let named = Condition::named(args.get(at)).ok_or_else(|| unknown(args.get(at)))?;
        are_several |= condition.is_some_and(|condition| condition != named);
        condition = Some(named);
        at += 1;
    }
    let found = found.ok_or_else(|| CmdError::new(format!("ERR missing {list} argument")))?;
    if are_several {
        return Err(CmdError::text("ERR Multiple condition flags specified"));
    }
    Ok((found, condition.unwrap_or(Condition::Always)))
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
            let parsed = Members::parse(&args.view(), 2, names);
            parsed.map(|members| members.of(&args.view()).map(<[u8]>::to_vec).collect::<Vec<_>>())
        };
        assert_eq!(parse("HTTL k fields 2 a b", HashForm::NAMES), Ok(vec![b"a".to_vec(), b"b".to_vec()]));
        for (words, error) in [
            ("HTTL k MEMBERS 1 a", "ERR Mandatory argument FIELDS is missing or not at the right position"),
            ("HTTL k", "ERR Mandatory argument FIELDS is missing or not at the right position"),
            ("HTTL k FIELDS", "ERR Number of fields must be a positive integer"),
            ("HTTL k FIELDS 0 a", "ERR Number of fields must be a positive integer"),
            ("HTTL k FIELDS -1 a", "ERR Number of fields must be a positive integer"),
            ("HTTL k FIELDS x a", "ERR Number of fields must be a positive integer"),
            ("HTTL k FIELDS 1", "ERR The `numfields` parameter must match the number of arguments"),
            ("HTTL k FIELDS 2 a", "ERR The `numfields` parameter must match the number of arguments"),
            ("HTTL k FIELDS 1 a b", "ERR The `numfields` parameter must match the number of arguments"),
            ("HTTL k FIELDS 9223372036854775807 a", "ERR The `numfields` parameter must match the number of arguments"),
        ] {
            assert_eq!(parse(words, HashForm::NAMES).unwrap_err().to_string(), error, "{words}");
        }
        let error = parse("STTL k MEMBERS 0 a", SetForm::NAMES).unwrap_err();
        assert_eq!(error.to_string(), "ERR Number of members must be a positive integer");
    }

    #[test]
    fn conditions_stand_before_members_or_behind() {
        let parse = |words: &str, names| {
            let args = OwnedArgs::new(words.split(' '));
            let parsed = parse_members_and_condition(&args.view(), names);
            parsed.map(|(members, condition)| {
                (members.of(&args.view()).map(<[u8]>::to_vec).collect::<Vec<_>>(), condition)
            })
        };
        let both = vec![b"a".to_vec(), b"nx".to_vec()];
        for (words, condition) in [
            ("HEXPIRE k 5 FIELDS 2 a nx", Condition::Always),
            ("HEXPIRE k 5 lt fields 2 a nx", Condition::Earlier),
            ("HEXPIRE k 5 FIELDS 2 a nx GT", Condition::Later),
            ("HEXPIRE k 5 GT FIELDS 2 a nx GT", Condition::Later),
        ] {
            assert_eq!(parse(words, HashForm::NAMES), Ok((both.clone(), condition)), "{words}");
        }
        for (words, error) in [
            ("HEXPIRE k 5 NX a b", "ERR unknown argument: a"),
            ("HEXPIRE k 5 NX XX NX", "ERR missing FIELDS argument"),
            ("HEXPIRE k 5 NX FIELDS 1 a XX", "ERR Multiple condition flags specified"),
            ("HEXPIRE k 5 NX XX FIELDS 1 a b", "ERR unknown argument: b"),
            ("HEXPIRE k 5 FIELDS 1 a FIELDS 1 b", "ERR FIELDS keyword specified multiple times"),
            ("HEXPIRE k 5 NX FIELDS 1", "ERR FIELDS requires at least numfields and one field argument"),
            ("HEXPIRE k 5 NX FIELDS 2 a", "ERR wrong number of arguments"),
            ("HEXPIRE k 5 FIELDS 0 a", "ERR Parameter `numFields` should be greater than 0"),
            ("HEXPIRE k 5 FIELDS 2147483648 a", "ERR Parameter `numFields` should be greater than 0"),
        ] {
            assert_eq!(parse(words, HashForm::NAMES).unwrap_err().to_string(), error, "{words}");
        }
        for (words, error) in [
            ("SEXPIRE k 5 MEMBERS 0 a", "ERR Parameter `numMembers` should be greater than 0"),
            ("SEXPIRE k 5 NX MEMBERS 1", "ERR MEMBERS requires at least nummembers and one member argument"),
            ("SEXPIRE k 5 NX NX NX", "ERR missing MEMBERS argument"),
        ] {
            assert_eq!(parse(words, SetForm::NAMES).unwrap_err().to_string(), error, "{words}");
        }
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
