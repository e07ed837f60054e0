//! EXPIRE and its kin, PERSIST: set and take away the moment at which a key goes.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::notify::EventClass;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Sets the time to live in seconds.
pub static EXPIRE: Command = Command {
    name: "EXPIRE",
    group: Group::Generic,
    syntax: "key seconds [NX | XX | GT | LT]",
    summary: "Sets the expiration time of a key in seconds.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(expire),
};

/// Sets the time to live in milliseconds.
pub static PEXPIRE: Command = Command {
    name: "PEXPIRE",
    group: Group::Generic,
    syntax: "key milliseconds [NX | XX | GT | LT]",
    summary: "Sets the expiration time of a key in milliseconds.",
    complexity: "O(1)",
    since: "2.6.0",
    arity: Arity::AtLeast(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(pexpire),
};

/// Sets the deadline in seconds.
pub static EXPIREAT: Command = Command {
    name: "EXPIREAT",
    group: Group::Generic,
    syntax: "key unix-time-seconds [NX | XX | GT | LT]",
    summary: "Sets the expiration time of a key to a Unix timestamp.",
    complexity: "O(1)",
    since: "1.2.0",
    arity: Arity::AtLeast(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(expireat),
};

/// Sets the deadline in milliseconds.
pub static PEXPIREAT: Command = Command {
    name: "PEXPIREAT",
    group: Group::Generic,
    syntax: "key unix-time-milliseconds [NX | XX | GT | LT]",
    summary: "Sets the expiration time of a key to a Unix milliseconds timestamp.",
    complexity: "O(1)",
    since: "2.6.0",
    arity: Arity::AtLeast(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(pexpireat),
};

/// Takes the deadline away.
pub static PERSIST: Command = Command {
    name: "PERSIST",
    group: Group::Generic,
    syntax: "key",
    summary: "Removes the expiration time of a key.",
    complexity: "O(1)",
    since: "2.2.0",
    arity: Arity::Exactly(2),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(persist),
};

/// The unit in which a time is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Seconds,
    Milliseconds,
}

/// What a time is counted from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Now,
    Epoch,
}

/// When a deadline is to be changed at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Conditions {
    /// NX: there is none yet.
    none_yet: bool,
    /// XX: there is one.
    has_one: bool,
    /// GT: the new one is later.
    later: bool,
    /// LT: the new one is earlier.
    earlier: bool,
}

impl Conditions {
    fn parse<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<Conditions, CmdError> {
        let mut conditions = Conditions::default();
        for word in words {
            match word {
                _ if word.eq_ignore_ascii_case(b"NX") => conditions.none_yet = true,
                _ if word.eq_ignore_ascii_case(b"XX") => conditions.has_one = true,
                _ if word.eq_ignore_ascii_case(b"GT") => conditions.later = true,
                _ if word.eq_ignore_ascii_case(b"LT") => conditions.earlier = true,
                _ => {
                    let word = shown(word);
                    return Err(CmdError::new(format!("ERR Unsupported option {word}")));
                }
            }
        }
        let Conditions { none_yet, has_one, later, earlier } = conditions;
        if none_yet && (has_one || later || earlier) {
            return Err(CmdError::text("ERR NX and XX, GT or LT options at the same time are not compatible"));
        }
        if later && earlier {
            return Err(CmdError::text("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(conditions)
    }

    /// Whether they hold. A key without deadline counts as one that expires after any other.
    fn hold(self, before_ms: Option<u64>, after_ms: i64) -> bool {
        let Some(before_ms) = before_ms.map(|ms| ms as i64) else { return !self.has_one && !self.later };
        !(self.none_yet || self.later && after_ms <= before_ms || self.earlier && after_ms >= before_ms)
    }
}

/// The moment that a number says, in milliseconds since the UNIX epoch; it may lie before it. Nothing when the moment
/// can't be reached.
fn moment_ms(number: i64, unit: Unit, base: Base, now_ms: u64) -> Option<i64> {
    let ms = if unit == Unit::Seconds { number.checked_mul(1_000)? } else { number };
    if base == Base::Now { ms.checked_add(now_ms as i64) } else { Some(ms) }
}

fn expire(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    set(cx, args, reply, "expire", Unit::Seconds, Base::Now)
}

fn pexpire(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    set(cx, args, reply, "pexpire", Unit::Milliseconds, Base::Now)
}

fn expireat(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    set(cx, args, reply, "expireat", Unit::Seconds, Base::Epoch)
}

fn pexpireat(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    set(cx, args, reply, "pexpireat", Unit::Milliseconds, Base::Epoch)
}

fn set(
    cx: &mut KeyCx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    name: &'static str,
    unit: Unit,
    base: Base,
) -> Result<Effect, CmdError> {
    let conditions = Conditions::parse(args.from(3))?;
    let number = parse_i64(args.get(2)).ok_or(CmdError::NotInteger)?;
    let deadline_ms = moment_ms(number, unit, base, cx.now_ms()).ok_or(CmdError::InvalidExpire(name))?;
    let found = cx.find_for_write();
    let Some(slot) = found.filter(|&slot| conditions.hold(cx.entry(slot).deadline_ms(), deadline_ms)) else {
        reply.int(0);
        return Ok(Effect::Unchanged);
    };
    match u64::try_from(deadline_ms) {
        Ok(deadline_ms) if deadline_ms > cx.expiry_now_ms() => {
            cx.set_deadline(slot, Some(deadline_ms));
            cx.notify(EventClass::GENERIC, "expire");
            reply.int(1);
            Ok(cx.log_deadline(slot))
        }
        // The moment has passed: the key goes at once.
        _ => {
            assert!(cx.delete(), "it was just found");
            cx.notify(EventClass::GENERIC, "del");
            reply.int(1);
            Ok(cx.log_deleted())
        }
    }
}

fn persist(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let found = cx.find_for_write();
    let expiring = found.filter(|&slot| cx.entry(slot).deadline_ms().is_some());
    if let Some(slot) = expiring {
        cx.set_deadline(slot, None);
        cx.notify(EventClass::GENERIC, "persist");
    }
    reply.int(expiring.is_some().into());
    Ok(Effect::when(expiring.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_counted_without_overflow() {
        let now = 1_000;
        assert_eq!(moment_ms(5, Unit::Seconds, Base::Now, now), Some(6_000));
        assert_eq!(moment_ms(-5, Unit::Seconds, Base::Epoch, now), Some(-5_000));
        assert_eq!(moment_ms(i64::MAX / 1_000 + 1, Unit::Seconds, Base::Epoch, now), None);
        assert_eq!(moment_ms(i64::MIN / 1_000 - 1, Unit::Seconds, Base::Epoch, now), None);
        assert_eq!(moment_ms(i64::MAX, Unit::Milliseconds, Base::Epoch, now), Some(i64::MAX));
        assert_eq!(moment_ms(i64::MAX, Unit::Milliseconds, Base::Now, now), None);
        assert_eq!(moment_ms(i64::MIN, Unit::Milliseconds, Base::Now, now), Some(i64::MIN + 1_000));
    }

    #[test]
    fn conditions_compare_with_the_deadline_before() {
        let parse = |words: &str| Conditions::parse(words.split(' ').filter(|w| !w.is_empty()).map(str::as_bytes));
        for (words, before, after, holds) in [
            ("", None, -1, true),
            ("nx", None, 1, true),
            ("NX", Some(1), 1, false),
            ("XX", None, 1, false),
            ("xx", Some(5), 1, true),
            ("GT", None, 9, false),
            ("GT", Some(5), 5, false),
            ("GT", Some(5), 6, true),
            ("LT", None, 9, true),
            ("LT", Some(5), 5, false),
            ("LT", Some(5), -4, true),
            ("XX LT", None, 9, false),
            ("XX GT GT", Some(5), 9, true),
        ] {
            assert_eq!(parse(words).unwrap().hold(before, after), holds, "{words} {before:?} {after}");
        }
        for words in ["NX XX", "GT NX", "NX LT", "GT LT", "XX GT LT", "PX", "NX 1"] {
            assert!(parse(words).is_err(), "{words}");
        }
    }
}
