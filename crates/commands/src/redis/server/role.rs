//! ROLE: which part the server plays in replication. There is none yet, so it is a master without replicas.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Says the role.
pub static ROLE: Command = Command {
    name: "ROLE",
    group: Group::Server,
    syntax: "",
    summary: "Returns the replication role.",
    complexity: "O(1)",
    since: "2.8.12",
    arity: Arity::Exactly(1),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::LOADING).or(Flags::STALE).or(Flags::FAST).or(Flags::IN_ADMIN),
    run: Run::Session(role),
};

fn role(_cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.array(3);
    reply.bulk(b"master");
    reply.int(0);
    reply.array(0);
    Ok(())
}
