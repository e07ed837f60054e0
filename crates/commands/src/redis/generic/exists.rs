//! EXISTS and TOUCH: how many of the keys are there; only TOUCH is an access.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeysCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Counts the keys that are there.
pub static EXISTS: Command = Command {
    name: "EXISTS",
    group: Group::Generic,
    syntax: "key [key ...]",
    summary: "Determines whether one or more keys exist.",
    complexity: "O(N) where N is the number of keys to check.",
    since: "1.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::Specs(&[KeySpec::rest(1, KeyFlags::LOOK)]),
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Keys(exists),
};

/// Counts the keys that are there, each an access.
pub static TOUCH: Command = Command {
    name: "TOUCH",
    group: Group::Generic,
    syntax: "key [key ...]",
    summary: "Returns the number of existing keys out of those specified after updating the time they were last accessed.",
    complexity: "O(N) where N is the number of keys that will be touched.",
    since: "3.2.1",
    arity: Arity::AtLeast(2),
    keys: Keys::Specs(&[KeySpec::rest(1, KeyFlags::LOOK)]),
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Keys(touch),
};

fn exists(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply.int(args.from(1).filter(|key| cx.key(key).peek().is_some()).count() as i64);
    Ok(Effect::Unchanged)
}

fn touch(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    // That is what it is for, also where CLIENT NO-TOUCH is on.
    cx.touch_all();
    reply.int(args.from(1).filter(|key| cx.key(key).read().is_some()).count() as i64);
    Ok(Effect::Unchanged)
}
