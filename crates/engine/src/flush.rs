//! Emptying and exchanging whole databases: all shards at one moment, watchers told, memory freed off the locks. Knows
//! no command.

use crate::context::{KeyCx, ServerCx};
use crate::engine::Engine;
use crate::reaper::Garbage;
use crate::shards::{Held, Locked, ShardState};
use crate::worker::Worker;
use std::collections::BTreeMap;
use tenon_store::entry::ValueRef;
use tenon_store::keyspace::{DeadlineCounts, Keyspace};

/// Allocations that a worker frees by itself; more go to the reaper.
const FREED_HERE_MAX: usize = 10_000;

/// Which databases are emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emptied {
    /// One.
    One(usize),
    /// All.
    All,
}

/// Who frees what was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freeing {
    /// The reaper.
    Background,
    /// The worker before it goes on, unless that would take too long.
    Here,
}

/// Whether freeing these takes longer than a client should wait: many keys, or few with large values.
fn is_much(keyspaces: &[Keyspace]) -> bool {
    let mut allocations: usize = keyspaces.iter().map(Keyspace::len).sum();
    if allocations <= FREED_HERE_MAX {
        for keyspace in keyspaces {
            keyspace.scan(0, usize::MAX, |entry| {
                if let ValueRef::Object(object) = entry.value() {
                    allocations += object.allocations();
                }
            });
        }
    }
    allocations > FREED_HERE_MAX
}

fn garbage(keyspaces: Vec<Keyspace>) -> Vec<Garbage> {
    keyspaces.into_iter().map(Garbage::Keyspace).collect()
}

impl ServerCx<'_> {
    /// Takes all keys of these databases out, at one moment for all clients.
    pub fn empty(&mut self, databases: Emptied, freeing: Freeing) {
        // The moment in which nothing is there is as good as one in which all shards are locked.
        if self.held.is_none() && self.engine.are_empty(databases) {
            return self.engine.has_emptied(databases);
        }
        let mut taken = Vec::new();
        let mut keys_of = BTreeMap::new();
        self.all_shards(|engine, worker, held| {
            held.each(&mut |index, state| {
                let mut take_keys_of = |state: &mut ShardState, database| {
                    if let Some(keyspace) = take(engine, worker, state, database) {
                        *keys_of.entry(database).or_default() += keyspace.len();
                        taken.extend(engine.keep_for_snapshot(index, database, keyspace));
                    }
                };
                // Most have none where there are few keys.
                if engine.shards.may_have_keys(index) {
                    match databases {
                        Emptied::One(database) => take_keys_of(state, database),
                        Emptied::All => {
                            let used: Vec<_> = state.shard.used_databases().map(|(database, _)| database).collect();
                            used.into_iter().for_each(|database| take_keys_of(state, database));
                        }
                    }
                    engine.shards.note_if_empty(index, &state.shard);
                    engine.shards.set_due(index, state.shard.next_due_ms());
                }
                // Those that have lost their keys one by one, too.
                state.shard.forget_unused();
                engine.shards.forget_many_deadlines(&mut state.shard);
                true
            });
            engine.large.forget(match databases {
                Emptied::One(database) => Some(database),
                Emptied::All => None,
            });
            for (database, keys) in &keys_of {
                // Nobody adds or removes one now, but a transaction that this is part of.
                debug_assert!(
                    engine.key_count(*database).is_none_or(|count| count == *keys as u64),
                    "{keys} are there, and {:?} counted",
                    engine.key_count(*database)
                );
                worker.stats.keys.removed(*database, *keys);
            }
            if !keys_of.is_empty() {
                match databases {
                    Emptied::One(database) => engine.log(worker, database, &["FLUSHDB".into()]),
                    Emptied::All => engine.log(worker, 0, &["FLUSHALL".into()]),
                }
            }
        });
        self.worker.stats.all.changes.add(keys_of.values().sum::<usize>() as u64);
        self.engine.has_emptied(databases);
        if taken.is_empty() {
            return;
        }
        if freeing == Freeing::Background || is_much(&taken) {
            self.engine.reaper.free(garbage(taken));
        } else if self.held.is_some() {
            self.worker.discard_keyspaces(taken);
        }
    }

    /// Exchanges the keys of two databases, at one moment for all clients.
    pub fn swap(&mut self, a: usize, b: usize) {
        if a == b {
            return;
        }
        let touches = self.session.touches;
        self.all_shards(|engine, worker, held| {
            let mut any_keys = false;
            let mut keys = [0; 2];
            // Where there are few keys most shards have none.
            for index in engine.shards.with_keys_from(0) {
                let state = held.shard(index);
                let has_keys = |database| state.shard.database(database).is_some_and(|keyspace| !keyspace.is_empty());
                if has_keys(a) || has_keys(b) {
                    tell_watchers_of_swap(engine, worker, state, (a, b), touches);
                    let [in_a, in_b] = [a, b].map(|database| deadline_counts(state, database));
                    state.shard.swap(a, b);
                    worker.stats.keys.deadlines_changed(a, in_a, in_b);
                    worker.stats.keys.deadlines_changed(b, in_b, in_a);
                    for (keys, database) in keys.iter_mut().zip([a, b]) {
                        *keys += state.shard.database(database).map_or(0, Keyspace::len);
                    }
                    any_keys = true;
                }
            }
            if any_keys {
                let [now_in_a, now_in_b] = keys;
                worker.stats.keys.begin();
                worker.stats.keys.replaced(a, now_in_b, now_in_a);
                worker.stats.keys.replaced(b, now_in_a, now_in_b);
                worker.stats.keys.end();
                worker.stats.changed();
                engine.log(worker, 0, &["SWAPDB".into(), (a as u64).into(), (b as u64).into()]);
            }
            engine.large.swap(a, b);
            if let Some(snapshot) = engine.snapshot() {
                snapshot.swap(a, b);
            }
        });
    }
}

impl Engine {
    /// Whether it is certain that these databases have no keys.
    fn are_empty(&self, databases: Emptied) -> bool {
        match databases {
            Emptied::One(database) => self.key_count(database) == Some(0),
            Emptied::All => self.has_no_key(),
        }
    }

    /// What it entails that databases have been emptied, whatever was in them.
    fn has_emptied(&self, databases: Emptied) {
        self.all_changed();
        if databases == Emptied::All {
            self.all_is_flushed();
        }
    }

    /// Takes all keys of a database out, at one moment for all clients. No shard is locked.
    pub fn empty_database(&self, worker: &mut Worker, database: usize) {
        // As in `ServerCx::empty`.
        if self.are_empty(Emptied::One(database)) {
            return self.has_emptied(Emptied::One(database));
        }
        let held = self.lock_everything(worker);
        self.empty_database_in(worker, database, held);
    }

    /// Likewise, with all shards locked.
    pub(crate) fn empty_database_in(&self, worker: &mut Worker, database: usize, mut held: Held<'_>) {
        let mut taken = Vec::new();
        let mut keys = 0;
        held.each(&mut |index, state| {
            if self.shards.may_have_keys(index)
                && let Some(keyspace) = take(self, worker, state, database)
            {
                keys += keyspace.len();
                taken.extend(self.keep_for_snapshot(index, database, keyspace));
                self.shards.forget_many_deadlines(&mut state.shard);
                self.shards.set_due(index, state.shard.next_due_ms());
                self.shards.note_if_empty(index, &state.shard);
            }
            state.shard.forget_unused();
            true
        });
        worker.stats.keys.removed(database, keys);
        if keys > 0 {
            self.log(worker, database, &["FLUSHDB".into()]);
            self.commit(worker);
        }
        self.release(worker, held);
        worker.stats.all.changes.add(keys as u64);
        self.all_changed();
        if is_much(&taken) {
            self.reaper.free(garbage(taken));
        }
    }
}

/// Takes the keys of a database out of a shard and tells their watchers; nothing when there are none.
fn take(engine: &Engine, worker: &mut Worker, state: &mut ShardState, database: usize) -> Option<Keyspace> {
    // A database that was never used is not made for this.
    if state.shard.database(database)?.is_empty() {
        return None;
    }
    let taken = state.shard.take(database);
    worker.stats.keys.deadlines_changed(database, taken.deadline_counts(), DeadlineCounts::default());
    if let Some(watched) = &state.watched {
        watched.changed_if(database, &mut worker.ready, |key| taken.find(engine.shards.hash(key), key).is_some());
    }
    Some(taken)
}

fn deadline_counts(state: &ShardState, database: usize) -> DeadlineCounts {
    state.shard.database(database).map(Keyspace::deadline_counts).unwrap_or_default()
}

/// Tells the watchers of keys that are there before or after the exchange, as Redis does: whether the two values are
/// equal is not looked at.
fn tell_watchers_of_swap(
    engine: &Engine,
    worker: &mut Worker,
    state: &mut ShardState,
    (a, b): (usize, usize),
    touches: bool,
) {
    let Some(watched) = &state.watched else { return };
    let keys: Vec<Box<[u8]>> = watched.keys_of(a).chain(watched.keys_of(b)).map(Box::from).collect();
    for key in &keys {
        let hash = engine.shards.hash(key);
        // Keys past their deadline go first: neither is their removal from the other database a change for those who
        // watch the key here, nor is it later, when they are removed ahead of access.
        let mut cx = KeyCx { engine, worker, state, database: a, hash, key, touches };
        let there = cx.find().is_some() | cx.in_database(b).find().is_some();
        if there && let Some(watched) = &state.watched {
            watched.changed(a, key, &mut worker.ready);
            watched.changed(b, key, &mut worker.ready);
        }
    }
}
