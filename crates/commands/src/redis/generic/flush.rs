//! FLUSHDB and FLUSHALL: all keys go, at one moment.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::ServerCx;
use tenon_engine::errors::CmdError;
use tenon_engine::flush::{Emptied, Freeing};
use tenon_engine::wire::resp::Reply;

/// Empties the database.
pub static FLUSHDB: Command = Command {
    name: "FLUSHDB",
    group: Group::Server,
    syntax: "[ASYNC | SYNC]",
    summary: "Removes all keys from the current database.",
    complexity: "O(N) where N is the number of keys in the selected database",
    since: "1.0.0",
    arity: Arity::AtLeast(1),
    keys: Keys::None,
    flags: Flags::WRITE.or(Flags::DANGEROUS).or(Flags::WHOLE_KEYSPACE),
    run: Run::Server(flushdb),
};

/// Empties all databases.
pub static FLUSHALL: Command = Command {
    name: "FLUSHALL",
    group: Group::Server,
    syntax: "[ASYNC | SYNC]",
    summary: "Removes all keys from all databases.",
    complexity: "O(N) where N is the total number of keys in all databases",
    since: "1.0.0",
    arity: Arity::AtLeast(1),
    keys: Keys::None,
    flags: Flags::WRITE.or(Flags::DANGEROUS).or(Flags::WHOLE_KEYSPACE),
    run: Run::Server(flushall),
};

/// Who frees the keys. Without a word it is the same as SYNC: `lazyfree-lazy-user-flush` is no by default.
fn freeing(args: &Args<'_>) -> Result<Freeing, CmdError> {
    match args.len() {
        1 => Ok(Freeing::Here),
        2 if args.is(1, "SYNC") => Ok(Freeing::Here),
        2 if args.is(1, "ASYNC") => Ok(Freeing::Background),
        _ => Err(CmdError::Syntax),
    }
}

fn flushdb(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let freeing = freeing(args)?;
    cx.empty(Emptied::One(cx.session.database), freeing);
    reply.simple("OK");
    Ok(())
}

fn flushall(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let freeing = freeing(args)?;
    cx.empty(Emptied::All, freeing);
    reply.simple("OK");
    Ok(())
}
