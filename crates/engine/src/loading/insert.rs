//! A batch of a file's keys on its way into the shards. Knows no file.

use crate::context::KeyCx;
use crate::engine::Engine;
use crate::worker::Worker;
use std::sync::atomic::{AtomicU64, Ordering};
use tenon_persist::rdb::file::{Batch, Cause, EntrySpan, FileError, Note, Usage};
use tenon_persist::rdb::{DecodeError, Scene};
use tenon_store::access::AccessClock;
use tenon_store::entry::{Meta, NewValue};
use tenon_store::keyspace::is_past;

/// Keys whose memory is asked for before the first of them is put in.
const AHEAD: usize = 32;
/// Keys of a shard for which room is made ahead.
const RESERVED_MIN: f64 = 16.0;
/// Keys without a value that the log names.
const EMPTY_NAMED_MAX: u64 = 10;

/// What becomes of keys past their deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// They are left out, and counted.
    Drop,
    /// They are loaded: a log follows that says when they went.
    Keep,
}

/// What becomes of a key that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDuplicate {
    /// The file is refused.
    Refuse,
    /// The file's takes its place.
    Replace,
}

/// How a file's keys are put into the store.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) scene: Scene,
    pub(super) past: Past,
    pub(super) on_duplicate: OnDuplicate,
    /// When it began, in milliseconds since the UNIX epoch.
    pub(super) now_ms: u64,
    /// For how many keys room may still be made before they come.
    pub(super) room: Room,
}

/// For how many keys room may be made.
#[derive(Debug)]
pub(super) struct Room(AtomicU64);

impl Room {
    pub(super) fn new(count: u64) -> Room {
        Room(AtomicU64::new(count))
    }

    /// For how many of these keys room is made: a file may say of every database, and again and again, how many come.
    fn take(&self, count: u64) -> u64 {
        let less = |room: u64| Some(room.saturating_sub(count));
        let room = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).unwrap_or_else(|room| room);
        count.min(room)
    }
}

/// What became of keys.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// They were loaded.
    pub(super) loaded: u64,
    /// They were past their deadlines, and left out.
    pub(super) expired: u64,
    /// They had no elements, and were left out.
    pub(super) empty: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: Counts) {
        self.loaded += other.loaded;
        self.expired += other.expired;
        self.empty += other.empty;
    }
}

impl Engine {
    /// Puts a batch's keys into the store.
    pub(super) fn insert_batch(&self, worker: &mut Worker, plan: &Plan, batch: &Batch) -> Result<Counts, FileError> {
        for (_, note) in &batch.notes {
            if let Note::Keys { database, count } = *note {
                self.reserve(database, plan.room.take(count));
            }
        }
        let mut counts = Counts::default();
        let mut keys = Vec::with_capacity(AHEAD);
        for entries in batch.entries.chunks(AHEAD) {
            keys.clear();
            for entry in entries {
                let key = batch.key(entry)?;
                let hash = self.shards.hash(&key);
                self.shards.prefetch(hash);
                keys.push((hash, key));
            }
            for (entry, (hash, _)) in entries.iter().zip(&keys) {
                self.shards.prefetch_entry(entry.database as usize, *hash);
            }
            for (entry, (hash, key)) in entries.iter().zip(&keys) {
                if plan.past == Past::Drop && is_past(entry.deadline_ms, plan.now_ms) {
                    counts.expired += 1;
                    continue;
                }
                let access = access(entry, worker.clock.access);
                let stored = batch.store(entry, &plan.scene, |value, flags| {
                    let mut state = self.shards.lock(self.shards.index(*hash));
                    let (state, database) = (&mut *state, entry.database as usize);
                    let mut cx = KeyCx { engine: self, worker, state, database, hash: *hash, key, touches: false };
                    let meta = Meta { deadline_ms: entry.deadline_ms, flags, access, ..Meta::default() };
                    cx.load(value, &meta, plan.on_duplicate)
                });
                match stored {
                    Ok(true) => counts.loaded += 1,
                    Ok(false) => return Err(batch.refused(entry, Cause::Duplicate)),
                    // Bugs of old versions of Redis have left such.
                    Err(FileError { cause: Cause::Value(DecodeError::Empty), .. }) => {
                        counts.empty += 1;
                        if counts.empty <= EMPTY_NAMED_MAX {
                            tracing::info!("skipping empty key: {}", key.escape_ascii());
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        worker.sweep();
        Ok(counts)
    }
}

impl Engine {
    /// Makes room for so many keys of a database, so that tables need not grow step by step.
    fn reserve(&self, database: usize, count: u64) {
        let shards = self.shards.count();
        let mean = count as f64 / shards as f64;
        // So that hardly any shard has more: how many it gets is spread as a Poisson distribution is.
        let each = mean + 3.0 * mean.sqrt();
        if each < RESERVED_MIN {
            return;
        }
        for index in 0..shards {
            let mut state = self.shards.lock(index);
            let keyspace = state.shard.database_mut(database);
            keyspace.reserve((keyspace.len() as f64 + each) as u32);
        }
    }
}

/// The access bits of a key that is loaded: as the file says it was used, if the policy in force keeps that.
fn access(entry: &EntrySpan, clock: AccessClock) -> u32 {
    match entry.usage {
        Usage::IdleSeconds(seconds) if !clock.notes_frequency() => {
            clock.idle_since(u32::try_from(seconds).unwrap_or(u32::MAX))
        }
        Usage::Frequency(frequency) if clock.notes_frequency() => clock.with_frequency(frequency),
        Usage::Unknown | Usage::IdleSeconds(_) | Usage::Frequency(_) => clock.created(),
    }
}

impl KeyCx<'_> {
    /// Adds the key as a file has it, which is no write to anyone; tells whether it was not there, or makes way.
    fn load(&mut self, value: NewValue<'_>, meta: &Meta, on_duplicate: OnDuplicate) -> bool {
        if let Some(slot) = self.find_as_it_is() {
            if on_duplicate == OnDuplicate::Refuse {
                return false;
            }
            self.hand_over();
            let replaced = self.remove(slot);
            self.worker.discard(replaced);
        }
        self.insert_loaded(value, meta);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_once() {
        let room = Room::new(10);
        assert_eq!([room.take(7), room.take(u64::MAX), room.take(1)], [7, 3, 0]);
    }
}
