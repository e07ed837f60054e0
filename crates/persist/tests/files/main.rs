//! RDB files cut into their records: of every version, cut short at every byte, changed at every byte, and full of lies.

mod sample;

use sample::{EMPTY_STREAM, File, Found, METADATA, PRODUCERS, read, read_from, sample};
use std::io::{self, Read};
use tenon_persist::rdb::file::{Cause, Doing, FileError, Note, OnModule};

/// Gives a byte at a time, as a slow socket may.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let (Some((first, rest)), Some(place)) = (self.0.split_first(), buf.first_mut()) else { return Ok(0) };
        (*place, self.0) = (*first, rest);
        Ok(1)
    }
}

/// A file that is read in vain: what is wrong, and where.
fn refused(bytes: &[u8]) -> FileError {
    read(bytes).expect_err("something is wrong with it")
}

#[test]
fn everything_in_a_file_is_found() {
    let found = read(&sample()).unwrap();
    assert_eq!(
        found.keys(),
        ["0/plain", "0/int", "0/idle", "0/busy", "0/list", "3/hash", "3/set", "3/stream", "3/once", "3/last"]
    );
    assert_eq!(found.entries["0/plain"].text, b"value");
    assert_eq!(found.entries["0/int"].text, b"-70000");
    assert_eq!(found.entries["0/int"].deadline_ms, Some(4_102_444_800_123));
    assert_eq!(found.entries["0/idle"].usage, "IdleSeconds(300)");
    assert_eq!(found.entries["0/busy"].usage, "Frequency(200)");
    assert_eq!(found.entries["0/busy"].deadline_ms, Some(2_000_000_000_000), "seconds");
    assert_eq!(found.entries["3/last"].flags, 7);
    assert_eq!(found.entries["3/set"].deadlines, [(b"a".to_vec(), 4_102_444_800_000)]);
    assert_eq!(found.entries["3/hash"].deadlines, [(b"f".to_vec(), 4_102_444_800_001)]);
    let said = |note: &Note| matches!(note, Note::Auxiliary { name, text } if name == b"redis-ver" && text == b"8.0.6");
    assert!(found.notes.iter().any(said));
    assert!(found.notes.iter().any(|note| matches!(note, Note::Function(code) if code.starts_with(b"#!lua"))));
    // Those that are about a value are none of the file's.
    assert_eq!(found.notes.iter().filter(|note| matches!(note, Note::Auxiliary { .. })).count(), 3);
    assert!(found.ending.is_checked);
    assert_eq!(found.ending.bytes, sample().len() as u64);
}

#[test]
fn a_file_may_come_byte_by_byte_and_something_may_follow() {
    let mut bytes = sample();
    bytes.extend_from_slice(b"*1\r\n$4\r\nPING\r\n");
    let (found, rest) = read_from(Trickle(&bytes), None, OnModule::Refuse).unwrap();
    assert_eq!(found.entries.len(), 10);
    assert_eq!(rest, b"*1\r\n$4\r\nPING\r\n");
    let (_, rest) = read_from(&bytes[..], Some(bytes.len() as u64), OnModule::Refuse).unwrap();
    assert_eq!(rest, b"*1\r\n$4\r\nPING\r\n");
}

#[test]
fn a_file_cut_short_at_any_byte_ends_early() {
    let bytes = sample();
    for len in 0..bytes.len() {
        for total in [None, Some(len as u64)] {
            let error = read_from(&bytes[..len], total, OnModule::Refuse).unwrap_err();
            assert!(matches!(error.cause, Cause::Truncated), "{len} bytes: {error}");
            assert!(error.offset <= len as u64);
        }
    }
}

#[test]
fn a_file_that_was_changed_at_any_byte_is_refused() {
    let bytes = sample();
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xFF] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            match read(&changed) {
                Err(_) => {}
                // Versions before 5 have no checksum.
                Ok(found) => assert!((5..9).contains(&at) && !found.ending.is_checked, "byte {at}"),
            }
        }
    }
}

#[test]
fn a_file_without_checksum_is_read_whatever_it_holds_without_harm() {
    let mut bytes = sample();
    let end = bytes.len() - 8;
    bytes[end..].fill(0);
    assert!(!read(&bytes).unwrap().ending.is_checked);
    for at in 0..end {
        for byte in [0, 1, 0x3F, 0x41, 0x7F, 0x80, 0x81, 0xC0, 0xC3, 0xF7, 0xFA, 0xFE, 0xFF] {
            let mut changed = bytes.clone();
            changed[at] = byte;
            if let Err(error) = read(&changed) {
                assert!(error.offset <= bytes.len() as u64, "{error}");
            }
        }
    }
}

#[test]
fn a_length_beyond_any_file_is_an_early_end() {
    for len in [u64::MAX, u64::MAX - 8, 1 << 63, 1 << 40] {
        for before in [&[][..], &[0xC3], &[0xC3, 1]] {
            let mut file = File::begin("REDIS0012");
            file.raw(&[0]).raw(before).raw(&[0x81]).raw(&len.to_be_bytes());
            for total in [None, Some(file.bytes().len() as u64)] {
                let error = read_from(file.bytes(), total, OnModule::Refuse).unwrap_err();
                assert!(matches!(error.cause, Cause::Truncated), "{len} behind {before:?}: {error}");
            }
        }
    }
}

#[test]
fn the_first_versions_end_without_checksum() {
    for version in 1..=14 {
        let mut file = File::begin(&format!("REDIS{version:04}"));
        file.entry(0, b"k", &[1, b'v']);
        let bytes = file.end();
        let has_checksum = version >= 5;
        assert_eq!(read(&bytes).unwrap().ending.is_checked, has_checksum);
        if !has_checksum {
            assert!(read(&bytes[..bytes.len() - 8]).is_ok(), "version {version}");
        }
    }
    let mut file = File::begin("VALKEY080");
    file.entry(22, b"h", b"\x01\x01f\x01v\xff\xff\xff\xff\xff\xff\xff\xff");
    assert_eq!(read(&file.end()).unwrap().keys(), ["0/h"]);
}

#[test]
fn other_beginnings_are_refused() {
    for (bytes, is_signature) in [
        (&b"*3\r\n$3\r\nSET\r\n"[..], true),
        (b"RADIS0010", true),
        (b"x", true),
        (b"REDIS0000", false),
        (b"REDIS0015", false),
        (b"REDIS0999", false),
        (b"VALKEY099", false),
        (b"REDIS-001", false),
    ] {
        let error = refused(bytes);
        let is_version = matches!(error.cause, Cause::Version(_));
        assert_eq!((matches!(error.cause, Cause::Signature), is_version), (is_signature, !is_signature), "{error}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let mut file = File::begin("REDIS0010");
    file.select(4).entry(0, b"first", &[1, b'v']).entry(11, b"bad key", b"\x03abc").entry(0, b"last", &[1, b'v']);
    let error = refused(&file.end());
    assert_eq!(error.to_string(), "at byte 33, key 'bad key' of database 4: a set of integers has a wrong header");
    assert_eq!(error.doing, Doing::Value);

    let mut file = File::begin("REDIS0010");
    file.entry(77, b"future", b"");
    let error = refused(&file.end());
    assert!(error.to_string().ends_with("key 'future' of database 0: no form of values has the number 77"), "{error}");

    let mut file = File::begin("REDIS0010");
    file.raw(b"\xFE\x10");
    assert!(matches!(refused(&file.end()).cause, Cause::Database { index: 16, databases: 16 }));

    let mut file = File::begin("REDIS0010");
    file.raw(b"\xF6\x00");
    assert!(matches!(refused(&file.end()).cause, Cause::EarlyFunctions));

    let mut bytes = sample();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert!(matches!(refused(&bytes).cause, Cause::Checksum { .. }));
}

#[test]
fn what_belongs_to_modules_is_refused_or_passed_over() {
    let number = b"\x81\x4c\x16\xc1\xf8\xed\xe5\x1c\x01";
    let mut file = File::begin("REDIS0010");
    let parts = b"\x01\x05\x05\x03abc\x04\0\0\0\0\0\0\0\0\x03\0\0\0\0\x02\x40\x80\x00";
    file.raw(&[&b"\xF7"[..], number, b"\x02\x01", parts].concat());
    file.entry(7, b"tree", &[&number[..], parts].concat());
    file.entry(0, b"k", &[1, b'v']);
    let bytes = file.end();
    assert!(matches!(refused(&bytes).cause, Cause::Module(_)));
    let (found, _) = read_from(&bytes[..], Some(bytes.len() as u64), OnModule::Skip).unwrap();
    assert_eq!(found.keys(), ["0/k"]);
    assert!(found.notes.iter().any(|note| matches!(note, Note::SkippedKey { key, .. } if key == b"tree")));
    assert!(found.notes.iter().any(|note| matches!(note, Note::SkippedModule(_))));
    // The oldest form says nowhere where it ends.
    let mut file = File::begin("REDIS0008");
    file.entry(6, b"tree", number);
    let bytes = file.end();
    let error = read_from(&bytes[..], None, OnModule::Skip).unwrap_err();
    assert!(error.to_string().contains("key 'tree'"), "{error}");
}

#[test]
fn what_modules_keep_of_a_key_is_refused_or_passed_over() {
    // It says nowhere that it may be left out.
    let needed = b"\xf3\x02\x09\xf5\xc4\x28\x02\x01\x00\x18\xf6\xc4\x28\x05\x02hm\x00";
    let mut file = File::begin("REDIS0013");
    file.raw(METADATA).entry(0, b"lenient", &[1, b'v']);
    file.raw(b"\xFC").raw(&4_102_444_800_123u64.to_le_bytes()).raw(needed).entry(0, b"strict", &[1, b'w']);
    let bytes = file.end();
    let error = refused(&bytes);
    assert!(matches!(&error.cause, Cause::Module(class) if class == "KMT2"), "{error}");
    assert!(error.to_string().contains("key 'strict' of database 0"), "{error}");
    let (found, _) = read_from(&bytes[..], Some(bytes.len() as u64), OnModule::Skip).unwrap();
    assert_eq!(found.keys(), ["0/lenient", "0/strict"]);
    assert_eq!(found.entries["0/strict"].deadline_ms, Some(4_102_444_800_123));
    let skipped = |key: &[u8], classes: &[&str]| Note::SkippedMetadata {
        key: key.to_vec(),
        classes: classes.iter().map(|class| (*class).to_owned()).collect(),
    };
    assert_eq!(found.notes, [skipped(b"lenient", &["KMT1"]), skipped(b"strict", &["KMT1", "KMT2"])]);
    // Cut short, and of classes or parts that there are not.
    for len in 9..bytes.len() {
        let error = read_from(&bytes[..len], None, OnModule::Skip).unwrap_err();
        assert!(matches!(error.cause, Cause::Truncated), "{len} bytes: {error}");
    }
    for wrong in
        [&b"\xf3\x08"[..], b"\xf3\x81\xff\xff\xff\xff\xff\xff\xff\xff", b"\xf3\x01abcd\x06", b"\xf3\x00\xfe\x00"]
    {
        let mut file = File::begin("REDIS0013");
        file.raw(wrong).entry(0, b"k", &[1, b'v']);
        let error = read_from(&file.end()[..], None, OnModule::Skip).unwrap_err();
        assert!(matches!(error.cause, Cause::Value(_)), "{wrong:?}: {error}");
    }
}

#[test]
fn slots_that_come_in_are_valkeys() {
    let slots = b"\xF3\x03job\x01\x00\x41\x00";
    let file = |header: &str| {
        let mut file = File::begin(header);
        file.raw(slots).entry(0, b"k", &[1, b'v']);
        file.end()
    };
    let bytes = file("VALKEY080");
    let found = read(&bytes).unwrap();
    assert_eq!((found.keys(), &found.notes[..]), (vec!["0/k"], &[][..]));
    for len in 9..bytes.len() {
        assert!(matches!(refused(&bytes[..len]).cause, Cause::Truncated), "{len} bytes");
    }
    // With Redis's header the same bytes are metadata, and wrong.
    assert!(matches!(refused(&file("REDIS0013")).cause, Cause::Value(_)));
}

#[test]
fn what_is_known_of_producers_is_read() {
    let none = b"\x40\x64\x40\x64\x00\x00\x00";
    let mut file = File::begin("REDIS0013");
    file.entry(26, b"once", &[EMPTY_STREAM, PRODUCERS].concat());
    file.entry(26, b"any", &[EMPTY_STREAM, none].concat());
    file.entry(27, b"newest", &[EMPTY_STREAM, PRODUCERS].concat());
    let bytes = file.end();
    let found = read(&bytes).unwrap();
    assert_eq!(found.keys(), ["0/once", "0/any", "0/newest"]);
    assert_eq!(found.notes, []);
    let ids = |key: &str| found.entries[key].producer_ids;
    assert_eq!([ids("0/once"), ids("0/any"), ids("0/newest")], [3, 0, 3]);
    for len in 9..bytes.len() {
        assert!(matches!(refused(&bytes[..len]).cause, Cause::Truncated), "{len} bytes");
    }
    // More producers, and more ids, than any file has room for.
    for lie in [&b"\x01\x01\x81\0\0\x01\0\0\0\0\0"[..], b"\x01\x01\x01\x01p\x81\0\0\x01\0\0\0\0\0"] {
        let mut file = File::begin("REDIS0013");
        file.entry(26, b"once", &[EMPTY_STREAM, lie].concat());
        let bytes = file.end();
        for total in [None, Some(bytes.len() as u64)] {
            let error = read_from(&bytes[..], total, OnModule::Refuse).unwrap_err();
            assert!(matches!(error.cause, Cause::Truncated), "{error}");
        }
    }
}

#[test]
fn lengths_that_lie_are_found_out_before_anything_is_read() {
    const HUGE: &[u8] = b"\x81\x00\x00\x0f\xff\xff\xff\xff\xff";
    for form in [0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 25, 26, 27] {
        let mut file = File::begin("REDIS0014");
        file.entry(form, b"k", &[HUGE, HUGE, HUGE].concat());
        let bytes = file.end();
        for total in [None, Some(bytes.len() as u64)] {
            assert!(read_from(&bytes[..], total, OnModule::Refuse).is_err(), "form {form}");
        }
    }
    // Where nothing tells how long the file is, as much is read as there is, and nothing is set aside for the rest.
    let mut file = File::begin("REDIS0012");
    file.entry(0, b"k", HUGE);
    let endless = io::repeat(b'x').take(3 << 20);
    let error = read_from(file.bytes().chain(endless), None, OnModule::Refuse).unwrap_err();
    assert!(matches!(error.cause, Cause::Truncated | Cause::Value(_)), "{error}");
}

#[test]
fn records_longer_than_a_window_come_whole() {
    let mut file = File::begin("REDIS0010");
    let long: Vec<u8> = (0..3_000_000u32).map(|at| (at * 7 % 251) as u8).collect();
    let string = |text: &[u8]| [&[0x80][..], &(text.len() as u32).to_be_bytes(), text].concat();
    file.entry(0, b"before", &[1, b'v']);
    file.entry(0, b"long", &string(&long));
    let elements: Vec<u8> = (0..100_000u32).flat_map(|at| [&[4][..], &at.to_be_bytes()].concat()).collect();
    file.entry(1, b"list", &[&[0x80][..], &100_000u32.to_be_bytes(), &elements].concat());
    for at in 0..20_000u32 {
        file.entry(0, format!("k{at}").as_bytes(), &[1, b'v']);
    }
    let bytes = file.end();
    let (found, _) = read_from(&bytes[..], Some(bytes.len() as u64), OnModule::Refuse).unwrap();
    assert_eq!(found.entries["0/long"].text, long);
    assert_eq!(found.entries.len(), 20_003);
    let Found { batches, .. } = found;
    assert!(batches > 3, "{batches}");
}

#[test]
fn an_error_while_reading_is_told() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let bytes = sample();
    let error = read_from((&bytes[..30]).chain(Broken), None, OnModule::Refuse).unwrap_err();
    assert!(error.to_string().contains("the disk is gone"), "{error}");
}
