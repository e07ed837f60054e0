//! One key whose shard is locked. Knows neither protocol nor command.

use crate::engine::Engine;
use crate::errors::CmdError;
use crate::large::{LARGE_MIN, SizeBefore};
use crate::many_due::has_many_deadlines;
use crate::notify::EventClass;
use crate::shards::ShardState;
use crate::worker::Worker;
use tenon_store::Slot;
use tenon_store::entry::{Entry, EntryMut, EntryRef, Marks, Meta, NewValue, ValueRef};
use tenon_store::hash::KeyHash;
use tenon_store::keyspace::{Expired, Keyspace, is_past};
use tenon_store::types::{Object, ValueType};
use tenon_wire::rdb::STRING_LEN_MAX;

/// What a write does to the key's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// It stays.
    Keep,
    /// The key no longer expires.
    Clear,
    /// The key expires then, in milliseconds since the UNIX epoch.
    At(u64),
}

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

    /// Adds the key, which is not there, and counts it.
    #[inline]
    fn insert(&mut self, value: NewValue<'_>, meta: &Meta) -> Slot {
        let (hash, key, now_ms) = (self.hash, self.key, self.now_ms());
        self.worker.stats.keys.added(self.database);
        self.engine.shards.note_key(self.engine.shards.index(hash));
        self.change_deadlines(|keyspace| keyspace.insert(hash, key, value, meta, now_ms))
    }

    /// Changes the keyspace, and counts how many more or fewer of its keys have deadlines then.
    #[inline(always)]
    fn change_deadlines<R>(&mut self, change: impl FnOnce(&mut Keyspace) -> R) -> R {
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

    /// Where the key is. A key past its deadline counts as absent and is removed, as are its members that are past theirs,
    /// unless a CLIENT PAUSE keeps all data as it is, when only reading commands get here. Neither an access nor a
    /// statistic.
    #[inline(always)]
    pub fn find(&mut self) -> Option<Slot> {
        let (slot, entry) = self.keyspace()?.find_entry(self.hash, self.key)?;
        if is_past(entry.due_ms(), self.now_ms()) {
            return self.expire(slot);
        }
        Some(slot)
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
        if self.worker.keeps_expired && self.engine.pause.is_active() {
            return (!entry.is_past(now_ms)).then_some(slot);
        }
        let is_key_due = is_past(entry.deadline_ms(), now_ms);
        // A large value comes here only where nobody can wait until a snapshot has written it (key_gate.rs).
        if !is_key_due && self.keyspace().is_some_and(|keyspace| keyspace.is_lacking(slot)) && !entry.is_past(now_ms) {
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
            keyspace.expire_members(slot, now_ms, usize::MAX, |expired| {
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
        if self.touches {
            let clock = self.worker.clock.access;
            let mut access = clock.created();
            if clock.counts() {
                access = clock.touched(self.entry(slot).access(), self.worker.random());
            }
            self.entry_mut(slot).fetched(access);
        }
    }

    /// Where the key is, noted as an access.
    #[inline(always)]
    fn find_touched(&mut self, kind: Access) -> Option<Slot> {
        let (mut slot, mut entry) =
            self.state.shard.used_database_mut(self.database)?.find_entry_mut(self.hash, self.key)?;
        if is_past(entry.view().due_ms(), self.worker.clock.now_ms) {
            slot = self.expire(slot)?;
            entry = self.state.shard.database_mut(self.database).entry_mut(slot);
        }
        if self.touches {
            let clock = self.worker.clock.access;
            let mut access = clock.created();
            if clock.counts() {
                access = clock.touched(entry.view().access(), self.worker.random());
            }
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
    pub(super) fn entry_mut(&mut self, slot: Slot) -> EntryMut<'_> {
        self.keyspace_mut().entry_mut(slot)
    }

    /// Stores a string, whether the key is there or not. memcached's flags go back to 0, a CAS token is void.
    #[inline(always)]
    pub fn set(&mut self, value: NewValue<'_>, deadline: Deadline) {
        if let NewValue::Bytes(bytes) = value
            && deadline == Deadline::Clear
            && self.write_over(bytes)
        {
            self.notify(EventClass::OVERWRITTEN, "overwritten");
            return;
        }
        self.set_anything(value, deadline);
    }

    /// Writes a short string over one of its length in an entry that has nothing beside key and value, if the key is
    /// there with such a one; tells whether it was. It is what [`KeyCx::set`] finds most often, and needs one look.
    #[inline(always)]
    fn write_over(&mut self, bytes: &[u8]) -> bool {
        let writing = self.writing();
        let found = self.state.shard.used_database_mut(self.database);
        let Some((_, mut entry)) = found.and_then(|keyspace| keyspace.find_entry_mut(self.hash, self.key)) else {
            return false;
        };
        // Without a deadline it is not past it.
        let access = writing.unwrap_or(entry.view().access());
        let is_done = entry.try_write_over(bytes, access);
        if is_done {
            self.changed();
        }
        is_done
    }

    #[inline(never)]
    fn set_anything(&mut self, value: NewValue<'_>, deadline: Deadline) {
        let slot = self.find();
        self.store_over(slot, value, deadline, 0, None);
    }

    /// Stores a string as [`KeyCx::store_in_slot`] does, in the place of all that was there.
    pub fn store_over(
        &mut self,
        slot: Option<Slot>,
        value: NewValue<'_>,
        deadline: Deadline,
        flags: u32,
        cas: Option<u64>,
    ) -> Slot {
        let displaced = self.displaced(slot);
        let slot = self.store_in_slot(slot, value, deadline, flags, cas);
        self.notify_displaced(displaced, ValueType::String);
        slot
    }

    /// The bits that a write leaves in the entry for its access; `None`: they stay.
    #[inline(always)]
    fn writing(&self) -> Option<u32> {
        let clock = self.worker.clock.access;
        (self.touches && !clock.counts()).then(|| clock.created())
    }

    /// Stores a value in the key's slot, which `find` or its kin gave just before, or as a new key where there is none.
    #[inline]
    pub fn store(&mut self, slot: Option<Slot>, value: NewValue<'_>, deadline: Deadline, flags: u32, cas: Option<u64>) {
        self.store_in_slot(slot, value, deadline, flags, cas);
    }

    /// Stores a value as [`KeyCx::store`] does, and gives the slot that it is in.
    pub fn store_in_slot(
        &mut self,
        slot: Option<Slot>,
        value: NewValue<'_>,
        deadline: Deadline,
        flags: u32,
        cas: Option<u64>,
    ) -> Slot {
        let now_ms = self.now_ms();
        let old_due_ms = slot.and_then(|slot| self.entry(slot).due_ms());
        let may_be_large = match value {
            NewValue::Object(_) => true,
            NewValue::Bytes(bytes) => bytes.len() >= LARGE_MIN,
            NewValue::Int(_) | NewValue::Packed(..) => false,
        };
        let deadline_ms = match deadline {
            Deadline::Keep => slot.and_then(|slot| self.entry(slot).deadline_ms()),
            Deadline::Clear => None,
            Deadline::At(ms) => Some(ms),
        };
        let slot = match slot {
            Some(slot) => {
                let access = self.writing().unwrap_or(self.entry(slot).access());
                let meta = Meta { deadline_ms, cas, flags, access, marks: Marks::NONE };
                let replaced = self.change_deadlines(|keyspace| keyspace.overwrite(slot, value, &meta, now_ms));
                if let Some(replaced) = replaced {
                    self.worker.discard(replaced);
                }
                slot
            }
            None => {
                let access = self.engine.access_of_new(self.worker, self.hash);
                let meta = Meta { deadline_ms, cas, flags, access, marks: Marks::NONE };
                let slot = self.insert(value, &meta);
                self.notify(EventClass::NEW, "new");
                slot
            }
        };
        self.due_changed(slot, old_due_ms);
        if may_be_large {
            self.note_new_size();
        }
        self.changed();
        slot
    }

    /// Notes the key if the value that was just stored is large.
    #[inline(never)]
    fn note_new_size(&mut self) {
        let slot = self.keyspace().and_then(|keyspace| keyspace.find(self.hash, self.key));
        self.look_at_size(slot.expect("it was just stored"));
    }

    /// Stores an entry's value that came from another key, with its deadline, flags and access bits (RENAME, COPY,
    /// MOVE). A CAS token stays behind: this is another item.
    pub fn store_moved(&mut self, value: NewValue<'_>, meta: &Meta) {
        let deadline = meta.deadline_ms.map_or(Deadline::Clear, Deadline::At);
        // What was there is no value that changes: it goes, and the key is new.
        self.worker.stats.keys.begin();
        if let Some(slot) = self.find() {
            let displaced = self.remove(slot);
            self.worker.discard(displaced);
        }
        let slot = self.store_in_slot(None, value, deadline, meta.flags, None);
        self.worker.stats.keys.end();
        self.entry_mut(slot).set_access(meta.access);
    }

    /// Adds the key, which is not there, as a file has it: nobody is told, and nothing is counted.
    pub(crate) fn insert_loaded(&mut self, value: NewValue<'_>, meta: &Meta) {
        let slot = self.insert(value, meta);
        self.due_changed(slot, None);
        if let ValueRef::Object(_) = self.entry(slot).value() {
            self.look_at_size(slot);
        }
    }

    /// Gives the key another value in place of an equal one of the same type: deadline and flags stay, a CAS token is
    /// void.
    pub fn rewrite(&mut self, slot: Slot, value: NewValue<'_>) {
        let flags = self.entry(slot).flags();
        self.store(Some(slot), value, Deadline::Keep, flags, None);
    }

    /// Changes the integer in a slot; deadline and flags stay.
    #[inline]
    pub fn rewrite_int(&mut self, slot: Slot, value: i64) {
        let mut entry = self.entry_mut(slot);
        if matches!(entry.view().value(), ValueRef::Int(_)) {
            entry.set_int(value);
            entry.clear_cas();
            self.changed();
        } else {
            self.rewrite(slot, NewValue::Int(value));
        }
    }

    /// Changes the object in a slot where it is.
    ///
    /// # Panics
    /// When the value is none.
    pub fn change_object<R>(&mut self, slot: Slot, change: impl FnOnce(&mut Object) -> R) -> R {
        let mut entry = self.entry_mut(slot);
        let object = entry.object().expect("the value is an object");
        let size = SizeBefore::now();
        let result = change(object);
        entry.clear_cas();
        self.note_size(slot, size);
        self.changed();
        result
    }

    /// Changes the bytes of a short string where they are; tells whether the value is one.
    pub fn change_inline(&mut self, slot: Slot, change: impl FnOnce(&mut [u8])) -> bool {
        let mut entry = self.entry_mut(slot);
        let Some(bytes) = entry.inline_bytes() else { return false };
        change(bytes);
        entry.clear_cas();
        self.changed();
        true
    }

    /// Notes that the string in a slot was changed since it was set, which Redis shows in OBJECT ENCODING.
    pub fn mark_raw(&mut self, slot: Slot) {
        self.entry_mut(slot).mark_raw();
    }

    /// Sets when the key in a slot expires.
    pub fn set_deadline(&mut self, slot: Slot, deadline_ms: Option<u64>) {
        let before = self.entry(slot).meta();
        self.set_meta(slot, &Meta { deadline_ms, ..before });
        self.changed();
    }

    /// Sets the access clock or frequency and memcached's data without changing the value: no write to anyone.
    pub fn set_meta(&mut self, slot: Slot, meta: &Meta) {
        let now_ms = self.now_ms();
        let before = self.entry(slot).due_ms();
        self.change_deadlines(|keyspace| keyspace.set_meta(slot, meta, now_ms));
        self.due_changed(slot, before);
    }

    /// Takes the key in a slot out. Drop it with `discard` when its value may be large.
    pub fn take(&mut self, slot: Slot) -> Entry {
        let entry = self.remove(slot);
        debug_assert!(!entry.is_lacking(), "who takes a key out hands it over before");
        self.changed();
        entry
    }

    /// Removes the key if it is there; tells whether it was.
    pub fn delete(&mut self) -> bool {
        let Some(slot) = self.find() else { return false };
        let entry = self.take(slot);
        self.worker.discard(entry);
        true
    }

    /// memcached's CAS token of the item in a slot, given out now if it has none; 0 where no item has one.
    pub fn cas_token(&mut self, slot: Slot) -> u64 {
        if let Some(token) = self.entry(slot).cas() {
            return token;
        }
        if !self.engine.config.memcached_cas() {
            return 0;
        }
        let token = self.engine.next_cas();
        self.set_cas(slot, token);
        token
    }

    /// Gives the item in a slot this CAS token.
    pub fn set_cas(&mut self, slot: Slot, token: u64) {
        let meta = Meta { cas: Some(token), ..self.entry(slot).meta() };
        self.set_meta(slot, &meta);
    }

    /// Sets what memcached's meta commands note of the value in a slot, and nothing else.
    pub fn set_marks(&mut self, slot: Slot, marks: Marks) {
        self.entry_mut(slot).set_marks(marks);
    }

    /// Sees to it that what is due of the key in a slot is found in time, where that was another time before.
    #[inline]
    fn due_changed(&mut self, slot: Slot, before: Option<u64>) {
        let after = self.entry(slot).due_ms();
        if let Some(due_ms) = after
            && before != after
        {
            self.engine.shards.note_due(self.engine.shards.index(self.hash), due_ms);
            self.note_many_deadlines(slot);
        }
    }

    /// Notes it of the shard if the key in a slot has very many members with deadlines.
    #[inline]
    fn note_many_deadlines(&mut self, slot: Slot) {
        if has_many_deadlines(self.entry(slot).value()) {
            self.engine.shards.note_many_deadlines(&mut self.state.shard);
        }
    }

    /// Notes when the first member of the collection in a slot expires, after its object has changed where it is.
    #[inline]
    pub(super) fn members_changed(&mut self, slot: Slot) {
        let (before, now_ms) = (self.entry(slot).due_ms(), self.now_ms());
        if self.change_deadlines(|keyspace| keyspace.members_changed(slot, now_ms)) {
            self.due_changed(slot, before);
        }
        self.note_many_deadlines(slot);
    }

    /// Counts so many changes (for save points) beside the one that every change of a key is, or fewer.
    pub fn count_changes(&mut self, more: i64) {
        self.worker.stats.all.changes.add(more as u64);
    }

    /// What every change of a key entails beside the change.
    #[inline]
    pub(super) fn changed(&mut self) {
        debug_assert!(!self.is_lacking(), "who changes a key hands it over before");
        self.worker.stats.changed();
        self.tell_others();
    }

    /// Whether a snapshot has not written the key yet.
    fn is_lacking(&self) -> bool {
        let found = self.keyspace().and_then(|keyspace| Some((keyspace, keyspace.find(self.hash, self.key)?)));
        found.is_some_and(|(keyspace, slot)| keyspace.is_lacking(slot))
    }

    /// Has those look again who wait for the key.
    pub(super) fn wake_waiting(&mut self) {
        if let Some(watched) = &self.state.watched {
            watched.wake(self.database, self.key, &mut self.worker.ready);
        }
    }

    /// Tells those who watch the key, or keep what they have read of it.
    #[inline]
    fn tell_others(&mut self) {
        if let Some(watched) = &self.state.watched {
            watched.changed(self.database, self.key, &mut self.worker.ready);
        }
        if self.engine.tracking.is_active() {
            self.engine.key_changed(self.worker, self.hash, self.key);
        }
    }
}
