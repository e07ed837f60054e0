//! TTL and its kin: when a key expires.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// The time left in seconds.
pub static TTL: Command = Command {
    name: "TTL",
    group: Group::Generic,
    syntax: "key",
    summary: "Returns the expiration time in seconds of a key.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(ttl),
};

/// The time left in milliseconds.
pub static PTTL: Command = Command {
    name: "PTTL",
    group: Group::Generic,
    syntax: "key",
    summary: "Returns the expiration time in milliseconds of a key.",
    complexity: "O(1)",
    since: "2.6.0",
    arity: Arity::Exactly(2),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(pttl),
};

/// The deadline in seconds.
pub static EXPIRETIME: Command = Command {
    name: "EXPIRETIME",
    group: Group::Generic,
    syntax: "key",
    summary: "Returns the expiration time of a key as a Unix timestamp.",
    complexity: "O(1)",
    since: "7.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(expiretime),
};

/// The deadline in milliseconds.
pub static PEXPIRETIME: Command = Command {
    name: "PEXPIRETIME",
    group: Group::Generic,
    syntax: "key",
    summary: "Returns the expiration time of a key as a Unix milliseconds timestamp.",
    complexity: "O(1)",
    since: "7.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(pexpiretime),
};

/// There is no key.
const NO_KEY: i64 = -2;
/// The key does not expire.
const NO_DEADLINE: i64 = -1;

fn ttl(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let now_ms = cx.now_ms();
    answer(cx, reply, |deadline_ms| rounded_seconds(deadline_ms.saturating_sub(now_ms)))
}

fn pttl(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let now_ms = cx.now_ms();
    answer(cx, reply, |deadline_ms| deadline_ms.saturating_sub(now_ms))
}

fn expiretime(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    answer(cx, reply, rounded_seconds)
}

fn pexpiretime(cx: &mut KeyCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    answer(cx, reply, |deadline_ms| deadline_ms)
}

fn answer(cx: &mut KeyCx<'_>, reply: &mut Reply<'_>, shown: impl Fn(u64) -> u64) -> Result<Effect, CmdError> {
    reply.int(match cx.peek() {
        None => NO_KEY,
        // Deadlines are set as an i64 at most.
        Some(entry) => entry.deadline_ms().map_or(NO_DEADLINE, |deadline_ms| shown(deadline_ms) as i64),
    });
    Ok(Effect::Unchanged)
}

/// Milliseconds in seconds, halves up.
fn rounded_seconds(ms: u64) -> u64 {
    (ms + 500) / 1_000
}
