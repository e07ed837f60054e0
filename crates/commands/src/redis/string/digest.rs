//! DIGEST, DELEX and DELIFEQ: a string's digest, and removing a key if its value is the expected one.

use super::condition::{Comparison, Condition, digest};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::wire::resp::Reply;

/// Tells a string's digest.
pub static DIGEST: Command = Command {
    name: "DIGEST",
    group: Group::String,
    syntax: "key",
    summary: "Returns the XXH3 hash of a string value.",
    complexity: "O(N) where N is the length of the string value.",
    since: "8.4.0",
    arity: Arity::Exactly(2),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(run_digest),
};

fn run_digest(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    match cx.read_string()? {
        Some(value) => reply.bulk(digest(value).as_bytes()),
        None => reply.null(),
    }
    Ok(Effect::Unchanged)
}

/// Removes a key if its value, or its digest, is or is not the given one.
pub static DELEX: Command = Command {
    name: "DELEX",
    group: Group::String,
    syntax: "key [IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | IFDNE ifdne-digest]",
    summary: "Conditionally removes the specified key based on value or digest comparison.",
    complexity: "O(1) for IFEQ/IFNE, O(N) for IFDEQ/IFDNE where N is the length of the string value.",
    since: "8.4.0",
    arity: Arity::AtLeast(2),
    keys: Keys::Found { specs: &[KeySpec::at(1, KeyFlags::SHRINK.or(KeyFlags::VARIABLE_FLAGS))], find: delex_keys },
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(delex),
};

/// Without a condition it is a DEL.
fn delex_keys(args: &Args<'_>) -> Vec<(usize, KeyFlags)> {
    vec![(1, if args.len() > 2 { KeyFlags::SHRINK } else { KeyFlags::REMOVE })]
}

fn delex(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    if !matches!(args.len(), 2 | 4) {
        return Err(CmdError::Arity("delex".to_owned()));
    }
    // Redis looks for the key first: where there is none, no condition is wrong.
    let holds = match cx.find() {
        None => false,
        Some(_) if args.len() == 2 => true,
        Some(slot) => {
            let value = cx.string(slot);
            let value =
                value.map_err(|_| CmdError::text("ERR Key should be of string type if conditions are specified"))?;
            let comparison = Comparison::named(args.get(2))
                .ok_or(CmdError::text("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"))?;
            Condition::new(comparison, args.get(3)).holds(Some(value))?
        }
    };
    Ok(delete_if(holds, cx, reply))
}

/// Removes a key if its value is the given one, by the name that Valkey has for it.
pub static DELIFEQ: Command = Command {
    name: "DELIFEQ",
    group: Group::String,
    syntax: "key value",
    summary: "Delete key if value matches string.",
    complexity: "O(1)",
    since: "9.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::REMOVE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(delifeq),
};

fn delifeq(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let holds = match cx.find() {
        None => false,
        Some(slot) => Condition::new(Comparison::Equal, args.get(2)).holds(Some(cx.string(slot)?))?,
    };
    Ok(delete_if(holds, cx, reply))
}

/// Removes the key where the condition holds, and answers how many went.
fn delete_if(holds: bool, cx: &mut KeyCx<'_>, reply: &mut Reply<'_>) -> Effect {
    let removed = holds && cx.delete();
    reply.int(removed.into());
    if !removed {
        return Effect::Unchanged;
    }
    cx.notify(EventClass::GENERIC, "del");
    cx.log_deleted()
}
