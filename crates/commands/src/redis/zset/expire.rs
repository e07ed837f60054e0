//! ZEXPIRE and its kin, ZPERSIST: set and take away the moment at which members go.

use crate::redis::member_expiry::change::{expire, persist};
use crate::redis::string::options::TimeUnit;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::ZsetForm;
use tenon_engine::wire::resp::Reply;

/// Sets the time to live in seconds.
pub static ZEXPIRE: Command = Command {
    name: "ZEXPIRE",
    group: Group::SortedSet,
    syntax: "key seconds [NX | XX | GT | LT] MEMBERS nummembers member [member ...]",
    summary: "Sets the expiration time of members of a sorted set in seconds. A member keeps its deadline until it is removed, whatever becomes of its score.",
    complexity: "O(N log M) where N is the number of specified members and M the number of those that have a deadline",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(zexpire),
};

fn zexpire(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    expire::<ZsetForm>(cx, args, reply, "zexpire", TimeUnit::Seconds)
}

/// Sets the time to live in milliseconds.
pub static ZPEXPIRE: Command = Command {
    name: "ZPEXPIRE",
    group: Group::SortedSet,
    syntax: "key milliseconds [NX | XX | GT | LT] MEMBERS nummembers member [member ...]",
    summary: "Sets the expiration time of members of a sorted set in milliseconds. A member keeps its deadline until it is removed, whatever becomes of its score.",
    complexity: "O(N log M) where N is the number of specified members and M the number of those that have a deadline",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(zpexpire),
};

fn zpexpire(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    expire::<ZsetForm>(cx, args, reply, "zpexpire", TimeUnit::Milliseconds)
}

/// Sets the deadline in seconds.
pub static ZEXPIREAT: Command = Command {
    name: "ZEXPIREAT",
    group: Group::SortedSet,
    syntax: "key unix-time-seconds [NX | XX | GT | LT] MEMBERS nummembers member [member ...]",
    summary: "Sets the expiration time of members of a sorted set to a Unix timestamp. A member keeps its deadline until it is removed, whatever becomes of its score.",
    complexity: "O(N log M) where N is the number of specified members and M the number of those that have a deadline",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(zexpireat),
};

fn zexpireat(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    expire::<ZsetForm>(cx, args, reply, "zexpireat", TimeUnit::SecondsAt)
}

/// Sets the deadline in milliseconds.
pub static ZPEXPIREAT: Command = Command {
    name: "ZPEXPIREAT",
    group: Group::SortedSet,
    syntax: "key unix-time-milliseconds [NX | XX | GT | LT] MEMBERS nummembers member [member ...]",
    summary: "Sets the expiration time of members of a sorted set to a Unix milliseconds timestamp. A member keeps its deadline until it is removed, whatever becomes of its score.",
    complexity: "O(N log M) where N is the number of specified members and M the number of those that have a deadline",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(zpexpireat),
};

fn zpexpireat(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    expire::<ZsetForm>(cx, args, reply, "zpexpireat", TimeUnit::MillisecondsAt)
}

/// Takes the deadline away.
pub static ZPERSIST: Command = Command {
    name: "ZPERSIST",
    group: Group::SortedSet,
    syntax: "key MEMBERS nummembers member [member ...]",
    summary: "Removes the expiration time of members of a sorted set.",
    complexity: "O(N log M) where N is the number of specified members and M the number of those that have a deadline",
    since: tenon_engine::version::TENON,
    arity: Arity::AtLeast(5),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(zpersist),
};

fn zpersist(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    persist::<ZsetForm>(cx, args, reply)
}
