//! The keys of one database in one shard: a table of entries and the index of their deadlines. Knows no clock and no
//! lock; the time is passed in.

mod snapshot;

use crate::entry::{Entry, EntryMut, EntryRef, Meta, NewValue, ValueRef};
use crate::hash::KeyHash;
use crate::types::{DeadlinesRef, Object};
use snapshot::Noted;
use tenon_ds::hash_table::{Place, Slot, TagTable};
use tenon_ds::timer_wheel::{Items, TimerWheel};

/// Milliseconds to a tick of the expiry index: how much later than due a key may be found, beside the caller's pace.
pub const TICK_MS: u64 = 16;
/// A clock that is behind one that was read before by more than this has been set back; the clocks of two workers, and a
/// clock that the system slows down, differ by less.
pub const SET_BACK_MS: u64 = 1_000;
/// Stale items that the index may hold beyond as many as there are keys with a deadline.
const STALE_SLACK: usize = 32;

/// The keys of one database in one shard.
#[derive(Default)]
pub struct Keyspace {
    table: TagTable<Entry>,
    /// Made with the first deadline.
    index: Option<Box<Index>>,
    /// Keys with a deadline.
    expiring: u32,
    /// Keys with something in them that has one, and what is to be known of a snapshot.
    noted: Noted,
}

/// The index of deadlines.
struct Index {
    wheel: TimerWheel,
    /// Streams that remember something for a while: keys, but without members that expire.
    streams: u32,
}

/// How many keys of a keyspace have deadlines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadlineCounts {
    /// Keys with a deadline of their own.
    pub keys: u32,
    /// Keys with members that have one.
    pub with_members: u32,
}

/// What has gone because its time had come.
#[derive(Debug)]
pub enum Expired<'a> {
    /// A key, at its own deadline.
    Key(Entry),
    /// A member of a key of which others are left. When all that go now have been told one by one, `Members` follows.
    Member(&'a [u8]),
    /// So many members of this key, of which the first was due then; others are left.
    Members {
        /// The key as it is now.
        of: EntryRef<'a>,
        /// How many.
        count: usize,
        /// When the first of them was due, in milliseconds since the UNIX epoch.
        first_due_ms: u64,
    },
    /// The last so many members of a key, of which the first was due then, and with them the key.
    AllMembers {
        /// The key. It may still hold the members.
        of: Entry,
        /// How many.
        count: usize,
        /// When the first of them was due, in milliseconds since the UNIX epoch.
        first_due_ms: u64,
    },
}

/// What is done about a key that a snapshot lacks and of which members are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// The snapshot has it now.
    HandedOver,
    /// It stays as it is until the snapshot has it.
    Left,
}

/// When something of a key is due.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Due {
    /// The key itself.
    key_ms: Option<u64>,
    /// The first of its members, or of what a stream remembers.
    members_ms: Option<u64>,
    is_stream: bool,
}

impl Due {
    const NEVER: Due = Due { key_ms: None, members_ms: None, is_stream: false };

    #[inline]
    fn of(entry: EntryRef<'_>) -> Due {
        let members_ms = entry.members_due_ms();
        let is_stream = members_ms.is_some() && matches!(entry.value(), ValueRef::Object(Object::Stream(_)));
        Due { key_ms: entry.deadline_ms(), members_ms, is_stream }
    }

    fn first_ms(self) -> Option<u64> {
        [self.key_ms, self.members_ms].into_iter().flatten().min()
    }
}

/// The first tick at whose start the deadline has passed.
fn tick_after(deadline_ms: u64) -> u64 {
    deadline_ms / TICK_MS + 1
}

/// Whether two keys are the same: compared without a call as far as two words that overlap reach, as most keys do.
#[inline(always)]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        (Some(first_of_a), Some(first_of_b)) if a.len() <= 16 => {
            first_of_a == first_of_b && a.last_chunk::<8>() == b.last_chunk::<8>()
        }
        _ => a == b,
    }
}

/// Whether a key with this deadline is gone at `now_ms`: Redis keeps a key through the millisecond of its deadline.
#[inline]
pub fn is_past(deadline_ms: Option<u64>, now_ms: u64) -> bool {
    deadline_ms.is_some_and(|deadline| now_ms > deadline)
}

impl Keyspace {
    /// Keys, those past their deadline but not yet removed included.
    #[inline]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no key.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Keys with a deadline.
    #[inline]
    pub fn expiring(&self) -> usize {
        self.expiring as usize
    }

    /// Keys with members that have a deadline.
    #[inline]
    pub fn with_deadlines(&self) -> usize {
        self.with_members() as usize
    }

    /// How many keys have deadlines, of their own or of members.
    #[inline]
    pub fn deadline_counts(&self) -> DeadlineCounts {
        DeadlineCounts { keys: self.expiring, with_members: self.with_members() }
    }

    /// Keys with members that have a deadline. Where there is nothing of the kind the index is not looked at: it lies elsewhere.
    #[inline]
    fn with_members(&self) -> u32 {
        match self.noted.with_deadlines() {
            0 => 0,
            all => all - self.index.as_ref().map_or(0, |index| index.streams),
        }
    }

    /// Whether any key, or a member of one, has a deadline.
    pub fn has_deadlines(&self) -> bool {
        self.index.is_some()
    }

    /// Bytes of memory that table and index take, entries not counted.
    pub fn overhead(&self) -> usize {
        self.table_bytes() + self.expiry_overhead()
    }

    /// Bytes of memory that the table takes, entries not counted.
    pub fn table_bytes(&self) -> usize {
        self.table.memory()
    }

    /// Bytes of memory that the index of deadlines takes.
    pub fn expiry_overhead(&self) -> usize {
        self.index.as_ref().map_or(0, |index| size_of::<Index>() + index.wheel.memory())
    }

    /// Slots of the table, used and free.
    pub fn slots(&self) -> usize {
        self.table.capacity()
    }

    /// Where the table's slots are now, for prefetching them without a lock.
    #[inline]
    pub fn place(&self) -> Place {
        self.table.place()
    }

    /// Starts loading the entry that a search for the key will most likely compare, and gives its slot.
    #[inline]
    pub fn prefetch_entry(&self, hash: KeyHash) -> Slot {
        self.table.prefetch_element(hash.tag())
    }

    /// Where the key is, whether past its deadline or not.
    #[inline]
    pub fn find(&self, hash: KeyHash, key: &[u8]) -> Option<Slot> {
        self.table.find(hash.tag(), |entry| is_same(entry.key(), key))
    }

    /// The key's entry and where it is, whether past its deadline or not.
    #[inline]
    pub fn find_entry(&self, hash: KeyHash, key: &[u8]) -> Option<(Slot, EntryRef<'_>)> {
        self.table.find_element(hash.tag(), |entry| is_same(entry.key(), key))
    }

    /// The key's entry, to be changed where it is, and where that is, whether past its deadline or not.
    #[inline]
    pub fn find_entry_mut(&mut self, hash: KeyHash, key: &[u8]) -> Option<(Slot, EntryMut<'_>)> {
        self.table.find_element_mut(hash.tag(), |entry| is_same(entry.key(), key))
    }

    /// The same, looked for first in the slot that [`Keyspace::prefetch_entry`] gave, however long ago.
    #[inline(always)]
    pub fn find_entry_near(&mut self, near: Slot, hash: KeyHash, key: &[u8]) -> Option<(Slot, EntryMut<'_>)> {
        self.table.find_near(near, hash.tag(), |entry| is_same(entry.key(), key))
    }

    /// The entry in a slot.
    #[inline]
    pub fn entry(&self, slot: Slot) -> EntryRef<'_> {
        self.table.get(slot)
    }

    /// The entry in a slot, to be changed where it is. Deadlines change through `set_meta` only.
    #[inline]
    pub fn entry_mut(&mut self, slot: Slot) -> EntryMut<'_> {
        self.table.get_mut(slot)
    }

    /// Makes room for so many keys in all at once.
    pub fn reserve(&mut self, keys: u32) {
        self.table.reserve(keys);
    }

    /// Adds a key that is not there.
    pub fn insert(&mut self, hash: KeyHash, key: &[u8], value: NewValue<'_>, meta: &Meta, now_ms: u64) -> Slot {
        debug_assert!(self.find(hash, key).is_none(), "the key is not there yet");
        self.insert_entry(hash, Entry::new(key, value, meta), now_ms)
    }

    /// Adds an entry whose key is not there.
    pub fn insert_entry(&mut self, hash: KeyHash, mut entry: Entry, now_ms: u64) -> Slot {
        entry.view_mut().set_snapshot_bit(self.noted.epoch());
        let due = Due::of(entry.view());
        let slot = self.table.insert(hash.tag(), entry);
        self.note_due(hash.tag(), Due::NEVER, due, now_ms);
        slot
    }

    /// Gives a key another value and other meta data; gives back the entry that it replaced, if it could not be
    /// written where it was. The slot stays the key's.
    #[inline]
    pub fn overwrite(&mut self, slot: Slot, value: NewValue<'_>, meta: &Meta, now_ms: u64) -> Option<Entry> {
        let mut entry = self.table.get_mut(slot);
        let before = Due::of(entry.view());
        let replaced = match entry.try_overwrite(value, meta) {
            Ok(()) => None,
            Err(value) => {
                let mut entry = Entry::new(self.table.get(slot).key(), value, meta);
                entry.view_mut().set_snapshot_bit(self.noted.epoch());
                let mut replaced = self.table.replace(slot, entry);
                self.note_removed(&mut replaced);
                Some(replaced)
            }
        };
        self.due_changed(slot, before, now_ms);
        replaced
    }

    /// Makes a short string longer by zero bytes, where it is if its block has room for so many; it stays a short one.
    pub fn grow(&mut self, slot: Slot, len: usize) {
        if !self.table.get_mut(slot).try_grow(len) {
            // The snapshot's bit goes with it: whoever changes a key has handed it over before.
            let grown = Entry::grown(self.table.get(slot), len);
            drop(self.table.replace(slot, grown));
        }
    }

    /// Gives a key other meta data; the value stays.
    pub fn set_meta(&mut self, slot: Slot, meta: &Meta, now_ms: u64) {
        let mut entry = self.table.get_mut(slot);
        let before = Due::of(entry.view());
        if !entry.try_set_meta(meta) {
            self.reshape(slot, meta);
        }
        self.due_changed(slot, before, now_ms);
    }

    /// Notes when the first member of a collection expires, after the object has changed where it is; tells whether that
    /// is another time than before.
    pub fn members_changed(&mut self, slot: Slot, now_ms: u64) -> bool {
        let mut entry = self.table.get_mut(slot);
        let before = Due::of(entry.view());
        let members_ms = entry.view().value().members_due_ms();
        if before.members_ms == members_ms {
            return false;
        }
        if !entry.write_members_due(members_ms) {
            let meta = entry.view().meta();
            self.reshape(slot, &meta);
        }
        self.due_changed(slot, before, now_ms);
        true
    }

    /// Moves an entry into a new allocation that has the fields for `meta` and for the deadlines of members.
    fn reshape(&mut self, slot: Slot, meta: &Meta) {
        let entry = self.table.get(slot);
        // It is the same key with the same value: whether a snapshot has it does not change.
        let snapshot_bit = entry.snapshot_bit();
        match entry.value() {
            ValueRef::Bytes(bytes) => {
                let is_raw = entry.is_raw();
                let entry = Entry::new(entry.key(), NewValue::Bytes(bytes), meta);
                drop(self.table.replace(slot, entry));
                if is_raw {
                    self.table.get_mut(slot).mark_raw();
                }
            }
            ValueRef::Int(int) => {
                let entry = Entry::new(entry.key(), NewValue::Int(int), meta);
                drop(self.table.replace(slot, entry));
            }
            ValueRef::Packed(form, bytes) => {
                let entry = Entry::new(entry.key(), NewValue::Packed(form, bytes), meta);
                drop(self.table.replace(slot, entry));
            }
            ValueRef::Object(_) => {
                // The object moves over: a stand-in takes the key's place for a moment.
                let key = entry.key().to_vec();
                let old = self.table.replace(slot, Entry::new(&key, NewValue::Int(0), &Meta::default()));
                let object = old.into_object().expect("the value is an object");
                drop(self.table.replace(slot, Entry::new(&key, NewValue::Object(object), meta)));
            }
        }
        self.table.get_mut(slot).set_snapshot_bit(snapshot_bit);
    }

    /// Takes a key out. Its entry says whether a snapshot lacks it ([`Entry::is_lacking`]).
    pub fn remove(&mut self, slot: Slot) -> Entry {
        let mut entry = self.table.remove(slot);
        self.note_removed(&mut entry);
        let due = Due::of(entry.view());
        if due != Due::NEVER {
            self.count_due(due, Due::NEVER);
            self.drop_idle_index();
        }
        entry
    }

    /// Keeps counts and index in step with a key's entry, whose deadlines may have changed.
    #[inline]
    fn due_changed(&mut self, slot: Slot, before: Due, now_ms: u64) {
        let after = Due::of(self.table.get(slot));
        if before != after {
            self.note_due(self.table.tag(slot), before, after, now_ms);
        }
    }

    fn count_due(&mut self, before: Due, after: Due) {
        let changed = |count: u32, before: Option<u64>, after: Option<u64>| {
            count + u32::from(after.is_some()) - u32::from(before.is_some())
        };
        self.expiring = changed(self.expiring, before.key_ms, after.key_ms);
        let with_deadlines = changed(self.noted.with_deadlines(), before.members_ms, after.members_ms);
        self.noted.set_with_deadlines(with_deadlines);
        if before.is_stream != after.is_stream {
            let index = self.index.as_mut().expect("there is one while anything is due");
            index.streams = index.streams + u32::from(after.is_stream) - u32::from(before.is_stream);
        }
    }

    /// Keeps counts and index in step with deadlines that changed.
    fn note_due(&mut self, tag: u16, before: Due, after: Due, now_ms: u64) {
        let Some(due_ms) = after.first_ms() else {
            self.count_due(before, after);
            return self.drop_idle_index();
        };
        if self.index.is_none() {
            // The first key's tag is as good as a random phase: wheels of different shards should differ.
            self.index = Some(Box::new(Index { wheel: TimerWheel::new(now_ms / TICK_MS, tag), streams: 0 }));
        }
        self.count_due(before, after);
        let wheel = &mut self.index.as_mut().expect("it was made").wheel;
        let tick = tick_after(due_ms);
        if before.first_ms().is_none_or(|before| !wheel.same_bucket(tick_after(before), tick)) {
            wheel.insert(tick, tag);
            if wheel.len() > 2 * (self.expiring as usize + self.noted.with_deadlines() as usize) + STALE_SLACK {
                self.rebuild_wheel(now_ms);
            }
        }
    }

    fn drop_idle_index(&mut self) {
        if self.expiring == 0 && self.noted.with_deadlines() == 0 {
            self.index = None;
        }
    }

    /// Makes the index anew without its stale items.
    fn rebuild_wheel(&mut self, now_ms: u64) {
        let Some(index) = &mut self.index else { return };
        let mut wheel = TimerWheel::new(now_ms / TICK_MS, index.wheel.phase());
        Deadlines(&self.table).each(&mut |tag, tick| wheel.insert(tick, tag));
        index.wheel = wheel;
    }

    /// The end of the tick in which the first key or member is due, in milliseconds: [`TICK_MS`] behind its deadline at most;
    /// `None` when none has one.
    pub fn next_due_ms(&self) -> Option<u64> {
        self.index.as_ref()?.wheel.next_tick().map(|tick| tick.saturating_mul(TICK_MS))
    }

    /// Takes out keys and members that are past their deadlines, about `budget` of them, and tells `expired` of each key
    /// that this is about; tells whether none is left that may go. Before members go of a key that a snapshot lacks `ahead`
    /// is asked: it hands the key over to the snapshot, or wants it left as it is until a later time. So does who reads a key
    /// without its shard.
    pub fn expire_due(
        &mut self,
        now_ms: u64,
        budget: usize,
        mut ahead: impl FnMut(EntryRef<'_>) -> Ahead,
        mut expired: impl FnMut(Expired<'_>),
    ) -> bool {
        let is_set_back = |index: &Index| index.wheel.ticks_ahead_of(now_ms / TICK_MS) > SET_BACK_MS / TICK_MS;
        if self.index.as_deref().is_some_and(is_set_back) {
            // What is due before the wheel's present would come out once that is reached again.
            self.rebuild_wheel(now_ms);
        }
        let Some(index) = &mut self.index else { return true };
        let mut due = Vec::new();
        let mut done = index.wheel.advance(now_ms / TICK_MS, budget, &Deadlines(&self.table), &mut due);
        let mut left = budget;
        for tag in due {
            while let Some(slot) = {
                let mut slots = self.table.slots_of_tag(tag);
                slots.find(|&slot| is_past(self.table.get(slot).due_ms(), now_ms))
            } {
                if is_past(self.table.get(slot).deadline_ms(), now_ms) {
                    let entry = self.remove(slot);
                    left = left.saturating_sub(1);
                    expired(Expired::Key(entry));
                } else if left == 0 {
                    // Before `ahead` is asked: what was handed over is marked below.
                    self.come_again(slot);
                    done = false;
                    break;
                } else if self.table.get(slot).is_read()
                    || self.is_lacking(slot) && ahead(self.table.get(slot)) == Ahead::Left
                {
                    self.come_again(slot);
                    break;
                } else {
                    self.mark_written(slot);
                    left -= self.expire_members(slot, now_ms, left, &mut expired).min(left);
                }
            }
        }
        done
    }

    /// Has the wheel, which has given a key's tag away, take it back, to come out at once when time goes on.
    fn come_again(&mut self, slot: Slot) {
        let tick = tick_after(self.table.get(slot).due_ms().expect("it is past"));
        self.index.as_mut().expect("a key is due").wheel.insert(tick, self.table.tag(slot));
    }

    /// Takes members of a key out that are past their deadlines, at most so many, and tells `expired`; tells how many
    /// there were. There is one at least. When all of the key's members are due the key goes as it is, at the cost of one.
    pub fn expire_members(
        &mut self,
        slot: Slot,
        now_ms: u64,
        at_most: usize,
        mut expired: impl FnMut(Expired<'_>),
    ) -> usize {
        let mut entry = self.table.get_mut(slot);
        let first_due_ms = entry.view().members_due_ms().expect("a member is due");
        if entry.view().value().are_members_past(now_ms) {
            let count = entry.view().value().deadlines().map_or(0, DeadlinesRef::len);
            expired(Expired::AllMembers { of: self.remove(slot), count, first_due_ms });
            return 1;
        }
        let mut visit = |member: &[u8]| expired(Expired::Member(member));
        let count = match entry.object() {
            Some(object) => {
                let count = object.take_past_members(now_ms, at_most, &mut visit);
                self.members_changed(slot, now_ms);
                count
            }
            None => self.expire_packed_members(slot, now_ms, at_most, &mut visit),
        };
        expired(Expired::Members { of: self.table.get(slot), count, first_due_ms });
        count
    }

    #[inline(never)]
    fn expire_packed_members(
        &mut self,
        slot: Slot,
        now_ms: u64,
        at_most: usize,
        visit: &mut dyn FnMut(&[u8]),
    ) -> usize {
        let entry = self.table.get(slot);
        let ValueRef::Packed(form, bytes) = entry.value() else {
            unreachable!("collections alone have members with deadlines")
        };
        debug_assert!(!self.is_lacking(slot), "a snapshot has it before it changes");
        let meta = entry.meta();
        let mut object = Object::of_packed(form, bytes.to_vec());
        let count = object.take_past_members(now_ms, at_most, visit);
        object.store(|value| drop(self.overwrite(slot, value, &meta, now_ms)));
        count
    }

    /// Calls `visit` for entries with tags from `from` on until at least `count` are visited; gives the tag to go on
    /// from, `None` at the end. A key that stays in the keyspace between the steps of a scan is visited exactly once.
    pub fn scan(&self, from: u16, count: usize, mut visit: impl FnMut(EntryRef<'_>)) -> Option<u16> {
        self.table.scan(from, count, |_, entry| visit(entry))
    }

    /// Moves the entries out of memory that is to be given back (`slab::start_draining`): a look at every one's place.
    pub fn relocate_entries(&mut self) {
        self.table.relocate_elements(|entry| entry.is_draining(), Entry::moved);
    }

    /// Moves table and index out of memory that is to be given back.
    pub fn relocate_table(&mut self) {
        self.table.relocate_slots();
        if let Some(index) = &mut self.index {
            index.wheel.relocate();
        }
    }

    /// Whether the key in a slot lies in memory that is to be given back.
    pub fn is_draining(&self, slot: Slot) -> bool {
        self.table.get(slot).is_draining()
    }

    /// Some key, chosen by a random number.
    pub fn sample(&self, random: u32) -> Option<Slot> {
        self.table.sample(random)
    }

    /// The slots of keys in the order of their tags, from a tag on.
    pub fn slots_from(&self, tag: u16) -> impl Iterator<Item = Slot> + '_ {
        self.table.slots_from(tag)
    }

    /// The tag of the key in a slot.
    pub fn tag(&self, slot: Slot) -> u16 {
        self.table.tag(slot)
    }

    /// Starts loading the entry in a slot.
    #[inline]
    pub fn prefetch_slot(&self, slot: Slot) {
        self.table.prefetch_slot(slot);
    }

    /// The slots of all keys with a deadline, found by looking at every key.
    pub fn volatile_slots(&self) -> Vec<Slot> {
        let mut slots = Vec::new();
        if self.expiring > 0 {
            self.table.scan(0, usize::MAX, |slot, entry| slots.extend(entry.deadline_ms().map(|_| slot)));
        }
        slots
    }
}

/// What the expiry index asks of the table.
struct Deadlines<'a>(&'a TagTable<Entry>);

impl Items for Deadlines<'_> {
    fn ticks_of(&self, tag: u16, visit: &mut dyn FnMut(u64)) {
        for slot in self.0.slots_of_tag(tag) {
            if let Some(due_ms) = self.0.get(slot).due_ms() {
                visit(tick_after(due_ms));
            }
        }
    }

    fn each(&self, visit: &mut dyn FnMut(u16, u64)) {
        self.0.scan(0, usize::MAX, |slot, entry| {
            if let Some(due_ms) = entry.due_ms() {
                visit(self.0.tag(slot), tick_after(due_ms));
            }
        });
    }
}
