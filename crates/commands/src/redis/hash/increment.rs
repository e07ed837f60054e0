//! HINCRBY and HINCRBYFLOAT: fields that are counters.

use crate::redis::member_expiry::change::log_deadline;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::ds::packed::{IntText, Item};
use tenon_engine::errors::CmdError;
use tenon_engine::long_double::LongDouble;
use tenon_engine::store::types::{Collection, Hash, HashForm};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

const NOT_INTEGER: CmdError = CmdError::text("ERR hash value is not an integer");
const NOT_FLOAT: CmdError = CmdError::text("ERR hash value is not a float");

/// Adds an integer to a field.
pub static HINCRBY: Command = Command {
    name: "HINCRBY",
    group: Group::Hash,
    syntax: "key field increment",
    summary: "Increments the integer value of a field in a hash by a number. Uses 0 as initial value if the field doesn't exist.",
    complexity: "O(1)",
    since: "2.0.0",
    arity: Arity::Exactly(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::READ_AND_CHANGE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(hincrby),
};

fn hincrby(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let increment = parse_i64(args.get(3)).ok_or(CmdError::NotInteger)?;
    let limits = cx.engine().config.hash_limits();
    let field = args.get(2);
    let (sum, effect) = cx.update(|hash: &mut Hash| {
        let before = match hash.view().get(field) {
            None => 0,
            Some(Item::Int(int)) => int,
            Some(Item::Bytes(text)) => parse_i64(text).ok_or(NOT_INTEGER)?,
        };
        let sum = before.checked_add(increment).ok_or(CmdError::Overflow)?;
        hash.set_value(field, IntText::new().format(sum).as_bytes(), limits);
        Ok(Change::made("hincrby", sum))
    })?;
    reply.int(sum);
    Ok(effect)
}

/// Adds a floating-point number to a field.
pub static HINCRBYFLOAT: Command = Command {
    name: "HINCRBYFLOAT",
    group: Group::Hash,
    syntax: "key field increment",
    summary: "Increments the floating point value of a field by a number. Uses 0 as initial value if the field doesn't exist.",
    complexity: "O(1)",
    since: "2.6.0",
    arity: Arity::Exactly(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::READ_AND_CHANGE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(hincrbyfloat),
};

fn hincrbyfloat(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let increment = LongDouble::parse(args.get(3)).ok_or(CmdError::NotFloat)?;
    if !increment.is_finite() {
        return Err(CmdError::text("ERR value is NaN or Infinity"));
    }
    let limits = cx.engine().config.hash_limits();
    let field = args.get(2);
    let ((sum, deadline_ms), effect) = cx.update(|hash: &mut Hash| {
        let before = match hash.view().get(field) {
            None => LongDouble::ZERO,
            Some(Item::Int(int)) => LongDouble::from(int),
            Some(Item::Bytes(text)) => LongDouble::parse(text).ok_or(NOT_FLOAT)?,
        };
        let sum = before.checked_add(increment).ok_or(CmdError::NotFinite)?.to_text();
        hash.set_value(field, sum.as_bytes(), limits);
        Ok(Change::made("hincrbyfloat", (sum, hash.deadline_ms(field))))
    })?;
    reply.bulk(sum.as_bytes());
    debug_assert!(effect.is_change(), "a field was set");
    // The sum itself: another machine might round it differently.
    let key = cx.key;
    let logged = cx.log(&["HSET".into(), key.into(), field.into(), sum.as_bytes().into()]);
    // HSET takes a deadline away, this leaves it.
    if let Some(deadline_ms) = deadline_ms {
        log_deadline::<HashForm>(cx, deadline_ms, &[field]);
    }
    Ok(logged)
}
