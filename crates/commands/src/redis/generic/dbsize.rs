//! DBSIZE: how many keys the database has.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::ServerCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::keyspace::Keyspace;
use tenon_engine::wire::resp::Reply;

/// Counts the keys of the database; as in Redis, those past their deadline and not yet removed are counted too.
pub static DBSIZE: Command = Command {
    name: "DBSIZE",
    group: Group::Server,
    syntax: "",
    summary: "Returns the number of keys in the database.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(1),
    keys: Keys::None,
    flags: Flags::READONLY.or(Flags::FAST).or(Flags::WHOLE_KEYSPACE),
    run: Run::Server(dbsize),
};

fn dbsize(cx: &mut ServerCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let database = cx.session.database;
    if let Some(keys) = cx.engine.key_count(database) {
        reply.int(keys as i64);
        return Ok(());
    }
    let keys =
        cx.look_at_one_moment(|| 0, |keys, _, state| *keys += state.shard.database(database).map_or(0, Keyspace::len))?;
    reply.int(keys as i64);
    Ok(())
}
