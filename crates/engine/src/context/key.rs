//! One key whose shard is locked. Knows neither protocol nor command.

use crate::engine::Engine;
use crate::errors::CmdError;
use crate::notify::EventClass;
use crate::shards::ShardState;
use crate::worker::Worker;
use tenon_store::Slot;
use tenon_store::entry::{Entry, EntryMut, EntryRef, ValueRef};
use tenon_store::hash::KeyHash;
use tenon_store::keyspace::{Expired, Keyspace, is_past};
use tenon_store::types::{Object, ValueType};
use tenon_wire::rdb::STRING_LEN_MAX;

/// Ids of a stream's producers that whoever comes by forgets at most: there may be a million.
const FORGOTTEN_AT_ONCE: usize = 1_024;

/// How a key is used.
#[derive(Clone, Copy)]
enum Access {
    /// Its value is given to a client.
    Read,
    /// It is changed.
    Write,
}

/// One key, its shard locked, at one instant.
pub struct KeyCx<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) worker: &'a mut Worker,
    pub(crate) state: &'a mut ShardState,
    pub(crate) database: usize,
    pub(crate) hash: KeyHash,
    /// The key.
    pub key: &'a [u8],
    /// Whether reading and writing counts as an access (CLIENT NO-TOUCH).
    pub(crate) touches: bool,
}

impl Engine {
    /// Calls `visit` with one key of a database, its shard locked. Whoever may change what is no string calls
    /// [`KeyCx::hand_over`] before.
    #[inline]
    pub fn with_key<R>(
        &self,
        worker: &mut Worker,
        database: usize,
        hash: KeyHash,
        key: &[u8],
        visit: impl FnOnce(&mut KeyCx<'_>) -> R,
    ) -> R {
        let index = self.shards.index(hash);
        let mut state = self.lock_serving(worker, index);
        if state.shard.is_unfinished() {
            self.hand_over_string(worker, &mut state, database, hash, key);
        }
        let result = visit(&mut KeyCx { engine: self, worker, state: &mut state, database, hash, key, touches: true });
        self.commit(worker);
        if !worker.ready.is_empty() {
            self.release_changed(worker, index, state);
        }
        result
    }
}

impl<'a> KeyCx<'a> {
    /// The server.
    pub fn engine(&self) -> &'a Engine {
        self.engine
    }

    /// The worker's own state: clock, randomness, statistics.
    pub fn worker(&mut self) -> &mut Worker {
        self.worker
    }

    /// What is read from now on counts as an access, also where the client has said that it does not.
    pub fn touch_always(&mut self) {
        self.touches = true;
    }

    /// The present in milliseconds since the UNIX epoch; the same for a whole batch.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.worker.clock.now_ms
    }

    /// The present that deadlines are held against, in milliseconds since the UNIX epoch. While a log is read back none is
    /// past: what expired then, it says itself.
    #[inline]
    pub fn expiry_now_ms(&self) -> u64 {
        if self.worker.is_replaying { 0 } else { self.worker.clock.now_ms }
    }

    /// Whether a log is read back.
    pub fn is_replaying(&self) -> bool {
        self.worker.is_replaying
    }

    /// How long a string may become, in bytes. What a log says could be done when it was written, whatever the settings say
    /// by now.
    pub fn string_len_max(&self) -> u64 {
        if self.worker.is_replaying { STRING_LEN_MAX } else { self.engine.config.proto_max_bulk_len() }
    }

    /// The database of the key.
    pub fn database(&self) -> usize {
        self.database
    }

    /// Hands the key over to a snapshot that has not written it yet, as it is about to change. Commands need not do that:
    /// it is done for the keys that they name.
    pub fn hand_over(&mut self) {
        if self.state.shard.is_unfinished() {
            self.engine.hand_over(self.worker, self.state, self.database, self.hash, self.key);
        }
    }

    /// The same key in another database; it lies in the same shard.
    pub fn in_database(&mut self, database: usize) -> KeyCx<'_> {
        let mut other = KeyCx {
            engine: self.engine,
            worker: self.worker,
            state: self.state,
            database,
            hash: self.hash,
            key: self.key,
            touches: self.touches,
        };
        // Only what is in the session's database was handed over before the command.
        other.hand_over();
        other
    }

    #[inline(always)]
    pub(super) fn keyspace(&self) -> Option<&Keyspace> {
        self.state.shard.database(self.database)
    }

    #[inline(always)]
    pub(super) fn keyspace_mut(&mut self) -> &mut Keyspace {
        self.state.shard.database_mut(self.database)
    }

    /// Changes the keyspace, and counts how many more or fewer of its keys have deadlines then.
    #[inline(always)]
    pub(super) fn change_deadlines<R>(&mut self, change: impl FnOnce(&mut Keyspace) -> R) -> R {
        let keyspace = self.state.shard.database_mut(self.database);
        let before = keyspace.deadline_counts();
        let result = change(keyspace);
        self.worker.stats.keys.deadlines_changed(self.database, before, keyspace.deadline_counts());
        result
    }

    /// Takes the key in a slot out, and counts that it has gone.
    #[inline]
    pub(crate) fn remove(&mut self, slot: Slot) -> Entry {
        self.worker.stats.keys.removed(self.database, 1);
        self.change_deadlines(|keyspace| keyspace.remove(slot))
    }

    /// Where the key is. A key past its deadline counts as absent and is removed, unless a CLIENT PAUSE keeps all keys, when only
    /// reading commands get here; members that are past theirs are removed. Neither an access nor a statistic.
    #[inline(always)]
    pub fn find(&mut self) -> Option<Slot> {
        let (slot, entry) = self.keyspace()?.find_entry(self.hash, self.key)?;
        if is_past(entry.due_ms(), self.now_ms()) {
            return self.expire(slot);
        }
        Some(slot)
    }

    /// Calls `read`, which changes nothing, while writes wait: what is due stays where it is.
    pub fn keeping_what_is_due<R>(&mut self, read: impl FnOnce(&mut Self) -> R) -> R {
        self.worker.keeps_expired = true;
        let result = read(self);
        self.worker.keeps_expired = false;
        result
    }

    /// Where the key is, past its deadline or not: DEBUG looks at what is there.
    pub fn find_as_it_is(&self) -> Option<Slot> {
        self.keyspace()?.find(self.hash, self.key)
    }

    /// Removes what is due of the key in a slot; gives the slot if anything is left.
    ///
    /// All members that are due go, however many: what reads a collection, by rank for example, relies on it. Where very
    /// many are due a command waits before it gets here (many_due.rs), and where they are all that the key has it goes as
    /// it is.
    #[cold]
    fn expire(&mut self, slot: Slot) -> Option<Slot> {
        let (database, now_ms) = (self.database, self.now_ms());
        let entry = self.entry(slot);
        if self.worker.is_replaying {
            return Some(slot);
        }
        let is_key_due = is_past(entry.deadline_ms(), now_ms);
        if self.worker.keeps_expired {
            if self.engine.pause.is_active() && entry.is_past(now_ms) {
                return None;
            }
            if self.engine.pause.keeps_members() {
                return Some(slot);
            }
            // For who reads it is gone, and a tick deletes it: the room that the log has left is for who had begun to write.
            if is_key_due && self.engine.pause.waits_for_log() {
                return None;
            }
        }
        let is_stream = ValueType::of(entry.value()) == ValueType::Stream;
        // What a stream remembers goes when nobody reads it any more: nobody sees that before.
        if is_stream && !is_key_due && entry.is_read() {
            return Some(slot);
        }
        // A large value comes here only where nobody can wait until a snapshot has written it (key_gate.rs).
        if !is_key_due && self.keyspace().is_some_and(|keyspace| keyspace.is_lacking(slot)) && !entry.is_past(now_ms) {
            if is_stream {
                return Some(slot);
            }
            self.hand_over();
        }
        let KeyCx { engine, worker, state, .. } = self;
        let ShardState { shard, watched } = &mut **state;
        let keyspace = shard.database_mut(database);
        let before = keyspace.deadline_counts();
        let mut is_left = false;
        if is_key_due {
            worker.stats.all.expired_in_use.add(1);
            let expired = Expired::Key(keyspace.remove(slot));
            engine.has_expired(worker, watched.as_deref(), database, now_ms, expired);
        } else {
            // Who reads a stream's producers looks at the time: ticks forget the rest.
            let at_most = if is_stream { FORGOTTEN_AT_ONCE } else { usize::MAX };
            keyspace.expire_members(slot, now_ms, at_most, |expired| {
                is_left = matches!(expired, Expired::Members { .. });
                engine.has_expired(worker, watched.as_deref(), database, now_ms, expired);
            });
        }
        worker.stats.keys.deadlines_changed(database, before, keyspace.deadline_counts());
        is_left.then_some(slot)
    }

    /// The entry in a slot.
    #[inline(always)]
    pub fn entry(&self, slot: Slot) -> EntryRef<'_> {
        self.keyspace().expect("a slot is of a database that is there").entry(slot)
    }

    /// Bytes of memory that the key in a slot takes: its entry and its share of the tables.
    pub fn memory(&self, slot: Slot) -> usize {
        let keyspace = self.keyspace().expect("a slot is of a database that is there");
        self.entry(slot).memory() + keyspace.overhead().div_ceil(keyspace.len())
    }

    /// Where the key is, noted as an access; hits and misses are not counted (for commands that write).
    #[inline]
    pub fn find_for_write(&mut self) -> Option<Slot> {
        self.find_touched(Access::Write)
    }

    /// Where the key is, noted as an access and counted as a hit or a miss.
    #[inline(always)]
    pub fn find_for_read(&mut self) -> Option<Slot> {
        let slot = self.find_touched(Access::Read);
        self.looked_up(slot);
        slot
    }

    /// Where the key is, counted as a hit or a miss: for who has to see when the last access was before
    /// [`KeyCx::note_read`] notes this one.
    pub fn find_unnoted(&mut self) -> Option<Slot> {
        let slot = self.find();
        self.looked_up(slot);
        slot
    }

    /// Notes that the value in a slot is read.
    pub fn note_read(&mut self, slot: Slot) {
        self.note(slot, Access::Read);
    }

    /// Notes that somebody wanted to write to a slot, and did not.
    pub fn note_attempt(&mut self, slot: Slot) {
        self.note(slot, Access::Write);
    }

    /// Notes that somebody writes to a slot for which `find` has looked. What a key is worth by its hits and their age a write does
    /// not change: it says nothing of who reads it.
    pub fn note_write(&mut self, slot: Slot) {
        if !self.worker.clock.access.notes_turnover() {
            self.note(slot, Access::Write);
        }
    }

    fn note(&mut self, slot: Slot, kind: Access) {
        if self.touches {
            let before = self.entry(slot).access();
            let access = accessed(self.worker, before);
            match kind {
                Access::Read => self.entry_mut(slot).fetched(access),
                Access::Write => self.entry_mut(slot).set_access(access),
            }
        }
    }

    /// Where the key is, noted as an access.
    #[inline(always)]
    fn find_touched(&mut self, kind: Access) -> Option<Slot> {
        let keyspace = self.state.shard.used_database_mut(self.database)?;
        let (mut slot, mut entry) = keyspace.find_entry_near(self.worker.near, self.hash, self.key)?;
        if is_past(entry.view().due_ms(), self.worker.clock.now_ms) {
            slot = self.expire(slot)?;
            entry = self.state.shard.database_mut(self.database).entry_mut(slot);
        }
        if self.touches {
            let access = accessed(self.worker, entry.view().access());
            match kind {
                Access::Read => entry.fetched(access),
                // The clock counts seconds: most accesses of a busy key find it set.
                Access::Write if entry.view().access() == access => {}
                Access::Write => entry.set_access(access),
            }
        }
        Some(slot)
    }

    #[inline(always)]
    fn looked_up(&mut self, slot: Option<Slot>) {
        self.worker.stats.looked_up(slot.is_some());
        if slot.is_none() {
            self.notify(EventClass::KEY_MISS, "keymiss");
        }
    }

    /// The entry, for reading: an access, counted as a hit or a miss.
    #[inline]
    pub fn read(&mut self) -> Option<EntryRef<'_>> {
        let slot = self.find_for_read()?;
        Some(self.entry(slot))
    }

    /// The entry, looked at without an access (TTL, TYPE, EXISTS); counted as a hit or a miss.
    pub fn peek(&mut self) -> Option<EntryRef<'_>> {
        let slot = self.find();
        self.looked_up(slot);
        slot.map(|slot| self.entry(slot))
    }

    /// The entry, looked at from outside (OBJECT): neither an access nor, when there is none, an event.
    pub fn inspect(&mut self) -> Option<EntryRef<'_>> {
        let slot = self.find();
        self.worker.stats.looked_up(slot.is_some());
        slot.map(|slot| self.entry(slot))
    }

    /// The string, for reading.
    ///
    /// # Errors
    /// When the key holds another type.
    #[inline(always)]
    pub fn read_string(&mut self) -> Result<Option<ValueRef<'_>>, CmdError> {
        match self.find_for_read() {
            Some(slot) => self.string(slot).map(Some),
            None => Ok(None),
        }
    }

    /// The string in a slot.
    ///
    /// # Errors
    /// When it holds another type.
    #[inline(always)]
    pub fn string(&self, slot: Slot) -> Result<ValueRef<'_>, CmdError> {
        let value = self.entry(slot).value();
        match value {
            ValueRef::Bytes(_) | ValueRef::Int(_) | ValueRef::Object(Object::Shared(_) | Object::Rope(_)) => Ok(value),
            ValueRef::Packed(..) | ValueRef::Object(_) => Err(CmdError::WrongType),
        }
    }

    #[inline(always)]
    pub(crate) fn entry_mut(&mut self, slot: Slot) -> EntryMut<'_> {
        self.keyspace_mut().entry_mut(slot)
    }
}

/// The bits that an access now leaves in an entry which has these.
#[inline(always)]
pub(super) fn accessed(worker: &mut Worker, before: u32) -> u32 {
    let clock = worker.clock.access;
    if clock.counts() { clock.touched(before, worker.random()) } else { clock.created() }
}
