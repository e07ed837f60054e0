//! The list of the files that make up an append-only log, read and written as Redis does. Knows no directory.

use std::io::Write;
use tenon_wire::resp::{append_quoted, words_of};

/// One file of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, without a directory.
    pub name: Vec<u8>,
    /// Its number: increments rise.
    pub seq: i64,
    /// Whether it is an increment of a log that began while the server ran, and the base is still to come that it belongs
    /// to: its commands ran on data that are nowhere on disk, but for what older files have of them.
    pub lacks_base: bool,
}

/// What says of a file that it lacks its base: a pair that Redis passes over, as it does with all that it does not know.
const LACKS: (&[u8], &[u8]) = (b"lacks", b"base");

/// The list: what is to be loaded is the base and then the increments, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// What the increments begin with.
    pub base: Option<Entry>,
    /// What is not needed any more and can be deleted.
    pub history: Vec<Entry>,
    /// Writes since, in their order.
    pub increments: Vec<Entry>,
    /// The highest number that a base had.
    pub base_seq: i64,
    /// The highest number that an increment had.
    pub increment_seq: i64,
}

/// Highest number of a file: no log gets there, and beyond it would be no next one.
const SEQ_MAX: i64 = i64::MAX / 2;
/// Longest line with its end, in bytes.
const LINE_MAX: usize = 1024;

/// Why a list is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is in it.
    Empty,
    /// A line is too long, or the last one has no end.
    TooLong,
    /// A line is not made as it should be.
    Format,
    /// A file has a directory.
    Path,
    /// There are two bases.
    DuplicateBase,
    /// Increments do not rise.
    NotRising,
    /// A file is neither base, history nor increment.
    Type,
}

impl Fault {
    fn text(self) -> &'static str {
        match self {
            Fault::Empty => "Found an empty AOF manifest",
            Fault::TooLong => "The AOF manifest file contains too long line",
            Fault::Format => "Invalid AOF manifest file format",
            Fault::Path => "File can't be a path, just a filename",
            Fault::DuplicateBase => "Found duplicate base file information",
            Fault::NotRising => "Found a non-monotonic sequence number",
            Fault::Type => "Unknown AOF file type",
        }
    }
}

/// A fault, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// What is wrong.
    pub fault: Fault,
    /// The line, by its number from 1 and its text, if one was read.
    pub line: Option<(usize, String)>,
}

/// As Redis words it, in several lines.
impl std::fmt::Display for ManifestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "\n*** FATAL AOF MANIFEST FILE ERROR ***\n")?;
        if let Some((number, line)) = &self.line {
            writeln!(f, "Reading the manifest file, at line {number}\n\n>>> '{line}'\n")?;
        }
        f.write_str(self.fault.text())
    }
}

impl std::error::Error for ManifestError {}

impl Manifest {
    /// Reads a list.
    ///
    /// # Errors
    /// When it is not as Redis wants it.
    pub fn parse(text: &[u8]) -> Result<Manifest, ManifestError> {
        let mut manifest = Manifest::default();
        if text.is_empty() {
            return Err(ManifestError { fault: Fault::Empty, line: None });
        }
        for (index, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
            if line.starts_with(b"#") && line.len() <= LINE_MAX {
                continue;
            }
            if line.len() > LINE_MAX || !line.ends_with(b"\n") {
                return Err(ManifestError { fault: Fault::TooLong, line: None });
            }
            let line = trim(line);
            manifest.add(line).map_err(|fault| {
                let line = String::from_utf8_lossy(line).into_owned();
                ManifestError { fault, line: Some((index + 1, line)) }
            })?;
        }
        Ok(manifest)
    }

    fn add(&mut self, line: &[u8]) -> Result<(), Fault> {
        // No name has one, and a block that a disk has lost is full of them.
        if line.contains(&0) {
            return Err(Fault::Format);
        }
        let words = words_of(line).map_err(|_| Fault::Format)?;
        // More pairs than the three are for versions to come.
        if words.len() < 6 || words.len() % 2 != 0 {
            return Err(Fault::Format);
        }
        let (mut name, mut seq, mut kind, mut lacks_base) = (None, 0, None, false);
        for pair in words.chunks_exact(2) {
            let [key, value] = pair else { unreachable!("chunks of two") };
            if key.eq_ignore_ascii_case(b"file") {
                if value.contains(&b'/') || value.contains(&b'\\') {
                    return Err(Fault::Path);
                }
                name = Some(value.clone());
            } else if key.eq_ignore_ascii_case(b"seq") {
                seq = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0);
            } else if key.eq_ignore_ascii_case(b"type") {
                kind = value.first().copied();
            } else if (&**key, &**value) == LACKS {
                lacks_base = true;
            }
        }
        let name = name.filter(|name| !name.is_empty() && name != b"." && name != b"..");
        let (Some(name), Some(kind)) = (name, kind) else { return Err(Fault::Format) };
        if seq == 0 || seq > SEQ_MAX {
            return Err(Fault::Format);
        }
        let entry = Entry { name, seq, lacks_base };
        match kind {
            b'b' if self.base.is_some() => return Err(Fault::DuplicateBase),
            b'b' => {
                self.base_seq = seq;
                self.base = Some(entry);
            }
            b'h' => self.history.push(entry),
            b'i' if seq <= self.increment_seq => return Err(Fault::NotRising),
            b'i' => {
                self.increment_seq = seq;
                self.increments.push(entry);
            }
            _ => return Err(Fault::Type),
        }
        Ok(())
    }

    /// The list as a text.
    pub fn to_text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let base = self.base.iter().map(|entry| (entry, 'b'));
        let history = self.history.iter().map(|entry| (entry, 'h'));
        let increments = self.increments.iter().map(|entry| (entry, 'i'));
        for (entry, kind) in base.chain(history).chain(increments) {
            text.extend_from_slice(b"file ");
            if needs_quotes(&entry.name) {
                append_quoted(&entry.name, &mut text);
            } else {
                text.extend_from_slice(&entry.name);
            }
            let lacks = if entry.lacks_base && kind == 'i' { " lacks base" } else { "" };
            writeln!(text, " seq {} type {kind}{lacks}", entry.seq).expect("a vector takes whatever is written");
        }
        text
    }

    /// Whether there is nothing to load.
    pub fn is_empty(&self) -> bool {
        self.base.is_none() && self.increments.is_empty()
    }

    /// Whether it names no file at all.
    pub fn is_blank(&self) -> bool {
        self.is_empty() && self.history.is_empty()
    }

    /// The number of the first increment that lacks its base.
    pub fn first_lacking(&self) -> Option<i64> {
        self.increments.iter().find(|entry| entry.lacks_base).map(|entry| entry.seq)
    }

    /// Makes history of the increments from the first one on that lacks its base and has at least this number; tells whether
    /// there was one.
    pub fn withdraw_lacking(&mut self, from_seq: i64) -> bool {
        let is_first = |entry: &Entry| entry.lacks_base && entry.seq >= from_seq;
        let Some(first) = self.increments.iter().position(is_first) else { return false };
        let withdrawn = self.increments.drain(first..).rev();
        self.history.splice(..0, withdrawn);
        true
    }

    /// The files to be loaded, in their order.
    pub fn to_load(&self) -> impl Iterator<Item = &Entry> {
        self.base.iter().chain(&self.increments)
    }

    /// Whether nothing that is to be loaded is what the first increment's commands ran on.
    pub fn lacks_every_base(&self) -> bool {
        self.base.is_none() && self.increments.first().is_some_and(|first| first.lacks_base)
    }

    /// An entry with the next number whose name no history has: its file goes when history is deleted.
    fn entry_behind(&self, mut seq: i64, name: impl Fn(i64) -> String) -> Entry {
        loop {
            seq += 1;
            let entry = Entry { name: name(seq).into_bytes(), seq, lacks_base: false };
            if !self.history.iter().any(|old| old.name == entry.name) {
                return entry;
            }
        }
    }

    /// Adds an increment with the next number.
    pub fn add_increment(&mut self, name: impl Fn(i64) -> String) -> Entry {
        let entry = self.entry_behind(self.increment_seq, name);
        self.increment_seq = entry.seq;
        self.increments.push(entry.clone());
        entry
    }

    /// Puts a base with the next number in the place of the old one and of all but the last `keep` increments, which
    /// become history.
    pub fn replace_base(&mut self, keep: usize, name: impl Fn(i64) -> String) -> Entry {
        let entry = self.entry_behind(self.base_seq, name);
        self.base_seq = entry.seq;
        let old = self.increments.len().saturating_sub(keep);
        // As Redis lists them: the latest first, increments before the base.
        let history = self.increments.drain(..old).rev().chain(self.base.replace(entry.clone()));
        let history: Vec<Entry> = history.chain(std::mem::take(&mut self.history)).collect();
        self.history = history;
        entry
    }
}

/// Without white space at its ends.
fn trim(line: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let start = line.iter().position(|byte| !is_space(byte)).unwrap_or(line.len());
    let end = line.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
    &line[start..end]
}

/// Redis's `sdsneedsrepr`, and single quotes, which Redis writes as they are and then cannot read.
fn needs_quotes(name: &[u8]) -> bool {
    let special = |byte: u8| {
        matches!(byte, b'\\' | b'"' | b'\'' | b'\n' | b'\r' | b'\t' | 0x07 | 0x08) || !byte.is_ascii_graphic()
    };
    name.is_empty() || name.iter().any(|&byte| special(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Manifest, Fault> {
        Manifest::parse(text.as_bytes()).map_err(|error| error.fault)
    }

    #[test]
    fn a_list_of_redis_is_read_and_written() {
        let text = "file appendonly.aof.2.base.rdb seq 2 type b\n\
                    file appendonly.aof.1.incr.aof seq 1 type h\n\
                    file appendonly.aof.4.incr.aof seq 4 type i\n\
                    file appendonly.aof.5.incr.aof seq 5 type i\n";
        let manifest = parse(text).expect("it is fine");
        assert_eq!((manifest.base_seq, manifest.increment_seq), (2, 5));
        assert_eq!(String::from_utf8(manifest.to_text()).expect("text"), text);
        assert_eq!(manifest.to_load().map(|entry| entry.seq).collect::<Vec<_>>(), [2, 4, 5]);
    }

    #[test]
    fn names_are_quoted_where_redis_does() {
        let odd = Entry { name: b"a b\"\\\n\x01\xff.1.incr.aof".to_vec(), seq: 1, lacks_base: false };
        let manifest = Manifest { increments: vec![odd], increment_seq: 1, ..Manifest::default() };
        let text = String::from_utf8(manifest.to_text()).expect("all is escaped");
        assert_eq!(text, "file \"a b\\\"\\\\\\n\\x01\\xff.1.incr.aof\" seq 1 type i\n");
        // A backslash is read as part of a path, as in Redis; without it, it comes back.
        let fine = text.replace("\\\\", "");
        assert_eq!(parse(&fine).expect("it is fine").increments[0].name, b"a b\"\n\x01\xff.1.incr.aof");
    }

    #[test]
    fn what_redis_refuses_is_refused() {
        let line = "file a seq 1 type i\n";
        assert_eq!(parse(""), Err(Fault::Empty));
        assert_eq!(parse("\n"), Err(Fault::Format));
        assert_eq!(parse(" \t\r\n"), Err(Fault::Format));
        // Zeros in the place of a line's end would make one of two.
        assert_eq!(parse("file a seq 1 type b\0\0\0 seq 1 type i\n"), Err(Fault::Format));
        assert_eq!(parse(line.trim_end()), Err(Fault::TooLong));
        assert_eq!(parse(&format!("file {} seq 1 type i\n", "a".repeat(1010))), Err(Fault::TooLong));
        for wrong in ["file a seq 1\n", "file a seq 1 type\n", "file a seq 0 type i\n", "file a seq x type i\n"]
            .map(str::to_owned)
            .into_iter()
            .chain([i64::MAX, SEQ_MAX + 1].map(|seq| format!("file a seq {seq} type b\n")))
        {
            assert_eq!(parse(&wrong), Err(Fault::Format), "{wrong}");
        }
        for wrong in ["file \"a seq 1 type i\n", "seq 1 type i x y\n", "file a seq 1 x y\n", "file .. seq 1 type i\n"] {
            assert_eq!(parse(wrong), Err(Fault::Format), "{wrong}");
        }
        assert_eq!(parse("file ../a seq 1 type i\n"), Err(Fault::Path));
        assert_eq!(parse("file /etc/x seq 1 type b\n"), Err(Fault::Path));
        assert_eq!(parse("file a seq 1 type b\nfile b seq 2 type b\n"), Err(Fault::DuplicateBase));
        assert_eq!(parse("file a seq 2 type i\nfile b seq 2 type i\n"), Err(Fault::NotRising));
        assert_eq!(parse("file a seq -1 type i\n"), Err(Fault::NotRising));
        assert_eq!(parse("file a seq 1 type x\n"), Err(Fault::Type));
        let error = Manifest::parse(b"# fine\nfile a/b seq 1 type i\n").expect_err("a path");
        let text = "\n*** FATAL AOF MANIFEST FILE ERROR ***\n\nReading the manifest file, at line 2\n\n\
                    >>> 'file a/b seq 1 type i'\n\nFile can't be a path, just a filename";
        assert_eq!(error.to_string(), text);
        let error = Manifest::parse(b"# fine\n\nfile a seq 1 type i\n").expect_err("an empty line");
        assert_eq!(error.line, Some((2, String::new())));
    }

    #[test]
    fn what_newer_versions_add_is_passed_over() {
        let manifest = parse("# comment\nFILE a seq 1 type incr startoffset 17\n").expect("it is fine");
        assert_eq!(manifest.increments, [Entry { name: b"a".to_vec(), seq: 1, lacks_base: false }]);
    }

    #[test]
    fn an_increment_says_that_it_lacks_its_base_until_it_is_history() {
        let text = "file a.1.base.rdb seq 1 type b\nfile a.2.incr.aof seq 2 type i lacks base\n";
        let mut manifest = parse(text).expect("it is fine");
        assert!(manifest.increments[0].lacks_base && !manifest.lacks_every_base());
        assert_eq!(String::from_utf8(manifest.to_text()).expect("text"), text);
        manifest.base = None;
        assert!(manifest.lacks_every_base());
        manifest.replace_base(0, |seq| format!("a.{seq}.base.rdb"));
        let expected = "file a.2.base.rdb seq 2 type b\nfile a.2.incr.aof seq 2 type h\n";
        assert_eq!(String::from_utf8(manifest.to_text()).expect("text"), expected);
    }

    #[test]
    fn what_lacks_its_base_is_withdrawn_with_all_behind_it() {
        let text = "file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i\nfile a.2.incr.aof seq 2 type i lacks base\n\
                    file a.3.incr.aof seq 3 type i\n";
        let mut manifest = parse(text).expect("it is fine");
        assert_eq!(manifest.first_lacking(), Some(2));
        assert!(!manifest.clone().withdraw_lacking(3), "it was there before");
        assert!(manifest.withdraw_lacking(2) && !manifest.withdraw_lacking(1) && !manifest.is_blank());
        let expected = "file a.1.base.rdb seq 1 type b\nfile a.3.incr.aof seq 3 type h\nfile a.2.incr.aof seq 2 type h\n\
                        file a.1.incr.aof seq 1 type i\n";
        assert_eq!(String::from_utf8(manifest.to_text()).expect("text"), expected);
        let mut alone = parse("file a.1.incr.aof seq 1 type i lacks base\n").expect("it is fine");
        assert!(alone.withdraw_lacking(1) && alone.is_empty() && !alone.is_blank());
        let next = parse("file a.1.incr.aof seq 1 type h\nfile a.2.incr.aof seq 2 type h\n").expect("it is fine");
        let next = next.clone().add_increment(|seq| format!("a.{seq}.incr.aof"));
        assert_eq!((next.seq, &*next.name), (3, &b"a.3.incr.aof"[..]), "the others are still to be deleted");
        alone.history.clear();
        assert!(alone.is_blank());
    }

    #[test]
    fn a_new_base_makes_history() {
        let text = "file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i\nfile a.2.incr.aof seq 2 type i\n";
        let mut manifest = parse(text).expect("it is fine");
        manifest.add_increment(|seq| format!("a.{seq}.incr.aof"));
        manifest.replace_base(1, |seq| format!("a.{seq}.base.rdb"));
        let expected = "file a.2.base.rdb seq 2 type b\nfile a.2.incr.aof seq 2 type h\nfile a.1.incr.aof seq 1 type h\n\
                        file a.1.base.rdb seq 1 type h\nfile a.3.incr.aof seq 3 type i\n";
        assert_eq!(String::from_utf8(manifest.to_text()).expect("text"), expected);
    }
}
