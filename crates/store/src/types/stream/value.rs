//! A stream: entries, and the groups that read them together. Knows no command.

use super::block::{Block, Entry};
use super::counters::Counters;
use super::entries::{Entries, TakenBlocks, Trim};
use super::group::{COUNT_MAX, Group};
use super::id::StreamId;
use super::limits::StreamLimits;
use super::producers::{ProducerCounts, ProducerLimits, Producers};
use crate::types::{Collection, Object, PackedForm, ValueType};
use std::collections::BTreeMap;
use std::ops::{Bound, RangeInclusive};
use tenon_ds::looks::Looks;
use tenon_ds::packed::Item;
use tenon_ds::progress;

/// What becomes of what groups note of an entry that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum References {
    /// It stays.
    Keep,
    /// It goes, too, even where the entry has gone before.
    Delete,
    /// An entry goes only when no group needs it any more.
    WaitForAcknowledgement,
}

/// What became of an entry that was to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// There was none.
    Missing,
    /// There was none, but a group waited for it to be acknowledged, and does no more.
    Forgotten,
    /// It is gone.
    Deleted,
    /// A group needs it.
    Needed,
}

/// What a stream knows beside its entries and groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamState {
    /// The highest id ever added.
    pub last_id: StreamId,
    /// The highest id that was deleted, but not by trimming; the lowest id while there is none.
    pub max_deleted_id: StreamId,
    /// How many entries were ever added.
    pub entries_added: u64,
}

/// A stream.
///
/// It can be empty, and is always an object of its own.
///
/// Whoever writes it somewhere reads `state`, `blocks` and `groups`; whoever has read it makes a default one,
/// calls `set_state`, `begin_block` and `restore_entry` in the order of the ids, `add_group` with groups made by
/// `Group::new`, `add_consumer` and `assign`, and `set_producer_limits`, `remember` and `set_producer_counts`.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    pub(super) entries: Entries,
    pub(super) state: StreamState,
    pub(super) groups: BTreeMap<Box<[u8]>, Group>,
    /// Made with the first entry that has an id of its producer's, or with limits that are not the usual ones.
    producers: Option<Box<Producers>>,
}

impl Collection for Stream {
    const VALUE_TYPE: ValueType = ValueType::Stream;

    type View<'a> = &'a Stream;

    fn view(&self) -> &Stream {
        self
    }

    fn view_packed(_form: PackedForm, _bytes: &[u8]) -> Option<&Stream> {
        None
    }

    fn from_packed(_form: PackedForm, _bytes: Vec<u8>) -> Option<Stream> {
        None
    }

    fn packs_into(&self, _at_most: usize) -> bool {
        false
    }

    fn pack<R>(self, _put: impl FnOnce(PackedForm, &[u8]) -> R) -> (R, Vec<u8>) {
        panic!("no stream is packed")
    }

    fn into_packed_bytes(self) -> Option<Vec<u8>> {
        None
    }

    fn of_object(object: &Object) -> Option<&Stream> {
        if let Object::Stream(stream) = object { Some(stream) } else { None }
    }

    fn of_object_mut(object: &mut Object) -> Option<&mut Stream> {
        if let Object::Stream(stream) = object { Some(stream) } else { None }
    }

    fn into_object(self) -> Object {
        Object::Stream(Box::new(self))
    }

    fn is_empty(&self) -> bool {
        // A stream without entries still knows its last id and its groups.
        false
    }

    fn expires_in_part(&self) -> bool {
        self.producers.is_some()
    }
}

impl Stream {
    /// How many entries there are.
    #[expect(clippy::len_without_is_empty, reason = "`Collection` has it, with another meaning")]
    pub fn len(&self) -> u64 {
        self.entries.len()
    }

    /// What the stream knows beside its entries and groups.
    pub fn state(&self) -> StreamState {
        self.state
    }

    /// Changes what the stream knows beside its entries and groups. No entry has a higher id than the last.
    pub fn set_state(&mut self, state: StreamState) {
        if state.last_id < self.state.last_id {
            // Ids that trimming took may come again.
            self.groups.values_mut().for_each(Group::look_anew);
        }
        self.state = StreamState { entries_added: state.entries_added.min(COUNT_MAX), ..state };
    }

    /// The highest id ever added.
    pub fn last_id(&self) -> StreamId {
        self.state.last_id
    }

    /// The first entry.
    pub fn first(&self) -> Option<Entry<'_>> {
        self.entries.range(StreamId::MIN, StreamId::MAX).next()
    }

    /// The last entry.
    pub fn last(&self) -> Option<Entry<'_>> {
        self.entries.range_back(StreamId::MIN, StreamId::MAX).next()
    }

    /// The entry with this id.
    pub fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        self.entries.get(id)
    }

    /// The entries with these ids, in order.
    pub fn range(&self, ids: RangeInclusive<StreamId>) -> impl Iterator<Item = Entry<'_>> {
        self.entries.range(*ids.start(), *ids.end())
    }

    /// The entries with these ids, the last first.
    pub fn range_back(&self, ids: RangeInclusive<StreamId>) -> impl Iterator<Item = Entry<'_>> {
        self.entries.range_back(*ids.start(), *ids.end())
    }

    /// The entries behind an id, in order.
    pub fn behind(&self, id: StreamId) -> impl Iterator<Item = Entry<'_>> {
        // Almost always what a reader has seen last is the last there is.
        let from = if id >= self.state.last_id { None } else { id.next() };
        from.into_iter().flat_map(|from| self.entries.range(from, StreamId::MAX))
    }

    /// Adds an entry, whose id is higher than the last.
    ///
    /// # Panics
    /// When the fields and values are 4 GiB and more.
    pub fn append<'f>(
        &mut self,
        id: StreamId,
        fields: impl ExactSizeIterator<Item = (&'f [u8], &'f [u8])> + Clone,
        limits: StreamLimits,
    ) {
        debug_assert!(id > self.state.last_id);
        self.entries.append(id, fields, limits);
        self.state.last_id = id;
        // A file may say that it was as many as there are numbers.
        self.state.entries_added = self.state.entries_added.saturating_add(1).min(COUNT_MAX);
    }

    /// Deletes an entry.
    pub fn delete(&mut self, id: StreamId, references: References) -> Deletion {
        let mut is_forgotten = false;
        match references {
            References::Keep => {}
            References::WaitForAcknowledgement => {
                // As in Redis an id that is not there is needed, too, where a group is before it, or waits for it.
                if self.groups.values().any(|group| group.needs(id)) {
                    return Deletion::Needed;
                }
            }
            References::Delete => is_forgotten = forget(&mut self.groups, id),
        }
        if !self.entries.remove(id) {
            return if is_forgotten { Deletion::Forgotten } else { Deletion::Missing };
        }
        self.state.max_deleted_id = self.state.max_deleted_id.max(id);
        Deletion::Deleted
    }

    /// Deletes the oldest entries; gives how many, and what is to be freed.
    pub fn trim(&mut self, trim: Trim, references: References) -> (u64, TakenBlocks) {
        let groups = &mut self.groups;
        let mut unless_needed = |id| !groups.values().any(|group| group.needs(id));
        match references {
            References::Keep => self.entries.trim(trim, None),
            References::WaitForAcknowledgement => self.entries.trim(trim, Some(&mut unless_needed)),
            References::Delete => {
                let mut forgotten = |id| {
                    forget(groups, id);
                    true
                };
                self.entries.trim(trim, Some(&mut forgotten))
            }
        }
    }

    pub(super) fn counters(&self) -> Counters {
        let StreamState { last_id: last, max_deleted_id: max_deleted, entries_added: added } = self.state;
        let first = self.first().map_or(StreamId::MIN, |entry| entry.id());
        Counters { len: self.len(), added, first, last, max_deleted }
    }

    /// How many entries are ahead of a group; `None` when that cannot be told.
    pub fn lag(&self, group: &Group) -> Option<i64> {
        self.counters().lag(group.last_id, group.entries_read)
    }

    /// How many entries were ever added up to this id; `None` when that cannot be told.
    pub fn added_up_to(&self, id: StreamId) -> Option<u64> {
        self.counters().added_up_to(id)
    }

    /// The groups, in the order of their names.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> {
        self.groups.iter().map(|(name, group)| (&**name, group)).inspect(|_| progress::count(1))
    }

    /// The groups from the one with this name on, in the order of their names.
    pub fn groups_from(&self, name: &[u8]) -> impl Iterator<Item = (&[u8], &Group)> {
        let groups = self.groups.range::<[u8], _>((Bound::Included(name), Bound::Unbounded));
        groups.map(|(name, group)| (&**name, group)).inspect(|_| progress::count(1))
    }

    /// The group with this name.
    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name)
    }

    /// The group with this name, to be changed.
    pub fn group_mut(&mut self, name: &[u8]) -> Option<&mut Group> {
        self.groups.get_mut(name)
    }

    /// Adds a group, if there is none with this name; tells whether it was added.
    pub fn add_group(&mut self, name: &[u8], group: Group) -> bool {
        let is_new = !self.groups.contains_key(name);
        if is_new {
            self.groups.insert(name.into(), group);
        }
        is_new
    }

    /// Takes a group out.
    pub fn remove_group(&mut self, name: &[u8]) -> Option<Group> {
        self.groups.remove(name)
    }

    /// What is remembered of producers, if anything ever was.
    pub fn producers(&self) -> Option<&Producers> {
        self.producers.as_deref()
    }

    /// How much is remembered of producers.
    pub fn producer_limits(&self) -> ProducerLimits {
        self.producers().map_or(ProducerLimits::INITIAL, Producers::limits)
    }

    /// Changes how much is remembered of producers. Unless it was so before, what was is forgotten, and given to whoever
    /// would rather free it elsewhere.
    pub fn set_producer_limits(&mut self, limits: ProducerLimits) -> Option<Producers> {
        (limits != self.producer_limits()).then(|| self.producers_mut().set_limits(limits))
    }

    fn producers_mut(&mut self) -> &mut Producers {
        self.producers.get_or_insert_with(|| Box::new(Producers::new(ProducerLimits::INITIAL)))
    }

    /// The entry that came with this id of a producer's, as far as it is remembered. It may have been deleted.
    pub fn entry_of_producer(&self, producer: &[u8], id: &[u8], now_ms: u64) -> Option<StreamId> {
        self.producers()?.entry_of(producer, id, now_ms)
    }

    /// Whether it has remembered no id of a producer's yet.
    pub fn is_new_to_producers(&self) -> bool {
        self.producers().is_none_or(|producers| producers.counts().added == 0)
    }

    /// Remembers that an entry has come with this id of a producer's.
    pub fn remember(&mut self, producer: &[u8], id: &[u8], entry: StreamId) {
        let producers = self.producers_mut();
        producers.remember(producer, id, entry);
        producers.counts.added = producers.counts.added.saturating_add(1);
    }

    /// Counts that an entry has come again.
    pub fn count_duplicate(&mut self) {
        let counts = &mut self.producers_mut().counts;
        counts.duplicates = counts.duplicates.saturating_add(1);
    }

    /// Changes what is counted of producers.
    pub fn set_producer_counts(&mut self, counts: ProducerCounts) {
        self.producers_mut().counts = counts;
    }

    /// When the first id of a producer's is past, or a time before; `None` where there is none.
    pub fn producers_due_ms(&self) -> Option<u64> {
        self.producers().and_then(Producers::due_ms)
    }

    /// Forgets ids of producers that are past, at most so many; tells how many.
    pub fn forget_past(&mut self, now_ms: u64, at_most: usize) -> usize {
        self.producers.as_mut().map_or(0, |producers| producers.expire(now_ms, at_most))
    }

    /// How many blocks there are.
    pub fn block_count(&self) -> usize {
        self.entries.block_count()
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.entries.blocks()
    }

    /// The blocks from the one with this first id on, in order.
    pub fn blocks_from(&self, first: StreamId) -> impl Iterator<Item = &Block> {
        self.entries.blocks_from(first)
    }

    /// Begins a block with this first id, which is higher than all before, and the names that most entries have.
    pub fn begin_block<'f>(&mut self, first: StreamId, names: impl ExactSizeIterator<Item = Item<'f>>) {
        self.entries.push_block(Block::with_fields(first, names));
    }

    /// Adds an entry to the block that was begun, with an id that is higher than all before; without names its fields are the
    /// block's. A block needs one that is not deleted.
    pub fn restore_entry<'f>(
        &mut self,
        id: StreamId,
        names: Option<impl ExactSizeIterator<Item = Item<'f>> + Clone>,
        values: impl ExactSizeIterator<Item = Item<'f>> + Clone,
        is_deleted: bool,
    ) {
        self.entries.extend_tail(|block| {
            if is_deleted {
                block.count_deleted(id);
                return 0;
            }
            let names = names.filter(|names| !block.has_names(names.clone()));
            block.append_items(id, names, values);
            1
        });
    }

    /// How many allocations there are to free, about.
    pub fn allocations(&self) -> usize {
        let producers = self.producers().map_or(0, Producers::allocations);
        self.block_count() + self.groups.values().map(Group::allocations).sum::<usize>() + producers + 1
    }

    /// About how many steps `memory` takes, and more for a long stream: it need not be looked at with every entry.
    pub fn memory_steps(&self) -> usize {
        self.block_count() + self.groups.len() + self.producers().map_or(0, Producers::len)
    }

    /// Bytes of memory beside the object itself.
    pub fn memory(&self, looks: Looks) -> usize {
        let group = |(name, group): (&[u8], &Group)| name.len() + 2 * size_of::<(Box<[u8]>, Group)>() + group.memory();
        let producers = self.producers().map_or(0, |producers| producers.memory(looks));
        size_of::<Stream>() + self.entries.memory() + looks.sum_of_first(self.groups(), group) + producers
    }
}

/// Takes an entry out of what all groups wait to be acknowledged; whether any did.
fn forget(groups: &mut BTreeMap<Box<[u8]>, Group>, id: StreamId) -> bool {
    groups.values_mut().fold(false, |was_pending, group| was_pending | group.acknowledge(id))
}
