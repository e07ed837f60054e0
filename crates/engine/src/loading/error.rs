//! Why data cannot be loaded.

use std::fmt;
use tenon_persist::aof::{OpenError, directory};
use tenon_persist::rdb::file::FileError;

/// Why data cannot be loaded. What was loaded until then is there, and is no whole.
#[derive(Debug)]
pub enum LoadError {
    /// The file is not as it has to be.
    File(FileError),
    /// The snapshot that a log's file begins with is not.
    Base {
        /// The file's name.
        name: String,
        /// What is wrong.
        error: FileError,
    },
    /// There is no telling which files a log has.
    Open(OpenError),
    /// A log's file ends within a record, or what stands in it is none.
    Torn(directory::LoadError),
    /// A command of a log cannot be run again.
    Log {
        /// The file's name.
        name: String,
        /// Where it stands.
        at: u64,
        /// Why not.
        why: String,
    },
    /// Other data is being loaded; nothing has happened.
    UnderWay,
    /// Somebody has asked to stop.
    Cancelled,
    /// A bug made a thread panic that took part.
    Panicked,
}

impl From<FileError> for LoadError {
    fn from(error: FileError) -> LoadError {
        LoadError::File(error)
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::File(error) => error.fmt(f),
            LoadError::Base { name, error } => write!(f, "the snapshot in {name} cannot be loaded: {error}"),
            LoadError::Open(error) => error.fmt(f),
            LoadError::Torn(error) => error.fmt(f),
            LoadError::Log { name, at, why } => write!(f, "at byte {at} of the append-only file {name}: {why}"),
            LoadError::UnderWay => f.write_str("other data is being loaded"),
            LoadError::Cancelled => f.write_str("loading was stopped"),
            LoadError::Panicked => f.write_str("a bug made a thread panic that took part in loading"),
        }
    }
}

impl std::error::Error for LoadError {}
