//! Payloads as DUMP gives them and RESTORE takes them: one value, version and checksum. Knows no key.
//!
//! ```text
//! +------+-------+------------------------------+---------+----------+
//! | kind | value | 0xFA, name, flags as a text  | version | CRC-64   |
//! | 1 B  |       | only where there are any     | 2 B     | 8 B      |
//! +------+-------+------------------------------+---------+----------+
//! ```
//!
//! Redis takes no notice of what stands between a value and the version: there the flags lie that memcached's clients keep
//! with an item, written as files have their auxiliary fields, so that they survive on the way to another Tenon.

use super::{DecodeError, Limits, Origin, Scene, Value, kind_of, read_value, write_value};
use tenon_store::entry::ValueRef;
use tenon_wire::rdb::{self, Compression, Reader, Writer};
use tenon_wire::resp::number::parse_i64;

/// What stands before an auxiliary field (`RDB_OPCODE_AUX`).
const AUXILIARY: u8 = 0xFA;
/// The name of the field for the clients' flags.
const FLAGS: &[u8] = b"tenon-client-flags";

/// What a payload holds.
#[derive(Debug)]
pub struct Loaded {
    /// The value.
    pub value: Value,
    /// The flags that memcached's clients keep with an item; 0 without any.
    pub client_flags: u32,
}

/// Why a payload cannot be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// Its version is not known, or it has changed since its checksum was made.
    Footer,
    /// The value in it is none.
    Value(DecodeError),
}

impl From<DecodeError> for LoadError {
    fn from(error: DecodeError) -> LoadError {
        LoadError::Value(error)
    }
}

/// The payload of a value.
pub fn dump(value: ValueRef<'_>, client_flags: u32) -> Vec<u8> {
    let mut payload = Vec::new();
    let mut writer = Writer::new(&mut payload, Compression::On);
    writer.byte(kind_of(value));
    write_value(&mut writer, value);
    if client_flags != 0 {
        writer.byte(AUXILIARY);
        writer.string(FLAGS);
        writer.int_string(client_flags.into());
    }
    rdb::seal(&mut payload);
    payload
}

/// What is in a payload; compressed strings in it may come to `expansion_max` bytes in all.
///
/// # Errors
/// When it is none.
pub fn load(payload: &[u8], limits: Limits, expansion_max: usize) -> Result<Loaded, LoadError> {
    let (mut body, version) = rdb::unseal(payload).ok_or(LoadError::Footer)?;
    let origin = if version >= rdb::VALKEY_VERSION { Origin::Valkey } else { Origin::Redis };
    let mut reader = Reader::new(&mut body, expansion_max);
    let kind = reader.byte().map_err(DecodeError::Read)?;
    let value = read_value(kind, &mut reader, &Scene { limits, origin })?;
    let client_flags = if reader.left() == 0 { 0 } else { read_flags(&mut reader)? };
    Ok(Loaded { value, client_flags })
}

fn read_flags(reader: &mut Reader<'_>) -> Result<u32, DecodeError> {
    let wrong = DecodeError::malformed("something else follows the value");
    if reader.byte()? != AUXILIARY || *reader.string()? != *FLAGS {
        return Err(wrong);
    }
    let flags = parse_i64(&reader.string()?).and_then(|flags| u32::try_from(flags).ok());
    flags.filter(|_| reader.left() == 0).ok_or(wrong)
}
