//! TIME: what the clock says.

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
