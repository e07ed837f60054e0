//! KEYS: all keys whose names match a pattern.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::ServerCx;
use tenon_engine::ds::glob::{Case, glob};
use tenon_engine::errors::CmdError;
use tenon_engine::slices::Slices;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::resp::{Proto, Reply};

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

/// How much is looked at before other clients get a turn: a fifth of a millisecond's work. A shard counts for one, as
/// there may be thousands that have no keys, and a key for four. So a small keyspace is one slice.
const SLICE: usize = 6_144;
const KEY: usize = 4;
/// Names of so many bytes in all are copied behind what is there.
const COPIED_MAX: usize = 64 * 1024;

fn keys(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let pattern = args.get(1).to_vec();
    let (database, proto) = (cx.session.database, cx.session.proto);
    let search = Search { pattern, database, proto, shard: 0, tag: 0, listed: 0, names: OutBuf::new() };
    cx.in_slices(Box::new(search), args, reply);
    Ok(())
}

/// How far a search has come.
struct Search {
    pattern: Vec<u8>,
    database: usize,
    proto: Proto,
    /// Where it goes on: as a cursor of SCAN a place that no growing table moves.
    shard: usize,
    tag: u16,
    listed: usize,
    names: OutBuf,
}

impl Slices for Search {
    fn go_on(&mut self, cx: &mut ServerCx<'_>) -> bool {
        let now_ms = cx.worker.clock.now_ms;
        let (shards, pattern) = (cx.engine.shards.count(), &self.pattern[..]);
        // Not a mere shortcut: as a pattern `*` would not match the empty key.
        let all = pattern == b"*";
        let mut found = OutBuf::new();
        let mut names = Reply::new(&mut found, self.proto);
        let mut looked_at = 0;
        while looked_at < SLICE {
            let shard = cx.engine.shards.next_with_keys(self.shard);
            if shard != self.shard {
                (self.shard, self.tag) = (shard, 0);
            }
            if shard == shards {
                break;
            }
            let next = cx.one_shard(self.shard, |_, state| {
                state.shard.database(self.database)?.scan(self.tag, (SLICE - looked_at).div_ceil(KEY), |entry| {
                    looked_at += KEY;
                    let key = entry.key();
                    if !entry.is_past(now_ms) && (all || glob(pattern, key, Case::Sensitive)) {
                        names.bulk(key);
                        self.listed += 1;
                    }
                })
            });
            (self.shard, self.tag) = next.map_or((self.shard + 1, 0), |tag| (self.shard, tag));
            looked_at += 1;
        }
        if !found.is_empty() {
            self.names.append(&mut found);
        }
        self.shard == shards
    }

    fn answer(mut self: Box<Self>, reply: &mut Reply<'_>) {
        reply.array(self.listed);
        match self.names.contiguous() {
            // A short reply stays in one piece with what else the client is answered.
            Some(names) if names.len() <= COPIED_MAX => reply.out().tail().extend_from_slice(names),
            _ => reply.out().append(&mut self.names),
        }
    }
}
