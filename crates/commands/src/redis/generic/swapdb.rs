//! SWAPDB: two databases exchange their keys, at one moment.

use crate::redis::database::in_range;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::ServerCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Exchanges two databases.
pub static SWAPDB: Command = Command {
    name: "SWAPDB",
    group: Group::Server,
    syntax: "index1 index2",
    summary: "Swaps two Redis databases.",
    complexity: "O(N) where N is the count of clients watching or blocking on keys from both databases.",
    since: "4.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: Flags::WRITE.or(Flags::FAST).or(Flags::DANGEROUS).or(Flags::WHOLE_KEYSPACE),
    run: Run::Server(swapdb),
};

fn swapdb(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let number = |at, error| {
        let number = parse_i64(args.get(at)).and_then(|number| i32::try_from(number).ok());
        number.ok_or(CmdError::text(error))
    };
    let first = number(1, "ERR invalid first DB index")?;
    let second = number(2, "ERR invalid second DB index")?;
    cx.swap(in_range(cx.engine, first)?, in_range(cx.engine, second)?);
    reply.simple("OK");
    Ok(())
}
