//! Payloads as DUMP gives them and RESTORE takes them: one value, version and checksum. Knows no key.
//!
//! ```text
//! +------+-------+------------------+---------+----------+
//! | kind | value | auxiliary fields | version | CRC-64   |    Redis takes no notice of what stands between a value and
//! | 1 B  |       | of our own       | 2 B     | 8 B      |    the version
//! +------+-------+------------------+---------+----------+
//!    Redis 8.6 puts before the kind what modules keep of the key: 0xF3, and what `file/module.rs` tells of
//! ```

use super::extras::{read_extras, write_extras};
use super::file::{OnModule, module, opcode};
use super::{DecodeError, Limits, Origin, Scene, Value, kind_of, read_value, write_value};
use tenon_ds::progress;
use tenon_store::entry::ValueRef;
use tenon_store::types::Object;
use tenon_wire::rdb::{self, Compression, Reader, Writer};

/// Bytes of a string's payload beside the string: its kind, its length and what stands behind it.
const PAYLOAD_BESIDE: usize = 64;

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
    let len = match value {
        ValueRef::Object(Object::Shared(bytes)) => bytes.len(),
        ValueRef::Object(Object::Rope(rope)) => rope.len(),
        _ => 0,
    };
    progress::count_bytes(len);
    // It is compressed where it is to stand.
    progress::will_take(len);
    let mut payload = Vec::with_capacity(len + PAYLOAD_BESIDE);
    let mut writer = Writer::new(&mut payload, Compression::Quick);
    writer.byte(kind_of(value));
    write_value(&mut writer, value);
    write_extras(&mut writer, value, client_flags);
    rdb::seal(&mut payload);
    if payload.capacity() / 2 > payload.len() {
        payload.shrink_to_fit();
    }
    payload
}

/// How many bytes a value takes in a file or a payload, without its kind.
pub fn serialized_len(value: ValueRef<'_>) -> usize {
    let mut bytes = Vec::new();
    write_value(&mut Writer::new(&mut bytes, Compression::Quick), value);
    bytes.len()
}

/// What is in a payload; compressed strings in it may come to `expansion_max` bytes in all. A module's value is refused in
/// any case.
///
/// # Errors
/// When it is none.
pub fn load(payload: &[u8], limits: Limits, expansion_max: usize, on_metadata: OnModule) -> Result<Loaded, LoadError> {
    let (mut body, version) = rdb::unseal(payload).ok_or(LoadError::Footer)?;
    let origin = if version >= rdb::VALKEY_VERSION { Origin::Valkey } else { Origin::Redis };
    if let Some((&opcode::KEY_METADATA, rest)) = body.split_first()
        && origin == Origin::Redis
    {
        let (metadata, value) = module::split_metadata(rest)?;
        if metadata.needed.is_some() && on_metadata == OnModule::Refuse {
            return Err(DecodeError::Metadata.into());
        }
        body = value;
    }
    let mut reader = Reader::new(&mut body, expansion_max);
    let kind = reader.byte().map_err(DecodeError::Read)?;
    let mut value = read_value(kind, &mut reader, &Scene { limits, origin })?;
    let client_flags = read_extras(&mut reader, &mut value)?;
    Ok(Loaded { value, client_flags })
}
