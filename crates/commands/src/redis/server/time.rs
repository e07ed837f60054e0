//! TIME and LASTSAVE: what the clock says, and since when nothing was saved.

use tenon_engine::args::Args;
use tenon_engine::clock::now_us;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Says the time.
pub static TIME: Command = Command {
    name: "TIME",
    group: Group::Server,
    syntax: "",
    summary: "Returns the server time.",
    complexity: "O(1)",
    since: "2.6.0",
    arity: Arity::Exactly(1),
    keys: Keys::None,
    flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST),
    run: Run::Session(time),
};

fn time(_cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    // The batch's clock counts in milliseconds only.
    let now_us = now_us() as i64;
    reply.array(2);
    reply.bulk_int(now_us / 1_000_000);
    reply.bulk_int(now_us % 1_000_000);
    Ok(())
}

/// Says when the data was last on disk: with nothing that saves, at the start, when there was none.
pub static LASTSAVE: Command = Command {
    name: "LASTSAVE",
    group: Group::Server,
    syntax: "",
    summary: "Returns the Unix timestamp of the last successful save to disk.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(1),
    keys: Keys::None,
    flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST).or(Flags::IN_ADMIN),
    run: Run::Session(lastsave),
};

fn lastsave(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.int((cx.engine.started_ms / 1_000) as i64);
    Ok(())
}
