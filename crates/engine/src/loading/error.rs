//! Why data cannot be loaded.

use std::fmt;
use tenon_persist::rdb::file::FileError;

/// Why data cannot be loaded. What was loaded until then is there, and is no whole.
#[derive(Debug)]
pub enum LoadError {
    /// The file is not as it has to be.
    File(FileError),
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
            LoadError::Cancelled => f.write_str("loading was stopped"),
            LoadError::Panicked => f.write_str("a bug made a thread panic that took part in loading"),
        }
    }
}

impl std::error::Error for LoadError {}
