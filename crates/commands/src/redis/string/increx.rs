//! INCREX: adding to a number within bounds, and setting its expiry with it.

use super::counter::integer_before_blanks;
use super::options::{Expire, Expiry, TimeUnit};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::{Deadline, KeyCx};
use tenon_engine::errors::CmdError;
use tenon_engine::long_double::LongDouble;
use tenon_engine::notify::EventClass;
use tenon_engine::store::Slot;
use tenon_engine::store::entry::{NewValue, ValueRef};
use tenon_engine::store::keyspace::is_past;
use tenon_engine::string;
use tenon_engine::wire::resp::number::parse_i64;
use tenon_engine::wire::resp::{Proto, Reply};

/// Adds within bounds.
pub static INCREX: Command = Command {
    name: "INCREX",
    group: Group::String,
    syntax: "key [BYFLOAT increment | BYINT increment] [LBOUND lowerbound] [UBOUND upperbound] [SATURATE] \
             [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] [ENX]",
    summary: "Increments the numeric value of a key by a number and sets its expiration time. Uses 0 as initial value \
              if the key doesn't exist.",
    complexity: "O(1)",
    since: "8.8.0",
    arity: Arity::AtLeast(2),
    keys: Keys::ONE,
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(increx),
};

/// What becomes of a result beyond a bound.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beyond {
    /// Nothing is changed.
    Refused,
    /// It becomes the bound.
    Saturated,
}

/// When an expiry is set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpireWhen {
    Always,
    /// ENX: when the key has none.
    HasNone,
}

/// The options as they stand there.
struct Options<'a> {
    by: Option<(By, &'a [u8])>,
    lower: Option<&'a [u8]>,
    upper: Option<&'a [u8]>,
    beyond: Beyond,
    expire: Expire<'a>,
    expire_when: ExpireWhen,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Int,
    Float,
}

/// Notes an option's argument; each option may stand there once.
fn once<T>(place: &mut Option<T>, value: T) -> Result<(), CmdError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(CmdError::Syntax),
    }
}

impl<'a> Options<'a> {
    fn parse(args: &Args<'a>) -> Result<Options<'a>, CmdError> {
        let (mut by, mut lower, mut upper, mut saturate, mut expire, mut enx) = (None, None, None, None, None, None);
        let mut at = 2;
        while at < args.len() {
            let operand = || args.try_get(at + 1).ok_or(CmdError::Syntax);
            let mut used = 2;
            if args.is(at, "BYINT") {
                once(&mut by, (By::Int, operand()?))?;
            } else if args.is(at, "BYFLOAT") {
                once(&mut by, (By::Float, operand()?))?;
            } else if args.is(at, "LBOUND") {
                once(&mut lower, operand()?)?;
            } else if args.is(at, "UBOUND") {
                once(&mut upper, operand()?)?;
            } else if let Some(unit) = TimeUnit::named(args.get(at)) {
                once(&mut expire, Expire::After(Expiry { unit, amount: operand()? }))?;
            } else {
                used = 1;
                if args.is(at, "SATURATE") {
                    once(&mut saturate, ())?;
                } else if args.is(at, "PERSIST") {
                    once(&mut expire, Expire::Persist)?;
                } else if args.is(at, "ENX") {
                    once(&mut enx, ())?;
                } else {
                    return Err(CmdError::Syntax);
                }
            }
            at += used;
        }
        match (enx, expire) {
            (Some(()), None) => return Err(CmdError::text("ERR ENX flag requires an expiration")),
            (Some(()), Some(Expire::Persist)) => return Err(CmdError::Syntax),
            _ => {}
        }
        Ok(Options {
            by,
            lower,
            upper,
            beyond: saturate.map_or(Beyond::Refused, |()| Beyond::Saturated),
            expire: expire.unwrap_or(Expire::Keep),
            expire_when: enx.map_or(ExpireWhen::Always, |()| ExpireWhen::HasNone),
        })
    }

    /// Both bounds, each read as `parse` reads it; `kind` is what they should be.
    fn bounds<T>(&self, parse: impl Fn(&[u8]) -> Option<T>, kind: &str) -> Result<(Option<T>, Option<T>), CmdError> {
        let bound = |text: Option<&[u8]>, name: &str| match text.map(&parse) {
            None => Ok(None),
            Some(Some(bound)) => Ok(Some(bound)),
            Some(None) => Err(CmdError::new(format!("ERR {name} is not {kind}"))),
        };
        Ok((bound(self.lower, "LBOUND")?, bound(self.upper, "UBOUND")?))
    }
}

const BOUNDS_CROSS: CmdError = CmdError::text("ERR LBOUND can't be greater than UBOUND");

fn increx(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let options = Options::parse(args)?;
    match options.by {
        Some((By::Float, increment)) => add_float(cx, &options, increment, reply),
        Some((By::Int, increment)) => {
            let increment =
                parse_i64(increment).ok_or(CmdError::text("ERR Increment is not an integer or out of range"))?;
            add_int(cx, &options, increment, reply)
        }
        None => add_int(cx, &options, 1, reply),
    }
}

fn add_int(
    cx: &mut KeyCx<'_>,
    options: &Options<'_>,
    increment: i64,
    reply: &mut Reply<'_>,
) -> Result<Effect, CmdError> {
    let (lower, upper) = options.bounds(parse_i64, "an integer or out of range")?;
    let (lower, upper) = (lower.unwrap_or(i64::MIN), upper.unwrap_or(i64::MAX));
    if lower > upper {
        return Err(BOUNDS_CROSS);
    }
    let expire = options.expire.deadline(cx.now_ms(), "increx")?;
    let slot = cx.find_for_write();
    let before = match slot {
        Some(slot) => {
            let value = cx.string(slot)?;
            string::integer(value).or_else(|| integer_before_blanks(value)).ok_or(CmdError::NotInteger)?
        }
        None => 0,
    };
    let exact = i128::from(before) + i128::from(increment);
    let after = exact.clamp(i128::from(lower), i128::from(upper)) as i64;
    if i128::from(after) != exact && options.beyond == Beyond::Refused {
        reply.array(2);
        reply.int(before);
        reply.int(0);
        return Ok(Effect::Unchanged);
    }
    let applied = after.checked_sub(before).ok_or(CmdError::text("ERR applied increment would overflow"))?;
    reply.array(2);
    reply.int(after);
    reply.int(applied);
    Ok(store(cx, slot, NewValue::Int(after), expire, options.expire_when))
}

fn add_float(
    cx: &mut KeyCx<'_>,
    options: &Options<'_>,
    increment: &[u8],
    reply: &mut Reply<'_>,
) -> Result<Effect, CmdError> {
    let increment = LongDouble::parse(increment).ok_or(CmdError::text("ERR Increment is not a valid float"))?;
    if !increment.is_finite() {
        return Err(CmdError::text("ERR BYFLOAT increment cannot be Infinity"));
    }
    let (lower, upper) = options.bounds(LongDouble::parse, "a valid float")?;
    let (lower, upper) = (lower.unwrap_or(LongDouble::MIN), upper.unwrap_or(LongDouble::MAX));
    if lower > upper {
        return Err(BOUNDS_CROSS);
    }
    let expire = options.expire.deadline(cx.now_ms(), "increx")?;
    let slot = cx.find_for_write();
    let before = match slot.map(|slot| cx.string(slot)).transpose()? {
        None => LongDouble::ZERO,
        Some(ValueRef::Int(int)) => LongDouble::from(int),
        Some(ValueRef::Bytes(bytes)) => LongDouble::parse(string::without_blanks(bytes)).ok_or(CmdError::NotFloat)?,
        Some(_) => return Err(CmdError::NotFloat),
    };
    if !before.is_finite() {
        return Err(CmdError::text("ERR value cannot be Infinity"));
    }
    let sum = before.checked_add(increment);
    let within = sum.filter(|sum| (lower..=upper).contains(sum));
    let after = match (within, options.beyond) {
        (Some(sum), _) => sum,
        (None, Beyond::Refused) => {
            reply.array(2);
            reply_float(before, reply);
            reply_float(LongDouble::ZERO, reply);
            return Ok(Effect::Unchanged);
        }
        (None, Beyond::Saturated) => {
            let is_above = match sum {
                Some(sum) => sum > upper,
                None => increment > LongDouble::ZERO,
            };
            if is_above { upper } else { lower }
        }
    };
    // What has been added: of what was to be, a part may be too small for the sum. An infinite bound is none to stop at.
    let applied = if after.is_finite() { after.checked_add(-before) } else { None };
    let applied = applied.ok_or(CmdError::text("ERR applied increment would be Infinity"))?;
    reply.array(2);
    reply_float(after, reply);
    reply_float(applied, reply);
    Ok(store(cx, slot, NewValue::Bytes(after.to_text().as_bytes()), expire, options.expire_when))
}

/// A float with the digits that are stored, in both protocols.
fn reply_float(number: LongDouble, reply: &mut Reply<'_>) {
    let text = number.to_text();
    match reply.proto() {
        Proto::Resp2 => reply.bulk(text.as_bytes()),
        Proto::Resp3 => reply.raw(format!(",{text}\r\n").as_bytes()),
    }
}

/// Stores the sum; a key whose time has passed already is removed.
fn store(
    cx: &mut KeyCx<'_>,
    slot: Option<Slot>,
    value: NewValue<'_>,
    mut expire: Deadline,
    expire_when: ExpireWhen,
) -> Effect {
    let has_deadline = slot.is_some_and(|slot| cx.entry(slot).deadline_ms().is_some());
    if expire_when == ExpireWhen::HasNone && has_deadline {
        expire = Deadline::Keep;
    }
    if let Deadline::At(ms) = expire
        && is_past(Some(ms), cx.expiry_now_ms())
    {
        let is_deleted = cx.delete();
        if is_deleted {
            cx.notify(EventClass::GENERIC, "del");
            return cx.log_deleted();
        }
        return Effect::Unchanged;
    }
    let flags = slot.map_or(0, |slot| cx.entry(slot).flags());
    let event = if matches!(value, NewValue::Int(_)) { "incrby" } else { "incrbyfloat" };
    let slot = cx.store_in_slot(slot, value, expire, flags, None);
    cx.notify(EventClass::STRING, event);
    match expire {
        Deadline::At(_) => cx.notify(EventClass::GENERIC, "expire"),
        Deadline::Clear if has_deadline => cx.notify(EventClass::GENERIC, "persist"),
        Deadline::Clear | Deadline::Keep => {}
    }
    cx.log_string(slot)
}
