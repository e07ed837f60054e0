//! KEYS: all keys whose names match a pattern.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::ServerCx;
use tenon_engine::ds::glob::{Case, glob};
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Lists keys.
pub static KEYS: Command = Command {
    name: "KEYS",
    group: Group::Generic,
    syntax: "pattern",
    summary: "Returns all key names that match a pattern.",
    complexity: "O(N) with N being the number of keys in the database, under the assumption that the key names in the database and the given pattern have limited length.",
    since: "1.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: Flags::READONLY.or(Flags::DANGEROUS).or(Flags::WHOLE_KEYSPACE),
    run: Run::Server(keys),
};

fn keys(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let pattern = args.get(1);
    // Not a mere shortcut: as a pattern `*` would not match the empty key.
    let all = pattern == b"*";
    let database = cx.session.database;
    let now_ms = cx.worker.clock.now_ms;
    let list = reply.array_deferred();
    let mut listed = 0;
    cx.each_shard(|_, _, _, state| {
        if let Some(keyspace) = state.shard.database(database) {
            keyspace.scan(0, usize::MAX, |entry| {
                let key = entry.key();
                if !entry.is_past(now_ms) && (all || glob(pattern, key, Case::Sensitive)) {
                    reply.bulk(key);
                    listed += 1;
                }
            });
        }
        true
    });
    reply.finish(list, listed);
    Ok(())
}
