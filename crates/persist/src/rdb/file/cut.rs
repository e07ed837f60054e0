//! Cuts a file into batches of whole records. It passes over values without reading them, so that reading them, which
//! takes longer, can be shared by many. Knows neither commands nor what becomes of the keys.
//!
//! What is read and not cut yet lies in one window. It is as long as a batch, and longer only while a record is: as many
//! bytes as are really there, whatever lengths the file claims.

use super::super::Origin;
use super::batch::Batch;
use super::error::{At, Cause, Doing, FileError};
use super::header::{self, Header};
use super::record::{Fault, Halt, Place, Record, read_record};
use super::scan::Scan;
use std::io::Read;
use tenon_wire::rdb::crc64;

/// Bytes of a batch, unless a record is longer.
const BATCH_BYTES: usize = 128 * 1024;
/// Bytes by which the window grows at least for a record that is longer.
const STEP_BYTES: usize = 1 << 18;
const CHECKSUM_BYTES: usize = 8;

/// What becomes of what belongs to a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnModule {
    /// The file is refused.
    Refuse,
    /// It is passed over.
    Skip,
}

/// How a file is read.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many bytes the file has, if that is known: lengths that reach beyond are found out before anything is read.
    pub total_bytes: Option<u64>,
    /// How many databases there are.
    pub databases: usize,
    /// What becomes of what belongs to a module.
    pub on_module: OnModule,
}

/// How a file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// How many bytes it has.
    pub bytes: u64,
    /// Whether a checksum stands there, and it is right. Without one it is 0.
    pub is_checked: bool,
}

/// What comes next in a file.
#[derive(Debug)]
pub enum Cut {
    /// Records.
    Batch(Batch),
    /// The end; everything before it has been given.
    End(Ending),
}

/// Reads a file.
#[derive(Debug)]
pub struct Cutter<R> {
    source: R,
    options: Options,
    header: Header,
    /// What was read; what lies before `from` is cut already.
    buffer: Vec<u8>,
    from: usize,
    /// Where in the file `from` is.
    offset: u64,
    /// Whether the source has nothing more.
    is_at_end: bool,
    /// The checksum of all before `from`.
    checksum: u64,
    place: Place,
    /// How the file ended, when it did.
    ending: Option<Ending>,
}

impl<R: Read> Cutter<R> {
    /// Begins to read a file.
    ///
    /// # Errors
    /// When it does not begin as one of a known version does.
    pub fn new(source: R, options: Options) -> Result<Cutter<R>, FileError> {
        let mut cutter = Cutter {
            source,
            options,
            // Until it is read.
            header: Header { version: 1, origin: Origin::Redis },
            buffer: Vec::new(),
            from: 0,
            offset: 0,
            is_at_end: false,
            checksum: 0,
            place: Place::default(),
            ending: None,
        };
        cutter.fill(header::LEN).map_err(|cause| cutter.error(0, Doing::Start, cause))?;
        let Some(first) = cutter.window().first_chunk() else {
            let len = cutter.window().len();
            // Something that begins otherwise is no file that was cut short.
            let is_start = header::is_start(cutter.window());
            let cause = if is_start { Cause::Truncated } else { Cause::Signature };
            return Err(cutter.error(len, Doing::Start, cause));
        };
        cutter.header = Header::read(first).map_err(|cause| cutter.error(header::LEN, Doing::Start, cause))?;
        cutter.pass(header::LEN);
        Ok(cutter)
    }

    /// Whose file it is, and of which version.
    pub fn header(&self) -> Header {
        self.header
    }

    /// How many bytes of the file have been cut.
    pub fn position(&self) -> u64 {
        self.offset
    }

    /// What follows behind the end: bytes that were read already, and the source of others.
    ///
    /// # Panics
    /// When the end was not reached.
    pub fn into_rest(mut self) -> (Vec<u8>, R) {
        assert!(self.ending.is_some(), "what follows the end is known at the end");
        (self.buffer.split_off(self.from), self.source)
    }

    /// The next records, or the end.
    ///
    /// # Errors
    /// When there is something else; all that stands before it has been given.
    pub fn next_batch(&mut self) -> Result<Cut, FileError> {
        if let Some(ending) = self.ending {
            return Ok(Cut::End(ending));
        }
        self.fill(BATCH_BYTES).map_err(|cause| self.error(0, Doing::Type, cause))?;
        let mut batch = Batch { offset: self.offset, ..Batch::default() };
        let mut at = 0;
        while at < BATCH_BYTES && self.ending.is_none() {
            let mut scan = Scan::new(&self.buffer[self.from..], at);
            match read_record(&mut scan, &mut self.place, self.header.origin, &self.options) {
                // Whatever is wrong with a record, or behind it, waits until those before it have been given.
                Ok(Record::End) | Err(_) if at > 0 => break,
                Ok(Record::End) => at = self.end(scan.at())?,
                Ok(record) => {
                    at = scan.at();
                    match record {
                        Record::Noted(note) => batch.notes.push((self.offset + at as u64, note)),
                        Record::Entry(entry) => batch.entries.push(entry),
                        Record::Passed | Record::End => {}
                    }
                }
                // A record that is longer than the window, or than the file.
                Err(Fault { stop: Halt::More(needed), doing, key }) => {
                    if !self.grow(needed).map_err(|cause| self.error(at, doing, cause))? {
                        return Err(self.fault(self.window().len(), doing, key, Cause::Truncated));
                    }
                }
                Err(Fault { stop: Halt::Wrong(cause), doing, key }) => {
                    let at = scan.at();
                    return Err(self.fault(at, doing, key, cause));
                }
            }
        }
        batch.bytes = self.cut(at);
        Ok(Cut::Batch(batch))
    }

    /// Looks at the checksum behind the end, which was read up to `at`; gives where all ends.
    fn end(&mut self, at: usize) -> Result<usize, FileError> {
        if !self.header.has_checksum() {
            self.ending = Some(Ending { bytes: self.offset + at as u64, is_checked: false });
            return Ok(at);
        }
        let end = at + CHECKSUM_BYTES;
        self.fill(end).map_err(|cause| self.error(at, Doing::Checksum, cause))?;
        let Some(bytes) = self.window().get(at..).and_then(|rest| rest.first_chunk()) else {
            return Err(self.error(self.window().len(), Doing::Checksum, Cause::Truncated));
        };
        let found = u64::from_le_bytes(*bytes);
        if found != 0 {
            let made = crc64(self.checksum, &self.window()[..at]);
            if found != made {
                return Err(self.error(end, Doing::Checksum, Cause::Checksum { found, made }));
            }
        }
        self.ending = Some(Ending { bytes: self.offset + end as u64, is_checked: found != 0 });
        Ok(end)
    }

    /// What was read and is not cut yet.
    fn window(&self) -> &[u8] {
        &self.buffer[self.from..]
    }

    /// Takes so many bytes off the window.
    fn cut(&mut self, len: usize) -> Vec<u8> {
        let end = self.from + len;
        if self.from == 0 && self.buffer.len() - end <= len {
            // Behind a batch there is mostly less than it: that moves.
            self.pass(len);
            let rest = self.buffer[end..].to_vec();
            self.from = 0;
            let mut bytes = std::mem::replace(&mut self.buffer, rest);
            bytes.truncate(end);
            bytes
        } else {
            let bytes = self.buffer[self.from..end].to_vec();
            self.pass(len);
            bytes
        }
    }

    /// Leaves so many bytes behind.
    fn pass(&mut self, len: usize) {
        let end = self.from + len;
        self.checksum = crc64(self.checksum, &self.buffer[self.from..end]);
        self.from = end;
        self.offset += len as u64;
    }

    /// Reads until the window has so many bytes, or the source no more.
    fn fill(&mut self, len: usize) -> Result<(), Cause> {
        let missing = len.saturating_sub(self.window().len());
        if missing == 0 || self.is_at_end {
            return Ok(());
        }
        self.buffer.drain(..std::mem::take(&mut self.from));
        let read = (&mut self.source).take(missing as u64).read_to_end(&mut self.buffer).map_err(Cause::Io)?;
        self.is_at_end = read < missing;
        Ok(())
    }

    /// Makes the window longer for a record that needs so many bytes, as far as they come; tells whether it did.
    fn grow(&mut self, needed: u64) -> Result<bool, Cause> {
        let is_beyond = self.options.total_bytes.is_some_and(|total| self.offset.saturating_add(needed) > total);
        if is_beyond || self.is_at_end {
            return Ok(false);
        }
        // By half at least, as a long record is passed over anew each time; and no more than twice, as a length may lie.
        let before = self.window().len();
        let needed = usize::try_from(needed).unwrap_or(usize::MAX);
        self.fill(needed.clamp(before + before / 2, 2 * before).max(before + STEP_BYTES))?;
        Ok(self.window().len() > before)
    }

    fn error(&self, at: usize, doing: Doing, cause: Cause) -> FileError {
        FileError { offset: self.offset + at as u64, doing, key: None, database: self.place.database, cause }
    }

    fn fault(&self, at: usize, doing: Doing, key: Option<(usize, u8)>, cause: Cause) -> FileError {
        let key = key.and_then(|(at, form)| {
            let key = Scan::new(self.window(), at).string().ok()?.into_owned();
            Some(At { key, form })
        });
        FileError { key, ..self.error(at, doing, cause) }
    }
}
