//! A run of a stream's entries in one allocation. Knows nothing of its neighbours, nor of consumer groups.
//!
//! ```text
//! +--------+-------+-------+-----
//! | fields | entry | entry | ...
//! +--------+-------+-------+-----
//!
//! fields:  count | name | name | ...            those of the entry that the block began with
//! entry:   head | ms | seq | body
//! head:    bytes behind it, times 4             + 1: deleted, + 2: has the block's fields
//! ms:      since the block's first id
//! seq:     where ms is 0: since the block's first id
//! body:    with the block's fields: value | value | ...
//!          else: count | field | value | field | value | ...
//! ```
//!
//! Counts, head, ms and seq are numbers of `varint`; names, fields and values are elements of `tenon_ds::packed`. A
//! deleted entry stays where it is until such entries take more than half of the block.

use super::id::StreamId;
use super::limits::StreamLimits;
use super::varint;
use tenon_ds::listpack::encoded_len;
use tenon_ds::packed::{Item, element_at};
use tenon_ds::progress;

const DELETED: u64 = 1;
const SAME_FIELDS: u64 = 2;
const FLAG_BITS: u32 = 2;

/// Bytes of Redis's listpack beside its elements.
const REDIS_HEADER_AND_END: usize = 7;
/// Bytes of deleted entries that are left where they are in any case.
const DEAD_MIN: usize = 256;

/// A run of a stream's entries, one of which is live.
#[derive(Debug)]
pub struct Block {
    bytes: Vec<u8>,
    /// The id that the block began with, deleted or not.
    first: StreamId,
    /// The highest id that was added, deleted or not.
    last: StreamId,
    live: u32,
    /// All that were deleted, also those that are no longer in the bytes.
    deleted: u32,
    /// Bytes of the deleted entries that are still there.
    dead_bytes: u32,
    /// Where the entries begin.
    entries_at: u32,
    /// Bytes of the elements that it would have in Redis's listpack, but for the two counts at its start.
    redis_elements_len: u32,
}

impl Clone for Block {
    fn clone(&self) -> Block {
        progress::count_bytes(self.bytes.len());
        Block { bytes: self.bytes.clone(), ..*self }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        progress::count(1);
    }
}

/// An entry of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    block: &'a Block,
    id: StreamId,
    /// Where the head is.
    at: usize,
    /// Where the body is.
    body: usize,
    /// Where the next entry is.
    end: usize,
    flags: u64,
}

/// Bytes that an integer takes in Redis's listpack.
fn redis_int_len(number: u64) -> usize {
    encoded_len(Item::Int(number as i64))
}

impl Block {
    /// A block that begins with an entry.
    pub(super) fn new<'f>(id: StreamId, fields: impl ExactSizeIterator<Item = (&'f [u8], &'f [u8])> + Clone) -> Block {
        let mut block = Block::with_fields(id, fields.clone().map(|(field, _)| Item::of(field)));
        block.append(id, fields);
        block
    }

    /// A block without an entry whose entries are likely to have these fields.
    pub(super) fn with_fields<'f>(first: StreamId, names: impl ExactSizeIterator<Item = Item<'f>>) -> Block {
        let mut bytes = Vec::new();
        let mut redis_len = redis_int_len(names.len() as u64);
        varint::append(&mut bytes, names.len() as u64);
        for name in names {
            name.append_to(&mut bytes);
            redis_len += encoded_len(name);
        }
        // An element that ends the master entry, as the number of elements ends all others.
        redis_len += redis_int_len(0);
        let entries_at = u32::try_from(bytes.len()).expect("a command's fields are below 4 GiB");
        let redis_elements_len = u32::try_from(redis_len).expect("a command's fields are below 4 GiB");
        Block { bytes, first, last: first, live: 0, deleted: 0, dead_bytes: 0, entries_at, redis_elements_len }
    }

    /// The id that the block began with; entries behind it may have it no longer.
    pub fn first(&self) -> StreamId {
        self.first
    }

    /// The highest id that was added.
    pub fn last(&self) -> StreamId {
        self.last
    }

    /// How many entries there are.
    pub fn live(&self) -> u64 {
        self.live.into()
    }

    /// How many were deleted.
    pub fn deleted(&self) -> u64 {
        self.deleted.into()
    }

    /// Bytes of memory beside the block itself.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// Bytes that it would take in Redis.
    pub fn redis_len(&self) -> usize {
        let counts = redis_int_len(self.live.into()) + redis_int_len(self.deleted.into());
        REDIS_HEADER_AND_END + counts + self.redis_elements_len as usize
    }

    /// Whether an entry whose fields and values are so many bytes is to begin another block.
    pub(super) fn is_full_for(&self, added_bytes: usize, limits: StreamLimits) -> bool {
        self.redis_len() + added_bytes >= limits.bytes || (self.live + self.deleted) as usize >= limits.entries
    }

    /// The names of the fields that most entries have.
    pub fn names(&self) -> impl ExactSizeIterator<Item = Item<'_>> {
        let (count, at) = varint::read(&self.bytes, 0);
        Items { bytes: &self.bytes, at, left: count as usize }
    }

    /// Whether these are the block's fields.
    pub(super) fn has_names<'f>(&self, fields: impl ExactSizeIterator<Item = Item<'f>>) -> bool {
        let names = self.names();
        names.len() == fields.len() && names.zip(fields).all(|(name, field)| name == field)
    }

    /// Adds an entry, whose id is higher than those of all others that are there. One that was deleted may have had a higher
    /// one: XSETID may go back to the last that is there.
    pub(super) fn append<'f>(
        &mut self,
        id: StreamId,
        fields: impl ExactSizeIterator<Item = (&'f [u8], &'f [u8])> + Clone,
    ) {
        let names = fields.clone().map(|(field, _)| Item::of(field));
        let names = (!self.has_names(names.clone())).then_some(names);
        self.append_items(id, names, fields.map(|(_, value)| Item::of(value)));
    }

    /// As `append`, with an entry's fields where they are not the block's.
    pub(super) fn append_items<'f>(
        &mut self,
        id: StreamId,
        mut names: Option<impl Iterator<Item = Item<'f>> + Clone>,
        values: impl ExactSizeIterator<Item = Item<'f>> + Clone,
    ) {
        debug_assert!(id > self.last || self.live == 0 || self.deleted > 0);
        let is_same = names.is_none();
        let count = values.len();
        let ms = id.ms - self.first.ms;
        let seq = if ms == 0 { id.seq - self.first.seq } else { id.seq };

        let items = values.clone().chain(names.iter().cloned().flatten()).map(Item::packed_len).sum::<usize>();
        let counted = if is_same { 0 } else { varint::len(count as u64) };
        let rest = varint::len(ms) + varint::len(seq) + counted + items;
        let flags = if is_same { SAME_FIELDS } else { 0 };
        let head = (rest as u64) << FLAG_BITS | flags;
        self.reserve(varint::len(head) + rest);
        varint::append(&mut self.bytes, head);
        let start = self.bytes.len();
        varint::append(&mut self.bytes, ms);
        varint::append(&mut self.bytes, seq);
        if !is_same {
            varint::append(&mut self.bytes, count as u64);
        }

        let mut redis_len =
            redis_int_len(flags) + redis_int_len(ms) + redis_int_len(id.seq.wrapping_sub(self.first.seq));
        let mut elements = 3 + count;
        if !is_same {
            redis_len += redis_int_len(count as u64);
            elements += 1 + count;
        }
        redis_len += redis_int_len(elements as u64);
        for value in values {
            if let Some(names) = &mut names {
                let name = names.next().expect("each value has a field");
                name.append_to(&mut self.bytes);
                redis_len += encoded_len(name);
            }
            value.append_to(&mut self.bytes);
            redis_len += encoded_len(value);
        }
        debug_assert_eq!(self.bytes.len(), start + rest);
        self.redis_elements_len =
            self.redis_elements_len.saturating_add(u32::try_from(redis_len).expect("an entry is below 4 GiB"));
        self.live += 1;
        self.last = id;
    }

    /// Makes room: twice what there is, so that adding costs a constant on average, but little above a block's usual
    /// length.
    fn reserve(&mut self, more: usize) {
        /// What a block with the settings' defaults grows to.
        const USUAL: usize = 4 * 1024;
        let len = self.bytes.len();
        if self.bytes.capacity() - len < more {
            let wanted = if len < USUAL { (len * 2).min(USUAL) } else { len * 2 };
            self.bytes.reserve_exact(wanted.max(len + more) - len);
        }
    }

    /// Gives back the room for more entries: none will come.
    pub(super) fn seal(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// The entries, deleted ones too.
    fn all(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut at = self.entries_at as usize;
        std::iter::from_fn(move || {
            let entry = self.entry_at(at)?;
            at = entry.end;
            Some(entry)
        })
    }

    /// The entry whose head is at byte `at`; `None` at the end.
    #[inline]
    fn entry_at(&self, at: usize) -> Option<Entry<'_>> {
        if at == self.bytes.len() {
            return None;
        }
        let (head, start) = varint::read(&self.bytes, at);
        let (ms, seq_at) = varint::read(&self.bytes, start);
        let (seq, body) = varint::read(&self.bytes, seq_at);
        let id = if ms == 0 {
            StreamId::new(self.first.ms, self.first.seq + seq)
        } else {
            StreamId::new(self.first.ms + ms, seq)
        };
        let end = start + (head >> FLAG_BITS) as usize;
        Some(Entry { block: self, id, at, body, end, flags: head & (DELETED | SAME_FIELDS) })
    }

    /// The entries, the lowest id first.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        progress::count(self.live as usize);
        self.all().filter(|entry| !entry.is_deleted())
    }

    /// The entries, the highest id first.
    pub(super) fn entries_back(&self) -> impl Iterator<Item = Entry<'_>> {
        // Their lengths are known from their starts only; a block is short.
        let entries: Vec<_> = self.entries().collect();
        entries.into_iter().rev()
    }

    /// The entry with this id.
    pub(super) fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        self.entries().take_while(|entry| entry.id <= id).find(|entry| entry.id == id)
    }

    /// Deletes the entry with this id; tells whether it was there.
    pub(super) fn remove(&mut self, id: StreamId) -> bool {
        let Some((at, end)) = self.get(id).map(|entry| (entry.at, entry.end)) else { return false };
        self.mark_deleted(at, end);
        self.drop_deleted();
        true
    }

    /// Deletes entries, the lowest ids first, as `decide` says; gives how many.
    pub(super) fn remove_by(&mut self, mut decide: impl FnMut(StreamId) -> Verdict) -> u64 {
        progress::count(self.live as usize);
        let mut at = self.entries_at as usize;
        let mut removed = 0;
        while let Some(entry) = self.entry_at(at) {
            let Entry { id, at: head, end, .. } = entry;
            if !entry.is_deleted() {
                match decide(id) {
                    Verdict::Stop => break,
                    Verdict::Keep => {}
                    Verdict::Delete => {
                        self.mark_deleted(head, end);
                        removed += 1;
                    }
                }
            }
            at = end;
        }
        self.drop_deleted();
        removed
    }

    /// Marks the entry at these bytes as deleted.
    fn mark_deleted(&mut self, at: usize, end: usize) {
        self.bytes[at] |= DELETED as u8;
        self.live -= 1;
        self.deleted += 1;
        self.dead_bytes += (end - at) as u32;
    }

    /// Takes deleted entries out of the bytes if they are more than half of them. So each byte is moved once for another
    /// that is freed.
    fn drop_deleted(&mut self) {
        let dead = self.dead_bytes as usize;
        if dead < DEAD_MIN || dead * 2 < self.bytes.len() {
            return;
        }
        let mut kept = Vec::with_capacity(self.bytes.len() - dead);
        kept.extend_from_slice(&self.bytes[..self.entries_at as usize]);
        self.entries().for_each(|entry| kept.extend_from_slice(&self.bytes[entry.at..entry.end]));
        self.bytes = kept;
        self.dead_bytes = 0;
    }

    /// Notes an entry that was deleted before the block was made of parts.
    pub(super) fn count_deleted(&mut self, id: StreamId) {
        self.deleted += 1;
        self.last = self.last.max(id);
    }
}

/// What becomes of an entry while a block is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It goes.
    Delete,
    /// It stays.
    Keep,
    /// It stays, and so do all behind it.
    Stop,
}

/// A number of elements from a byte on.
struct Items<'a> {
    bytes: &'a [u8],
    at: usize,
    left: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        self.left = self.left.checked_sub(1)?;
        let element = element_at(self.bytes, self.at);
        self.at = element.end;
        Some(element.item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Items<'_> {}

impl<'a> Entry<'a> {
    /// The entry's id.
    pub fn id(&self) -> StreamId {
        self.id
    }

    fn is_deleted(&self) -> bool {
        self.flags & DELETED != 0
    }

    /// Whether its fields are those of its block, whose names they then are.
    pub fn has_block_names(&self) -> bool {
        self.flags & SAME_FIELDS != 0
    }

    /// The fields and their values.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (Item<'a>, Item<'a>)> + use<'a> {
        let bytes = &self.block.bytes;
        if self.has_block_names() {
            let (count, at) = varint::read(bytes, 0);
            let left = count as usize;
            let names = Some(Items { bytes, at, left });
            Fields { names, values: Items { bytes, at: self.body, left } }
        } else {
            let (count, at) = varint::read(bytes, self.body);
            Fields { names: None, values: Items { bytes, at, left: count as usize * 2 } }
        }
    }
}

/// Fields and values, the fields' names from the block or in turn with the values.
struct Fields<'a> {
    names: Option<Items<'a>>,
    values: Items<'a>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Item<'a>, Item<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let name = match &mut self.names {
            Some(names) => names.next()?,
            None => self.values.next()?,
        };
        Some((name, self.values.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = if self.names.is_some() { self.values.left } else { self.values.left / 2 };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Fields<'_> {}
