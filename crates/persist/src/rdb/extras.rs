//! What Redis 7.0 has no place for beside a value: the flags of memcached's clients, deadlines of members of sets and
//! sorted sets, what was given back to the groups of streams, and what streams remember of their producers. Written as files
//! have their auxiliary fields, which whoever does not know them passes over.
//!
//! ```text
//!   0xFA, "tenon-client-flags", the flags as a text
//!   0xFA, "tenon-member-deadlines", a string: how many, and for each one the member and 8 bytes of milliseconds
//!   0xFA, "tenon-stream-released", a string: a group's name, 1 if it has a consumer with an empty name or else 0, how many ids,
//!         and they in turn, 16 bytes each: in the value they are such a consumer's
//!   0xFA, "tenon-stream-producers", a string (producers.rs)
//! ```

use super::build::set_deadline;
use super::file::opcode::AUXILIARY;
use super::producers::{self, Place};
use super::{DecodeError, Value, stream};
use tenon_store::entry::ValueRef;
use tenon_store::types::stream::{Group, StreamId};
use tenon_store::types::{DeadlinesRef, Object, Stream, ValueType};
use tenon_wire::rdb::{Compression, Reader, Writer};
use tenon_wire::resp::number::parse_i64;

const CLIENT_FLAGS: &[u8] = b"tenon-client-flags";
const MEMBER_DEADLINES: &[u8] = b"tenon-member-deadlines";
const STREAM_RELEASED: &[u8] = b"tenon-stream-released";
const STREAM_PRODUCERS: &[u8] = b"tenon-stream-producers";

/// Whether an auxiliary field of this name is about the value before it.
pub(super) fn is_of_value(name: &[u8]) -> bool {
    [CLIENT_FLAGS, MEMBER_DEADLINES, STREAM_RELEASED, STREAM_PRODUCERS].contains(&name)
}

/// Writes the flags of memcached's clients, if there are any.
pub(super) fn write_client_flags(writer: &mut Writer<'_>, client_flags: u32) {
    if client_flags != 0 {
        writer.byte(AUXILIARY);
        writer.string(CLIENT_FLAGS);
        writer.int_string(client_flags.into());
    }
}

/// Writes deadlines of a collection's members from a place on, about so many; several such fields add up. Gives the place
/// to go on from, `None` at the end.
pub(super) fn write_deadlines(
    writer: &mut Writer<'_>,
    deadlines: DeadlinesRef<'_>,
    place: usize,
    at_least: usize,
) -> Option<usize> {
    let mut bytes = Vec::new();
    let mut count = 0;
    let mut each = Writer::new(&mut bytes, Compression::Off);
    let next = deadlines.for_each_from(place, at_least, &mut |member, deadline_ms| {
        each.string(member);
        each.raw(&deadline_ms.to_le_bytes());
        count += 1;
    });
    let mut text = Vec::new();
    let mut whole = Writer::new(&mut text, Compression::Off);
    whole.length(count);
    whole.raw(&bytes);
    writer.byte(AUXILIARY);
    writer.string(MEMBER_DEADLINES);
    writer.string(&text);
    next
}

/// The deadlines of members that stand beside the value: those of a hash are part of it.
pub(super) fn deadlines_beside(value: ValueRef<'_>) -> Option<DeadlinesRef<'_>> {
    value.deadlines().filter(|_| ValueType::of(value) != ValueType::Hash)
}

/// The stream that a value is, if it remembers anything of its producers.
pub(super) fn stream_with_producers(value: ValueRef<'_>) -> Option<&Stream> {
    match value {
        ValueRef::Object(Object::Stream(stream)) if producers::has_any(stream) => Some(stream),
        _ => None,
    }
}

/// Writes what a stream remembers of its producers from a place on, about so many ids of them as a slice may have; gives the
/// place to go on from, `None` at the end.
pub(super) fn write_producers(writer: &mut Writer<'_>, stream: &Stream, place: Place) -> Option<Place> {
    let (text, next) = producers::text_from(stream, place);
    writer.byte(AUXILIARY);
    writer.string(STREAM_PRODUCERS);
    writer.string(&text);
    next
}

/// Writes which entries of a group are nobody's, from a turn on, at most so many; gives the turn to go on from, `None` at the
/// end.
pub(super) fn write_released_ids(
    writer: &mut Writer<'_>,
    name: &[u8],
    group: &Group,
    from: u64,
    most: usize,
) -> Option<u64> {
    let mut released = group.released_from(from);
    let ids: Vec<StreamId> = released.by_ref().take(most).map(|(_, id)| id).collect();
    let mut text = Vec::new();
    let mut whole = Writer::new(&mut text, Compression::Off);
    whole.string(name);
    whole.byte(group.number_of(stream::NOBODY).is_some().into());
    whole.length(ids.len() as u64);
    ids.iter().for_each(|id| stream::write_pending_id(&mut whole, *id));
    writer.byte(AUXILIARY);
    writer.string(STREAM_RELEASED);
    writer.string(&text);
    released.next().map(|(turn, _)| turn)
}

/// Writes what there is beside a value.
pub(super) fn write_extras(writer: &mut Writer<'_>, value: ValueRef<'_>, client_flags: u32) {
    write_client_flags(writer, client_flags);
    if let Some(deadlines) = deadlines_beside(value) {
        write_deadlines(writer, deadlines, 0, usize::MAX);
    }
    if let ValueRef::Object(Object::Stream(stream)) = value {
        for (name, group) in stream.groups().filter(|(_, group)| group.released_len() > 0) {
            write_released_ids(writer, name, group, 0, usize::MAX);
        }
    }
    if let Some(stream) = stream_with_producers(value) {
        let mut next = Some((0, 0));
        while let Some(place) = next {
            next = write_producers(writer, stream, place);
        }
    }
}

/// Reads what stands behind a value up to the end, gives the value what is its own, and tells the clients' flags.
pub(super) fn read_extras(reader: &mut Reader<'_>, value: &mut Value) -> Result<u32, DecodeError> {
    const WRONG: DecodeError = DecodeError::malformed("something unknown follows the value");
    let mut client_flags = 0;
    while reader.left() > 0 {
        if reader.byte()? != AUXILIARY {
            return Err(WRONG);
        }
        let name = reader.string()?.into_owned();
        match &*name {
            CLIENT_FLAGS => {
                let flags = parse_i64(&reader.string()?).and_then(|flags| u32::try_from(flags).ok());
                client_flags = flags.ok_or(DecodeError::malformed("the client flags are no number"))?;
            }
            MEMBER_DEADLINES => read_deadlines(&reader.string()?, value)?,
            STREAM_RELEASED => read_released(&reader.string()?, value)?,
            STREAM_PRODUCERS => read_producers(&reader.string()?, value)?,
            _ => return Err(WRONG),
        }
    }
    Ok(client_flags)
}

fn read_deadlines(mut bytes: &[u8], value: &mut Value) -> Result<(), DecodeError> {
    // Nothing in it is compressed.
    let mut reader = Reader::new(&mut bytes, 0);
    let mut member = Vec::new();
    for _ in 0..reader.count(1 + size_of::<u64>() as u64)? {
        member.clear();
        member.extend_from_slice(&reader.string()?);
        let deadline_ms = reader.word()?;
        match value {
            Value::Set(set) => set_deadline(set, &member, deadline_ms)?,
            Value::Zset(zset) => set_deadline(zset, &member, deadline_ms)?,
            Value::Hash(hash) => set_deadline(hash, &member, deadline_ms)?,
            Value::String(_) | Value::Rope(_) | Value::List(_) | Value::Stream(_) => {
                return Err(DecodeError::malformed("deadlines of members follow a value that has none"));
            }
        }
    }
    Ok(())
}

fn stream_of(value: &mut Value) -> Result<&mut Stream, DecodeError> {
    match value {
        Value::Stream(stream) => Ok(stream),
        _ => Err(DecodeError::malformed("what a stream remembers follows a value that is none")),
    }
}

fn read_released(mut bytes: &[u8], value: &mut Value) -> Result<(), DecodeError> {
    const WRONG: DecodeError = DecodeError::malformed("a group was given back an entry that is not to be had");
    let stream = stream_of(value)?;
    let mut reader = Reader::new(&mut bytes, 0);
    let name = reader.string()?.into_owned();
    let group = stream.group_mut(&name).ok_or(WRONG)?;
    let has_namesake = reader.byte()? != 0;
    for _ in 0..reader.count(16)? {
        let id = stream::read_raw_id(&mut reader)?;
        let pending = group.pending(id).filter(|pending| pending.consumer().is_some()).ok_or(WRONG)?;
        if group.holder_of(pending) != stream::NOBODY {
            return Err(WRONG);
        }
        group.release(id, pending.deliveries);
    }
    if !has_namesake
        && group.number_of(stream::NOBODY).is_some_and(|number| group.consumer(number).pending().is_empty())
    {
        group.remove_consumer(stream::NOBODY);
    }
    if reader.left() == 0 { Ok(()) } else { Err(DecodeError::malformed("more follows what was given back")) }
}

fn read_producers(mut bytes: &[u8], value: &mut Value) -> Result<(), DecodeError> {
    let stream = stream_of(value)?;
    let mut reader = Reader::new(&mut bytes, 0);
    producers::read(&mut reader, stream)?;
    if reader.left() == 0 { Ok(()) } else { Err(DecodeError::malformed("more follows what a stream remembers")) }
}
