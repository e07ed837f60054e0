//! A stored string read as a HyperLogLog, with Redis's errors for one that is none. Knows no command.

use std::borrow::Cow;
use tenon_engine::errors::CmdError;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::hll::{Corrupt, SketchRef};
use tenon_engine::string;

/// The bytes of a stored string in one piece; only one far longer than a sketch is copied for it.
pub fn bytes_of(value: ValueRef<'_>) -> Cow<'_, [u8]> {
    match value {
        ValueRef::Bytes(bytes) => Cow::Borrowed(bytes),
        _ => Cow::Owned(string::to_vec(value)),
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
