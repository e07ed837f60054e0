//! STTL and its kin: when members expire.

use crate::redis::member_expiry::read::{Shown, reply_deadlines};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::SetForm;
use tenon_engine::wire::resp::Reply;

/// The time left in seconds.
pub static STTL: Command = Command {
    name: "STTL",
    group: Group::Set,
    syntax: "key MEMBERS nummembers member [member ...]",
    summary: "Returns the time to live of members of a set in seconds.",
    complexity: "O(N) where N is the number of specified members",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(5),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(sttl),
};

fn sttl(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply_deadlines::<SetForm>(cx, args, reply, Shown::SecondsLeft)
}

/// The time left in milliseconds.
pub static SPTTL: Command = Command {
    name: "SPTTL",
    group: Group::Set,
    syntax: "key MEMBERS nummembers member [member ...]",
    summary: "Returns the time to live of members of a set in milliseconds.",
    complexity: "O(N) where N is the number of specified members",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(5),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(spttl),
};

fn spttl(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply_deadlines::<SetForm>(cx, args, reply, Shown::MillisecondsLeft)
}

/// The deadline in seconds.
pub static SEXPIRETIME: Command = Command {
    name: "SEXPIRETIME",
    group: Group::Set,
    syntax: "key MEMBERS nummembers member [member ...]",
    summary: "Returns the expiration time of members of a set as a Unix timestamp.",
    complexity: "O(N) where N is the number of specified members",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(5),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(sexpiretime),
};

fn sexpiretime(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply_deadlines::<SetForm>(cx, args, reply, Shown::Seconds)
}

/// The deadline in milliseconds.
pub static SPEXPIRETIME: Command = Command {
    name: "SPEXPIRETIME",
    group: Group::Set,
    syntax: "key MEMBERS nummembers member [member ...]",
    summary: "Returns the expiration time of members of a set as a Unix milliseconds timestamp.",
    complexity: "O(N) where N is the number of specified members",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(5),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(spexpiretime),
};

fn spexpiretime(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply_deadlines::<SetForm>(cx, args, reply, Shown::Milliseconds)
}
