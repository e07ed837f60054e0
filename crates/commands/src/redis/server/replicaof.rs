//! REPLICAOF and its older name SLAVEOF: there is no replication, so the server is a master, and stays one where that is
//! what is asked for. Who fails over by such calls, and scripts that end with one, need no case of their own for Tenon.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Makes the server a master, which it is.
pub static REPLICAOF: Command = Command {
    name: "REPLICAOF",
    group: Group::Server,
    syntax: "<host port | NO ONE>",
    summary: "Promotes the server to a master, which it is. Refuses to make it a replica.",
    complexity: "O(1)",
    since: "5.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: Flags::ADMIN.or(Flags::NO_SCRIPT).or(Flags::STALE).or(Flags::NO_ASYNC_LOADING),
    run: Run::Session(replicaof),
};

/// The same.
pub static SLAVEOF: Command = Command { name: "SLAVEOF", since: "1.0.0", ..REPLICAOF };

fn replicaof(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    if args.is(1, "NO") && args.is(2, "ONE") {
        reply.simple("OK");
        return Ok(());
    }
    let port = parse_i64(args.get(2)).filter(|port| (0..=65_535).contains(port));
    port.ok_or(CmdError::text("ERR Invalid master port"))?;
    Err(CmdError::text("ERR Tenon has no replication"))
}
