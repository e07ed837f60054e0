//! SELECT: another database for what follows on the connection.

use crate::redis::database::parse_database;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Selects a database.
pub static SELECT: Command = Command {
    name: "SELECT",
    group: Group::Connection,
    syntax: "index",
    summary: "Changes the selected database.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST),
    run: Run::Session(select),
};

fn select(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let database = parse_database(cx.engine, args.get(1))?;
    cx.session.select(database);
    reply.simple("OK");
    Ok(())
}
