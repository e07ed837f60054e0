//! MONITOR: every command that the server runs, as it runs.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Shows the commands of all clients from now on.
pub static MONITOR: Command = Command {
    name: "MONITOR",
    group: Group::Server,
    syntax: "",
    summary: "Listens for all requests received by the server in real-time.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(1),
    keys: Keys::None,
    flags: Flags::ADMIN.or(Flags::NO_SCRIPT).or(Flags::LOADING).or(Flags::STALE),
    run: Run::Session(monitor),
};

fn monitor(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    if cx.session.is_in_exec() {
        return Err(CmdError::text("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    // As in Redis there is no answer to who watches already.
    if cx.engine.start_monitoring(cx.session) {
        reply.simple("OK");
    }
    Ok(())
}
