//! Streams: their entries in listpacks, their groups behind them. Nothing that is read is believed.
//!
//! ```text
//!   how many blocks; each: 16 bytes of its first id (big endian) as a string, a listpack as a string
//!   how many entries; the last id
//!   since Redis 7.0: the first id; the highest deleted id; how many entries were ever added
//!   how many groups; each: name, last id, since 7.0 how many entries it has read,
//!       how many entries are pending; each: 16 bytes of its id, 8 bytes of milliseconds, how often it was delivered
//!       how many consumers; each: name, 8 bytes of when it was seen, since 7.2 as many of when it was active,
//!           how many entries are pending; each: 16 bytes of its id
//!       since 8.8 how many of the group's pending entries are nobody's; each: 16 bytes of its id
//!   since 8.6: what is remembered of producers (producers.rs)
//!
//!   listpack:  live, deleted, how many names, name, ..., 0      behind them for each entry
//!              flags, ms, seq                                   behind those of the block's first id
//!              the block's fields: value, ...
//!              others: how many, field, value, ...
//!              how many elements the entry has without this one
//!
//!   ids elsewhere are two lengths; what is not known of a group is the highest number
//! ```

use super::listpack::{self, Elements, Place};
use super::{DecodeError, kind, producers};
use std::collections::BTreeMap;
use tenon_ds::packed::Item;
use tenon_ds::progress;
use tenon_store::types::Stream;
use tenon_store::types::stream::{Block, Consumer, Group, Pending, ProducerLimits, StreamId, StreamState};
use tenon_wire::rdb::{ReadError, Reader, Writer};

const DELETED: i64 = 1;
const SAME_FIELDS: i64 = 2;
/// Elements of an entry beside fields and values: flags and both parts of the id.
const ENTRY_ELEMENTS: i64 = 3;
/// What stands for a count that is not known, and for a time that never was.
const UNKNOWN: u64 = u64::MAX;
/// Who has the entries in a file that were given back (XNACK): Redis 7.0 takes none that nobody has. What stands beside the
/// value tells them from those of a consumer who is called so (extras.rs).
pub(super) const NOBODY: &[u8] = b"";

/// What a form has beside the first one: each has all that those before it have.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// The first id, the highest deleted one and how many were added; and how many entries a group has read.
    pub(super) has_counters: bool,
    /// When consumers were active.
    pub(super) has_activity: bool,
    /// What is known of producers.
    pub(super) has_producers: bool,
    /// Which pending entries are nobody's.
    pub(super) has_released: bool,
}

impl Form {
    /// What the form of this number has, which is one of a stream.
    pub(super) fn of(kind: u8) -> Form {
        Form {
            has_counters: kind >= kind::STREAM_LISTPACKS_2,
            has_activity: kind >= kind::STREAM_LISTPACKS_3,
            has_producers: kind >= kind::STREAM_LISTPACKS_4,
            has_released: kind >= kind::STREAM_LISTPACKS_5,
        }
    }
}

/// Writes a stream as `STREAM_LISTPACKS_2`, the form of Redis 7.0.
pub(super) fn write(writer: &mut Writer<'_>, stream: &Stream) {
    writer.length(stream.block_count() as u64);
    stream.blocks().for_each(|block| write_block(writer, block));
    write_state(writer, stream);
    stream.groups().for_each(|(name, group)| write_group(writer, name, group));
}

pub(super) fn write_block(writer: &mut Writer<'_>, block: &Block) {
    writer.string(&id_bytes(block.first()));
    writer.string(&written(block));
}

/// Writes what stands between blocks and groups.
pub(super) fn write_state(writer: &mut Writer<'_>, stream: &Stream) {
    let StreamState { last_id, max_deleted_id, entries_added } = stream.state();
    writer.length(stream.len());
    write_id(writer, last_id);
    write_id(writer, stream.first().map_or(StreamId::MIN, |entry| entry.id()));
    write_id(writer, max_deleted_id);
    writer.length(entries_added);
    writer.length(stream.groups().len() as u64);
}

fn write_group(writer: &mut Writer<'_>, name: &[u8], group: &Group) {
    write_group_head(writer, name, group);
    group.pending_in(StreamId::MIN..=StreamId::MAX).for_each(|(id, pending)| write_pending(writer, id, pending));
    write_consumer_count(writer, group);
    let mut has_begun = write_released_head(writer, group);
    group.released_from(0).for_each(|(_, id)| write_pending_id(writer, id));
    for consumer in group.consumers() {
        if !std::mem::replace(&mut has_begun, false) || consumer.name() != NOBODY {
            write_consumer_head(writer, consumer);
        }
        for id in consumer.pending() {
            progress::count(1);
            write_pending_id(writer, *id);
        }
    }
}

/// Writes what stands before the entries of a group that wait to be acknowledged.
pub(super) fn write_group_head(writer: &mut Writer<'_>, name: &[u8], group: &Group) {
    writer.string(name);
    write_id(writer, group.last_id());
    writer.length(group.entries_read().unwrap_or(UNKNOWN));
    writer.length(group.pending_len() as u64);
}

pub(super) fn write_pending(writer: &mut Writer<'_>, id: StreamId, pending: Pending) {
    write_pending_id(writer, id);
    writer.raw(&pending.delivered_ms().to_le_bytes());
    writer.length(pending.deliveries);
}

/// Writes how many consumers stand there: nobody is one.
pub(super) fn write_consumer_count(writer: &mut Writer<'_>, group: &Group) {
    let is_nobody_added = group.released_len() > 0 && group.number_of(NOBODY).is_none();
    writer.length(group.consumers().len() as u64 + u64::from(is_nobody_added));
}

/// Begins the consumer that stands for nobody, if anything was given back, whose ids come first: it is the first one. One of
/// the same name goes on with it.
pub(super) fn write_released_head(writer: &mut Writer<'_>, group: &Group) -> bool {
    let released = group.released_len() as u64;
    if released > 0 {
        let namesake = group.number_of(NOBODY).map(|number| group.consumer(number));
        writer.string(NOBODY);
        writer.raw(&namesake.map_or(0, |consumer| consumer.seen_ms).to_le_bytes());
        writer.length(released + namesake.map_or(0, |consumer| consumer.pending().len() as u64));
    }
    released > 0
}

/// Writes what stands before the ids of the entries that a consumer was given.
pub(super) fn write_consumer_head(writer: &mut Writer<'_>, consumer: &Consumer) {
    writer.string(consumer.name());
    writer.raw(&consumer.seen_ms.to_le_bytes());
    writer.length(consumer.pending().len() as u64);
}

pub(super) fn write_pending_id(writer: &mut Writer<'_>, id: StreamId) {
    writer.raw(&id_bytes(id));
}

fn id_bytes(id: StreamId) -> [u8; 16] {
    (u128::from(id.ms) << 64 | u128::from(id.seq)).to_be_bytes()
}

fn id_of(bytes: [u8; 16]) -> StreamId {
    let id = u128::from_be_bytes(bytes);
    StreamId::new((id >> 64) as u64, id as u64)
}

fn write_id(writer: &mut Writer<'_>, id: StreamId) {
    writer.length(id.ms);
    writer.length(id.seq);
}

/// The listpack of a block. Deleted entries are left out: nobody asks for them any more.
fn written(block: &Block) -> Vec<u8> {
    let mut listpack = listpack::Builder::default();
    let names = block.names();
    let count = names.len() as i64;
    [block.live() as i64, 0, count].into_iter().for_each(|number| listpack.push(Item::Int(number)));
    names.for_each(|name| listpack.push(name));
    listpack.push(Item::Int(0));
    let first = block.first();
    for entry in block.entries() {
        let is_same = entry.has_block_names();
        let id = entry.id();
        listpack.push(Item::Int(if is_same { SAME_FIELDS } else { 0 }));
        listpack.push(Item::Int(id.ms.wrapping_sub(first.ms) as i64));
        listpack.push(Item::Int(id.seq.wrapping_sub(first.seq) as i64));
        let fields = entry.fields();
        let count = fields.len() as i64;
        if !is_same {
            listpack.push(Item::Int(count));
        }
        for (field, value) in fields {
            if !is_same {
                listpack.push(field);
            }
            listpack.push(value);
        }
        listpack.push(Item::Int(ENTRY_ELEMENTS + if is_same { count } else { 1 + 2 * count }));
    }
    listpack.finish()
}

/// Reads a stream of one of the forms. One that does not say how much it remembers of its producers has these limits.
pub(super) fn read(
    form: Form,
    reader: &mut Reader<'_>,
    producer_limits: ProducerLimits,
) -> Result<Stream, DecodeError> {
    let mut stream = Stream::default();
    stream.set_producer_limits(producer_limits);
    let mut last_added = None;
    for _ in 0..reader.count(2)? {
        let first = match <[u8; 16]>::try_from(&*reader.string()?) {
            Ok(bytes) => id_of(bytes),
            Err(_) => return Err(DecodeError::malformed("a stream's block has no id")),
        };
        if last_added.is_some_and(|last| first <= last) {
            return Err(DecodeError::malformed("a stream's blocks are not in order"));
        }
        last_added = Some(read_block(first, &reader.string()?, &mut stream)?);
    }
    let len = reader.length()?;
    let last_id = read_id(reader)?;
    let mut state = StreamState { last_id, max_deleted_id: StreamId::MIN, entries_added: len };
    if form.has_counters {
        // The first id is that of the first entry.
        read_id(reader)?;
        // What commands would refuse to set is of no use to anybody.
        state.max_deleted_id = read_id(reader)?.min(last_id);
        state.entries_added = reader.length()?.max(len);
    }
    if len != stream.len() {
        return Err(DecodeError::malformed("a stream has not as many entries as it says"));
    }
    if stream.last().is_some_and(|entry| entry.id() > last_id) {
        return Err(DecodeError::malformed("a stream's last id is not its last"));
    }
    stream.set_state(state);
    for _ in 0..reader.count(3)? {
        let name = reader.string()?.into_owned();
        let group = read_group(form, reader, |last_id| stream.added_up_to(last_id))?;
        if !stream.add_group(&name, group) {
            return Err(DecodeError::malformed("a stream has a group twice"));
        }
    }
    if form.has_producers {
        producers::read(reader, &mut stream)?;
    }
    Ok(stream)
}

fn read_id(reader: &mut Reader<'_>) -> Result<StreamId, ReadError> {
    Ok(StreamId::new(reader.length()?, reader.length()?))
}

pub(super) fn read_raw_id(reader: &mut Reader<'_>) -> Result<StreamId, ReadError> {
    Ok(id_of(reader.raw(16)?.try_into().expect("so many bytes were asked for")))
}

/// Reads the elements of a block's listpack.
struct BlockReader<'a> {
    listpack: &'a [u8],
    elements: Elements<'a>,
}

impl<'a> BlockReader<'a> {
    fn new(listpack: &'a [u8]) -> Result<BlockReader<'a>, DecodeError> {
        Ok(BlockReader { listpack, elements: Elements::new(listpack)? })
    }

    /// Reads an element that is looked at later; a place takes less than an element.
    fn place(&mut self) -> Result<Place, DecodeError> {
        let place = self.elements.place(self.listpack);
        self.element().map(|_| place)
    }

    /// The elements at these places.
    fn at<'p>(&self, places: &'p [Place]) -> impl ExactSizeIterator<Item = Item<'a>> + Clone + use<'a, 'p> {
        let listpack = self.listpack;
        places.iter().map(move |place| place.item(listpack))
    }

    fn element(&mut self) -> Result<Item<'a>, DecodeError> {
        self.elements.next().unwrap_or(Err(DecodeError::malformed("a stream's block ends early")))
    }

    fn number(&mut self) -> Result<i64, DecodeError> {
        match self.element()? {
            Item::Int(number) => Ok(number),
            Item::Bytes(_) => Err(DecodeError::malformed("a stream's block has a text in a number's place")),
        }
    }

    fn count(&mut self) -> Result<u32, DecodeError> {
        u32::try_from(self.number()?).map_err(|_| DecodeError::malformed("a stream's block has a wrong count"))
    }
}

/// Adds a block's entries to a stream; gives the highest id, deleted or not. Redis keeps a block all of whose entries were
/// deleted when it trims it entry by entry; nobody sees it.
fn read_block(first: StreamId, listpack: &[u8], stream: &mut Stream) -> Result<StreamId, DecodeError> {
    const WRONG_ID: DecodeError = DecodeError::malformed("a stream's entries are not in order");
    let mut reader = BlockReader::new(listpack)?;
    let (live, deleted) = (reader.count()?, reader.count()?);
    let (mut names, mut fields, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..reader.count()? {
        names.push(reader.place()?);
    }
    if reader.number()? != 0 {
        return Err(DecodeError::malformed("a stream's block has a wrong beginning"));
    }
    let is_kept = live > 0;
    if is_kept {
        stream.begin_block(first, reader.at(&names));
    }
    let mut last: Option<StreamId> = None;
    let mut seen = [0u32; 2];
    while seen[0] < live || seen[1] < deleted {
        let flags = reader.number()?;
        // A difference of 2^63 and more is written as a negative number.
        let ms = first.ms.wrapping_add_signed(reader.number()?);
        let id = StreamId::new(ms, first.seq.wrapping_add_signed(reader.number()?));
        if id < first || last.is_some_and(|last| id <= last) {
            return Err(WRONG_ID);
        }
        last = Some(id);
        values.clear();
        let is_same = flags & SAME_FIELDS != 0;
        let elements = if is_same {
            for _ in 0..names.len() {
                values.push(reader.place()?);
            }
            ENTRY_ELEMENTS + names.len() as i64
        } else {
            fields.clear();
            let count = reader.count()?;
            for _ in 0..count {
                fields.push(reader.place()?);
                values.push(reader.place()?);
            }
            ENTRY_ELEMENTS + 1 + 2 * i64::from(count)
        };
        if reader.number()? != elements {
            return Err(DecodeError::malformed("a stream's entry has not as many elements as it says"));
        }
        let is_deleted = flags & DELETED != 0;
        seen[usize::from(is_deleted)] += 1;
        if values.is_empty() || id == StreamId::MIN {
            return Err(DecodeError::malformed("a stream's entry is none that could be added"));
        }
        if is_kept {
            let names = (!is_same).then(|| reader.at(&fields));
            stream.restore_entry(id, names, reader.at(&values), is_deleted);
        }
    }
    let is_right = seen == [live, deleted] && reader.elements.next().is_none();
    last.filter(|_| is_right).ok_or(DecodeError::malformed("a stream's block has not as many entries as it says"))
}

/// Reads a group. What the oldest form does not say, how many entries it has read, is told by `added_up_to`.
fn read_group(
    form: Form,
    reader: &mut Reader<'_>,
    added_up_to: impl Fn(StreamId) -> Option<u64>,
) -> Result<Group, DecodeError> {
    let last_id = read_id(reader)?;
    let entries_read =
        if form.has_counters { Some(reader.length()?).filter(|read| *read != UNKNOWN) } else { added_up_to(last_id) };
    let mut group = Group::new(last_id, entries_read);
    let mut unowned = BTreeMap::new();
    for _ in 0..reader.count(16 + 8 + 1)? {
        progress::count(1);
        let id = read_raw_id(reader)?;
        let delivered_ms = reader.word()?;
        if unowned.insert(id, (delivered_ms, reader.length()?)).is_some() {
            return Err(DecodeError::malformed("a group has a pending entry twice"));
        }
    }
    for _ in 0..reader.count(1 + 8 + 1)? {
        let name = reader.string()?.into_owned();
        let seen_ms = reader.word()?;
        let active_ms =
            if form.has_activity { Some(reader.word()?).filter(|ms| *ms != UNKNOWN) } else { Some(seen_ms) };
        let Some(consumer) = group.add_consumer(&name, seen_ms, active_ms) else {
            return Err(DecodeError::malformed("a group has a consumer twice"));
        };
        for _ in 0..reader.count(16)? {
            progress::count(1);
            let id = read_raw_id(reader)?;
            // Each has one owner, and nobody owns what the group does not know.
            let Some((delivered_ms, deliveries)) = unowned.remove(&id) else {
                return Err(DecodeError::malformed("a consumer has a pending entry that is not to be had"));
            };
            group.assign(id, Pending::of(consumer, delivered_ms, deliveries));
        }
    }
    for _ in 0..if form.has_released { reader.count(16)? } else { 0 } {
        let id = read_raw_id(reader)?;
        let Some((_, deliveries)) = unowned.remove(&id) else {
            return Err(DecodeError::malformed("a group was given back an entry that is not to be had"));
        };
        group.release(id, deliveries);
    }
    if unowned.is_empty() { Ok(group) } else { Err(DecodeError::malformed("a group has a pending entry of nobody")) }
}
