//! ZTTL and its kin: when members expire.

use crate::redis::member_expiry::read::{Shown, reply_deadlines};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::ZsetForm;
use tenon_engine::wire::resp::Reply;

/// The time left in seconds.
pub static ZTTL: Command = Command {
    name: "ZTTL",
    group: Group::SortedSet,
    syntax: "key MEMBERS nummembers member [member ...]",
    summary: "Returns the time to live of members of a sorted set in seconds.",
    complexity: "O(N) where N is the number of specified members",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(5),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(zttl),
};

fn zttl(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply_deadlines::<ZsetForm>(cx, args, reply, Shown::SecondsLeft)
}

/// The time left in milliseconds.
pub static ZPTTL: Command = Command {
    name: "ZPTTL",
    group: Group::SortedSet,
    syntax: "key MEMBERS nummembers member [member ...]",
    summary: "Returns the time to live of members of a sorted set in milliseconds.",
    complexity: "O(N) where N is the number of specified members",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(5),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(zpttl),
};

fn zpttl(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply_deadlines::<ZsetForm>(cx, args, reply, Shown::MillisecondsLeft)
}

/// The deadline in seconds.
pub static ZEXPIRETIME: Command = Command {
    name: "ZEXPIRETIME",
    group: Group::SortedSet,
    syntax: "key MEMBERS nummembers member [member ...]",
    summary: "Returns the expiration time of members of a sorted set as a Unix timestamp.",
    complexity: "O(N) where N is the number of specified members",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(5),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(zexpiretime),
};

fn zexpiretime(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply_deadlines::<ZsetForm>(cx, args, reply, Shown::Seconds)
}

/// The deadline in milliseconds.
pub static ZPEXPIRETIME: Command = Command {
    name: "ZPEXPIRETIME",
    group: Group::SortedSet,
    syntax: "key MEMBERS nummembers member [member ...]",
    summary: "Returns the expiration time of members of a sorted set as a Unix milliseconds timestamp.",
    complexity: "O(N) where N is the number of specified members",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(5),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(zpexpiretime),
};

fn zpexpiretime(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply_deadlines::<ZsetForm>(cx, args, reply, Shown::Milliseconds)
}
