//! Why a value cannot be read. Knows no form.

use std::fmt;
use tenon_wire::rdb::ReadError;

/// Why a value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// It cannot be read at all.
    Read(ReadError),
    /// It is a collection without elements, which no key holds.
    Empty,
    /// It belongs to a module, of which there are none.
    Module,
    /// It has metadata of a module, which may not be left out.
    Metadata,
    /// No such form is known, by this number.
    UnknownKind(u8),
}

impl DecodeError {
    /// The value is not as it has to be: this.
    pub(super) const fn malformed(what: &'static str) -> DecodeError {
        DecodeError::Read(ReadError::Malformed(what))
    }
}

impl From<ReadError> for DecodeError {
    fn from(error: ReadError) -> DecodeError {
        DecodeError::Read(error)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Read(error) => error.fmt(f),
            DecodeError::Empty => f.write_str("it has no elements"),
            DecodeError::Module => f.write_str("it belongs to a module"),
            DecodeError::Metadata => f.write_str("it has metadata that belongs to a module"),
            DecodeError::UnknownKind(kind) => write!(f, "no form of values has the number {kind}"),
        }
    }
}

impl std::error::Error for DecodeError {}
