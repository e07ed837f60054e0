//! Looking through append-only files without loading them, and cutting off what is torn, in the words of
//! `redis-check-aof`. Knows no command, and leaves snapshots to its caller.

use super::left::{error_of, words_of_brought, words_of_given_up, words_of_not_brought};
use super::manifest::{Entry, Manifest};
use super::names::is_snapshot;
use super::read::{Fault, ReadError, Reader, is_rdb};
use super::words_of_error;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tenon_journal::Settings;
use tenon_journal::files::{Files, Hold, read_short};
use tenon_journal::log::{self, Unlisted};

/// What to do beside looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Look,
    /// Cut off what is torn.
    Fix,
    /// Cut off what was written behind this second.
    TruncateTo(i64),
}

/// Looks through a snapshot, says what it finds, and gives its length if it is whole.
pub type CheckRdb<'a> = &'a mut dyn FnMut(&mut dyn Read, &mut dyn Write) -> io::Result<Option<u64>>;

/// What it needs.
pub struct Check<'a> {
    /// Where the files are.
    pub files: &'a dyn Files,
    /// What to do beside looking.
    pub mode: Mode,
    /// Where it is written what is found.
    pub out: &'a mut dyn Write,
    /// Asked before anything is cut off.
    pub may_cut: &'a mut dyn FnMut() -> bool,
    /// Looks through snapshots.
    pub check_rdb: CheckRdb<'a>,
}

/// Longest manifest that is read, in bytes.
const MANIFEST_MAX: u64 = 64 << 20;

/// How a file was found.
enum Found {
    Valid,
    Empty,
    Cut,
    CutToTimestamp(i64),
}

/// A file to look through.
struct Subject<'a> {
    name: &'a str,
    path: &'a Path,
    /// Whether it may be cut: nothing follows.
    is_last: bool,
}

impl Check<'_> {
    /// Looks through a file, or all files of a manifest; tells whether everything is well then.
    ///
    /// # Errors
    /// When what is found cannot be written.
    pub fn run(&mut self, path: &Path) -> io::Result<bool> {
        let _hold = match self.hold(path) {
            Ok(hold) => hold,
            Err(InUse) => {
                writeln!(
                    self.out,
                    "A server has the files of {} open: end it before they are changed",
                    path.display()
                )?;
                return Ok(false);
            }
        };
        let is_well = match self.manifest(path) {
            Ok(Some(text)) => self.all_parts(path, &text)?,
            Ok(None) => self.old_style(path)?,
            Err(error) => {
                writeln!(self.out, "Cannot open file {}: {}", path.display(), words_of_error(&error))?;
                false
            }
        };
        Ok(is_well)
    }

    /// Has what a killed server had confirmed and not written stand in the files that it belongs to, before they are looked
    /// through: a start would put it there. Tells whether that could be done.
    fn bring_left(&mut self, directory: &Path, increments: &[PathBuf]) -> io::Result<bool> {
        match log::bring_left(self.files, directory, increments, Unlisted::Stays, &Settings::default()) {
            Ok(left) => {
                for words in words_of_brought(&left).into_iter().chain(words_of_given_up(&left)) {
                    writeln!(self.out, "{words}")?;
                }
                // Behind what is cut a start would put it.
                Ok(left.not_looked.is_none())
            }
            Err(not) => {
                let words = words_of_not_brought(&not);
                writeln!(self.out, "{words}: {}", words_of_error(&error_of(not)))?;
                Ok(false)
            }
        }
    }

    /// Whether a start would put something behind a file when that was cut.
    fn is_followed_by_left(&mut self, path: &Path) -> io::Result<bool> {
        let is_left = self.mode != Mode::Look
            && log::is_left(self.files, directory_of(path), &Settings::default()).unwrap_or(false);
        if is_left {
            writeln!(
                self.out,
                "A killed server had confirmed something that is not in the files of {} yet: name their manifest",
                directory_of(path).display()
            )?;
        }
        Ok(is_left)
    }

    /// Takes the directory for as long as its files may be changed, so that no server begins to write to them.
    fn hold(&self, path: &Path) -> Result<Option<Hold>, InUse> {
        if self.mode == Mode::Look {
            return Ok(None);
        }
        match self.files.hold_directory(directory_of(path)) {
            Ok(hold) => Ok(hold),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(InUse),
            // Whoever opens the file says what is wrong.
            Err(_) => Ok(None),
        }
    }

    /// The text of a manifest: a file whose first line that is no comment begins with `file`. One of a manifest's name is
    /// one whatever is in it: to be cut as a log would not mend it.
    fn manifest(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        if path.extension().is_some_and(|extension| extension == "manifest") {
            return read_short(self.files, path, MANIFEST_MAX).map(Some);
        }
        let mut start = Vec::new();
        self.files.read(path)?.take(64 << 10).read_to_end(&mut start)?;
        let first = start.split(|&byte| byte == b'\n').find(|line| !line.starts_with(b"#"));
        if !first.is_some_and(|line| line.starts_with(b"file")) {
            return Ok(None);
        }
        read_short(self.files, path, MANIFEST_MAX).map(Some)
    }

    fn all_parts(&mut self, path: &Path, text: &[u8]) -> io::Result<bool> {
        writeln!(self.out, "Start checking Multi Part AOF")?;
        let manifest = match Manifest::parse(text) {
            Ok(manifest) => manifest,
            Err(error) => {
                writeln!(self.out, "{error}")?;
                return Ok(false);
            }
        };
        let directory = path.parent().unwrap_or(Path::new(""));
        let path_of = |entry: &Entry| directory.join(OsStr::from_bytes(&entry.name));
        let increments: Vec<PathBuf> = manifest.increments.iter().map(path_of).collect();
        if self.mode != Mode::Look {
            // What belongs to a file that is put back must be there then.
            for path in &increments {
                if let Err(error) = self.files.read(path) {
                    return self.cannot_open(path, &error).map(|()| false);
                }
            }
            if !self.bring_left(directory_of(path), &increments)? {
                return Ok(false);
            }
        }
        let parts: Vec<(&Entry, PathBuf)> = manifest.to_load().map(|entry| (entry, path_of(entry))).collect();
        // An increment is listed before it is gone on with: empty ones may follow the last. Behind one that may be torn a
        // log can have begun anew.
        let has_bytes = |path: &PathBuf| !matches!(self.files.len(path), Ok(Some(0)));
        let is_last = |index: usize| {
            let following = parts[index + 1..].iter().take_while(|(entry, _)| !entry.lacks_base);
            !following.into_iter().any(|(_, path)| has_bytes(path))
        };
        for (index, (entry, path)) in parts.iter().enumerate() {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            let subject = Subject { name: &name, path, is_last: is_last(index) };
            let is_base = index == 0 && manifest.base.is_some();
            if index == usize::from(manifest.base.is_some()) {
                writeln!(self.out, "Start to check INCR files.")?;
            }
            let kind = if is_base { "BASE AOF" } else { "INCR AOF" };
            let may_be_rdb = is_base;
            if is_base {
                let format = if self.is_rdb(path).unwrap_or(false) { "RDB" } else { "RESP" };
                writeln!(self.out, "Start to check BASE AOF ({format} format).")?;
            }
            if !self.one(&subject, kind, may_be_rdb)? {
                return Ok(false);
            }
        }
        writeln!(self.out, "All AOF files and manifest are valid")?;
        Ok(true)
    }

    fn old_style(&mut self, path: &Path) -> io::Result<bool> {
        writeln!(self.out, "Start checking Old-Style AOF")?;
        if self.is_followed_by_left(path)? {
            return Ok(false);
        }
        let name = path.display().to_string();
        self.one(&Subject { name: &name, path, is_last: true }, "AOF", true)
    }

    fn cannot_open(&mut self, path: &Path, error: &io::Error) -> io::Result<()> {
        writeln!(self.out, "Cannot open file {}: {}, aborting...", path.display(), words_of_error(error))
    }

    fn is_rdb(&self, path: &Path) -> io::Result<bool> {
        let mut start = Vec::new();
        self.files.read(path)?.take(8).read_to_end(&mut start)?;
        Ok(start.len() == 8 && is_rdb(&start))
    }

    /// Looks through a file and says how it was found.
    fn one(&mut self, subject: &Subject<'_>, kind: &str, may_be_rdb: bool) -> io::Result<bool> {
        let name = subject.name;
        match self.look(subject, may_be_rdb)? {
            Some(Found::Valid) => writeln!(self.out, "{kind} {name} is valid")?,
            Some(Found::Empty) => writeln!(self.out, "{kind} {name} is empty")?,
            Some(Found::Cut) => writeln!(self.out, "Successfully truncated AOF {name}")?,
            Some(Found::CutToTimestamp(to)) => {
                writeln!(self.out, "Successfully truncated AOF {name} to timestamp {to}")?;
            }
            None => return Ok(false),
        }
        Ok(true)
    }

    /// How a file is found; nothing when it has to be left as it is and is not well.
    fn look(&mut self, subject: &Subject<'_>, may_be_rdb: bool) -> io::Result<Option<Found>> {
        let opened = self.files.read(subject.path).and_then(|source| Ok((source, self.files.len(subject.path)?)));
        let (mut source, size) = match opened {
            Ok((source, size)) => (source, size.unwrap_or(0)),
            Err(error) => return self.cannot_open(subject.path, &error).map(|()| None),
        };
        if size == 0 && may_be_rdb && is_snapshot(subject.name) {
            writeln!(self.out, "BASE AOF {} is empty, and was not when it was made", subject.name)?;
            return Ok(None);
        }
        if size == 0 {
            return Ok(Some(Found::Empty));
        }
        let mut start = 0;
        let is_rdb = self.is_rdb(subject.path)?;
        if is_rdb && !may_be_rdb {
            // As a log nothing of it would be whole.
            writeln!(
                self.out,
                "{} is a snapshot, and only the base of a log can be one: the manifest is wrong",
                subject.name
            )?;
            return Ok(None);
        }
        if is_rdb {
            let Some(len) = (self.check_rdb)(&mut source, self.out)? else {
                writeln!(self.out, "RDB preamble of AOF file is not sane, aborting.")?;
                return Ok(None);
            };
            writeln!(self.out, "RDB preamble is OK, proceeding with AOF tail...")?;
            // Whoever read it may have read more.
            source = self.files.read(subject.path)?;
            io::copy(&mut source.by_ref().take(len), &mut io::sink())?;
            start = len;
        }
        self.commands(subject, Reader::starting_at(source, start), size)
    }

    fn commands(
        &mut self,
        subject: &Subject<'_>,
        mut reader: Reader<Box<dyn Read + Send>>,
        size: u64,
    ) -> io::Result<Option<Found>> {
        let error = loop {
            match reader.next() {
                Ok(None) => break None,
                Ok(Some(record)) => {
                    let Mode::TruncateTo(to) = self.mode else { continue };
                    match record.annotations().find_map(|text| later_than(text, to)) {
                        None => {}
                        Some(Ok(())) => return self.cut_to_timestamp(subject, record.at, to),
                        Some(Err(InvalidTimestamp)) => {
                            writeln!(self.out, "Invalid timestamp annotation")?;
                            return Ok(None);
                        }
                    }
                }
                Err(error) => break Some(error),
            }
        };
        let ok_up_to = match error {
            None => size.max(reader.valid_up_to()),
            Some(ReadError::Truncated { valid_up_to, .. }) => {
                if let Some((at, tail)) = reader.tail() {
                    writeln!(self.out, "0x{at:16x}: {tail}")?;
                }
                valid_up_to
            }
            Some(ReadError::Format { at, valid_up_to, fault }) => {
                writeln!(self.out, "0x{at:16x}: {fault}")?;
                if matches!(fault, Fault::Expected { prefix: '*', .. }) {
                    writeln!(self.out, "AOF {} format error", subject.name)?;
                }
                valid_up_to
            }
            Some(ReadError::Read(error)) => {
                let text = words_of_error(&error);
                writeln!(self.out, "Failed to read from AOF {}, aborting: {text}", subject.name)?;
                return Ok(None);
            }
        };
        // A server may have gone on with it meanwhile.
        let size = size.max(ok_up_to);
        let (name, diff) = (subject.name, size - ok_up_to);
        if let (Mode::TruncateTo(to), 0) = (self.mode, diff) {
            writeln!(self.out, "Truncate nothing in AOF {name} to timestamp {to}")?;
            return Ok(Some(Found::Valid));
        }
        writeln!(
            self.out,
            "AOF analyzed: filename={name}, size={size}, ok_up_to={ok_up_to}, ok_up_to_line={}, diff={diff}",
            reader.lines() + 1
        )?;
        if diff == 0 {
            return Ok(Some(Found::Valid));
        }
        if self.mode != Mode::Fix {
            writeln!(self.out, "AOF {name} is not valid. Use the --fix option to try fixing it.")?;
            return Ok(None);
        }
        self.fix(subject, size, ok_up_to)
    }

    fn fix(&mut self, subject: &Subject<'_>, size: u64, ok_up_to: u64) -> io::Result<Option<Found>> {
        let (name, diff) = (subject.name, size - ok_up_to);
        if !subject.is_last {
            writeln!(
                self.out,
                "Failed to truncate AOF {name} because it is not the last file\n\
                 Put a whole one back, or, to give up what is in the later files, move them away and their lines out of \
                 the manifest, then run tenon check aof --fix again."
            )?;
            return Ok(None);
        }
        writeln!(
            self.out,
            "This will shrink the AOF {name} from {size} bytes, with {diff} bytes, to {ok_up_to} bytes"
        )?;
        write!(self.out, "Continue? [y/N]: ")?;
        self.out.flush()?;
        if !(self.may_cut)() {
            writeln!(self.out, "Aborting...")?;
            return Ok(None);
        }
        if let Err(error) = self.cut(subject, ok_up_to) {
            writeln!(self.out, "Failed to truncate AOF {name}: {}", words_of_error(&error))?;
            return Ok(None);
        }
        Ok(Some(Found::Cut))
    }

    fn cut_to_timestamp(&mut self, subject: &Subject<'_>, at: u64, to: i64) -> io::Result<Option<Found>> {
        let name = subject.name;
        if at == 0 {
            writeln!(self.out, "AOF {name} has nothing before timestamp {to}, aborting...")?;
            return Ok(None);
        }
        if !subject.is_last {
            writeln!(
                self.out,
                "Failed to truncate AOF {name} to timestamp {to} to offset {at} because it is not the last file.\n\
                 If you insist, please delete all files after this file according to the manifest file and delete the \
                 corresponding records in manifest file manually. Then re-run tenon check aof."
            )?;
            return Ok(None);
        }
        if let Err(error) = self.cut(subject, at) {
            writeln!(self.out, "Failed to truncate AOF {name} to timestamp {to}: {}", words_of_error(&error))?;
            return Ok(None);
        }
        Ok(Some(Found::CutToTimestamp(to)))
    }

    fn cut(&self, subject: &Subject<'_>, at: u64) -> io::Result<()> {
        let file = self.files.append(subject.path)?;
        file.truncate(at)?;
        file.sync()
    }
}

struct InvalidTimestamp;

/// A server has the files open.
struct InUse;

/// Where a file lies.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether an annotation is a timestamp behind `to`.
fn later_than(annotation: &[u8], to: i64) -> Option<Result<(), InvalidTimestamp>> {
    let digits = annotation.strip_prefix(b"TS:")?;
    match std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<i64>().ok()) {
        None => Some(Err(InvalidTimestamp)),
        Some(time) => (time > to).then_some(Ok(())),
    }
}
