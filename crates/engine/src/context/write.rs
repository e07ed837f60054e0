//! What is written of a key whose shard is locked, and who is told.

use super::KeyCx;
use super::key::accessed;
use crate::large::{LARGE_MIN, SizeBefore};
use crate::many_due::has_many_deadlines;
use crate::notify::EventClass;
use crate::worker::Worker;
use tenon_store::Slot;
use tenon_store::entry::{Entry, Marks, Meta, NewValue, ValueRef};
use tenon_store::types::{Object, ValueType};

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

impl KeyCx<'_> {
    /// Adds the key, which is not there, and counts it.
    #[inline]
    fn insert(&mut self, value: NewValue<'_>, meta: &Meta) -> Slot {
        let (hash, key, now_ms) = (self.hash, self.key, self.now_ms());
        self.worker.stats.keys.added(self.database);
        self.engine.shards.note_key(self.engine.shards.index(hash));
        self.change_deadlines(|keyspace| keyspace.insert(hash, key, value, meta, now_ms))
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
        let found = self.state.shard.used_database_mut(self.database);
        let Some((_, mut entry)) =
            found.and_then(|keyspace| keyspace.find_entry_near(self.worker.near, self.hash, self.key))
        else {
            return false;
        };
        // Without a deadline it is not past it.
        let access = written(self.touches, self.worker, entry.view().access());
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
        self.note_overwritten(slot);
        let slot = self.store_in_slot(slot, value, deadline, flags, cas);
        self.notify_displaced(displaced, ValueType::String);
        slot
    }

    /// Notes that the value in a slot which `find` gave is about to be [stored](KeyCx::store) over, where that has to be
    /// counted: a time is written with the value.
    pub fn note_overwritten(&mut self, slot: Option<Slot>) {
        if let Some(slot) = slot
            && self.worker.clock.access.notes_frequency()
        {
            self.note_write(slot);
        }
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
                let access = self.access_of_stored(slot);
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

    /// The access bits of a key whose value is stored in the slot that it has.
    #[inline]
    pub(super) fn access_of_stored(&self, slot: Slot) -> u32 {
        let (clock, before) = (self.worker.clock.access, self.entry(slot).access());
        // Who has looked for the key to change it has counted that.
        if self.touches && !clock.counts() { clock.created() } else { before }
    }

    /// Notes the key if the value that was just stored is large.
    #[inline(never)]
    fn note_new_size(&mut self) {
        let slot = self.keyspace().and_then(|keyspace| keyspace.find(self.hash, self.key));
        self.look_at_new_size(slot.expect("it was just stored"));
    }

    /// Does what removes a key and adds one, in whichever database: nobody counts keys in its middle.
    pub fn as_one_change<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        self.worker.stats.keys.begin();
        let result = work(self);
        self.worker.stats.keys.end();
        result
    }

    /// Stores an entry's value that came from another key, with its deadline, flags and access bits (RENAME, COPY,
    /// MOVE). A CAS token stays behind: this is another item.
    pub fn store_moved(&mut self, value: NewValue<'_>, meta: &Meta) {
        let deadline = meta.deadline_ms.map_or(Deadline::Clear, Deadline::At);
        // What was there is no value that changes: it goes, and the key is new.
        let slot = self.as_one_change(|cx| {
            if let Some(slot) = cx.find() {
                let displaced = cx.remove(slot);
                cx.worker.discard(displaced);
            }
            cx.store_in_slot(None, value, deadline, meta.flags, None)
        });
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

/// The bits that writing over a string leaves in its entry for this access. What a key is worth by its hits and their age a
/// write does not change: it says nothing of who reads it.
#[inline(always)]
fn written(touches: bool, worker: &mut Worker, before: u32) -> u32 {
    if touches && !worker.clock.access.notes_turnover() { accessed(worker, before) } else { before }
}
