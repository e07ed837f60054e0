//! RANDOMKEY: some key, each as likely as any other.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::ServerCx;
use tenon_engine::ds::progress;
use tenon_engine::errors::CmdError;
use tenon_engine::shards::ShardState;
use tenon_engine::store::keyspace::Keyspace;
use tenon_engine::wire::resp::Reply;
use tenon_engine::worker::Worker;

/// Gives some key.
pub static RANDOMKEY: Command = Command {
    name: "RANDOMKEY",
    group: Group::Generic,
    syntax: "",
    summary: "Returns a random key name from the database.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(1),
    keys: Keys::None,
    flags: Flags::READONLY.or(Flags::WHOLE_KEYSPACE),
    run: Run::Server(randomkey),
};

/// Throws at random places before every key is looked at. They are enough wherever a shard has a key or more on
/// average, as a throw then hits one time in ten or so.
const THROWS_MAX: usize = 128;

/// So few keys are looked at sooner than a throw hits one.
const FEW: u64 = 32;

fn randomkey(cx: &mut ServerCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let is_few = cx.engine.key_count(cx.session.database).is_some_and(|keys| keys <= FEW);
    let thrown = if is_few { None } else { throw(cx)? };
    let drawn = if thrown.is_none() { draw(cx)? } else { thrown };
    match drawn {
        Some(key) => reply.bulk(&key),
        None => reply.null(),
    }
    Ok(())
}

/// Throws at a random place of a random shard until a live key is hit. The places are numbered up to a bound that no
/// shard seen so far exceeds, and a throw beyond a shard's last key misses: so keys in full shards are as likely to be
/// hit as those in others.
fn throw(cx: &mut ServerCx<'_>) -> Result<Option<Vec<u8>>, CmdError> {
    let database = cx.session.database;
    let now_ms = cx.worker.clock.now_ms;
    let shards = cx.engine.shards.count();
    let mut bound = 2;
    for _ in 0..THROWS_MAX {
        let index = cx.worker.random() as usize % shards;
        let place = cx.worker.random() as usize % bound;
        if cx.engine.shards.next_with_keys(index) != index {
            continue;
        }
        cx.comes_later([index])?;
        let mut hit = None;
        cx.one_shard(index, |_, state| {
            let Some(keyspace) = state.shard.database(database) else { return };
            if keyspace.len() > bound {
                bound = keyspace.len() * 2;
            } else {
                hit = nth_live(keyspace, place, now_ms);
            }
        });
        if hit.is_some() {
            return Ok(hit);
        }
    }
    Ok(None)
}

/// The key at a place in the order of the table, if it is past the last one or its deadline: nothing.
fn nth_live(keyspace: &Keyspace, place: usize, now_ms: u64) -> Option<Vec<u8>> {
    if place >= keyspace.len() {
        return None;
    }
    let mut at = 0;
    let mut key = None;
    keyspace.scan(0, place + 1, |entry| {
        progress::count(1);
        if at == place && !entry.is_past(now_ms) {
            key = Some(entry.key().to_vec());
        }
        at += 1;
    });
    key
}

/// Looks at every key and keeps one of the live ones: at one moment, or one that others rename from shard to shard may be where
/// nobody looks any more.
fn draw(cx: &mut ServerCx<'_>) -> Result<Option<Vec<u8>>, CmdError> {
    let (database, now_ms) = (cx.session.database, cx.worker.clock.now_ms);
    let keeps_due = cx.engine.pause.mode(now_ms).is_some();
    let begin = || Draw { database, now_ms, keeps_due, live: Drawn::default(), due: Drawn::default() };
    let draw = cx.look_at_one_moment(begin, |draw, worker, state| draw.look_at(worker, state))?;
    Ok(draw.live.key.or(draw.due.key))
}

/// A draw among all keys of a database. While a CLIENT PAUSE keeps keys that are due, one of these will do where no other is
/// left, as in Redis (8.0; 7.0 looks for another for ever).
struct Draw {
    database: usize,
    now_ms: u64,
    keeps_due: bool,
    live: Drawn,
    due: Drawn,
}

impl Draw {
    fn look_at(&mut self, worker: &mut Worker, state: &ShardState) {
        let Some(keyspace) = state.shard.database(self.database) else { return };
        keyspace.scan(0, usize::MAX, |entry| {
            progress::count(1);
            if !entry.is_past(self.now_ms) {
                self.live.offer(entry.key(), worker.random());
            } else if self.keeps_due {
                self.due.offer(entry.key(), worker.random());
            }
        });
    }
}

/// One of the keys that were offered, each as likely as any other (reservoir sampling: the n-th replaces the one before
/// with a chance of 1 in n).
#[derive(Default)]
struct Drawn {
    key: Option<Vec<u8>>,
    offered: usize,
}

impl Drawn {
    fn offer(&mut self, key: &[u8], random: u32) {
        self.offered += 1;
        if (random as usize).is_multiple_of(self.offered) {
            self.key = Some(key.to_vec());
        }
    }
}
