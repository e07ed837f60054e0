//! HTTL and its kin: when fields expire.

use crate::redis::member_expiry::read::{Shown, reply_deadlines};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::HashForm;
use tenon_engine::wire::resp::Reply;

/// The time left in seconds.
pub static HTTL: Command = Command {
    name: "HTTL",
    group: Group::Hash,
    syntax: "key FIELDS numfields field [field ...]",
    summary: "Returns the TTL in seconds of a hash field.",
    complexity: "O(N) where N is the number of specified fields",
    since: "7.4.0",
    arity: Arity::AtLeast(5),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(httl),
};

fn httl(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply_deadlines::<HashForm>(cx, args, reply, Shown::SecondsLeft)
}

/// The time left in milliseconds.
pub static HPTTL: Command = Command {
    name: "HPTTL",
    group: Group::Hash,
    syntax: "key FIELDS numfields field [field ...]",
    summary: "Returns the TTL in milliseconds of a hash field.",
    complexity: "O(N) where N is the number of specified fields",
    since: "7.4.0",
    arity: Arity::AtLeast(5),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(hpttl),
};

fn hpttl(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply_deadlines::<HashForm>(cx, args, reply, Shown::MillisecondsLeft)
}

/// The deadline in seconds.
pub static HEXPIRETIME: Command = Command {
    name: "HEXPIRETIME",
    group: Group::Hash,
    syntax: "key FIELDS numfields field [field ...]",
    summary: "Returns the expiration time of a hash field as a Unix timestamp, in seconds.",
    complexity: "O(N) where N is the number of specified fields",
    since: "7.4.0",
    arity: Arity::AtLeast(5),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(hexpiretime),
};

fn hexpiretime(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply_deadlines::<HashForm>(cx, args, reply, Shown::Seconds)
}

/// The deadline in milliseconds.
pub static HPEXPIRETIME: Command = Command {
    name: "HPEXPIRETIME",
    group: Group::Hash,
    syntax: "key FIELDS numfields field [field ...]",
    summary: "Returns the expiration time of a hash field as a Unix timestamp, in msec.",
    complexity: "O(N) where N is the number of specified fields",
    since: "7.4.0",
    arity: Arity::AtLeast(5),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(hpexpiretime),
};

fn hpexpiretime(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    reply_deadlines::<HashForm>(cx, args, reply, Shown::Milliseconds)
}
