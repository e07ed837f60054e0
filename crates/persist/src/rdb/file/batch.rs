//! A stretch of a file that is cut into its records: keys with their values, which anybody may read then, on any thread.
//! Knows neither where the file comes from nor where the keys go.

use super::super::extras::read_extras;
use super::super::{DecodeError, Scene, Value, read_value};
use super::error::At;
use super::scan::Scan;
use super::{Cause, Doing, FileError};
use std::borrow::Cow;
use tenon_store::entry::NewValue;
use tenon_store::types::Rope;
use tenon_wire::rdb::Reader;

/// How a key was used, as far as the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Usage {
    /// It does not.
    #[default]
    Unknown,
    /// Last so many seconds ago.
    IdleSeconds(u64),
    /// So often.
    Frequency(u8),
}

/// Where a key and its value stand in a batch.
#[derive(Clone, Copy, Debug)]
pub struct EntrySpan {
    /// In which database it is.
    pub database: u32,
    /// The form of its value.
    pub form: u8,
    /// How it was used.
    pub usage: Usage,
    /// When it expires, in milliseconds since the UNIX epoch.
    pub deadline_ms: Option<u64>,
    pub(super) key_at: usize,
    pub(super) value_at: usize,
    pub(super) end: usize,
}

/// What stands beside the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// An auxiliary field.
    Auxiliary {
        /// Its name.
        name: Vec<u8>,
        /// What it says.
        text: Vec<u8>,
    },
    /// Keys of this database follow.
    Database(usize),
    /// A database has so many keys, as the file says before they come.
    Keys {
        /// Which one.
        database: usize,
        /// How many.
        count: u64,
    },
    /// A function library's text.
    Function(Vec<u8>),
    /// What a module of this name keeps beside the keys was passed over.
    SkippedModule(String),
    /// A key was passed over because its value belongs to a module.
    SkippedKey {
        /// The key.
        key: Vec<u8>,
        /// The module's name.
        module: String,
    },
    /// What modules keep of a key was passed over.
    SkippedMetadata {
        /// The key, which follows.
        key: Vec<u8>,
        /// The names of the classes of metadata.
        classes: Vec<String>,
    },
}

/// A stretch of a file.
#[derive(Debug, Default)]
pub struct Batch {
    pub(super) bytes: Vec<u8>,
    /// Where in the file it begins.
    pub(super) offset: u64,
    /// Its keys.
    pub entries: Vec<EntrySpan>,
    /// What stands beside the keys, each behind so many bytes of the file.
    pub notes: Vec<(u64, Note)>,
}

impl Batch {
    /// How many bytes of the file it is.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The key of an entry.
    ///
    /// # Errors
    /// When it cannot be decompressed.
    pub fn key(&self, entry: &EntrySpan) -> Result<Cow<'_, [u8]>, FileError> {
        Scan::new(&self.bytes[..entry.value_at], entry.key_at).string().map_err(|_| FileError {
            offset: self.offset + entry.key_at as u64,
            doing: Doing::Key,
            key: None,
            database: entry.database as usize,
            cause: Cause::Value(DecodeError::malformed("a key cannot be decompressed")),
        })
    }

    /// Hands the value of an entry to `put` as it is to be stored, with the flags of memcached's clients.
    ///
    /// # Errors
    /// When it is none.
    pub fn store<R>(
        &self,
        entry: &EntrySpan,
        scene: &Scene,
        put: impl FnOnce(NewValue<'_>, u32) -> R,
    ) -> Result<R, FileError> {
        if entry.form == super::super::kind::STRING {
            let mut scan = Scan::new(&self.bytes[..entry.end], entry.value_at);
            // Most values are strings that nothing follows, and are stored from where they lie.
            let mut rope = Rope::new();
            if let Ok(text) = scan.string_or_pieces(|piece| rope.append(piece))
                && scan.at() == entry.end
            {
                return Ok(match text {
                    Some(text) => Value::store_string(&text, |value| put(value, 0)),
                    None => Value::Rope(rope).store(|value| put(value, 0)),
                });
            }
        }
        let mut bytes = &self.bytes[entry.value_at..entry.end];
        let mut reader = Reader::new(&mut bytes, usize::MAX);
        let value = read_value(entry.form, &mut reader, scene).and_then(|mut value| {
            let flags = read_extras(&mut reader, &mut value)?;
            Ok((value, flags))
        });
        match value {
            Ok((value, flags)) => Ok(value.store(|value| put(value, flags))),
            Err(error) => {
                let read = entry.end - entry.value_at - reader.left() as usize;
                Err(self.wrong(entry, read, error))
            }
        }
    }

    /// A key's record is wrong, so many bytes behind its value's start.
    fn wrong(&self, entry: &EntrySpan, read: usize, error: DecodeError) -> FileError {
        self.refusal(entry, entry.value_at + read, Cause::Value(error))
    }

    /// An entry is not taken, for this reason.
    pub fn refused(&self, entry: &EntrySpan, cause: Cause) -> FileError {
        self.refusal(entry, entry.key_at, cause)
    }

    fn refusal(&self, entry: &EntrySpan, at: usize, cause: Cause) -> FileError {
        FileError {
            offset: self.offset + at as u64,
            doing: Doing::Value,
            key: self.key(entry).ok().map(|key| At { key: key.into_owned(), form: entry.form }),
            database: entry.database as usize,
            cause,
        }
    }
}
