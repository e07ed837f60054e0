//! HGET, HMGET, HEXISTS and HSTRLEN: looking at named fields.

use crate::redis::answer_limit::AnswerLimit;
use crate::redis::reply_item::bulk_item;
use std::collections::HashSet;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::ds::packed::Item;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Hash;
use tenon_engine::wire::resp::Reply;

/// Gives the value of a field.
pub static HGET: Command = Command {
    name: "HGET",
    group: Group::Hash,
    syntax: "key field",
    summary: "Returns the value of a field in a hash.",
    complexity: "O(1)",
    since: "2.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(hget),
};

fn hget(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let hash = cx.read_collection::<Hash>()?;
    reply_value(reply, hash.and_then(|hash| hash.get(args.get(2))));
    Ok(Effect::Unchanged)
}

/// Gives the values of fields.
pub static HMGET: Command = Command {
    name: "HMGET",
    group: Group::Hash,
    syntax: "key field [field ...]",
    summary: "Returns the values of all fields in a hash.",
    complexity: "O(N) where N is the number of fields being requested.",
    since: "2.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(hmget),
};

fn hmget(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let mut limit = AnswerLimit::of(cx, reply);
    let hash = cx.read_collection::<Hash>()?;
    reply.array(args.len() - 2);
    for field in args.from(2) {
        reply_value(reply, hash.and_then(|hash| hash.get(field)));
        if !limit.allows_more(reply) {
            // Each field once is what HGETALL answers, too.
            if are_distinct(args.from(2)) {
                limit = limit.without_repeats();
            }
            if !limit.allows_more(reply) {
                break;
            }
        }
    }
    limit.check(reply)?;
    Ok(Effect::Unchanged)
}

#[cold]
fn are_distinct<'a>(mut fields: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut seen = HashSet::new();
    fields.all(|field| seen.insert(field))
}

/// Answers a value, or that there is none.
pub(super) fn reply_value(reply: &mut Reply<'_>, value: Option<Item<'_>>) {
    match value {
        Some(value) => bulk_item(reply, value),
        None => reply.null(),
    }
}

/// Tells whether a field is there.
pub static HEXISTS: Command = Command {
    name: "HEXISTS",
    group: Group::Hash,
    syntax: "key field",
    summary: "Determines whether a field exists in a hash.",
    complexity: "O(1)",
    since: "2.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::LOOK)]),
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(hexists),
};

fn hexists(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let hash = cx.read_collection::<Hash>()?;
    reply.int(hash.is_some_and(|hash| hash.get(args.get(2)).is_some()).into());
    Ok(Effect::Unchanged)
}

/// Gives the length of a field's value.
pub static HSTRLEN: Command = Command {
    name: "HSTRLEN",
    group: Group::Hash,
    syntax: "key field",
    summary: "Returns the length of the value of a field.",
    complexity: "O(1)",
    since: "3.2.0",
    arity: Arity::Exactly(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::LOOK)]),
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(hstrlen),
};

fn hstrlen(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let hash = cx.read_collection::<Hash>()?;
    reply.int(hash.and_then(|hash| hash.get(args.get(2))).map_or(0, |value| value.len() as i64));
    Ok(Effect::Unchanged)
}
