//! All keys of one database or of every one, a slice at a time, between which other clients get a turn. Knows not what is
//! done with them.

use tenon_engine::context::ServerCx;
use tenon_engine::store::entry::EntryRef;

/// How much is looked at before other clients get a turn: a fifth of a millisecond's work. A shard counts for one, as
/// there may be thousands that have no keys, and a key for four. So a small keyspace is one slice.
const SLICE: usize = 6_144;
const KEY: usize = 4;

/// How far the keys of one database have been looked at, or those of `EVERY` one.
#[derive(Debug, Default)]
pub(super) struct KeyWalk<const EVERY: bool> {
    /// Where it goes on: as a cursor of SCAN a place that no growing table moves.
    shard: usize,
    database: usize,
    tag: u16,
}

impl KeyWalk<false> {
    /// Past the keys of this database.
    pub(super) fn of_database(database: usize) -> KeyWalk<false> {
        KeyWalk { database, ..KeyWalk::default() }
    }
}

/// Whether there are so few keys that all of them are one slice, and may as well be looked at in one moment.
pub(super) fn are_few(cx: &ServerCx<'_>) -> bool {
    cx.engine.keys_about() <= (SLICE / KEY) as u64
}

impl<const EVERY: bool> KeyWalk<EVERY> {
    /// Shows some more keys with their databases to `visit`, also those whose time has come; tells whether these were the
    /// last ones.
    pub(super) fn go_on(&mut self, cx: &mut ServerCx<'_>, mut visit: impl FnMut(usize, EntryRef<'_>)) -> bool {
        let shards = cx.engine.shards.count();
        let mut looked_at = 0;
        while looked_at < SLICE {
            let shard = cx.engine.shards.next_with_keys(self.shard);
            if shard != self.shard {
                self.begin(shard);
            }
            if shard == shards {
                break;
            }
            let next = cx.one_shard(shard, |_, state| {
                let (number, keyspace) = if EVERY {
                    state.shard.databases().find(|(number, _)| *number >= self.database)?
                } else {
                    (self.database, state.shard.database(self.database)?)
                };
                let from = if number == self.database { self.tag } else { 0 };
                let tag = keyspace.scan(from, (SLICE - looked_at).div_ceil(KEY), |entry| {
                    looked_at += KEY;
                    visit(number, entry);
                });
                tag.map(|tag| (number, tag)).or_else(|| EVERY.then_some((number + 1, 0)))
            });
            match next {
                Some(place) => (self.database, self.tag) = place,
                None => self.begin(shard + 1),
            }
            looked_at += 1;
        }
        self.shard == shards
    }

    fn begin(&mut self, shard: usize) {
        (self.shard, self.tag) = (shard, 0);
        if EVERY {
            self.database = 0;
        }
    }
}
