//! SEXPIRE and its kin, SPERSIST: set and take away the moment at which members go.

use crate::redis::member_expiry::change::{expire, persist};
use crate::redis::string::options::TimeUnit;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::SetForm;
use tenon_engine::wire::resp::Reply;

/// Sets the time to live in seconds.
pub static SEXPIRE: Command = Command {
    name: "SEXPIRE",
    group: Group::Set,
    syntax: "key seconds [NX | XX | GT | LT] MEMBERS nummembers member [member ...]",
    summary: "Sets the expiration time of members of a set in seconds. A member keeps its deadline until it is removed. SMOVE does not take it along.",
    complexity: "O(N log M) where N is the number of specified members and M the number of those that have a deadline",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(sexpire),
};

fn sexpire(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    expire::<SetForm>(cx, args, reply, "sexpire", TimeUnit::Seconds)
}

/// Sets the time to live in milliseconds.
pub static SPEXPIRE: Command = Command {
    name: "SPEXPIRE",
    group: Group::Set,
    syntax: "key milliseconds [NX | XX | GT | LT] MEMBERS nummembers member [member ...]",
    summary: "Sets the expiration time of members of a set in milliseconds. A member keeps its deadline until it is removed. SMOVE does not take it along.",
    complexity: "O(N log M) where N is the number of specified members and M the number of those that have a deadline",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(spexpire),
};

fn spexpire(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    expire::<SetForm>(cx, args, reply, "spexpire", TimeUnit::Milliseconds)
}

/// Sets the deadline in seconds.
pub static SEXPIREAT: Command = Command {
    name: "SEXPIREAT",
    group: Group::Set,
    syntax: "key unix-time-seconds [NX | XX | GT | LT] MEMBERS nummembers member [member ...]",
    summary: "Sets the expiration time of members of a set to a Unix timestamp. A member keeps its deadline until it is removed. SMOVE does not take it along.",
    complexity: "O(N log M) where N is the number of specified members and M the number of those that have a deadline",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(sexpireat),
};

fn sexpireat(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    expire::<SetForm>(cx, args, reply, "sexpireat", TimeUnit::SecondsAt)
}

/// Sets the deadline in milliseconds.
pub static SPEXPIREAT: Command = Command {
    name: "SPEXPIREAT",
    group: Group::Set,
    syntax: "key unix-time-milliseconds [NX | XX | GT | LT] MEMBERS nummembers member [member ...]",
    summary: "Sets the expiration time of members of a set to a Unix milliseconds timestamp. A member keeps its deadline until it is removed. SMOVE does not take it along.",
    complexity: "O(N log M) where N is the number of specified members and M the number of those that have a deadline",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(spexpireat),
};

fn spexpireat(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    expire::<SetForm>(cx, args, reply, "spexpireat", TimeUnit::MillisecondsAt)
}

/// Takes the deadline away.
pub static SPERSIST: Command = Command {
    name: "SPERSIST",
    group: Group::Set,
    syntax: "key MEMBERS nummembers member [member ...]",
    summary: "Removes the expiration time of members of a set.",
    complexity: "O(N log M) where N is the number of specified members and M the number of those that have a deadline",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(5),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(spersist),
};

fn spersist(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    persist::<SetForm>(cx, args, reply)
}
