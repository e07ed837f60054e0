//! MULTI, EXEC and DISCARD: several commands as one.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::session::Transaction;
use tenon_engine::wire::resp::Reply;

/// Begins to queue commands.
pub static MULTI: Command = Command {
    name: "MULTI",
    group: Group::Transactions,
    syntax: "",
    summary: "Starts a transaction.",
    complexity: "O(1)",
    since: "1.2.0",
    arity: Arity::Exactly(1),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT
        .or(Flags::LOADING)
        .or(Flags::STALE)
        .or(Flags::FAST)
        .or(Flags::ALLOW_BUSY)
        .or(Flags::NOT_QUEUED),
    run: Run::Session(multi),
};

/// Runs the queue.
pub static EXEC: Command = Command {
    name: "EXEC",
    group: Group::Transactions,
    syntax: "",
    summary: "Executes all commands in a transaction.",
    complexity: "Depends on commands in the transaction",
    since: "1.2.0",
    arity: Arity::Exactly(1),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::LOADING).or(Flags::STALE).or(Flags::SKIP_SLOWLOG).or(Flags::NOT_QUEUED),
    run: Run::Session(exec),
};

/// Drops the queue.
pub static DISCARD: Command = Command {
    name: "DISCARD",
    group: Group::Transactions,
    syntax: "",
    summary: "Discards a transaction.",
    complexity: "O(N), when N is the number of queued commands",
    since: "2.0.0",
    arity: Arity::Exactly(1),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT
        .or(Flags::LOADING)
        .or(Flags::STALE)
        .or(Flags::FAST)
        .or(Flags::ALLOW_BUSY)
        .or(Flags::NOT_QUEUED),
    run: Run::Session(discard),
};

fn multi(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    if cx.session.transaction.is_some() {
        // The commands queued so far stay queued, and may still run.
        return Err(CmdError::text("ERR MULTI calls can not be nested"));
    }
    cx.session.set_transaction(Some(Box::new(Transaction::default())));
    reply.simple("OK");
    Ok(())
}

fn exec(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let Some(transaction) = cx.session.transaction.take() else {
        return Err(CmdError::text("ERR EXEC without MULTI"));
    };
    cx.session.set_transaction(None);
    cx.engine.exec(cx.worker, cx.session, *transaction, reply)
}

fn discard(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    if !cx.engine.discard(cx.session) {
        return Err(CmdError::text("ERR DISCARD without MULTI"));
    }
    reply.simple("OK");
    Ok(())
}
