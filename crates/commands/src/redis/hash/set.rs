//! HSET, HMSET and HSETNX: fields that get values.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Hash;
use tenon_engine::wire::resp::Reply;

/// Sets fields.
pub static HSET: Command = Command {
    name: "HSET",
    group: Group::Hash,
    syntax: "key field value [field value ...]",
    summary: "Creates or modifies the value of a field in a hash.",
    complexity: "O(1) for each field/value pair added, so O(N) to add N field/value pairs when the command is called with multiple field/value pairs.",
    since: "2.0.0",
    arity: Arity::AtLeast(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(hset),
};

fn hset(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let (new, effect) = set_all(cx, args, "hset")?;
    reply.int(new);
    Ok(effect)
}

/// Sets fields; what HSET was before it took several.
pub static HMSET: Command = Command {
    name: "HMSET",
    group: Group::Hash,
    syntax: "key field value [field value ...]",
    summary: "Sets the values of multiple fields.",
    complexity: "O(N) where N is the number of fields being set.",
    since: "2.0.0",
    arity: Arity::AtLeast(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(hmset),
};

fn hmset(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let (_, effect) = set_all(cx, args, "hmset")?;
    reply.simple("OK");
    Ok(effect)
}

/// Sets the fields that stand in turn with their values from argument 2 on; tells how many are new.
fn set_all(cx: &mut KeyCx<'_>, args: &Args<'_>, command: &str) -> Result<(i64, Effect), CmdError> {
    if !args.len().is_multiple_of(2) {
        return Err(CmdError::Arity(command.to_owned()));
    }
    let limits = cx.engine().config.hash_limits();
    cx.update(|hash: &mut Hash| {
        let mut new = 0;
        for at in (2..args.len()).step_by(2) {
            new += i64::from(hash.set(args.get(at), args.get(at + 1), limits));
        }
        Ok(Change::made("hset", new).times(args.len() / 2 - 1))
    })
}

/// Sets a field that is not there.
pub static HSETNX: Command = Command {
    name: "HSETNX",
    group: Group::Hash,
    syntax: "key field value",
    summary: "Sets the value of a field in a hash only when the field doesn't exist.",
    complexity: "O(1)",
    since: "2.0.0",
    arity: Arity::Exactly(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::ADD)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(hsetnx),
};

fn hsetnx(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.hash_limits();
    let (field, value) = (args.get(2), args.get(3));
    let (is_new, effect) = cx.update(|hash: &mut Hash| {
        let is_new = !hash.contains(field) && hash.set(field, value, limits);
        Ok(Change::when(is_new, "hset", is_new))
    })?;
    reply.int(is_new.into());
    Ok(effect)
}
