//! The scanner: walks through all shards, copies some keys at a time under their lock and writes them without it. Knows no
//! file, and no client but those that wait for it.

use super::begin::Begun;
use super::priority::Turns;
use super::shared::{Handed, Large, Snapshot, Status, shared};
use crate::clients::Message;
use crate::engine::Engine;
use crate::reaper::Garbage;
use crate::shards::ShardState;
use crate::string;
use crate::version;
use parking_lot::MutexGuard;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenon_persist::rdb::file::{FileWriter, write_slice};
use tenon_persist::rdb::{Cursor, is_large};
use tenon_store::entry::{Entry, EntryCopies, EntryRef, ValueRef};
use tenon_store::types::Object;

/// Keys that are copied while a shard is locked.
const SLICE_KEYS: usize = 64;
/// Bytes after which no more of them are.
const SLICE_BYTES: usize = 256 * 1024;
/// So many times its length a long string takes while it is written: it is put together, and perhaps compressed, in a buffer
/// that grows.
const WRITING_TAKES: usize = 3;
/// How long the scanner waits for a shard before it looks at the queue again.
const SLICE_WAIT: Duration = Duration::from_millis(2);

/// What came of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Bytes of the file.
    pub bytes: u64,
    /// Keys in it.
    pub keys: u64,
}

/// What one look at a shard has brought.
#[derive(Default)]
struct Slice {
    copies: EntryCopies,
    /// Keys as they are to stand in the file, and how many they are.
    encoded: Vec<u8>,
    encoded_keys: u64,
    /// Long strings, and their bytes.
    strings: Vec<Entry>,
    strings_len: usize,
    /// Keys whose values are large.
    large: Vec<Box<[u8]>>,
    /// Whether it was full before its last key.
    is_full: bool,
}

impl Slice {
    /// Takes a key over; tells whether it is done with.
    fn take(&mut self, snapshot: &Snapshot, entry: EntryRef<'_>) -> bool {
        let value = entry.value();
        let ValueRef::Object(object) = value else { return self.copies.push(entry) };
        if is_large(value) {
            self.large.push(entry.key().into());
            return false;
        }
        // Strings are not copied; but those that are evicted before they are written free nothing until then.
        if self.copies.bytes() + self.encoded.len() + self.strings_len > SLICE_BYTES {
            self.is_full = true;
            return false;
        }
        if matches!(object, Object::Shared(_) | Object::Rope(_)) {
            self.strings_len += string::len(value);
            snapshot.takes_in_hand(string::len(value));
            self.strings.push(shared(entry, object));
        } else {
            snapshot.encode(entry, &mut self.encoded);
            self.encoded_keys += 1;
        }
        true
    }

    fn clear(&mut self) {
        self.copies.clear();
        self.encoded.clear();
        self.encoded_keys = 0;
        self.strings.clear();
        self.strings_len = 0;
        self.large.clear();
        self.is_full = false;
    }
}

/// Writes one snapshot.
pub(super) struct Scanner<'e, W> {
    engine: &'e Engine,
    begun: Begun,
    snapshot: Arc<Snapshot>,
    file: FileWriter<W>,
    /// Why nothing is written any more.
    failed: Option<io::Error>,
    slice: Slice,
    turns: Turns,
}

impl<'e, W: Write> Scanner<'e, W> {
    pub(super) fn new(engine: &'e Engine, begun: Begun, out: W) -> Scanner<'e, W> {
        let snapshot = Arc::clone(&begun.snapshot);
        let file = FileWriter::new(out, begun.options.file);
        Scanner { engine, begun, snapshot, file, failed: None, slice: Slice::default(), turns: Turns::begin() }
    }

    pub(super) fn run(mut self) -> io::Result<(W, Report)> {
        if catch_unwind(AssertUnwindSafe(|| self.write_all())).is_err() {
            // Every entry must be looked at all the same, or no other snapshot could begin; nothing is written any more.
            self.failed = Some(io::Error::other("a bug has ended it in its middle"));
            *self.snapshot.large.lock() = None;
            self.write_all();
        }
        let Scanner { engine, snapshot, file, mut failed, .. } = self;
        if snapshot.cancelled.load(Ordering::Relaxed) {
            failed.get_or_insert_with(|| io::Error::new(io::ErrorKind::Interrupted, "the snapshot was cancelled"));
        }
        let keys = snapshot.keys.load(Ordering::Relaxed);
        engine.snapshots.end();
        if let Some(error) = failed {
            return Err(error);
        }
        let keys_total = snapshot.keys_total.load(Ordering::Relaxed);
        if keys != keys_total {
            debug_assert!(false, "{keys} keys are written, and there were {keys_total}");
            return Err(io::Error::other("the snapshot does not have every key once"));
        }
        let (out, bytes) = file.finish()?;
        Ok((out, Report { bytes, keys }))
    }

    /// Writes what there is.
    fn write_all(&mut self) {
        self.write_head();
        for shard in 0..self.engine.shards.count() {
            self.scan(shard);
        }
        // No shard lacks anything: nothing is handed over any more.
        self.drain();
        debug_assert!(self.snapshot.large.lock().is_none(), "large values are written where they are found");
        self.wake_if(|_| true);
    }

    /// Writes something, unless that has failed before, or nobody wants it any more.
    fn put(&mut self, write: impl FnOnce(&mut FileWriter<W>) -> io::Result<()>) {
        if self.failed.is_none() && !self.snapshot.cancelled.load(Ordering::Relaxed) {
            self.failed = write(&mut self.file).err();
        }
    }

    fn count(&self, keys: u64) {
        self.snapshot.keys.fetch_add(keys, Ordering::Relaxed);
    }

    fn write_head(&mut self) {
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let (memory, is_log_base) = (self.begun.memory, self.begun.options.is_log_base);
        let (libraries, sizes) = (Arc::clone(&self.begun.libraries), std::mem::take(&mut self.begun.sizes));
        self.put(|file| {
            file.auxiliary("redis-ver", version::REDIS.as_bytes())?;
            file.auxiliary("redis-bits", usize::BITS.to_string().as_bytes())?;
            file.auxiliary("ctime", now_s.to_string().as_bytes())?;
            file.auxiliary("used-mem", memory.to_string().as_bytes())?;
            file.auxiliary("aof-base", if is_log_base { b"1" } else { b"0" })?;
            libraries.libraries().try_for_each(|library| file.library(&library.code))?;
            sizes.iter().try_for_each(|&(database, keys, expiring)| file.database_size(database, keys, expiring))
        });
    }

    /// Locks a shard; what is handed over meanwhile is written.
    fn lock_draining(&mut self, shard: usize) -> MutexGuard<'e, ShardState> {
        loop {
            if let Some(state) = self.engine.shards.try_lock_for(shard, SLICE_WAIT) {
                return state;
            }
            self.drain();
        }
    }

    /// Writes what a shard has.
    fn scan(&mut self, shard: usize) {
        let snapshot = Arc::clone(&self.snapshot);
        let mut swaps = snapshot.swaps.load(Ordering::Relaxed);
        let mut at = (0, 0);
        loop {
            self.write_wanted();
            let mut slice = std::mem::take(&mut self.slice);
            let mut state = self.lock_draining(shard);
            if snapshot.swaps.load(Ordering::Relaxed) != swaps {
                // What was in the next database may now be in one before.
                swaps = snapshot.swaps.load(Ordering::Relaxed);
                at = (0, 0);
            }
            let (database, from) = at;
            let Some((found, keyspace)) = state.shard.databases_mut().find(|(number, _)| *number >= database) else {
                state.shard.end_snapshot();
                self.slice = slice;
                return;
            };
            let (database, from) = if found == database { (database, from) } else { (found, 0) };
            let original = snapshot.original(database);
            let next = keyspace.write_lacking(from, SLICE_KEYS, |entry| slice.take(&snapshot, entry));
            drop(state);
            self.write(original, &mut slice);
            for key in &slice.large {
                self.write_large(shard, original, key);
            }
            at = match next {
                _ if slice.is_full => (database, from),
                Some(tag) => (database, tag),
                None => (database + 1, 0),
            };
            slice.clear();
            self.slice = slice;
            self.drain();
            self.turns.end_if_over();
        }
    }

    /// Writes what one look has brought, but for what is large.
    fn write(&mut self, database: usize, slice: &mut Slice) {
        self.write_copies(database, &slice.copies);
        if slice.encoded_keys > 0 {
            self.put(|file| file.encoded(database, &slice.encoded));
            self.count(slice.encoded_keys);
        }
        for entry in slice.strings.drain(..) {
            let len = string::len(entry.view().value());
            self.write_string(database, entry.view());
            drop(entry);
            self.snapshot.has_done_with(len);
        }
    }

    fn write_copies(&mut self, database: usize, copies: &EntryCopies) {
        for (number, entry) in copies.iter().enumerate() {
            self.write_entry(database, entry);
            if number % SLICE_KEYS == SLICE_KEYS - 1 {
                self.turns.end_if_over();
            }
        }
    }

    fn write_entry(&mut self, database: usize, entry: EntryRef<'_>) {
        let access = self.snapshot.access_of(entry);
        self.put(|file| file.entry(database, entry, access));
        self.count(1);
    }

    /// Writes an entry whose value is a long string.
    fn write_string(&mut self, database: usize, entry: EntryRef<'_>) {
        let taken = WRITING_TAKES * string::len(entry.value());
        self.snapshot.takes_in_hand(taken);
        self.write_entry(database, entry);
        self.snapshot.has_done_with(taken);
    }

    /// Writes what was handed over.
    fn drain(&mut self) {
        loop {
            let queue = self.snapshot.take_queue();
            if queue.is_empty() {
                return;
            }
            for handed in queue {
                let bytes = handed.bytes();
                match handed {
                    Handed::Copies(database, copies) => {
                        self.write_copies(database, &copies);
                        self.snapshot.give_back(copies);
                    }
                    Handed::Entry(database, entry, gone) => {
                        self.write_owned(database, entry.view(), Cursor::START);
                        // A string is gone when it no longer counts as queued; what takes longer is freed elsewhere.
                        if is_large(entry.view().value()) {
                            self.free(Garbage::Entry(entry));
                        }
                        self.snapshot.has_freed(gone);
                    }
                    Handed::Encoded(database, bytes) => {
                        self.put(|file| file.encoded(database, &bytes));
                        self.count(1);
                    }
                    Handed::Keyspace(database, mut keyspace, gone) => {
                        keyspace.write_lacking(0, usize::MAX, |entry| {
                            self.write_owned(database, entry, Cursor::START);
                            true
                        });
                        self.free(Garbage::Keyspace(keyspace));
                        self.snapshot.has_freed(gone);
                    }
                }
                self.snapshot.is_written(bytes);
            }
        }
    }

    fn free(&self, garbage: Garbage) {
        self.engine.reaper.free(vec![garbage]);
    }

    /// Writes an entry that nobody else has, or the rest of it.
    fn write_owned(&mut self, database: usize, entry: EntryRef<'_>, cursor: Cursor) {
        match entry.value() {
            ValueRef::Object(Object::Shared(_) | Object::Rope(_)) => return self.write_string(database, entry),
            value if !is_large(value) => return self.write_entry(database, entry),
            _ => {}
        }
        let access = self.snapshot.access_of(entry);
        let mut bytes = Vec::new();
        let mut next = Some(cursor);
        while let Some(from) = next {
            bytes.clear();
            next = write_slice(&mut bytes, &self.snapshot.file, entry, access, &from);
            self.put(|file| file.encoded(database, &bytes));
        }
        self.count(1);
    }

    /// Writes the keys that clients wait for.
    fn write_wanted(&mut self) {
        loop {
            let first = self.snapshot.wanted.lock().first().map(|it| (it.shard, it.database, it.key.clone()));
            let Some((shard, database, key)) = first else { return };
            self.write_large(shard, database, &key);
            self.wake_if(|of| *of == (shard, database, &key));
        }
    }

    /// Tells clients that wait for these keys that they can go on.
    fn wake_if(&self, is_meant: impl Fn(&(usize, usize, &[u8])) -> bool) {
        let mut woken = Vec::new();
        self.snapshot.wanted.lock().retain(|it| {
            let stays = !is_meant(&(it.shard, it.database, &it.key));
            if !stays {
                woken.push(it.client);
            }
            stays
        });
        woken.into_iter().for_each(|client| self.engine.clients.tell(client, Message::Unpause));
    }

    /// Writes a key in slices, if the snapshot lacks it, the shard being free in between.
    fn write_large(&mut self, shard: usize, database: usize, key: &[u8]) {
        let snapshot = Arc::clone(&self.snapshot);
        let hash = self.engine.shards.hash(key);
        let mut bytes = Vec::new();
        let mut is_begun = false;
        loop {
            bytes.clear();
            // Nothing else is written between two slices: the queue waits, and before the first one it need not.
            let mut state = if is_begun { self.engine.shards.lock(shard) } else { self.lock_draining(shard) };
            let mut guard = snapshot.large.lock();
            if is_begun {
                let large = guard.as_mut().expect("it is under way");
                if !matches!(large.status, Status::InPlace) {
                    let large = guard.take().expect("it is under way");
                    drop((guard, state));
                    return self.finish_large(large);
                }
            }
            let present = snapshot.present(database);
            let found = state.shard.used_database_mut(present).and_then(|keyspace| {
                let slot = keyspace.find(hash, key)?;
                keyspace.is_lacking(slot).then_some((keyspace, slot))
            });
            let Some((keyspace, slot)) = found else {
                if is_begun {
                    *guard = None;
                    self.put(|_| Err(io::Error::other("a large value went away while it was written")));
                }
                return;
            };
            if !is_begun {
                let (key, cursor, status) = (key.into(), Cursor::START, Status::InPlace);
                *guard = Some(Large { shard, database, key, cursor, status });
                is_begun = true;
            }
            let large = guard.as_mut().expect("it is under way");
            let entry = keyspace.entry(slot);
            let access = snapshot.access_of(entry);
            let next = write_slice(&mut bytes, &snapshot.file, entry, access, &large.cursor);
            let is_done = next.is_none();
            match next {
                Some(next) => large.cursor = next,
                None => {
                    keyspace.mark_written(slot);
                    *guard = None;
                }
            }
            drop((guard, state));
            self.put(|file| file.encoded(database, &bytes));
            if is_done {
                return self.count(1);
            }
        }
    }

    /// Writes the rest of a large value that is no longer where it was.
    fn finish_large(&mut self, large: Large) {
        match large.status {
            Status::InPlace => unreachable!("its shard is where it is written"),
            Status::TakenOut(entry, gone) => {
                self.write_owned(large.database, entry.view(), large.cursor);
                self.free(Garbage::Entry(entry));
                self.snapshot.has_freed(gone);
            }
            Status::Finished(rest) => {
                self.put(|file| file.encoded(large.database, &rest));
                self.count(1);
            }
        }
    }
}
