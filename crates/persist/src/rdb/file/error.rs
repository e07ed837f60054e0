//! Why a file cannot be read, and where in it. Knows no reader.

use super::super::DecodeError;
use std::fmt;
use std::io;

/// What is wrong with a file.
#[derive(Debug)]
pub enum Cause {
    /// It cannot be read at all.
    Io(io::Error),
    /// It does not begin as an RDB file does.
    Signature,
    /// Its version is not known: this header.
    Version(String),
    /// It ends early.
    Truncated,
    /// A record, or a key's value, is not as it has to be.
    Value(DecodeError),
    /// There is no database of this number.
    Database {
        /// The number.
        index: u64,
        /// How many there are.
        databases: usize,
    },
    /// A value, or what stands beside the keys, belongs to a module of this name.
    Module(String),
    /// It has function libraries of a release candidate of Redis 7.0.
    EarlyFunctions,
    /// A function library cannot be loaded, for this reason.
    Function(String),
    /// A key is there twice.
    Duplicate,
    /// It has changed since its checksum was made.
    Checksum {
        /// The checksum in the file.
        found: u64,
        /// That of its bytes.
        made: u64,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Io(error) => write!(f, "it cannot be read: {error}"),
            Cause::Signature => f.write_str("it is no RDB file"),
            Cause::Version(header) => write!(f, "its version is not known: it begins with '{}'", header.escape_debug()),
            Cause::Truncated => f.write_str("it ends early"),
            Cause::Value(error) => error.fmt(f),
            Cause::Database { index, databases } => {
                write!(f, "it has keys of database {index}, and there are {databases} databases: see 'databases'")
            }
            Cause::Module(name) => {
                write!(f, "it has data of the module type '{name}', and there are no modules: see 'rdb-skip-modules'")
            }
            Cause::EarlyFunctions => f.write_str("it has function libraries of a release candidate of Redis 7.0"),
            Cause::Function(why) => write!(f, "a function library cannot be loaded: {why}"),
            Cause::Duplicate => f.write_str("the key is there twice"),
            Cause::Checksum { found, made } => {
                write!(f, "its checksum is wrong: {found:016x} stands in it, its bytes have {made:016x}")
            }
        }
    }
}

/// What was read when something turned out to be wrong, in the words of `redis-check-rdb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// The header.
    Start,
    /// What a record begins with.
    Type,
    /// When a key expires.
    Expire,
    /// A key.
    Key,
    /// A value.
    Value,
    /// The checksum.
    Checksum,
    /// A number of keys or of a database.
    Length,
    /// An auxiliary field.
    Auxiliary,
    /// What a module keeps beside the keys.
    ModuleAuxiliary,
    /// A library of functions.
    Functions,
}

impl Doing {
    /// As `redis-check-rdb` says it.
    pub fn name(self) -> &'static str {
        match self {
            Doing::Start => "start",
            Doing::Type => "read-type",
            Doing::Expire => "read-expire",
            Doing::Key => "read-key",
            Doing::Value => "read-object-value",
            Doing::Checksum => "check-sum",
            Doing::Length => "read-len",
            Doing::Auxiliary => "read-aux",
            Doing::ModuleAuxiliary => "read-module-aux",
            Doing::Functions => "read-functions",
        }
    }
}

/// A key, and which form its value has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The key.
    pub key: Vec<u8>,
    /// The form of its value.
    pub form: u8,
}

/// Why a file cannot be loaded.
#[derive(Debug)]
pub struct FileError {
    /// How many bytes of the file stand before what is wrong.
    pub offset: u64,
    /// What was read.
    pub doing: Doing,
    /// The key whose record it is.
    pub key: Option<At>,
    /// The database of what is read there.
    pub database: usize,
    /// What is wrong.
    pub cause: Cause,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}", self.offset)?;
        if let Some(At { key, .. }) = &self.key {
            write!(f, ", key '{}' of database {}", key.escape_ascii(), self.database)?;
        }
        write!(f, ": {}", self.cause)
    }
}

impl std::error::Error for FileError {}
