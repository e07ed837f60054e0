//! Large values written in slices, so that nobody has to wait for the whole of one. Between two slices the value may move,
//! but must not change. Knows no key and no lock.

use super::encode::{View, view, write_item, write_node};
use super::extras::{deadlines_beside, stream_with_producers, write_deadlines, write_producers, write_released_ids};
use super::stream;
use tenon_ds::packed::{IntText, Item};
use tenon_store::entry::ValueRef;
use tenon_store::types::stream::{ConsumerNumber, Group, StreamId};
use tenon_store::types::zset::Direction;
use tenon_store::types::{HashRef, ListRef, Object, SetRef, Stream, ZsetRef};
use tenon_wire::rdb::Writer;

/// Elements from which on a collection is large.
const ELEMENTS_MIN: usize = 1_000;
/// Nodes of a list and blocks of a stream from which on it is: each has some KiB.
const NODES_MIN: usize = 8;
/// Elements of one slice at most, and bytes after which it ends.
const SLICE_ELEMENTS: usize = 512;
const SLICE_BYTES: usize = 64 * 1024;
/// Elements that are looked at between two looks at the bytes.
const STEP: usize = 16;

/// How far the writing of a large value has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub(crate) Stage);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Start,
    /// From this one on: a cursor of the table, how many members from the greatest on, a node.
    Elements(u64),
    /// A stream's blocks from the one with this first id on.
    Blocks(StreamId),
    /// A stream's groups from the one with this name on, and of that from this part on. A name is found again without going
    /// through those before it: there may be very many, each of which has little.
    Groups(Box<[u8]>, Part),
    /// The deadlines of members from this place on.
    Deadlines(usize),
    /// What tells that it is nobody's, from the group with this name on, and of that from this turn on.
    Nobodys(Box<[u8]>, u64),
    /// A stream's producers from this one on, and its ids from this one on.
    Producers(usize, usize),
}

/// How far the writing of a group has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Head,
    /// What waits to be acknowledged, from this entry on.
    Pending(StreamId),
    /// What was given back and is nobody's, from this turn on.
    Released(u64),
    /// The consumers from this one on, or the first; and if it has begun, from this entry on that was given to it.
    Consumers(Option<ConsumerNumber>, Option<StreamId>),
}

impl Cursor {
    /// Nothing is written yet.
    pub const START: Cursor = Cursor(Stage::Start);
}

/// Whether a value is written in slices. Long strings are not: whoever wants one takes a reference to it.
pub fn is_large(value: ValueRef<'_>) -> bool {
    let ValueRef::Object(object) = value else { return false };
    let elements = match object {
        Object::Shared(_) | Object::Rope(_) => 0,
        Object::List(_) => return object.allocations() >= NODES_MIN,
        Object::Stream(stream) => return stream.allocations() >= NODES_MIN,
        // What is packed is written as one string, however many elements it has.
        Object::Hash(_) | Object::Set(_) | Object::Zset(_) => match view(value) {
            View::Hash(HashRef::Packed(_)) | View::Set(SetRef::Ints(_) | SetRef::Packed(_)) => 0,
            View::Zset(ZsetRef::Packed(_)) => 0,
            View::Hash(hash) | View::ExpiringHash(hash, _) => hash.len(),
            View::Set(set) => set.len(),
            View::Zset(zset) => zset.len(),
            View::Int(_) | View::Bytes(_) | View::Rope(_) | View::List(_) | View::Stream(_) => 0,
        },
    };
    elements >= ELEMENTS_MIN
}

/// What a slice may still hold.
pub(crate) struct Room {
    elements: usize,
    bytes: usize,
}

impl Room {
    /// Nothing is in the slice.
    pub(crate) fn of_slice() -> Room {
        Room { elements: SLICE_ELEMENTS, bytes: SLICE_BYTES }
    }

    pub(crate) fn is_left(&self) -> bool {
        self.elements > 0 && self.bytes > 0
    }

    /// Takes the room of an element of so many bytes.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.take_each(1, bytes);
    }

    fn take_each(&mut self, elements: usize, bytes: usize) {
        self.elements = self.elements.saturating_sub(elements);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    fn item(&mut self, writer: &mut Writer<'_>, item: Item<'_>) {
        write_item(writer, item);
        self.bytes = self.bytes.saturating_sub(if let Item::Bytes(bytes) = item { bytes.len() } else { 0 });
    }
}

/// Writes the next slice of a large value in the form of [`super::kind_of`], and behind it what Redis has no place for;
/// gives where to go on, `None` at the end. All slices together are what [`super::write_value`] writes, but for the order
/// of elements.
pub(super) fn write_slice(writer: &mut Writer<'_>, value: ValueRef<'_>, cursor: &Cursor) -> Option<Cursor> {
    let stage = match cursor.0 {
        Stage::Start => {
            write_start(writer, value);
            Some(if let View::Stream(_) = view(value) { Stage::Blocks(StreamId::MIN) } else { Stage::Elements(0) })
        }
        Stage::Blocks(from) => write_blocks(writer, value, from),
        Stage::Elements(from) => write_elements(writer, value, from),
        Stage::Groups(ref name, part) => write_groups(writer, value, name, part),
        Stage::Nobodys(ref name, from) => write_nobodys(writer, value, name, from, Room::of_slice()),
        Stage::Deadlines(from) => {
            let deadlines = deadlines_beside(value).expect("there were some when the first of them were written");
            write_deadlines(writer, deadlines, from, SLICE_ELEMENTS).map(Stage::Deadlines)
        }
        Stage::Producers(nth, from) => {
            let stream = stream_with_producers(value).expect("there were some when the first of them were written");
            write_producers(writer, stream, (nth, from)).map(|(nth, from)| Stage::Producers(nth, from))
        }
    };
    stage.map(Cursor)
}

/// Writes what stands before the elements.
fn write_start(writer: &mut Writer<'_>, value: ValueRef<'_>) {
    match view(value) {
        View::List(ListRef::Chain(chain)) => writer.length(chain.nodes() as u64),
        View::Hash(hash) => writer.length(hash.len() as u64),
        View::ExpiringHash(hash, deadlines) => {
            writer.raw(&deadlines.next_ms().unwrap_or(0).to_le_bytes());
            writer.length(hash.len() as u64);
        }
        View::Set(set) => writer.length(set.len() as u64),
        View::Zset(zset) => writer.length(zset.len() as u64),
        View::Stream(stream) => writer.length(stream.block_count() as u64),
        View::Int(_) | View::Bytes(_) | View::Rope(_) | View::List(ListRef::Packed(_)) => {
            unreachable!("the value is large")
        }
    }
}

fn write_elements(writer: &mut Writer<'_>, value: ValueRef<'_>, from: u64) -> Option<Stage> {
    let mut room = Room::of_slice();
    let next = match view(value) {
        View::List(ListRef::Chain(chain)) => {
            for (at, node) in (from..).zip(chain.iter_nodes_from(from as usize)) {
                if !room.is_left() {
                    return Some(Stage::Elements(at));
                }
                write_node(writer, node);
                room.take(node.bytes().len());
            }
            return None;
        }
        View::Zset(zset) => {
            let mut left = zset.len() - from as usize;
            while left > 0 && room.is_left() {
                let step = left.min(STEP);
                // From the greatest on, as Redis does, which fills its lists from the front.
                zset.for_each_in(left - step..left, Direction::Descending, |member, score| {
                    room.item(writer, member);
                    room.take(0);
                    writer.double(score);
                });
                left -= step;
            }
            if left > 0 { (zset.len() - left) as u64 } else { 0 }
        }
        View::Hash(hash) => scan(&mut room, from, |cursor, room| {
            hash.scan(cursor, STEP, |field, value| {
                room.item(writer, field);
                room.item(writer, value);
                room.take(0);
            })
        }),
        View::ExpiringHash(hash, deadlines) => {
            let first_ms = deadlines.next_ms().unwrap_or(0);
            let mut text = IntText::new();
            scan(&mut room, from, |cursor, room| {
                hash.scan(cursor, STEP, |field, value| {
                    let deadline_ms = deadlines.of(field.as_bytes(&mut text));
                    writer.length(deadline_ms.map_or(0, |deadline_ms| deadline_ms - first_ms + 1));
                    room.item(writer, field);
                    room.item(writer, value);
                    room.take(0);
                })
            })
        }
        View::Set(set) => scan(&mut room, from, |cursor, room| {
            set.scan(cursor, STEP, |member| {
                room.item(writer, member);
                room.take(0);
            })
        }),
        View::Int(_) | View::Bytes(_) | View::Rope(_) | View::List(ListRef::Packed(_)) | View::Stream(_) => {
            unreachable!("the value has no elements of this kind, or few")
        }
    };
    if next > 0 {
        return Some(Stage::Elements(next));
    }
    deadlines_beside(value).map(|_| Stage::Deadlines(0))
}

/// Goes through pages as long as there is room; gives the cursor to go on from, 0 at the end.
fn scan(room: &mut Room, from: u64, mut page: impl FnMut(u64, &mut Room) -> u64) -> u64 {
    let mut cursor = from;
    loop {
        cursor = page(cursor, room);
        if cursor == 0 || !room.is_left() {
            return cursor;
        }
    }
}

fn stream_of(value: ValueRef<'_>) -> &Stream {
    let View::Stream(stream) = view(value) else { unreachable!("only streams have blocks and groups") };
    stream
}

fn write_blocks(writer: &mut Writer<'_>, value: ValueRef<'_>, from: StreamId) -> Option<Stage> {
    let stream = stream_of(value);
    let mut room = Room::of_slice();
    for block in stream.blocks_from(from) {
        if !room.is_left() {
            return Some(Stage::Blocks(block.first()));
        }
        stream::write_block(writer, block);
        room.take(block.memory());
    }
    stream::write_state(writer, stream);
    Some(Stage::Groups(FIRST.into(), Part::Head))
}

/// No name is before this one.
const FIRST: &[u8] = b"";

/// Writes groups from a part of the one with this name on, as many as there is room for.
fn write_groups(writer: &mut Writer<'_>, value: ValueRef<'_>, from: &[u8], mut part: Part) -> Option<Stage> {
    let mut room = Room::of_slice();
    for (name, group) in stream_of(value).groups_from(from) {
        if !room.is_left() {
            return Some(Stage::Groups(name.into(), Part::Head));
        }
        if let Some(next) = write_group(writer, name, group, part, &mut room) {
            return Some(Stage::Groups(name.into(), next));
        }
        part = Part::Head;
    }
    write_nobodys(writer, value, FIRST, 0, room)
}

/// Writes a group from a part on; gives where to go on when there is no more room, `None` at its end.
fn write_group(writer: &mut Writer<'_>, name: &[u8], group: &Group, mut part: Part, room: &mut Room) -> Option<Part> {
    loop {
        part = match part {
            Part::Head => {
                stream::write_group_head(writer, name, group);
                room.take(name.len());
                Part::Pending(StreamId::MIN)
            }
            Part::Pending(from) => {
                for (id, pending) in group.pending_in(from..=StreamId::MAX) {
                    if !room.is_left() {
                        return Some(Part::Pending(id));
                    }
                    stream::write_pending(writer, id, pending);
                    room.take(0);
                }
                stream::write_consumer_count(writer, group);
                if stream::write_released_head(writer, group) { Part::Released(0) } else { Part::Consumers(None, None) }
            }
            Part::Released(from) => {
                for (turn, id) in group.released_from(from) {
                    if !room.is_left() {
                        return Some(Part::Released(turn));
                    }
                    stream::write_pending_id(writer, id);
                    room.take(0);
                }
                // Who is called as nobody is goes on with those.
                Part::Consumers(None, group.number_of(stream::NOBODY).map(|_| StreamId::MIN))
            }
            Part::Consumers(first, from) => return write_consumers(writer, group, first, from, room),
        };
    }
}

fn write_consumers(
    writer: &mut Writer<'_>,
    group: &Group,
    first: Option<ConsumerNumber>,
    mut from: Option<StreamId>,
    room: &mut Room,
) -> Option<Part> {
    for (number, consumer) in group.consumers_from(first) {
        if !room.is_left() {
            return Some(Part::Consumers(Some(number), from));
        }
        let from = from.take();
        if from.is_none() {
            stream::write_consumer_head(writer, consumer);
            room.take(consumer.name().len());
        }
        for &id in consumer.pending().range(from.unwrap_or(StreamId::MIN)..) {
            if !room.is_left() {
                return Some(Part::Consumers(Some(number), Some(id)));
            }
            stream::write_pending_id(writer, id);
            room.take(0);
        }
    }
    None
}

/// Writes what tells of a stream's groups that it is nobody's, as much as there is room for. A group is looked at in the room
/// of an element.
fn write_nobodys(
    writer: &mut Writer<'_>,
    value: ValueRef<'_>,
    from: &[u8],
    mut turn: u64,
    mut room: Room,
) -> Option<Stage> {
    for (name, group) in stream_of(value).groups_from(from) {
        if !room.is_left() {
            return Some(Stage::Nobodys(name.into(), turn));
        }
        room.take(0);
        if group.released_len() > 0 {
            // What one field says does not depend on the room that is left.
            if let Some(next) = write_released_ids(writer, name, group, turn, SLICE_ELEMENTS) {
                return Some(Stage::Nobodys(name.into(), next));
            }
            room.take_each(SLICE_ELEMENTS.min(group.released_len()), name.len());
        }
        turn = 0;
    }
    stream_with_producers(value).map(|_| Stage::Producers(0, 0))
}
