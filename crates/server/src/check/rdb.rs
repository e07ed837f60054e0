//! `tenon check rdb`: reads a snapshot file as loading does and says what is in it, in the words of `redis-check-rdb`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use tenon_engine::clock;
use tenon_engine::persist::rdb::file::{At, Batch, Cause, Cut, Cutter, Doing, FileError, Note, OnModule, Options};
use tenon_engine::persist::rdb::{DecodeError, Limits, Scene};
use tenon_engine::store::keyspace::is_past;
use tenon_engine::store::types::stream::ProducerLimits;
use tenon_engine::store::types::{HashLimits, ListLimits, SetLimits, ZsetLimits};

/// Redis's defaults: which form a value would take does not matter here.
fn limits() -> Limits {
    Limits {
        list: ListLimits::new(-2, usize::MAX),
        hash: HashLimits { fields: 512, bytes: 64 },
        set: SetLimits { ints: 512, members: 128, bytes: 64 },
        zset: ZsetLimits { members: 128, bytes: 64 },
        producers: ProducerLimits::INITIAL,
    }
}

/// The forms of values by their numbers.
const FORMS: &[&str] = &[
    "string",
    "list-linked",
    "set-hashtable",
    "zset-v1",
    "hash-hashtable",
    "zset-v2",
    "module-pre-release",
    "module-value",
    "",
    "hash-zipmap",
    "list-ziplist",
    "set-intset",
    "zset-ziplist",
    "hash-ziplist",
    "quicklist",
    "stream",
    "hash-listpack",
    "zset-listpack",
    "quicklist-v2",
    "stream-v2",
    "set-listpack",
    "stream-v3",
    "hash-hashtable-md-pre-release",
    "hash-listpack-md-pre-release",
    "hash-hashtable-md",
    "hash-listpack-md",
    "stream-v4",
    "stream-v5",
];

/// What was counted.
#[derive(Default)]
struct Tally {
    keys: u64,
    expires: u64,
    already_expired: u64,
    subexpires: u64,
}

impl Tally {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "[info] {} keys read", self.keys)?;
        writeln!(out, "[info] {} expires", self.expires)?;
        writeln!(out, "[info] {} already expired", self.already_expired)?;
        writeln!(out, "[info] {} subexpires", self.subexpires)
    }
}

/// Looks through a file and says what it finds; tells whether nothing is wrong.
pub(super) fn check(path: &Path, out: &mut dyn Write) -> io::Result<bool> {
    writeln!(out, "[offset 0] Checking RDB file {}", path.display())?;
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    check_source(file, Some(bytes), out).map(|end| end.is_some())
}

/// Looks through what is read from `source`, whose length may be known; tells where the snapshot ends, if nothing is wrong
/// with it. What follows is left alone, but may have been read.
pub(super) fn check_source(
    source: impl Read,
    total_bytes: Option<u64>,
    out: &mut dyn Write,
) -> io::Result<Option<u64>> {
    let mut tally = Tally::default();
    let options = Options { total_bytes, databases: usize::MAX, on_module: OnModule::Skip };
    match look_through(source, options, &mut tally, out)? {
        Ok(end) => {
            tally.write(out)?;
            Ok(Some(end))
        }
        Err(error) => {
            complain(&error, out)?;
            tally.write(out)?;
            Ok(None)
        }
    }
}

fn look_through(
    source: impl Read,
    options: Options,
    tally: &mut Tally,
    out: &mut dyn Write,
) -> io::Result<Result<u64, FileError>> {
    let mut cutter = match Cutter::new(source, options) {
        Ok(cutter) => cutter,
        Err(error) => return Ok(Err(error)),
    };
    let scene = Scene { limits: limits(), origin: cutter.header().origin };
    loop {
        match cutter.next_batch() {
            Ok(Cut::Batch(batch)) => {
                for (offset, note) in &batch.notes {
                    tell(*offset, note, out)?;
                }
                if let Err(error) = count(&batch, &scene, tally) {
                    return Ok(Err(error));
                }
            }
            Ok(Cut::End(ending)) => {
                let what = if ending.is_checked {
                    "Checksum OK"
                } else {
                    "RDB file was saved with checksum disabled: no check performed."
                };
                writeln!(out, "[offset {}] {what}", ending.bytes)?;
                writeln!(out, "[offset {}] \\o/ RDB looks OK! \\o/", ending.bytes)?;
                return Ok(Ok(ending.bytes));
            }
            Err(error) => return Ok(Err(error)),
        }
    }
}

fn count(batch: &Batch, scene: &Scene, tally: &mut Tally) -> Result<(), FileError> {
    let now_ms = clock::now_us() / 1_000;
    for entry in &batch.entries {
        batch.key(entry)?;
        tally.keys += 1;
        tally.expires += u64::from(entry.deadline_ms.is_some());
        tally.already_expired += u64::from(is_past(entry.deadline_ms, now_ms));
        let members_expire = batch.store(entry, scene, |value, _| value.has_expiring_members())?;
        tally.subexpires += u64::from(members_expire);
    }
    Ok(())
}

fn tell(offset: u64, note: &Note, out: &mut dyn Write) -> io::Result<()> {
    match note {
        Note::Auxiliary { name, text } => {
            writeln!(out, "[offset {offset}] AUX FIELD {} = '{}'", name.escape_ascii(), text.escape_ascii())
        }
        Note::Database(index) => writeln!(out, "[offset {offset}] Selecting DB ID {index}"),
        Note::Function(_) | Note::Keys { .. } => Ok(()),
        Note::SkippedModule(name) => writeln!(out, "[offset {offset}] MODULE AUX for: {name}"),
        Note::SkippedKey { key, module } => {
            writeln!(out, "[offset {offset}] MODULE VALUE of key '{}' for: {module}", key.escape_ascii())
        }
        Note::SkippedMetadata { key, classes } => {
            writeln!(out, "[offset {offset}] METADATA of key '{}' for: {}", key.escape_ascii(), classes.join(", "))
        }
    }
}

fn complain(error: &FileError, out: &mut dyn Write) -> io::Result<()> {
    let mut doing = error.doing;
    let what = match &error.cause {
        Cause::Signature => "Wrong signature trying to load DB from file".to_owned(),
        Cause::Version(header) => {
            let digits = header.trim_start_matches(|letter: char| !letter.is_ascii_digit());
            format!("Can't handle RDB format version {}", digits.trim_start_matches('0'))
        }
        Cause::Truncated => "Unexpected EOF reading RDB file".to_owned(),
        Cause::Checksum { .. } => "RDB CRC error".to_owned(),
        Cause::EarlyFunctions => "Pre-release function format not supported".to_owned(),
        Cause::Value(DecodeError::UnknownKind(form)) => {
            doing = Doing::Type;
            format!("Invalid object type: {form}")
        }
        other => other.to_string(),
    };
    writeln!(out, "--- RDB ERROR DETECTED ---")?;
    writeln!(out, "[offset {}] {what}", error.offset)?;
    writeln!(out, "[additional info] While doing: {}", doing.name())?;
    if let Some(At { key, form }) = &error.key {
        writeln!(out, "[additional info] Reading key '{}'", key.escape_ascii())?;
        let name = FORMS.get(usize::from(*form)).unwrap_or(&"unknown");
        writeln!(out, "[additional info] Reading type {form} ({name})")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn says(bytes: &[u8], wanted: &str) {
        let mut out = Vec::new();
        let end = check_source(bytes, Some(bytes.len() as u64), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
        assert_eq!(end, wanted.contains("looks OK").then_some(bytes.len() as u64));
    }

    const NONE: &str = "[info] 0 keys read\n[info] 0 expires\n[info] 0 already expired\n[info] 0 subexpires\n";

    #[test]
    fn what_is_there_is_counted() {
        says(
            b"REDIS0010\xFA\x09redis-ver\x067.0.15\xFE\x02\x00\x01a\x01b\xFC\x01\0\0\0\0\0\0\0\x00\x01c\x01d\xFF\0\0\0\0\0\0\0\0",
            "[offset 27] AUX FIELD redis-ver = '7.0.15'\n\
             [offset 29] Selecting DB ID 2\n\
             [offset 57] RDB file was saved with checksum disabled: no check performed.\n\
             [offset 57] \\o/ RDB looks OK! \\o/\n\
             [info] 2 keys read\n[info] 1 expires\n[info] 1 already expired\n[info] 0 subexpires\n",
        );
    }

    #[test]
    fn what_is_wrong_is_told_in_the_words_of_redis() {
        says(
            b"hello world",
            &format!(
                "--- RDB ERROR DETECTED ---\n[offset 9] Wrong signature trying to load DB from file\n\
                 [additional info] While doing: start\n{NONE}"
            ),
        );
        says(
            b"REDIS0099\xFF",
            &format!(
                "--- RDB ERROR DETECTED ---\n[offset 9] Can't handle RDB format version 99\n\
                 [additional info] While doing: start\n{NONE}"
            ),
        );
        says(
            b"REDIS0010\xFE\x00\x0B\x03key\x03abc\xFF",
            "[offset 11] Selecting DB ID 0\n\
             --- RDB ERROR DETECTED ---\n[offset 20] a set of integers has a wrong header\n\
             [additional info] While doing: read-object-value\n[additional info] Reading key 'key'\n\
             [additional info] Reading type 11 (set-intset)\n\
             [info] 1 keys read\n[info] 0 expires\n[info] 0 already expired\n[info] 0 subexpires\n",
        );
        says(
            b"REDIS0010\xFE\x00\x00\x01a\x01b\x00\x02",
            "[offset 11] Selecting DB ID 0\n\
             --- RDB ERROR DETECTED ---\n[offset 18] Unexpected EOF reading RDB file\n\
             [additional info] While doing: read-key\n\
             [info] 1 keys read\n[info] 0 expires\n[info] 0 already expired\n[info] 0 subexpires\n",
        );
    }
}
