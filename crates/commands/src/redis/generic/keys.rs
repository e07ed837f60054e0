//! KEYS: all keys whose names match a pattern.

use crate::redis::key_walk::{KeyWalk, are_few};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::ServerCx;
use tenon_engine::ds::glob::{Case, glob};
use tenon_engine::errors::CmdError;
use tenon_engine::slices::Slices;
use tenon_engine::store::entry::EntryRef;
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

fn keys(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let pattern = args.get(1);
    let proto = cx.session.proto;
    if !are_few(cx) {
        cx.comes_later_for_any()?;
        let walk = KeyWalk::of_database(cx.session.database);
        let search = Search { pattern: pattern.to_vec(), proto, walk, listed: 0, names: OutBuf::new() };
        cx.in_slices(Box::new(search), args, reply);
        return Ok(());
    }
    // Else one that others rename from where nobody looks any more to where nobody has looked yet is not listed.
    let (now_ms, database) = (cx.worker.clock.now_ms, cx.session.database);
    let (listed, mut names) = cx.look_at_one_moment(
        || (0, OutBuf::new()),
        |(listed, names), _, state| {
            if let Some(keyspace) = state.shard.database(database) {
                let mut names = Reply::new(names, proto);
                keyspace.scan(0, usize::MAX, |entry| {
                    *listed += usize::from(list_if_matching(pattern, entry, now_ms, &mut names));
                });
            }
        },
    )?;
    reply.array(listed);
    reply.out().join(&mut names);
    Ok(())
}

/// How far a search has come.
struct Search {
    pattern: Vec<u8>,
    proto: Proto,
    walk: KeyWalk<false>,
    listed: usize,
    names: OutBuf,
}

/// Lists a key if its name matches; tells whether it does.
fn list_if_matching(pattern: &[u8], entry: EntryRef<'_>, now_ms: u64, names: &mut Reply<'_>) -> bool {
    let key = entry.key();
    // Not a mere shortcut: as a pattern `*` would not match the empty key.
    let is_listed = !entry.is_past(now_ms) && (pattern == b"*" || glob(pattern, key, Case::Sensitive));
    if is_listed {
        names.bulk(key);
    }
    is_listed
}

impl Slices for Search {
    fn go_on(&mut self, cx: &mut ServerCx<'_>) -> bool {
        let now_ms = cx.worker.clock.now_ms;
        let mut found = OutBuf::new();
        let mut names = Reply::new(&mut found, self.proto);
        let is_done = self.walk.go_on(cx, |_, entry| {
            self.listed += usize::from(list_if_matching(&self.pattern, entry, now_ms, &mut names));
        });
        if !found.is_empty() {
            self.names.append(&mut found);
        }
        is_done
    }

    fn memory(&self) -> usize {
        self.names.memory()
    }

    fn answer(mut self: Box<Self>, reply: &mut Reply<'_>) {
        reply.array(self.listed);
        reply.out().join(&mut self.names);
    }
}
