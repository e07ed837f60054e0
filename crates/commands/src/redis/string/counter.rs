//! INCR and its kin: adding to a number that is stored as a string.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::{Deadline, KeyCx};
use tenon_engine::errors::CmdError;
use tenon_engine::long_double::LongDouble;
use tenon_engine::notify::EventClass;
use tenon_engine::store::entry::{NewValue, ValueRef};
use tenon_engine::string;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Adds one.
pub static INCR: Command = Command {
    name: "INCR",
    group: Group::String,
    syntax: "key",
    summary: "Increments the integer value of a key by one. Uses 0 as initial value if the key doesn't exist.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::ONE,
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(incr),
};

fn incr(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    add(cx, 1, reply)
}

/// Takes one away.
pub static DECR: Command = Command {
    name: "DECR",
    group: Group::String,
    syntax: "key",
    summary: "Decrements the integer value of a key by one. Uses 0 as initial value if the key doesn't exist.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::ONE,
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(decr),
};

fn decr(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    add(cx, -1, reply)
}

/// Adds an integer.
pub static INCRBY: Command = Command {
    name: "INCRBY",
    group: Group::String,
    syntax: "key increment",
    summary: "Increments the integer value of a key by a number. Uses 0 as initial value if the key doesn't exist.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::ONE,
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(incrby),
};

fn incrby(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    add(cx, parse_i64(args.get(2)).ok_or(CmdError::NotInteger)?, reply)
}

/// Takes an integer away.
pub static DECRBY: Command = Command {
    name: "DECRBY",
    group: Group::String,
    syntax: "key decrement",
    summary: "Decrements a number from the integer value of a key. Uses 0 as initial value if the key doesn't exist.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::ONE,
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(decrby),
};

fn decrby(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let decrement = parse_i64(args.get(2)).ok_or(CmdError::NotInteger)?;
    let increment = decrement.checked_neg().ok_or(CmdError::text("ERR decrement would overflow"))?;
    add(cx, increment, reply)
}

fn add(cx: &mut KeyCx<'_>, increment: i64, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let mut sum = increment;
    let mut counted_by_memcached = None;
    match cx.find_for_write() {
        Some(slot) => {
            let value = cx.string(slot)?;
            let before = match string::integer(value) {
                Some(before) => before,
                None => {
                    counted_by_memcached = Some(slot);
                    integer_before_blanks(value).ok_or(CmdError::NotInteger)?
                }
            };
            sum = before.checked_add(increment).ok_or(CmdError::Overflow)?;
            cx.rewrite_int(slot, sum);
        }
        None => cx.store(None, NewValue::Int(sum), Deadline::Clear, 0, None),
    }
    cx.notify(EventClass::STRING, "incrby");
    reply.int(sum);
    // Redis, which may read the log, would not count on from blanks.
    Ok(counted_by_memcached.map_or(Effect::Verbatim, |slot| cx.log_string(slot)))
}

/// The integer that memcached's `decr` has left blanks behind.
#[cold]
pub(super) fn integer_before_blanks(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Bytes(text) => parse_i64(string::without_blanks(text)),
        ValueRef::Int(_) | ValueRef::Object(_) | ValueRef::Packed(..) => None,
    }
}

/// Adds a floating-point number.
pub static INCRBYFLOAT: Command = Command {
    name: "INCRBYFLOAT",
    group: Group::String,
    syntax: "key increment",
    summary: "Increment the floating point value of a key by a number. Uses 0 as initial value if the key doesn't \
              exist.",
    complexity: "O(1)",
    since: "2.6.0",
    arity: Arity::Exactly(3),
    keys: Keys::ONE,
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(incrbyfloat),
};

fn incrbyfloat(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let slot = cx.find_for_write();
    let before = match slot.map(|slot| cx.string(slot)).transpose()? {
        None => LongDouble::ZERO,
        Some(ValueRef::Int(int)) => LongDouble::from(int),
        Some(ValueRef::Bytes(bytes)) => LongDouble::parse(string::without_blanks(bytes)).ok_or(CmdError::NotFloat)?,
        Some(ValueRef::Object(_) | ValueRef::Packed(..)) => return Err(CmdError::NotFloat),
    };
    let increment = LongDouble::parse(args.get(2)).ok_or(CmdError::NotFloat)?;
    let sum = before.checked_add(increment).ok_or(CmdError::NotFinite)?.to_text();
    let value = NewValue::Bytes(sum.as_bytes());
    let slot = match slot {
        Some(slot) => {
            cx.rewrite(slot, value);
            slot
        }
        None => cx.store_in_slot(None, value, Deadline::Clear, 0, None),
    };
    cx.notify(EventClass::STRING, "incrbyfloat");
    reply.bulk(sum.as_bytes());
    // The sum itself: another machine might round it differently.
    Ok(cx.log_string(slot))
}
