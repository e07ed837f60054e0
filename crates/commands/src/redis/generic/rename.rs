//! RENAME and RENAMENX: a value goes on under another key, with its expiry.

use super::moved::put;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeysCx;
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::store::types::ValueType;
use tenon_engine::wire::resp::Reply;

/// Renames a key over whatever has the new name.
pub static RENAME: Command = Command {
    name: "RENAME",
    group: Group::Generic,
    syntax: "key newkey",
    summary: "Renames a key and overwrites the destination.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::READ_AND_DELETE), KeySpec::at(2, KeyFlags::OVERWRITE)]),
    flags: Flags::WRITE.or(Flags::BRIEF),
    run: Run::Keys(rename),
};

/// Renames a key when nothing has the new name.
pub static RENAMENX: Command = Command {
    name: "RENAMENX",
    group: Group::Generic,
    syntax: "key newkey",
    summary: "Renames a key only when the target key name doesn't exist.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::READ_AND_DELETE), KeySpec::at(2, KeyFlags::CREATE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Keys(renamenx),
};

/// What is to happen to a key that has the new name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Existing {
    Overwrite,
    Keep,
}

fn rename(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let effect = give_name(cx, args, Existing::Overwrite)?;
    reply.simple("OK");
    Ok(effect)
}

fn renamenx(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let effect = give_name(cx, args, Existing::Keep)?;
    reply.int(effect.is_change().into());
    Ok(effect)
}

fn give_name(cx: &mut KeysCx<'_>, args: &Args<'_>, existing: Existing) -> Result<Effect, CmdError> {
    let (from, to) = (args.get(1), args.get(2));
    if cx.key(from).find_for_write().is_none() {
        return Err(CmdError::NoSuchKey);
    }
    if from == to {
        return Ok(Effect::Unchanged);
    }
    let mut target = cx.key(to);
    let found = target.find();
    if let Some(slot) = found
        && existing == Existing::Keep
    {
        target.note_attempt(slot);
        return Ok(Effect::Unchanged);
    }
    let displaced = target.displaced(found);
    // The look at the destination may have removed an expired key and so moved this one: it is searched again.
    let mut source = cx.key(from);
    let slot = source.find().expect("it was there at this instant");
    let entry = source.take(slot);
    let value_type = ValueType::of(entry.view().value());
    put(&mut cx.key(to), entry);
    let mut source = cx.key(from);
    // That the one is gone and the other there is one change.
    source.count_changes(-1);
    source.notify(EventClass::GENERIC, "rename_from");
    let mut target = cx.key(to);
    target.notify(EventClass::GENERIC, "rename_to");
    target.notify_displaced(displaced, value_type);
    Ok(Effect::Verbatim)
}
