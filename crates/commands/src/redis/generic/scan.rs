//! SCAN: all keys, a page at a time.
//!
//! A cursor is a place: the shard above sixteen bits of tag. Within a shard keys are visited in the order of their
//! tags, which are part of the key's hash, so a key that is there from the first page to the last is given exactly
//! once, however the tables grow or shrink meanwhile. The server keeps nothing between pages.

use crate::redis::scan_page::{PageOptions, parse_cursor, reply_page};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::ServerCx;
use tenon_engine::ds::progress;
use tenon_engine::errors::CmdError;
use tenon_engine::store::entry::EntryRef;
use tenon_engine::store::types::ValueType;
use tenon_engine::wire::resp::Reply;

/// Lists keys page by page.
pub static SCAN: Command = Command {
    name: "SCAN",
    group: Group::Generic,
    syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type]",
    summary: "Iterates over the key names in the database.",
    complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.",
    since: "2.8.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::READONLY.or(Flags::WHOLE_KEYSPACE),
    run: Run::Server(scan),
};

/// How far a scan has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    shard: usize,
    tag: u16,
}

impl Place {
    /// The place that a cursor says; nothing behind the last shard.
    fn of(cursor: u64, shards: usize) -> Option<Place> {
        let shard = usize::try_from(cursor >> 16).ok().filter(|&shard| shard < shards)?;
        Some(Place { shard, tag: cursor as u16 })
    }

    /// The cursor to go on from here; 0 behind the last shard, which is the end.
    fn cursor(self, shards: usize) -> u64 {
        if self.shard >= shards { 0 } else { (self.shard as u64) << 16 | u64::from(self.tag) }
    }
}

/// Which keys a page gives, of those that it visits.
struct Options<'a> {
    page: PageOptions<'a>,
    type_wanted: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(args: &Args<'a>) -> Result<Options<'a>, CmdError> {
        let mut type_wanted = None;
        let page = PageOptions::parse(args, 2, |at| match args.try_get(at + 1) {
            Some(name) if args.is(at, "TYPE") => {
                type_wanted = Some(name);
                2
            }
            _ => 0,
        })?;
        Ok(Options { page, type_wanted })
    }

    fn accept(&self, entry: EntryRef<'_>) -> bool {
        self.type_wanted
            .is_none_or(|wanted| wanted.eq_ignore_ascii_case(ValueType::of(entry.value()).name().as_bytes()))
            && self.page.accept(entry.key())
    }
}

fn scan(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let cursor = parse_cursor(args.get(1))?;
    let options = Options::parse(args)?;
    let shards = &cx.engine.shards;
    if let Some(place) = Place::of(cursor, shards.count()) {
        cx.comes_later(shards.with_keys_from(place.shard).next())?;
    }
    reply_page(reply, |page| visit(cx, cursor, &options, |key| page.bulk(key)));
    Ok(())
}

/// Visits about `options.page.count` keys from a cursor on and hands the accepted ones to `give`. Gives the next cursor and
/// how many were accepted. A cursor that no page gave out may lie behind the last shard: nothing is there.
fn visit(cx: &mut ServerCx<'_>, cursor: u64, options: &Options<'_>, mut give: impl FnMut(&[u8])) -> (u64, usize) {
    let database = cx.session.database;
    let now_ms = cx.worker.clock.now_ms;
    let shards = cx.engine.shards.count();
    let Some(mut place) = Place::of(cursor, shards) else { return (0, 0) };
    let (mut left, mut is_first) = (options.page.count, true);
    let mut given = 0;
    let mut past: Vec<Box<[u8]>> = Vec::new();
    while left > 0 {
        let shard = cx.engine.shards.next_with_keys(place.shard);
        if shard != place.shard {
            place = Place { shard, tag: 0 };
        }
        // A page ends before a shard that a long call holds, and may have nothing.
        if shard == shards || !is_first && cx.is_out_of_reach(shard) {
            break;
        }
        is_first = false;
        let next = cx.one_shard(place.shard, |_, state| {
            state.shard.database(database)?.scan(place.tag, left, |entry| {
                progress::count(1);
                left = left.saturating_sub(1);
                if entry.is_past(now_ms) {
                    past.push(entry.key().into());
                } else if options.accept(entry) {
                    give(entry.key());
                    given += 1;
                }
            })
        });
        place = match next {
            Some(tag) => Place { tag, ..place },
            None => Place { shard: place.shard + 1, tag: 0 },
        };
    }
    // As with every access, what is past its deadline goes, but while writes wait.
    if !cx.engine.pause.keeps_what_is_due() {
        past.iter().for_each(|key| cx.with_key(key, |key| _ = key.find()));
    }
    (place.cursor(shards), given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_places() {
        assert_eq!(Place::of(0, 4), Some(Place { shard: 0, tag: 0 }));
        assert_eq!(Place::of((3 << 16) + 65_535, 4), Some(Place { shard: 3, tag: 65_535 }));
        assert_eq!(Place::of(4 << 16, 4), None);
        assert_eq!(Place::of(u64::MAX, 4), None);
        for cursor in [0, 1, 65_535, 65_536, (4 << 16) - 1] {
            assert_eq!(Place::of(cursor, 4).unwrap().cursor(4), cursor);
        }
        assert_eq!(Place { shard: 4, tag: 0 }.cursor(4), 0);
    }
}
