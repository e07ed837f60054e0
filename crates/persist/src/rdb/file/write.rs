//! Writing a file of data: RDB of version 10, which redis-server 7.0 and all later ones load, or the same as commands. Knows
//! neither where its bytes go nor where keys come from.
//!
//! ```text
//!   REDIS0010  auxiliary fields  libraries  (database, its size) ...  (database, entries ...) ...  0xFF  CRC-64
//!
//!   entry:  [0xFC deadline]  [0xF8 idle seconds | 0xF9 frequency]  kind  key  value  [auxiliary fields of our own]
//! ```
//!
//! Entries come as the shards do, so a database may be named many times. What Redis has no form for, clients' flags and
//! the deadlines of members of sets and sorted sets, stands behind an entry as it does in payloads (`rdb/extras.rs`). A
//! hash whose fields expire is in the form of Redis 7.4: older servers refuse it instead of keeping its fields for ever.
//! A file of commands has neither head nor end (`aof/base.rs`).

use super::opcode;
use crate::aof::base;
use crate::rdb::extras::{write_client_flags, write_extras};
use crate::rdb::slices::{self, Cursor};
use crate::rdb::{kind_of, write_value};
use std::io::{self, Write};
use tenon_store::entry::EntryRef;
use tenon_wire::rdb::{self, Compression};

const MAGIC: &[u8] = b"REDIS0010";
/// Bytes that are gathered before they are written.
const BUFFER_LEN: usize = 64 * 1024;
/// As much memory as the buffer keeps.
const BUFFER_KEPT: usize = 16 * BUFFER_LEN;

/// What a file is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// It is an RDB file.
    Rdb,
    /// Commands, as a log has them.
    Commands,
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// What it is made of.
    pub form: Form,
    /// Whether strings are compressed.
    pub compression: Compression,
    /// Whether a checksum stands at the end; else there are zeros in its place.
    pub has_checksum: bool,
}

/// What is written about when or how often a key was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    Unsaid,
    /// Last so many seconds ago.
    IdleSeconds(u64),
    /// So often.
    Frequency(u8),
}

/// Writes a file to `out`.
pub struct FileWriter<W> {
    out: W,
    buffer: Vec<u8>,
    options: FileOptions,
    checksum: u64,
    /// The database that the last entry was of.
    database: Option<usize>,
    /// Bytes that have left the buffer.
    written: u64,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file.
    pub fn new(out: W, options: FileOptions) -> FileWriter<W> {
        let buffer = Vec::with_capacity(BUFFER_LEN + BUFFER_LEN / 2);
        let mut writer = FileWriter { out, buffer, options, checksum: 0, database: None, written: 0 };
        if options.form == Form::Rdb {
            writer.buffer.extend_from_slice(MAGIC);
        }
        writer
    }

    /// Bytes of the file so far.
    pub fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn with(&mut self, write: impl FnOnce(&mut rdb::Writer<'_>)) -> io::Result<()> {
        write(&mut rdb::Writer::new(&mut self.buffer, self.options.compression));
        self.drain(BUFFER_LEN)
    }

    /// Lets the buffer go if it holds at least so many bytes.
    fn drain(&mut self, at_least: usize) -> io::Result<()> {
        if self.buffer.len() >= at_least {
            if self.options.has_checksum {
                self.checksum = rdb::crc64(self.checksum, &self.buffer);
            }
            self.out.write_all(&self.buffer)?;
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
            // What a long value took is not kept for short ones.
            self.buffer.shrink_to(BUFFER_KEPT);
        }
        Ok(())
    }

    /// Writes a name and a text about the file.
    ///
    /// # Errors
    /// Those of writing.
    pub fn auxiliary(&mut self, name: &str, text: &[u8]) -> io::Result<()> {
        if self.options.form == Form::Commands {
            // There is no place for it.
            return Ok(());
        }
        self.with(|writer| {
            writer.byte(opcode::AUXILIARY);
            writer.string(name.as_bytes());
            writer.string(text);
        })
    }

    /// Writes a library of functions.
    ///
    /// # Errors
    /// Those of writing.
    pub fn library(&mut self, code: &[u8]) -> io::Result<()> {
        if self.options.form == Form::Commands {
            base::write_library(&mut self.buffer, code);
            return self.drain(BUFFER_LEN);
        }
        self.with(|writer| {
            writer.byte(opcode::FUNCTION);
            writer.string(code);
        })
    }

    /// Says how many keys a database has, and how many of them expire.
    ///
    /// # Errors
    /// Those of writing.
    pub fn database_size(&mut self, database: usize, keys: u64, expiring: u64) -> io::Result<()> {
        if self.options.form == Form::Commands {
            return Ok(());
        }
        self.select(database)?;
        self.with(|writer| {
            writer.byte(opcode::RESIZE);
            writer.length(keys);
            writer.length(expiring);
        })
    }

    fn select(&mut self, database: usize) -> io::Result<()> {
        if self.database == Some(database) {
            return Ok(());
        }
        self.database = Some(database);
        if self.options.form == Form::Commands {
            base::write_select(&mut self.buffer, database);
            return self.drain(BUFFER_LEN);
        }
        self.with(|writer| {
            writer.byte(opcode::SELECT);
            writer.length(database as u64);
        })
    }

    /// Writes a key of a database.
    ///
    /// # Errors
    /// Those of writing.
    pub fn entry(&mut self, database: usize, entry: EntryRef<'_>, access: Access) -> io::Result<()> {
        self.select(database)?;
        write_entry(&mut self.buffer, &self.options, entry, access);
        self.drain(BUFFER_LEN)
    }

    /// Writes what [`write_entry`] or [`write_slice`] gave for a key of a database. Between the slices of a value nothing
    /// else must be written.
    ///
    /// # Errors
    /// Those of writing.
    pub fn encoded(&mut self, database: usize, bytes: &[u8]) -> io::Result<()> {
        self.select(database)?;
        self.buffer.extend_from_slice(bytes);
        self.drain(BUFFER_LEN)
    }

    /// Ends the file; gives what it was written to, and how many bytes it has.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        if self.options.form == Form::Commands {
            self.drain(0)?;
            self.out.flush()?;
            return Ok((self.out, self.written));
        }
        self.buffer.push(opcode::END);
        self.drain(0)?;
        let checksum = self.checksum;
        self.out.write_all(&checksum.to_le_bytes())?;
        self.out.flush()?;
        Ok((self.out, self.written + size_of_val(&checksum) as u64))
    }
}

/// Writes an entry as it stands in a file.
pub fn write_entry(out: &mut Vec<u8>, options: &FileOptions, entry: EntryRef<'_>, access: Access) {
    if options.form == Form::Commands {
        return base::write_entry(out, entry);
    }
    let mut writer = rdb::Writer::new(out, options.compression);
    write_head(&mut writer, entry, access);
    write_value(&mut writer, entry.value());
    write_extras(&mut writer, entry.value(), entry.flags());
}

/// Writes the next slice of an entry whose value is large ([`crate::rdb::is_large`]); gives where to go on, `None` at the
/// end. Between two slices the value must not change.
pub fn write_slice(
    out: &mut Vec<u8>,
    options: &FileOptions,
    entry: EntryRef<'_>,
    access: Access,
    cursor: &Cursor,
) -> Option<Cursor> {
    if options.form == Form::Commands {
        return base::write_slice(out, entry, cursor);
    }
    let mut writer = rdb::Writer::new(out, options.compression);
    if *cursor == Cursor::START {
        write_head(&mut writer, entry, access);
    }
    let next = slices::write_slice(&mut writer, entry.value(), cursor);
    if next.is_none() {
        write_client_flags(&mut writer, entry.flags());
    }
    next
}

fn write_head(writer: &mut rdb::Writer<'_>, entry: EntryRef<'_>, access: Access) {
    if let Some(deadline_ms) = entry.deadline_ms() {
        writer.byte(opcode::DEADLINE_MS);
        writer.raw(&deadline_ms.to_le_bytes());
    }
    match access {
        Access::Unsaid => {}
        Access::IdleSeconds(seconds) => {
            writer.byte(opcode::IDLE);
            writer.length(seconds);
        }
        Access::Frequency(frequency) => writer.raw(&[opcode::FREQUENCY, frequency]),
    }
    writer.byte(kind_of(entry.value()));
    writer.string(entry.key());
}
