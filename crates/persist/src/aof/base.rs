//! Data as commands, in the form that Redis gives the base of its append-only file without a snapshot at its start. Knows
//! neither where the bytes go nor where keys come from.
//!
//! ```text
//!   FUNCTION LOAD ...    SELECT n    SET k v | RPUSH k 64 elements | SADD | HSET | ZADD | XADD ...    PEXPIREAT k ms
//! ```
//!
//! What is beside a value comes behind it: deadlines of members, a stream's last id, its groups and what it
//! remembers of its producers. Client flags stand in a line of Tenon's before SET.

use crate::rdb::{Cursor, Part, Room, Stage, View, view};
use tenon_ds::packed::{IntText, Item};
use tenon_store::entry::{EntryRef, ValueRef};
use tenon_store::types::stream::{Block, ConsumerNumber, Group, ProducerLimits, StreamId, StreamState};
use tenon_store::types::zset::Direction;
use tenon_store::types::{ListRef, Rope, Stream};
use tenon_wire::resp::double::write_double;

/// Elements of one command at most, as in Redis.
const ELEMENTS_MAX: usize = 64;
/// Elements of one slice at most, and bytes after which it ends.
const SLICE_ELEMENTS: usize = 512;
const SLICE_BYTES: usize = 64 * 1024;
/// Elements that are looked at between two looks at the bytes.
const STEP: usize = 16;

fn write_word(out: &mut Vec<u8>, word: &[u8]) {
    write_head(out, b'$', word.len());
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

fn write_head(out: &mut Vec<u8>, kind: u8, count: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn write_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    write_head(out, b'*', words.len());
    words.iter().for_each(|word| write_word(out, word));
}

/// Writes the choice of a database.
pub(crate) fn write_select(out: &mut Vec<u8>, database: usize) {
    write_command(out, &[b"SELECT", itoa::Buffer::new().format(database).as_bytes()]);
}

/// Writes a library of functions.
pub(crate) fn write_library(out: &mut Vec<u8>, code: &[u8]) {
    write_command(out, &[b"FUNCTION", b"LOAD", code]);
}

/// Writes a key.
pub(crate) fn write_entry(out: &mut Vec<u8>, entry: EntryRef<'_>) {
    let mut next = Some(Cursor::START);
    while let Some(cursor) = next {
        next = write_slice(out, entry, &cursor);
    }
}

/// Writes the next slice of a key, whole commands; gives where to go on, `None` at the end. Between two slices the value
/// must not change.
pub(crate) fn write_slice(out: &mut Vec<u8>, entry: EntryRef<'_>, cursor: &Cursor) -> Option<Cursor> {
    let key = entry.key();
    let value = entry.value();
    let next = match cursor.0 {
        Stage::Start => match view(value) {
            View::Int(int) => write_string(out, entry, itoa::Buffer::new().format(int).as_bytes()),
            View::Bytes(bytes) => write_string(out, entry, bytes),
            View::Rope(rope) => write_rope(out, entry, rope),
            View::Stream(_) => Some(Stage::Blocks(StreamId::MIN)),
            View::List(_) | View::Hash(_) | View::ExpiringHash(..) | View::Set(_) | View::Zset(_) => {
                Some(Stage::Elements(0))
            }
        },
        Stage::Elements(from) => write_elements(out, key, value, from),
        Stage::Deadlines(from) => write_deadlines(out, key, value, from),
        Stage::Blocks(from) => write_blocks(out, key, stream_of(value), from),
        Stage::Groups(ref name, part) => write_groups(out, key, stream_of(value), name, part),
        Stage::Producers(nth, from) => write_producers(out, key, stream_of(value), nth, from),
        Stage::Nobodys(..) => unreachable!("what is released is said once"),
    };
    if next.is_none()
        && let Some(deadline_ms) = entry.deadline_ms()
    {
        write_command(out, &[b"PEXPIREAT", key, itoa::Buffer::new().format(deadline_ms).as_bytes()]);
    }
    next.map(Cursor)
}

fn stream_of(value: ValueRef<'_>) -> &Stream {
    let View::Stream(stream) = view(value) else { unreachable!("only streams have blocks and groups") };
    stream
}

fn write_flags(out: &mut Vec<u8>, entry: EntryRef<'_>) {
    if entry.flags() != 0 {
        out.extend_from_slice(b"#TENON:FLAGS ");
        out.extend_from_slice(itoa::Buffer::new().format(entry.flags()).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

fn write_string(out: &mut Vec<u8>, entry: EntryRef<'_>, text: &[u8]) -> Option<Stage> {
    write_flags(out, entry);
    write_command(out, &[b"SET", entry.key(), text]);
    None
}

fn write_rope(out: &mut Vec<u8>, entry: EntryRef<'_>, rope: &Rope) -> Option<Stage> {
    write_flags(out, entry);
    write_head(out, b'*', 3);
    write_word(out, b"SET");
    write_word(out, entry.key());
    write_head(out, b'$', rope.len());
    rope.slices().for_each(|slice| out.extend_from_slice(slice));
    out.extend_from_slice(b"\r\n");
    None
}

/// Elements that are gathered for a command: how many they are stands before them.
struct Elements<'a> {
    out: &'a mut Vec<u8>,
    name: &'static [u8],
    key: &'a [u8],
    words: Vec<u8>,
    count: usize,
    words_each: usize,
    /// What the slice may still hold.
    elements_left: usize,
    bytes_left: usize,
}

impl<'a> Elements<'a> {
    fn new(out: &'a mut Vec<u8>, name: &'static [u8], key: &'a [u8], words_each: usize) -> Elements<'a> {
        let (elements_left, bytes_left) = (SLICE_ELEMENTS, SLICE_BYTES);
        Elements { out, name, key, words: Vec::new(), count: 0, words_each, elements_left, bytes_left }
    }

    fn has_room(&self) -> bool {
        self.elements_left > 0 && self.bytes_left > 0
    }

    fn item(&mut self, item: Item<'_>) {
        let before = self.words.len();
        write_word(&mut self.words, item.as_bytes(&mut IntText::new()));
        self.bytes_left = self.bytes_left.saturating_sub(self.words.len() - before);
    }

    /// The words of an element are complete.
    fn end_element(&mut self) {
        self.count += 1;
        self.elements_left = self.elements_left.saturating_sub(1);
        if self.count == ELEMENTS_MAX {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.count > 0 {
            write_head(self.out, b'*', 2 + self.count * self.words_each);
            write_word(self.out, self.name);
            write_word(self.out, self.key);
            self.out.extend_from_slice(&self.words);
            self.words.clear();
            self.count = 0;
        }
    }
}

fn write_elements(out: &mut Vec<u8>, key: &[u8], value: ValueRef<'_>, from: u64) -> Option<Stage> {
    let (name, words_each): (&[u8], _) = match view(value) {
        View::List(_) => (b"RPUSH", 1),
        View::Set(_) => (b"SADD", 1),
        View::Hash(_) | View::ExpiringHash(..) => (b"HSET", 2),
        View::Zset(_) => (b"ZADD", 2),
        View::Int(_) | View::Bytes(_) | View::Rope(_) | View::Stream(_) => {
            unreachable!("the value has no elements of this kind")
        }
    };
    let mut elements = Elements::new(out, name, key, words_each);
    let next = match view(value) {
        View::List(ListRef::Packed(node)) => {
            node.iter().for_each(|element| {
                elements.item(element.item);
                elements.end_element();
            });
            0
        }
        View::List(ListRef::Chain(chain)) => {
            let mut next = 0;
            for (at, node) in (from..).zip(chain.iter_nodes_from(from as usize)) {
                if !elements.has_room() {
                    next = at;
                    break;
                }
                node.iter().for_each(|element| {
                    elements.item(element.item);
                    elements.end_element();
                });
            }
            next
        }
        View::Set(set) => pages(&mut elements, from, |cursor, elements| {
            set.scan(cursor, STEP, |member| {
                elements.item(member);
                elements.end_element();
            })
        }),
        View::Hash(hash) | View::ExpiringHash(hash, _) => pages(&mut elements, from, |cursor, elements| {
            hash.scan(cursor, STEP, |field, value| {
                elements.item(field);
                elements.item(value);
                elements.end_element();
            })
        }),
        View::Zset(zset) => {
            let mut text = Vec::new();
            let mut left = zset.len() - from as usize;
            while left > 0 && elements.has_room() {
                let step = left.min(STEP);
                zset.for_each_in(left - step..left, Direction::Descending, |member, score| {
                    text.clear();
                    write_double(&mut text, score);
                    elements.item(Item::Bytes(&text));
                    elements.item(member);
                    elements.end_element();
                });
                left -= step;
            }
            if left > 0 { (zset.len() - left) as u64 } else { 0 }
        }
        View::Int(_) | View::Bytes(_) | View::Rope(_) | View::Stream(_) => unreachable!("it was just looked at"),
    };
    elements.flush();
    if next > 0 {
        return Some(Stage::Elements(next));
    }
    value.deadlines().map(|_| Stage::Deadlines(0))
}

/// Goes through pages as long as there is room; gives the cursor to go on from, 0 at the end.
fn pages(elements: &mut Elements<'_>, from: u64, mut page: impl FnMut(u64, &mut Elements<'_>) -> u64) -> u64 {
    let mut cursor = from;
    loop {
        cursor = page(cursor, elements);
        if cursor == 0 || !elements.has_room() {
            return cursor;
        }
    }
}

fn write_deadlines(out: &mut Vec<u8>, key: &[u8], value: ValueRef<'_>, from: usize) -> Option<Stage> {
    let deadlines = value.deadlines().expect("there were some when the first of them were written");
    let (name, list): (&[u8], &[u8]) = match view(value) {
        View::Set(_) => (b"SPEXPIREAT", b"MEMBERS"),
        View::Zset(_) => (b"ZPEXPIREAT", b"MEMBERS"),
        _ => (b"HPEXPIREAT", b"FIELDS"),
    };
    let next = deadlines.for_each_from(from, SLICE_ELEMENTS, &mut |member, deadline_ms| {
        let mut digits = itoa::Buffer::new();
        write_command(out, &[name, key, digits.format(deadline_ms).as_bytes(), list, b"1", member]);
    });
    next.map(Stage::Deadlines)
}

fn text_of(id: StreamId) -> String {
    format!("{}-{}", id.ms, id.seq)
}

fn write_blocks(out: &mut Vec<u8>, key: &[u8], stream: &Stream, from: StreamId) -> Option<Stage> {
    let mut bytes = Vec::new();
    for block in stream.blocks_from(from) {
        if bytes.len() >= SLICE_BYTES {
            out.extend_from_slice(&bytes);
            return Some(Stage::Blocks(block.first()));
        }
        write_block(&mut bytes, key, block);
    }
    out.extend_from_slice(&bytes);
    if stream.len() == 0 {
        // It is there all the same.
        write_command(out, &[b"XADD", key, b"MAXLEN", b"0", b"0-1", b"x", b"y"]);
    }
    let StreamState { last_id, max_deleted_id, entries_added } = stream.state();
    let (last_id, max_deleted_id) = (text_of(last_id), text_of(max_deleted_id));
    let added = entries_added.to_string();
    write_command(
        out,
        &[
            b"XSETID",
            key,
            last_id.as_bytes(),
            b"ENTRIESADDED",
            added.as_bytes(),
            b"MAXDELETEDID",
            max_deleted_id.as_bytes(),
        ],
    );
    // No name is before the empty one.
    Some(Stage::Groups(Box::default(), Part::Head))
}

fn write_block(out: &mut Vec<u8>, key: &[u8], block: &Block) {
    for entry in block.entries() {
        let fields = entry.fields();
        write_head(out, b'*', 3 + 2 * fields.len());
        write_word(out, b"XADD");
        write_word(out, key);
        write_word(out, text_of(entry.id()).as_bytes());
        for (field, value) in fields {
            write_word(out, field.as_bytes(&mut IntText::new()));
            write_word(out, value.as_bytes(&mut IntText::new()));
        }
    }
}

/// Writes groups from a part of the one with this name on, as many as there is room for.
fn write_groups(out: &mut Vec<u8>, key: &[u8], stream: &Stream, from: &[u8], mut part: Part) -> Option<Stage> {
    let mut room = Room::of_slice();
    for (name, group) in stream.groups_from(from) {
        if !room.is_left() {
            return Some(Stage::Groups(name.into(), Part::Head));
        }
        let mut slice = GroupSlice { out, key, name, group, room };
        if let Some(next) = slice.write(part) {
            return Some(Stage::Groups(name.into(), next));
        }
        room = slice.room;
        part = Part::Head;
    }
    stream.producers().map(|_| Stage::Producers(0, 0))
}

/// A group that is written, in a slice with this much room.
struct GroupSlice<'a> {
    out: &'a mut Vec<u8>,
    key: &'a [u8],
    name: &'a [u8],
    group: &'a Group,
    room: Room,
}

impl GroupSlice<'_> {
    /// Writes the group from a part on; gives where to go on when there is no more room, `None` at its end.
    fn write(&mut self, mut part: Part) -> Option<Part> {
        loop {
            part = match part {
                Part::Head => self.write_head(),
                Part::Consumers(first, _) => self.write_consumers(first),
                Part::Pending(from) => self.write_pending(from),
                Part::Released(from) => return self.write_released(from),
            };
            if !self.room.is_left() {
                return Some(part);
            }
        }
    }

    /// Writes a command, which is an element.
    fn command(&mut self, words: &[&[u8]]) {
        let before = self.out.len();
        write_command(self.out, words);
        self.room.take(self.out.len() - before);
    }

    fn write_head(&mut self) -> Part {
        let last_id = text_of(self.group.last_id());
        let read = self.group.entries_read().map_or("-1".to_owned(), |read| read.to_string());
        let (key, name) = (self.key, self.name);
        self.command(&[b"XGROUP", b"CREATE", key, name, last_id.as_bytes(), b"ENTRIESREAD", read.as_bytes()]);
        Part::Consumers(None, None)
    }

    fn write_consumers(&mut self, first: Option<ConsumerNumber>) -> Part {
        let group = self.group;
        for (number, consumer) in group.consumers_from(first) {
            if !self.room.is_left() {
                return Part::Consumers(Some(number), None);
            }
            self.command(&[b"XGROUP", b"CREATECONSUMER", self.key, self.name, consumer.name()]);
        }
        Part::Pending(StreamId::MIN)
    }

    fn write_pending(&mut self, from: StreamId) -> Part {
        let group = self.group;
        for (id, pending) in group.pending_in(from..=StreamId::MAX) {
            if !self.room.is_left() {
                return Part::Pending(id);
            }
            let Some(consumer) = pending.consumer() else {
                // It is passed over, which takes time, too.
                self.room.take(0);
                continue;
            };
            let consumer = group.consumer(consumer).name();
            let (id, time, count) = (text_of(id), pending.delivered_ms().to_string(), pending.deliveries.to_string());
            let (time, count) = (time.as_bytes(), count.as_bytes());
            let words: [&[u8]; 12] = [
                b"XCLAIM",
                self.key,
                self.name,
                consumer,
                b"0",
                id.as_bytes(),
                b"TIME",
                time,
                b"RETRYCOUNT",
                count,
                b"FORCE",
                b"JUSTID",
            ];
            self.command(&words);
        }
        Part::Released(0)
    }

    /// Writes what was given back and is nobody's, those first that were first.
    fn write_released(&mut self, from: u64) -> Option<Part> {
        let group = self.group;
        for (turn, id) in group.released_from(from) {
            if !self.room.is_left() {
                return Some(Part::Released(turn));
            }
            let deliveries = group.pending(id).expect("what was given back is pending").deliveries;
            let (id, count) = (text_of(id), deliveries.to_string());
            let (key, name, id, count) = (self.key, self.name, id.as_bytes(), count.as_bytes());
            self.command(&[b"XNACK", key, name, b"FAIL", b"IDS", b"1", id, b"RETRYCOUNT", count, b"FORCE"]);
        }
        None
    }
}

/// Writes how much a stream remembers of its producers, and what from this id of this one on. Redis leaves out what it
/// remembers of entries that are no longer there: then they would be added once more.
fn write_producers(out: &mut Vec<u8>, key: &[u8], stream: &Stream, nth: usize, from: usize) -> Option<Stage> {
    let producers = stream.producers()?;
    if (nth, from) == (0, 0) {
        let ProducerLimits { duration_s, ids_max } = producers.limits();
        let (duration, ids) = (duration_s.to_string(), ids_max.to_string());
        write_command(out, &[b"XCFGSET", key, b"IDMP-DURATION", duration.as_bytes(), b"IDMP-MAXSIZE", ids.as_bytes()]);
    }
    let (mut left, mut begin, end) = (SLICE_ELEMENTS, from, out.len() + SLICE_BYTES);
    for (nth, (name, ids)) in (nth..).zip(producers.starting_at(nth)) {
        for (at, (id, entry)) in ids.enumerate().skip(begin) {
            if left == 0 || out.len() >= end {
                return Some(Stage::Producers(nth, at));
            }
            write_command(out, &[b"XIDMPRECORD", key, name, id, text_of(entry).as_bytes()]);
            left -= 1;
        }
        begin = 0;
    }
    None
}
