//! A stored string read as a HyperLogLog, with Redis's errors for one that is none. Knows no command.

use tenon_engine::errors::CmdError;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::hll::{Corrupt, SketchRef};
use tenon_engine::store::types::{CHUNK_LEN, Object};
use tenon_engine::string;

/// More bytes than any sketch that is right has: its runs are of a register at least, in two bytes at most.
const LEN_MAX: usize = 64 * 1024;

// A part of a longer string shows all that is to be told of it: how it begins, and that it is no sketch that is right.
const _: () = assert!(CHUNK_LEN > LEN_MAX, "a chunk is longer than a sketch");

/// The bytes of a stored string, of one far longer than a sketch no more than a part: it is not copied to see what it is.
pub fn bytes_of(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Bytes(bytes) => bytes,
        // Digits do not begin like a sketch.
        ValueRef::Int(_) => b"",
        ValueRef::Object(Object::Shared(bytes)) => bytes,
        ValueRef::Object(Object::Rope(rope)) => rope.first_chunk(),
        ValueRef::Object(_) | ValueRef::Packed(..) => string::no_string(),
    }
}

/// The sketch that the bytes of a string are.
///
/// # Errors
/// When they do not begin like one.
pub fn parse(bytes: &[u8]) -> Result<SketchRef<'_>, CmdError> {
    SketchRef::parse(bytes).map_err(|_| CmdError::text("WRONGTYPE Key is not a valid HyperLogLog string value."))
}

/// The error for a sketch whose registers are not right.
pub fn corrupt(_: Corrupt) -> CmdError {
    CmdError::text("INVALIDOBJ Corrupted HLL object detected")
}
