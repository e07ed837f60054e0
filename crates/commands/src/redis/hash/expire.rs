//! HEXPIRE and its kin, HPERSIST: set and take away the moment at which fields go.

use crate::redis::member_expiry::change::{expire, persist};
use crate::redis::string::options::TimeUnit;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::HashForm;
use tenon_engine::wire::resp::Reply;

/// Sets the time to live in seconds.
pub static HEXPIRE: Command = Command {
    name: "HEXPIRE",
    group: Group::Hash,
    syntax: "key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
    summary: "Set expiry for hash field using relative time to expire (seconds)",
    complexity: "O(N log M) where N is the number of specified fields and M the number of those that have a deadline",
    since: "7.4.0",
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(hexpire),
};

fn hexpire(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    expire::<HashForm>(cx, args, reply, "hexpire", TimeUnit::Seconds)
}

/// Sets the time to live in milliseconds.
pub static HPEXPIRE: Command = Command {
    name: "HPEXPIRE",
    group: Group::Hash,
    syntax: "key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
    summary: "Set expiry for hash field using relative time to expire (milliseconds)",
    complexity: "O(N log M) where N is the number of specified fields and M the number of those that have a deadline",
    since: "7.4.0",
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(hpexpire),
};

fn hpexpire(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    expire::<HashForm>(cx, args, reply, "hpexpire", TimeUnit::Milliseconds)
}

/// Sets the deadline in seconds.
pub static HEXPIREAT: Command = Command {
    name: "HEXPIREAT",
    group: Group::Hash,
    syntax: "key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
    summary: "Set expiry for hash field using an absolute Unix timestamp (seconds)",
    complexity: "O(N log M) where N is the number of specified fields and M the number of those that have a deadline",
    since: "7.4.0",
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(hexpireat),
};

fn hexpireat(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    expire::<HashForm>(cx, args, reply, "hexpireat", TimeUnit::SecondsAt)
}

/// Sets the deadline in milliseconds.
pub static HPEXPIREAT: Command = Command {
    name: "HPEXPIREAT",
    group: Group::Hash,
    syntax: "key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
    summary: "Set expiry for hash field using an absolute Unix timestamp (milliseconds)",
    complexity: "O(N log M) where N is the number of specified fields and M the number of those that have a deadline",
    since: "7.4.0",
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(hpexpireat),
};

fn hpexpireat(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    expire::<HashForm>(cx, args, reply, "hpexpireat", TimeUnit::MillisecondsAt)
}

/// Takes the deadline away.
pub static HPERSIST: Command = Command {
    name: "HPERSIST",
    group: Group::Hash,
    syntax: "key FIELDS numfields field [field ...]",
    summary: "Removes the expiration time for each specified field",
    complexity: "O(N log M) where N is the number of specified fields and M the number of those that have a deadline",
    since: "7.4.0",
    arity: Arity::AtLeast(5),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(hpersist),
};

fn hpersist(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    persist::<HashForm>(cx, args, reply)
}
