//! Reading a value of any form, from Redis 1.0's to those of Redis 8.8 and Valkey 9. Nothing that is read is believed.

use super::build::{HashBuilder, ListBuilder, SetBuilder, ZsetBuilder};
use super::kind::{self, node};
use super::stream::Form;
use super::{DecodeError, Value, intset, listpack, stream, ziplist, zipmap};
use std::borrow::Cow;
use tenon_ds::packed::Item;
use tenon_store::types::stream::ProducerLimits;
use tenon_store::types::{HashLimits, ListLimits, MEMBER_DEADLINE_MAX_MS, Rope, SetLimits, ZsetLimits};
use tenon_wire::rdb::Reader;

/// Up to where collections stay in their small forms.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Lists.
    pub list: ListLimits,
    /// Hashes.
    pub hash: HashLimits,
    /// Sets.
    pub set: SetLimits,
    /// Sorted sets.
    pub zset: ZsetLimits,
    /// How much streams remember of their producers that do not say so themselves.
    pub producers: ProducerLimits,
}

/// Whose numbers of forms are meant: later ones were given out twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Redis, and Valkey before its version 9.
    Redis,
    /// Valkey from version 9 on.
    Valkey,
}

/// What is to be known for reading beside what is read.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// Up to where collections stay in their small forms.
    pub limits: Limits,
    /// Whose numbers of forms are meant.
    pub origin: Origin,
}

/// Reads the value of a form.
///
/// # Errors
/// When it is none; how much was read is not said then.
pub fn read_value(kind: u8, reader: &mut Reader<'_>, scene: &Scene) -> Result<Value, DecodeError> {
    let limits = &scene.limits;
    match kind {
        kind::STRING => {
            let mut rope = Rope::new();
            let text = reader.string_or_pieces(|piece| rope.append(piece))?.map(Cow::into_owned);
            Ok(text.map_or(Value::Rope(rope), Value::String))
        }
        kind::LIST => {
            let mut list = ListBuilder::new(limits);
            for _ in 0..reader.count(1)? {
                list.push(Item::of(&reader.string()?));
            }
            list.finish()
        }
        kind::LIST_ZIPLIST => {
            let mut list = ListBuilder::new(limits);
            list.push_all(&mut ziplist::Entries::new(&reader.string()?)?)?;
            list.finish()
        }
        kind::LIST_QUICKLIST => {
            let mut list = ListBuilder::new(limits);
            for _ in 0..reader.count(1)? {
                list.push_all(&mut ziplist::Entries::new(&reader.string()?)?)?;
            }
            list.finish()
        }
        kind::LIST_QUICKLIST_2 => {
            let mut list = ListBuilder::new(limits);
            for _ in 0..reader.count(2)? {
                match reader.length()? {
                    node::PLAIN => match &*reader.string()? {
                        [] => return Err(DecodeError::malformed("a list's node is empty")),
                        element => list.push(Item::of(element)),
                    },
                    node::PACKED => list.push_all(&mut listpack::Elements::new(&reader.string()?)?)?,
                    _ => return Err(DecodeError::malformed("a list's node is of no known kind")),
                }
            }
            list.finish()
        }
        kind::SET => {
            let count = reader.count(1)?;
            let mut set = SetBuilder::new(count, limits);
            for _ in 0..count {
                set.add(Item::of(&reader.string()?))?;
            }
            set.finish()
        }
        kind::SET_INTSET => {
            let bytes = reader.string()?;
            let ints = intset::read(&bytes)?;
            let mut set = SetBuilder::new(ints.len(), limits);
            set.add_ascending(ints)?;
            set.finish()
        }
        kind::SET_LISTPACK => {
            let mut set = SetBuilder::new(0, limits);
            set.add_all(&mut listpack::Elements::new(&reader.string()?)?)?;
            set.finish()
        }
        kind::ZSET | kind::ZSET_2 => {
            let count = reader.count(2)?;
            let mut zset = ZsetBuilder::new(count, limits);
            let mut member = Vec::new();
            for _ in 0..count {
                member.clear();
                member.extend_from_slice(&reader.string()?);
                let score = if kind == kind::ZSET { reader.text_double()? } else { reader.double()? };
                zset.add(&member, score)?;
            }
            zset.finish()
        }
        kind::ZSET_ZIPLIST => {
            let mut zset = ZsetBuilder::new(0, limits);
            zset.add_all(&mut ziplist::Entries::new(&reader.string()?)?)?;
            zset.finish()
        }
        kind::ZSET_LISTPACK => {
            let mut zset = ZsetBuilder::new(0, limits);
            zset.add_all(&mut listpack::Elements::new(&reader.string()?)?)?;
            zset.finish()
        }
        kind::HASH => read_fields(reader, limits, |_| Ok(None)),
        kind::HASH_ZIPMAP => {
            let mut hash = HashBuilder::new(0, limits);
            hash.set_all(&mut zipmap::Strings::new(&reader.string()?)?)?;
            hash.finish()
        }
        kind::HASH_ZIPLIST => {
            let mut hash = HashBuilder::new(0, limits);
            hash.set_all(&mut ziplist::Entries::new(&reader.string()?)?)?;
            hash.finish()
        }
        kind::HASH_LISTPACK => {
            let mut hash = HashBuilder::new(0, limits);
            hash.set_all(&mut listpack::Elements::new(&reader.string()?)?)?;
            hash.finish()
        }
        kind::HASH_METADATA => {
            let first_ms = reader.word()?;
            read_fields(reader, limits, |reader| match reader.length()? {
                0 => Ok(None),
                // Counted from the first deadline, which is 1.
                ms => (ms - 1).checked_add(first_ms).map(Some).ok_or(DecodeError::malformed("a deadline is too late")),
            })
        }
        kind::HASH_LISTPACK_EX => {
            reader.word()?;
            let mut hash = HashBuilder::new(0, limits);
            hash.set_all_until(&mut listpack::Elements::new(&reader.string()?)?)?;
            hash.finish()
        }
        kind::VALKEY_HASH_2 if scene.origin == Origin::Valkey => read_valkey_fields(reader, limits),
        // Deadlines are moments there.
        kind::HASH_METADATA_EARLY => read_fields(reader, limits, |reader| match reader.length()? {
            0 => Ok(None),
            ms => Ok(Some(ms)),
        }),
        kind::HASH_LISTPACK_EX_EARLY if scene.origin == Origin::Redis => {
            let mut hash = HashBuilder::new(0, limits);
            hash.set_all_until(&mut listpack::Elements::new(&reader.string()?)?)?;
            hash.finish()
        }
        kind::STREAM_LISTPACKS
        | kind::STREAM_LISTPACKS_2
        | kind::STREAM_LISTPACKS_3
        | kind::STREAM_LISTPACKS_4
        | kind::STREAM_LISTPACKS_5 => stream::read(Form::of(kind), reader, limits.producers).map(Value::Stream),
        kind::MODULE | kind::MODULE_2 => Err(DecodeError::Module),
        other => Err(DecodeError::UnknownKind(other)),
    }
}

/// Reads a hash's fields with their values, each behind a deadline that `deadline_ms` reads.
fn read_fields(
    reader: &mut Reader<'_>,
    limits: &Limits,
    mut deadline_ms: impl FnMut(&mut Reader<'_>) -> Result<Option<u64>, DecodeError>,
) -> Result<Value, DecodeError> {
    let count = reader.count(2)?;
    let mut hash = HashBuilder::new(count, limits);
    let mut field = Vec::new();
    for _ in 0..count {
        let deadline_ms = deadline_ms(reader)?;
        field.clear();
        field.extend_from_slice(&reader.string()?);
        hash.set_until(&field, &reader.string()?, deadline_ms)?;
    }
    hash.finish()
}

/// Reads a hash's fields with their values, each before a deadline or -1 for none. Valkey knows later deadlines than there can
/// be here: those are the latest.
fn read_valkey_fields(reader: &mut Reader<'_>, limits: &Limits) -> Result<Value, DecodeError> {
    let count = reader.count(2 + size_of::<u64>() as u64)?;
    let mut hash = HashBuilder::new(count, limits);
    let (mut field, mut value) = (Vec::new(), Vec::new());
    for _ in 0..count {
        field.clear();
        field.extend_from_slice(&reader.string()?);
        value.clear();
        value.extend_from_slice(&reader.string()?);
        let deadline_ms = Some(reader.word()?).filter(|ms| *ms != u64::MAX);
        let is_time = |ms: u64| i64::try_from(ms).is_ok();
        let deadline_ms = deadline_ms.map(|ms| if is_time(ms) { ms.min(MEMBER_DEADLINE_MAX_MS) } else { ms });
        hash.set_until(&field, &value, deadline_ms)?;
    }
    hash.finish()
}
