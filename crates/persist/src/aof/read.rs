//! Records out of an append-only file, one after another, as far as they are whole. Knows no command but MULTI and EXEC.
//!
//! ```text
//! file   = [RDB] record*                  record = annotation* (command | MULTI (annotation* command)* EXEC)
//! command = "*" count CRLF ("$" length CRLF bytes CRLF)*           annotation = "#" text CRLF
//! ```
//!
//! Memory is taken for what was read, never for what a number promises.

use std::io::{self, Read};
use std::ops::Range;
use tenon_wire::rdb::STRING_LEN_MAX;

/// Longest argument, unless told otherwise: what a client may send changes with the settings, so any string there can be.
const BULK_LEN_MAX: u64 = STRING_LEN_MAX;
/// Longest line of an annotation with its end, as in Redis.
const ANNOTATION_MAX: usize = 1024;
/// Longest line of a number with its end.
const NUMBER_MAX: usize = 32;
/// Bytes that are read at once, at least.
const CHUNK: usize = 64 << 10;
/// What is kept of the memory of a long record.
const KEPT: usize = 1 << 20;

/// Whether a file that begins with these bytes begins with a snapshot.
pub fn is_rdb(start: &[u8]) -> bool {
    [&b"REDIS"[..], b"VALKEY"].iter().any(|magic| start.starts_with(magic))
}

/// Why there are no more records.
#[derive(Debug)]
pub enum ReadError {
    /// The file ends within a record, or with zeros where a record should go on.
    Truncated {
        /// Where the last whole record ended.
        valid_up_to: u64,
        /// Whether all commands are whole, but EXEC is missing.
        in_transaction: bool,
    },
    /// This is no record.
    Format {
        /// Where it is wrong.
        at: u64,
        /// Where the last whole record ended.
        valid_up_to: u64,
        /// What is wrong.
        fault: Fault,
    },
    /// The file cannot be read.
    Read(io::Error),
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A line begins with neither of these.
    Expected {
        /// What it should begin with.
        prefix: char,
        /// What it begins with.
        got: u8,
    },
    /// No CR LF stands where it should.
    ExpectedLineEnd {
        /// What stands there.
        got: [u8; 2],
    },
    /// A count of arguments below one, or a length below zero, or more than may be.
    Number(i64),
    /// A number that is none.
    NoNumber,
    /// An annotation that is too long.
    LongAnnotation,
    /// MULTI within MULTI.
    UnexpectedMulti,
    /// EXEC without MULTI.
    UnexpectedExec,
}

/// As `redis-check-aof` words it, where it does.
impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Expected { prefix, got } => {
                write!(f, "Expected prefix '{prefix}', got: '{}'", char::from(*got).escape_default())
            }
            Fault::ExpectedLineEnd { got: [a, b] } => write!(f, "Expected \\r\\n, got: {a:02x}{b:02x}"),
            Fault::Number(number) => write!(f, "{number} is not in the suitable range"),
            Fault::NoNumber => f.write_str("Expected a number"),
            Fault::LongAnnotation => f.write_str("The annotation is too long"),
            Fault::UnexpectedMulti => f.write_str("Unexpected MULTI"),
            Fault::UnexpectedExec => f.write_str("Unexpected EXEC"),
        }
    }
}

/// What is missing at the end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// The rest of a line, or an argument that should follow, or a command behind its annotations.
    Line,
    /// Bytes of an argument and its line end.
    Bytes {
        /// How many should be there.
        expected: u64,
        /// How many are.
        got: u64,
    },
    /// The end of a transaction.
    Exec,
    /// Everything: there are only zeros.
    Zeros,
}

impl std::fmt::Display for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Tail::Line => f.write_str("Reached EOF within a record"),
            Tail::Bytes { expected, got } => write!(f, "Expected to read {expected} bytes, got {got} bytes"),
            Tail::Exec => f.write_str("Reached EOF before reading EXEC for MULTI"),
            Tail::Zeros => f.write_str("Only zeros follow"),
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        ReadError::Read(error)
    }
}

/// What stands at a place of the file, as positions in the reader's memory.
#[derive(Debug)]
enum Piece {
    Annotation(Range<usize>),
    /// A command; its arguments were added.
    Command {
        at: usize,
        args: Range<usize>,
    },
    End,
}

#[derive(Clone, Debug)]
struct CommandSpan {
    at: usize,
    args: Range<usize>,
    annotations: Range<usize>,
}

/// Reads records.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    bulk_len_max: u64,
    /// Where in the file the record begins that is being read.
    offset: u64,
    buffer: Vec<u8>,
    /// Where in the buffer that record begins. What stands before it was given out, and goes when there is more to be read:
    /// moving the rest for each record took longer than reading it.
    start: usize,
    /// How many of its bytes were looked at.
    at: usize,
    has_ended: bool,
    /// Line ends of commands so far.
    lines: u64,
    /// Where the file ended within a record, and what is missing.
    tail: Option<(u64, Tail)>,
    args: Vec<Range<usize>>,
    annotations: Vec<Range<usize>>,
    commands: Vec<CommandSpan>,
}

impl<R: Read> Reader<R> {
    /// Reads a file from its start.
    pub fn new(source: R) -> Reader<R> {
        Reader::starting_at(source, 0)
    }

    /// Reads the part of a file that begins at `offset`, where `source` stands.
    pub fn starting_at(source: R, offset: u64) -> Reader<R> {
        Reader {
            source,
            bulk_len_max: BULK_LEN_MAX,
            offset,
            buffer: Vec::new(),
            start: 0,
            at: 0,
            has_ended: false,
            lines: 0,
            tail: None,
            args: Vec::new(),
            annotations: Vec::new(),
            commands: Vec::new(),
        }
    }

    /// Takes arguments of up to so many bytes.
    #[must_use]
    pub fn with_bulk_len_max(mut self, bulk_len_max: u64) -> Reader<R> {
        self.bulk_len_max = bulk_len_max;
        self
    }

    /// Where the last whole record ended.
    pub fn valid_up_to(&self) -> u64 {
        self.offset
    }

    /// Lines of commands that were read, also of one that is not whole.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Behind [`ReadError::Truncated`]: where more should have come, and what.
    pub fn tail(&self) -> Option<(u64, Tail)> {
        self.tail
    }

    /// The next record; nothing where the file ends behind a whole one.
    ///
    /// # Errors
    /// When no whole record follows; there is nothing more to be had then.
    #[expect(clippy::should_implement_trait, reason = "a record borrows the reader's memory")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        self.clear();
        match self.record() {
            Ok(Some(is_transaction)) => {
                let end = self.offset + self.at as u64;
                let at = std::mem::replace(&mut self.offset, end);
                let commands = &self.commands;
                let (args, annotations) = (&self.args, &self.annotations);
                let bytes = &self.buffer[self.start..self.start + self.at];
                Ok(Some(Record { at, end, is_transaction, commands, args, annotations, bytes }))
            }
            Ok(None) => {
                // What stands behind the last command is annotations.
                self.offset += self.at as u64;
                Ok(None)
            }
            // Of a block that never reached the disk only its length may have: zeros to the end are no format.
            Err(ReadError::Format { at, .. }) if self.is_zero_from(at)? => {
                self.tail = Some((at, Tail::Zeros));
                Err(ReadError::Truncated { valid_up_to: self.offset, in_transaction: false })
            }
            Err(error) => Err(error),
        }
    }

    /// Forgets the record before. As records are given out in the buffer, `at` says where the next one begins.
    fn clear(&mut self) {
        self.start += self.at;
        self.at = 0;
        self.args.clear();
        if self.args.capacity() > KEPT / size_of::<Range<usize>>() {
            self.args.shrink_to(KEPT / size_of::<Range<usize>>());
        }
        self.annotations.clear();
        self.commands.clear();
    }

    /// Reads a record into the buffer, and tells whether it is a transaction.
    fn record(&mut self) -> Result<Option<bool>, ReadError> {
        let mut in_transaction = false;
        let mut annotations = 0;
        loop {
            match self.piece()? {
                Piece::End if in_transaction => {
                    self.tail = Some((self.offset + self.at as u64, Tail::Exec));
                    return Err(ReadError::Truncated { valid_up_to: self.offset, in_transaction });
                }
                // An annotation that is about the next command must not come to be about another one.
                Piece::End if self.annotations.iter().any(|text| !self.data()[text.clone()].starts_with(b"TS:")) => {
                    return Err(self.truncated(Tail::Line));
                }
                Piece::End => return Ok(None),
                Piece::Annotation(text) => self.annotations.push(text),
                Piece::Command { at, args } => {
                    let annotations =
                        std::mem::replace(&mut annotations, self.annotations.len())..self.annotations.len();
                    let is = |name: &[u8]| {
                        args.len() == 1 && self.data()[self.args[args.start].clone()].eq_ignore_ascii_case(name)
                    };
                    let (is_multi, is_exec) = (is(b"multi"), is(b"exec"));
                    match (is_multi, is_exec, in_transaction) {
                        (true, _, true) => return Err(self.format(at, Fault::UnexpectedMulti)),
                        (true, _, false) => in_transaction = true,
                        (_, true, true) => return Ok(Some(true)),
                        (_, true, false) => return Err(self.format(at, Fault::UnexpectedExec)),
                        _ => {
                            self.commands.push(CommandSpan { at, args, annotations });
                            if !in_transaction {
                                return Ok(Some(false));
                            }
                        }
                    }
                }
            }
        }
    }

    /// What is known of the file from the record on. All places within a record are counted from its beginning.
    #[inline]
    fn data(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    fn piece(&mut self) -> Result<Piece, ReadError> {
        if !self.has(1)? {
            return Ok(Piece::End);
        }
        let at = self.at;
        match self.data()[at] {
            b'#' => {
                let line = self.line(ANNOTATION_MAX, Fault::LongAnnotation)?;
                Ok(Piece::Annotation(line.start + 1..line.end))
            }
            b'*' => {
                let count = self.number(b'*')?;
                if !(1..=i64::from(i32::MAX)).contains(&count) {
                    return Err(self.format(at, Fault::Number(count)));
                }
                let first = self.args.len();
                for _ in 0..count {
                    let arg = self.argument()?;
                    self.args.push(arg);
                }
                Ok(Piece::Command { at, args: first..self.args.len() })
            }
            got => Err(self.format(at, Fault::Expected { prefix: '*', got })),
        }
    }

    fn argument(&mut self) -> Result<Range<usize>, ReadError> {
        let at = self.at;
        let number = self.number(b'$')?;
        let len = u64::try_from(number).ok().filter(|&len| len <= self.bulk_len_max);
        let len = len.and_then(|len| usize::try_from(len).ok()).ok_or(self.format(at, Fault::Number(number)))?;
        if !self.has(len + 2)? {
            let got = (self.data().len() - self.at) as u64;
            return Err(self.truncated(Tail::Bytes { expected: len as u64 + 2, got }));
        }
        let arg = self.at..self.at + len;
        let got = [self.data()[arg.end], self.data()[arg.end + 1]];
        if &got != b"\r\n" {
            // The place where it is wrong, for zeros that begin there.
            let at = if got[0] == b'\r' { arg.end + 1 } else { arg.end };
            return Err(self.format(at, Fault::ExpectedLineEnd { got }));
        }
        self.at = arg.end + 2;
        self.lines += 1;
        Ok(arg)
    }

    /// A number behind a sigil, on a line of its own.
    fn number(&mut self, sigil: u8) -> Result<i64, ReadError> {
        let at = self.at;
        if !self.has(1)? {
            return Err(self.truncated(Tail::Line));
        }
        if self.data()[at] != sigil {
            let fault = Fault::Expected { prefix: char::from(sigil), got: self.data()[at] };
            return Err(self.format(at, fault));
        }
        let line = self.line(NUMBER_MAX, Fault::NoNumber)?;
        self.lines += 1;
        let digits = std::str::from_utf8(&self.data()[line.start + 1..line.end]).ok();
        digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| {
            // The place where it stops to be a number, for zeros that begin there.
            let digits = self.data()[line.start + 1..line.end].iter().take_while(|byte| byte.is_ascii_digit()).count();
            self.format(at + 1 + digits, Fault::NoNumber)
        })
    }

    /// The next line without its CR LF.
    fn line(&mut self, len_max: usize, too_long: Fault) -> Result<Range<usize>, ReadError> {
        let start = self.at;
        let mut looked = start;
        let end = loop {
            if let Some(found) = memchr::memchr(b'\n', &self.data()[looked..]) {
                break looked + found;
            }
            looked = self.data().len();
            if looked - start >= len_max {
                break looked;
            }
            if !self.has(looked - start + 1)? {
                let zeros = self.data()[start..].iter().position(|&byte| byte == 0);
                return Err(match zeros {
                    Some(at) => self.format(start + at, too_long),
                    None => self.truncated(Tail::Line),
                });
            }
        };
        if end - start >= len_max {
            let zeros = self.data()[start..end].iter().position(|&byte| byte == 0).unwrap_or(0);
            return Err(self.format(start + zeros, too_long));
        }
        if self.data()[end - 1] != b'\r' || end - 1 == start {
            return Err(self.format(end - 1, Fault::ExpectedLineEnd { got: [self.data()[end - 1], b'\n'] }));
        }
        self.at = end + 1;
        Ok(start..end - 1)
    }

    /// Whether there are `len` bytes more, which are in the buffer then.
    #[inline]
    fn has(&mut self, len: usize) -> io::Result<bool> {
        if self.data().len() - self.at >= len { Ok(true) } else { self.read(len) }
    }

    #[cold]
    fn read(&mut self, len: usize) -> io::Result<bool> {
        self.buffer.drain(..self.start);
        self.start = 0;
        if self.buffer.len() < CHUNK && self.buffer.capacity() > KEPT {
            self.buffer.shrink_to(KEPT);
        }
        while self.buffer.len() - self.at < len {
            if self.has_ended {
                return Ok(false);
            }
            // As much again as there is, at most: a length that lies costs twice what the file really has.
            let missing = len - (self.buffer.len() - self.at);
            let more = missing.min(self.buffer.len()).max(CHUNK);
            let read = self.source.by_ref().take(more as u64).read_to_end(&mut self.buffer)?;
            self.has_ended = read < more;
        }
        Ok(true)
    }

    /// Whether everything from this place of the file on is zeros, and there is something.
    fn is_zero_from(&mut self, at: u64) -> io::Result<bool> {
        let mut start = usize::try_from(at - self.offset).unwrap_or(usize::MAX).min(self.data().len());
        let mut is_any = false;
        loop {
            is_any |= start < self.data().len();
            if self.data()[start..].iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
            if self.has_ended {
                return Ok(is_any);
            }
            self.buffer.clear();
            (self.start, self.at, start) = (0, 0, 0);
            self.has(1)?;
        }
    }

    fn format(&self, at: usize, fault: Fault) -> ReadError {
        ReadError::Format { at: self.offset + at as u64, valid_up_to: self.offset, fault }
    }

    fn truncated(&mut self, tail: Tail) -> ReadError {
        self.tail = Some((self.offset + self.at as u64, tail));
        ReadError::Truncated { valid_up_to: self.offset, in_transaction: false }
    }
}

/// What is done or not as a whole: a command, or the commands of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Where in the file it begins, with its annotations.
    pub at: u64,
    /// Where it ends.
    pub end: u64,
    /// Whether its commands stood between MULTI and EXEC, which are not among them.
    pub is_transaction: bool,
    commands: &'a [CommandSpan],
    args: &'a [Range<usize>],
    annotations: &'a [Range<usize>],
    bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// All of it as it stands in the file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The annotations of all of its commands, of MULTI and EXEC too, in their order, without `#` and line end.
    pub fn annotations(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.annotations.iter().map(move |range| &bytes[range.clone()])
    }

    /// Its commands, one unless it is a transaction.
    pub fn commands(&self) -> impl ExactSizeIterator<Item = Command<'a>> + use<'a> {
        let record = *self;
        record.commands.iter().map(move |span| Command {
            at: record.at + span.at as u64,
            args: &record.args[span.args.clone()],
            annotations: &record.annotations[span.annotations.clone()],
            record: record.bytes,
        })
    }
}

/// A command with its arguments, of which the first is its name.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// Where in the file it begins, behind its annotations.
    pub at: u64,
    args: &'a [Range<usize>],
    annotations: &'a [Range<usize>],
    record: &'a [u8],
}

impl<'a> Command<'a> {
    /// The arguments, at least one.
    pub fn args(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let record = self.record;
        self.args.iter().map(move |range| &record[range.clone()])
    }

    /// Where in [`Record::bytes`] the arguments stand.
    pub fn places(&self) -> &'a [Range<usize>] {
        self.args
    }

    /// The lines before it, without `#` and line end.
    pub fn annotations(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let record = self.record;
        self.annotations.iter().map(move |range| &record[range.clone()])
    }
}
