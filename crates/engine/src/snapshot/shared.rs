//! What those who change keys and the scanner that writes them know of one snapshot together. Knows no shard.

use crate::clients::ConnectionKey;
use crate::reaper;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tenon_ds::looks::Looks;
use tenon_persist::rdb::file::{Access, FileOptions, write_entry, write_slice};
use tenon_persist::rdb::{Cursor, is_large};
use tenon_store::access::AccessClock;
use tenon_store::entry::{Entry, EntryCopies, EntryRef, NewValue, ValueRef};
use tenon_store::evict::Policy;
use tenon_store::keyspace::Keyspace;
use tenon_store::types::Object;

/// Bytes in the queue from which on whoever adds to it waits before its next commands: a part of the data, so that little
/// data does not become twice as much for being saved, within limits that let a burst by.
const QUEUED_PART: usize = 32;
const QUEUED_MIN: usize = 2 << 20;
const QUEUED_MAX: usize = 32 << 20;
/// How long it waits at most: writers are slowed, not stopped, even when the disk is.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Bytes of memory for copies that lie together.
const COPIES_ROOM: usize = 64 * 1024;
/// With so many bytes they are enough: what comes next mostly has room all the same, and nothing is moved.
const COPIES_MAX: usize = COPIES_ROOM - 2048;
/// How many of these that are empty are kept for the next ones.
const SPARE_MAX: usize = 8;
/// What takes so many steps to measure is not queued: nobody waits until it is written.
const MEASURED_STEPS: usize = 10_000;

/// What was handed over to the scanner, with the database that it was in when the snapshot began.
pub(super) enum Handed {
    /// Copies of entries.
    Copies(usize, EntryCopies),
    /// An entry that is nobody else's, or whose value is shared, with what of it counts as gone.
    Entry(usize, Entry, Gone),
    /// A key as it is to stand in the file.
    Encoded(usize, Vec<u8>),
    /// All keys of a database in one shard, with about what they take.
    Keyspace(usize, Keyspace, Gone),
}

/// Bytes of what was data and is kept to be written; they count until [`Snapshot::has_freed`] is told of them.
#[must_use = "they count until they are told of"]
pub(super) struct Gone(usize);

/// What waits for the scanner.
#[derive(Default)]
struct Queue {
    handed: VecDeque<Handed>,
    /// Memory for copies, which the scanner gives back: it stays in the caches of who fills it, and nobody asks for new.
    spare: Vec<EntryCopies>,
}

/// A large value of which some slices are written. Changed only while its shard is locked.
pub(super) struct Large {
    pub(super) shard: usize,
    /// The database that the key was in when the snapshot began.
    pub(super) database: usize,
    pub(super) key: Box<[u8]>,
    /// Where to go on.
    pub(super) cursor: Cursor,
    pub(super) status: Status,
}

/// Where the rest of a large value is.
pub(super) enum Status {
    /// In its keyspace.
    InPlace,
    /// Here: its key is gone.
    TakenOut(Entry, Gone),
    /// Written already, by somebody who could not wait.
    Finished(Vec<u8>),
}

impl Large {
    fn is(&self, shard: usize, database: usize, key: &[u8]) -> bool {
        (self.shard, self.database, &*self.key) == (shard, database, key)
    }
}

/// A client that waits until the scanner has written a key.
pub(super) struct Wanted {
    pub(super) shard: usize,
    /// The database that the key was in when the snapshot began.
    pub(super) database: usize,
    pub(super) key: Box<[u8]>,
    pub(super) client: ConnectionKey,
}

/// How far a snapshot has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Keys that are written.
    pub keys: u64,
    /// Keys there were.
    pub keys_total: u64,
    /// Bytes that wait in the queue.
    pub queued: u64,
    /// The most bytes that did.
    pub queued_peak: u64,
    /// How often somebody waited for room in the queue, and for how long.
    pub stalls: u64,
    /// Microseconds of that.
    pub stalled_us: u64,
}

/// One snapshot while it is written.
pub struct Snapshot {
    pub(super) file: FileOptions,
    policy: Policy,
    clock: AccessClock,
    /// For each database, which one it was when the snapshot began: SWAPDB exchanges them.
    databases: Mutex<Vec<usize>>,
    /// How often databases were exchanged.
    pub(super) swaps: AtomicU64,
    queue: Mutex<Queue>,
    /// Bytes in the queue.
    queued: AtomicUsize,
    /// Bytes of long strings that the scanner has taken and not yet written, and those that writing one takes.
    in_hand: AtomicUsize,
    /// Bytes of what was data, beside what is in the queue: for these nobody waits.
    gone: AtomicUsize,
    /// Bytes from which on the queue is full.
    queued_max: usize,
    has_room: Condvar,
    pub(super) large: Mutex<Option<Large>>,
    pub(super) wanted: Mutex<Vec<Wanted>>,
    pub(super) cancelled: AtomicBool,
    pub(super) keys: AtomicU64,
    pub(super) keys_total: AtomicU64,
    queued_peak: AtomicUsize,
    stalls: AtomicU64,
    stalled_us: AtomicU64,
}

impl Snapshot {
    /// `memory` is how many bytes there are to save.
    pub(super) fn new(
        file: FileOptions,
        policy: Policy,
        clock: AccessClock,
        databases: usize,
        memory: usize,
    ) -> Snapshot {
        Snapshot {
            file,
            policy,
            clock,
            databases: Mutex::new((0..databases).collect()),
            swaps: AtomicU64::new(0),
            queue: Mutex::default(),
            queued: AtomicUsize::new(0),
            in_hand: AtomicUsize::new(0),
            gone: AtomicUsize::new(0),
            queued_max: (memory / QUEUED_PART).clamp(QUEUED_MIN, QUEUED_MAX),
            has_room: Condvar::new(),
            large: Mutex::default(),
            wanted: Mutex::default(),
            cancelled: AtomicBool::new(false),
            keys: AtomicU64::new(0),
            keys_total: AtomicU64::new(0),
            queued_peak: AtomicUsize::new(0),
            stalls: AtomicU64::new(0),
            stalled_us: AtomicU64::new(0),
        }
    }

    /// Has the rest left out: what is written is of no use any more.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        Progress {
            keys: self.keys.load(Ordering::Relaxed),
            keys_total: self.keys_total.load(Ordering::Relaxed),
            queued: self.queued() as u64,
            queued_peak: self.queued_peak.load(Ordering::Relaxed) as u64,
            stalls: self.stalls.load(Ordering::Relaxed),
            stalled_us: self.stalled_us.load(Ordering::Relaxed),
        }
    }

    /// Bytes that wait to be written.
    pub(crate) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Bytes that are freed when something is written: those in the queue, those that the scanner has in hand, also if they
    /// are still data, and those that were.
    pub(crate) fn freed_soon(&self) -> usize {
        self.queued() + self.in_hand.load(Ordering::Relaxed) + self.gone()
    }

    /// Bytes of what was data and is kept to be written, beside what is in the queue.
    pub(crate) fn gone(&self) -> usize {
        self.gone.load(Ordering::Relaxed)
    }

    /// Notes that the scanner has so many bytes more in hand.
    pub(super) fn takes_in_hand(&self, bytes: usize) {
        self.in_hand.fetch_add(bytes, Ordering::Relaxed);
    }

    /// And so many less.
    pub(super) fn has_done_with(&self, bytes: usize) {
        self.in_hand.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Notes that so many bytes are data no more.
    fn are_gone(&self, bytes: usize) -> Gone {
        self.gone.fetch_add(bytes, Ordering::Relaxed);
        Gone(bytes)
    }

    /// Notes that these are free, or somebody else's to count.
    pub(super) fn has_freed(&self, Gone(bytes): Gone) {
        self.gone.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The database that this one was when the snapshot began.
    pub(super) fn original(&self, database: usize) -> usize {
        // Databases are exchanged while all shards are locked, and hardly ever.
        if self.swaps.load(Ordering::Relaxed) == 0 { database } else { self.databases.lock()[database] }
    }

    /// The database that this one is now.
    pub(super) fn present(&self, original: usize) -> usize {
        let databases = self.databases.lock();
        databases.iter().position(|database| *database == original).expect("databases are exchanged, none is lost")
    }

    /// Notes that two databases were exchanged. All shards are locked.
    pub(crate) fn swap(&self, a: usize, b: usize) {
        self.databases.lock().swap(a, b);
        self.swaps.fetch_add(1, Ordering::Relaxed);
    }

    /// What is written about the use of a key.
    pub(super) fn access_of(&self, entry: EntryRef<'_>) -> Access {
        match self.policy {
            policy if policy.notes_frequency() => Access::Frequency(self.clock.frequency(entry.access())),
            policy if policy.notes_accesses() => Access::IdleSeconds(self.clock.idle_seconds(entry.access()).into()),
            _ => Access::Unsaid,
        }
    }

    /// The key as it is to stand in the file.
    pub(super) fn encode(&self, entry: EntryRef<'_>, bytes: &mut Vec<u8>) {
        write_entry(bytes, &self.file, entry, self.access_of(entry));
    }

    /// Takes over a key whose shard is locked, before it changes; what is large is written here and now. `database` is the
    /// one that it was in when the snapshot began.
    pub(super) fn take_over(&self, shard: usize, database: usize, entry: EntryRef<'_>) {
        let value = entry.value();
        let handed = match value {
            ValueRef::Bytes(_) | ValueRef::Int(_) | ValueRef::Packed(..) => return self.copy(database, entry),
            ValueRef::Object(_) if is_large(value) => {
                if self.finish_large(shard, database, entry) {
                    return;
                }
                let mut bytes = Vec::new();
                self.encode(entry, &mut bytes);
                Handed::Encoded(database, bytes)
            }
            // Long strings are shared, collections that are not large are quickly copied.
            ValueRef::Object(object) => Handed::Entry(database, shared(entry, object), Gone(0)),
        };
        self.push(handed);
    }

    /// Writes the rest of a large value, if the scanner has written some slices of it; tells whether it was so.
    fn finish_large(&self, shard: usize, database: usize, entry: EntryRef<'_>) -> bool {
        let mut large = self.large.lock();
        let Some(large) = large.as_mut().filter(|large| large.is(shard, database, entry.key())) else { return false };
        let mut rest = Vec::new();
        let mut next = write_slice(&mut rest, &self.file, entry, self.access_of(entry), &large.cursor);
        while let Some(from) = next {
            next = write_slice(&mut rest, &self.file, entry, self.access_of(entry), &from);
        }
        large.status = Status::Finished(rest);
        true
    }

    /// Takes over an entry that was taken out of its keyspace while the snapshot lacked it.
    pub(super) fn take_entry(&self, shard: usize, database: usize, entry: Entry) -> Option<Entry> {
        if !matches!(entry.view().value(), ValueRef::Object(_)) {
            self.copy(database, entry.view());
            return Some(entry);
        }
        let mut large = self.large.lock();
        match large.as_mut().filter(|large| large.is(shard, database, entry.view().key())) {
            Some(large) => large.status = self.taken_out(entry),
            None => {
                let is_queued = is_measured(entry.view().value());
                let gone = self.are_gone(if is_queued { 0 } else { entry.view().rough_memory() });
                self.push(Handed::Entry(database, entry, gone));
            }
        }
        None
    }

    fn taken_out(&self, entry: Entry) -> Status {
        let gone = self.are_gone(entry.view().rough_memory());
        Status::TakenOut(entry, gone)
    }

    /// Takes over all keys of a database in one shard, which is locked.
    pub(super) fn take_keyspace(
        &self,
        shard: usize,
        database: usize,
        mut keyspace: Keyspace,
        hash_of: impl Fn(&[u8]) -> tenon_store::hash::KeyHash,
    ) {
        let mut large = self.large.lock();
        if let Some(large) = large.as_mut().filter(|large| large.shard == shard && large.database == database)
            && matches!(large.status, Status::InPlace)
            && let Some(slot) = keyspace.find(hash_of(&large.key), &large.key)
            && keyspace.is_lacking(slot)
        {
            large.status = self.taken_out(keyspace.remove(slot));
        }
        drop(large);
        // It is not queued, or writers would wait for it.
        let gone = self.are_gone(reaper::weight_of(&keyspace));
        self.push(Handed::Keyspace(database, keyspace, gone));
    }

    fn copy(&self, database: usize, entry: EntryRef<'_>) {
        let mut queue = self.queue.lock();
        let Queue { handed, spare } = &mut *queue;
        if !matches!(handed.back(), Some(Handed::Copies(of, copies)) if *of == database && copies.bytes() < COPIES_MAX)
        {
            let copies = spare.pop().unwrap_or_else(|| EntryCopies::with_room_for(COPIES_ROOM));
            // What it takes counts, not what it holds: at the limit eviction goes on until as much will be freed as is over.
            self.add(copies.room());
            handed.push_back(Handed::Copies(database, copies));
        }
        let Some(Handed::Copies(_, copies)) = handed.back_mut() else { unreachable!("it was just looked at") };
        let before = copies.room();
        let is_copied = copies.push(entry);
        debug_assert!(is_copied, "what is no object is bytes");
        self.add(copies.room() - before);
    }

    fn push(&self, handed: Handed) {
        self.add(handed.bytes());
        self.queue.lock().handed.push_back(handed);
    }

    /// Counts bytes that wait, before they can be taken: the scanner takes off what it has written.
    fn add(&self, bytes: usize) {
        let queued = self.queued.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if queued > self.queued_peak.load(Ordering::Relaxed) {
            self.queued_peak.fetch_max(queued, Ordering::Relaxed);
        }
    }

    /// Whether there is room in the queue.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.queued() < self.queued_max
    }

    /// Takes everything out of the queue. Its bytes count until `is_written` is told of them.
    pub(super) fn take_queue(&self) -> VecDeque<Handed> {
        std::mem::take(&mut self.queue.lock().handed)
    }

    /// Gives back the memory of copies that are written.
    pub(super) fn give_back(&self, mut copies: EntryCopies) {
        copies.clear();
        let mut queue = self.queue.lock();
        // One that had to grow for a long value is not worth keeping.
        if queue.spare.len() < SPARE_MAX && copies.room() <= COPIES_ROOM {
            queue.spare.push(copies);
        }
    }

    /// Notes that something of the queue is written.
    pub(super) fn is_written(&self, bytes: usize) {
        let before = self.queued.fetch_sub(bytes, Ordering::Relaxed);
        if before >= self.queued_max && before - bytes < self.queued_max {
            // Whoever looks whether there is room does so with the queue locked.
            drop(self.queue.lock());
            self.has_room.notify_all();
        }
    }

    /// Waits until there is room in the queue. The caller holds no shard.
    pub(super) fn wait_for_room(&self) {
        if self.has_room() {
            return;
        }
        let started = Instant::now();
        let mut queue = self.queue.lock();
        while !self.has_room() {
            if self.has_room.wait_until(&mut queue, started + WAIT_MAX).timed_out() {
                break;
            }
        }
        drop(queue);
        self.stalls.fetch_add(1, Ordering::Relaxed);
        self.stalled_us.fetch_add(started.elapsed().as_micros() as u64, Ordering::Relaxed);
    }
}

impl Handed {
    /// Bytes of memory that it keeps.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Handed::Copies(_, copies) => copies.room(),
            Handed::Entry(_, entry, _) => match entry.view().value() {
                // Of a shared string at least what is changed is kept.
                value @ ValueRef::Object(object) if is_measured(value) => object.memory(Looks::ALL),
                _ => size_of::<Object>(),
            },
            Handed::Encoded(_, bytes) => bytes.len(),
            Handed::Keyspace(..) => 0,
        }
    }
}

/// Whether it is quickly told what a value takes.
fn is_measured(value: ValueRef<'_>) -> bool {
    !matches!(value, ValueRef::Object(object) if object.memory_steps() >= MEASURED_STEPS)
}

/// The same key with the same value once more.
pub(super) fn shared(entry: EntryRef<'_>, object: &Object) -> Entry {
    Entry::new(entry.key(), NewValue::Object(Box::new(object.share())), &entry.meta())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_persist::rdb::file::Form;
    use tenon_store::access::Noting;
    use tenon_store::entry::Meta;
    use tenon_wire::rdb::Compression;

    fn snapshot(memory: usize) -> Snapshot {
        let file = FileOptions { form: Form::Rdb, compression: Compression::Off, has_checksum: false };
        Snapshot::new(file, Policy::NoEviction, AccessClock::new(Noting::Clock, 0), 1, memory)
    }

    #[test]
    fn the_queue_is_full_at_a_part_of_the_data() {
        for (memory, full_at) in [(0, 2 << 20), (320 << 20, 10 << 20), (64 << 30, 32 << 20)] {
            let snapshot = snapshot(memory);
            snapshot.add(full_at - 1);
            assert!(snapshot.has_room(), "{memory}");
            snapshot.add(1);
            assert!(!snapshot.has_room(), "{memory}");
            snapshot.is_written(1);
            assert!(snapshot.has_room(), "{memory}");
        }
    }

    #[test]
    fn memory_of_copies_goes_back_and_forth() {
        let snapshot = snapshot(0);
        let value = [b'v'; 1000];
        let entry = |number: u32| Entry::new(&number.to_be_bytes(), NewValue::Bytes(&value), &Meta::default());
        for round in 0..3 {
            for number in 0..1000 {
                snapshot.take_over(0, 0, entry(number).view());
            }
            let mut keys = Vec::new();
            for handed in snapshot.take_queue() {
                let bytes = handed.bytes();
                let Handed::Copies(0, copies) = handed else { panic!("short strings are copied") };
                assert_eq!(copies.room(), COPIES_ROOM, "nothing grew");
                keys.extend(copies.iter().map(|entry| entry.key().to_vec()));
                snapshot.is_written(bytes);
                snapshot.give_back(copies);
            }
            assert!(
                keys.iter().eq((0..1000u32).map(|number| number.to_be_bytes().to_vec()).collect::<Vec<_>>().iter())
            );
            assert_eq!((snapshot.queued(), snapshot.queue.lock().spare.len()), (0, SPARE_MAX), "round {round}");
        }
        // A value that has made its memory grow is not kept.
        let mut long = EntryCopies::with_room_for(2 * COPIES_ROOM);
        assert!(long.push(entry(1).view()));
        snapshot.queue.lock().spare.clear();
        snapshot.give_back(long);
        assert!(snapshot.queue.lock().spare.is_empty());
    }
}
