//! GET and its kin: reading strings, some of which change the key's expiry or remove it.

use super::options::{Accepts, Expire, Options, TimeUnit};
use super::value::{reply_optional, reply_string};
use crate::redis::answer_limit::AnswerLimit;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{KeyCx, KeysCx};
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::string;
use tenon_engine::wire::resp::Reply;

/// Reads a string.
pub static GET: Command = Command {
    name: "GET",
    group: Group::String,
    syntax: "key",
    summary: "Returns the string value of a key.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(get),
};

fn get(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply_optional(cx.read_string()?, reply);
    Ok(Effect::Unchanged)
}

/// Reads several strings.
pub static MGET: Command = Command {
    name: "MGET",
    group: Group::String,
    syntax: "key [key ...]",
    summary: "Atomically returns the string values of one or more keys.",
    complexity: "O(N) where N is the number of keys to retrieve.",
    since: "1.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::ALL,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Keys(mget),
};

fn mget(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limit = AnswerLimit::of_output(cx.engine(), reply);
    let keys = args.from(1);
    reply.array(keys.len());
    for key in keys {
        // A key of another type is no error here.
        reply_optional(cx.key(key).read_string().unwrap_or(None), reply);
        if !limit.allows_more(reply) {
            break;
        }
    }
    limit.check(reply)?;
    Ok(Effect::Unchanged)
}

/// Tells a string's length.
pub static STRLEN: Command = Command {
    name: "STRLEN",
    group: Group::String,
    syntax: "key",
    summary: "Returns the length of a string value.",
    complexity: "O(1)",
    since: "2.2.0",
    arity: Arity::Exactly(2),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::LOOK)]),
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(strlen),
};

fn strlen(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply.int(cx.read_string()?.map_or(0, string::len) as i64);
    Ok(Effect::Unchanged)
}

/// Reads a string and removes it.
pub static GETDEL: Command = Command {
    name: "GETDEL",
    group: Group::String,
    syntax: "key",
    summary: "Returns the string value of a key after deleting the key.",
    complexity: "O(1)",
    since: "6.2.0",
    arity: Arity::Exactly(2),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::READ_AND_DELETE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(getdel),
};

fn getdel(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let Some(slot) = cx.find_for_read() else {
        reply.null();
        return Ok(Effect::Unchanged);
    };
    reply_string(cx.string(slot)?, reply);
    let entry = cx.take(slot);
    cx.worker().discard(entry);
    cx.notify(EventClass::GENERIC, "del");
    Ok(cx.log_deleted())
}

/// Reads a string and sets or takes away its expiry.
pub static GETEX: Command = Command {
    name: "GETEX",
    group: Group::String,
    syntax: "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]",
    summary: "Returns the string value of a key after setting its expiration time.",
    complexity: "O(1)",
    since: "6.2.0",
    arity: Arity::AtLeast(2),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::READ_AND_CHANGE).notes("RW and UPDATE because it changes the TTL")]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(getex),
};

fn getex(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let options = Options::parse(args, 2, Accepts::GetEx)?;
    let now_ms = cx.now_ms();
    let Some(slot) = cx.find_for_read() else {
        // As in Redis a time that is none is no error for a key that is not there.
        reply.null();
        return Ok(Effect::Unchanged);
    };
    let value = cx.string(slot)?;
    let after = match options.expire {
        Expire::After(expiry) => Some((expiry.deadline_ms(now_ms, "getex")?, expiry.unit)),
        Expire::Unsaid | Expire::Keep | Expire::Persist => None,
    };
    reply_string(value, reply);
    match (options.expire, after) {
        // A point in time that has come is the key's end; Redis looks at those that the client named only.
        (_, Some((deadline_ms, TimeUnit::SecondsAt | TimeUnit::MillisecondsAt)))
            if deadline_ms <= cx.expiry_now_ms() =>
        {
            let entry = cx.take(slot);
            cx.worker().discard(entry);
            cx.notify(EventClass::GENERIC, "del");
            Ok(cx.log_deleted())
        }
        (_, Some((deadline_ms, _))) => {
            cx.set_deadline(slot, Some(deadline_ms));
            cx.notify(EventClass::GENERIC, "expire");
            Ok(cx.log_deadline(slot))
        }
        (Expire::Persist, None) if cx.entry(slot).deadline_ms().is_some() => {
            cx.set_deadline(slot, None);
            cx.notify(EventClass::GENERIC, "persist");
            Ok(cx.log_deadline(slot))
        }
        _ => Ok(Effect::Unchanged),
    }
}
