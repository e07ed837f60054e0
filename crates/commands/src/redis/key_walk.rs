//! All keys of one database or of every one, a slice at a time, between which other clients get a turn. Knows not what is
//! done with them.

use tenon_engine::context::ServerCx;
use tenon_engine::store::entry::EntryRef;

/// How much is looked at before other clients get a turn: a fifth of a millisecond's work. A shard counts for one, as
/// there may be thousands that have no keys, and a key for four. So a small keyspace is one slice.
const SLICE: usize = 6_144;
const KEY: usize = 4;

/// How far all keys have been looked at, of every database by default.
#[derive(Debug, Default)]
pub(super) struct KeyWalk {
    /// The database whose keys they are, if it is one.
    only: Option<usize>,
    /// Where it goes on: as a cursor of SCAN a place that no growing table moves.
    shard: usize,
    database: usize,
    tag: u16,
}

impl KeyWalk {
    /// Past the keys of this database.
    pub(super) fn of_database(database: usize) -> KeyWalk {
        KeyWalk { only: Some(database), database, ..KeyWalk::default() }
    }

    /// Shows some more keys with their databases to `visit`, also those whose time has come; tells whether these were the
    /// last ones.
    pub(super) fn go_on(&mut self, cx: &mut ServerCx<'_>, mut visit: impl FnMut(usize, EntryRef<'_>)) -> bool {
        let shards = cx.engine.shards.count();
        let (only, first) = (self.only, self.only.unwrap_or(0));
        let mut looked_at = 0;
        while looked_at < SLICE {
            let shard = cx.engine.shards.next_with_keys(self.shard);
            if shard != self.shard {
                (self.shard, self.database, self.tag) = (shard, first, 0);
            }
            if shard == shards {
                break;
            }
            let (database, tag) = (self.database, self.tag);
            let next = cx.one_shard(shard, |_, state| {
                let (number, keyspace) = match only {
                    Some(number) => (number, state.shard.database(number)?),
                    None => state.shard.databases().find(|(number, _)| *number >= database)?,
                };
                let from = if number == database { tag } else { 0 };
                let tag = keyspace.scan(from, (SLICE - looked_at).div_ceil(KEY), |entry| {
                    looked_at += KEY;
                    visit(number, entry);
                });
                tag.map(|tag| (number, tag)).or_else(|| only.is_none().then_some((number + 1, 0)))
            });
            match next {
                Some(place) => (self.database, self.tag) = place,
                None => (self.shard, self.database, self.tag) = (shard + 1, first, 0),
            }
            looked_at += 1;
        }
        self.shard == shards
    }
}
