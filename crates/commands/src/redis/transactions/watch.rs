//! WATCH and UNWATCH: EXEC runs nothing when a watched key has changed.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Watches keys until the next EXEC or DISCARD.
pub static WATCH: Command = Command {
    name: "WATCH",
    group: Group::Transactions,
    syntax: "key [key ...]",
    summary: "Monitors changes to keys to determine the execution of a transaction.",
    complexity: "O(1) for every key.",
    since: "2.2.0",
    arity: Arity::AtLeast(2),
    keys: Keys::Specs(&[KeySpec::rest(1, KeyFlags::LOOK)]),
    flags: Flags::NO_SCRIPT
        .or(Flags::LOADING)
        .or(Flags::STALE)
        .or(Flags::FAST)
        .or(Flags::ALLOW_BUSY)
        .or(Flags::NOT_QUEUED),
    run: Run::Session(watch),
};

/// Watches nothing any more.
pub static UNWATCH: Command = Command {
    name: "UNWATCH",
    group: Group::Transactions,
    syntax: "",
    summary: "Forgets about watched keys of a transaction.",
    complexity: "O(1)",
    since: "2.2.0",
    arity: Arity::Exactly(1),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::LOADING).or(Flags::STALE).or(Flags::FAST).or(Flags::ALLOW_BUSY),
    run: Run::Session(unwatch),
};

fn watch(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    if cx.session.transaction.is_some() {
        return Err(CmdError::text("ERR WATCH inside MULTI is not allowed"));
    }
    for key in args.from(1) {
        cx.engine.watch(cx.worker, cx.session, key);
    }
    reply.simple("OK");
    Ok(())
}

/// Queued by MULTI it does nothing: EXEC has ended the watches before its first command.
fn unwatch(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.engine.unwatch(cx.session);
    reply.simple("OK");
    Ok(())
}
