//! What a start makes of the files that it finds. Knows what each case must give.

use std::path::Path;
use std::sync::Arc;
use tenon_journal::Settings;
use tenon_journal::files::{Faulty, Files, Memory};
use tenon_journal::log::NoHooks;
use tenon_persist::aof::directory::LoadTruncated;
use tenon_persist::aof::names::BaseFormat;
use tenon_persist::aof::{Directory, Names, ReadError};

const MANIFEST: &str = "appendonly.aof.manifest";

fn names() -> Names {
    Names { dir: "data".into(), appenddirname: "aofdir".into(), appendfilename: "appendonly.aof".into() }
}

/// Files by name; those of the log's directory begin with `*`.
fn files(all: &[(&str, &str)]) -> Memory {
    let files = Memory::new();
    files.create_directory(Path::new("data")).expect("it has power");
    for (name, content) in all {
        let path = match name.strip_prefix('*') {
            Some(name) => names().path(name),
            None => Path::new("data").join(name),
        };
        files.put(&path, content.as_bytes());
    }
    files
}

/// The files to be loaded, or why not.
fn check(all: &[(&str, &str)], expected: &str) -> Memory {
    let files = files(all);
    let parts = Directory::open(Arc::new(files.clone()), names()).and_then(|directory| {
        let parts = directory.parts()?;
        let describe = |part: &tenon_persist::aof::Part| {
            let flag = |is, text: &'static str| if is { text } else { "" };
            let flags = [flag(part.is_base, " base"), flag(part.is_old_style, " old"), flag(part.is_last, " last")];
            format!("{} {}{}", part.name, part.size, flags.concat())
        };
        Ok(parts.iter().map(describe).collect::<Vec<_>>().join(", "))
    });
    assert_eq!(parts.unwrap_or_else(|error| error.to_string()), expected);
    files
}

#[test]
fn files_of_the_manifest_are_loaded_in_order() {
    let manifest =
        "file b.rdb seq 1 type b\nfile h.aof seq 1 type h\nfile i.aof seq 2 type i\nfile j.aof seq 3 type i\n";
    let all = [("*appendonly.aof.manifest", manifest), ("*b.rdb", "REDIS"), ("*i.aof", "xy"), ("*j.aof", "")];
    check(&all, "b.rdb 5 base, i.aof 2 last, j.aof 0 last");
    let missing = |name: &str| {
        format!(
            "The append log file {name} doesn't exist: No such file or directory. Put it back, or take its line out of the \
             manifest to start without what is in it"
        )
    };
    check(&all[..3], &missing("j.aof"));
    check(&[all[0], all[2], all[3]], &missing("b.rdb"));
    check(&[], "");
}

#[test]
fn files_without_a_manifest_are_refused() {
    let refused = |found: &str| {
        format!(
            "The AOF manifest file {MANIFEST} doesn't exist, but aofdir has files of a log ({found}): put the manifest \
             back, or move the files away to start without them"
        )
    };
    for name in ["appendonly.aof.1.base.rdb", "appendonly.aof.7.incr.aof"] {
        let starred = format!("*{name}");
        check(&[(&starred, "x")], &refused(name));
        check(&[(&starred, "x"), ("appendonly.aof", "y")], &refused(name));
    }
    // A first start that was interrupted leaves its list under the temporary name, and no record.
    let temporary = ("*temp-appendonly.aof.manifest", "");
    check(&[("*appendonly.aof.1.base.rdb", "x"), ("*appendonly.aof.1.incr.aof", ""), temporary], "");
    for name in ["appendonly.aof.1.incr.aof", "appendonly.aof.2.base.rdb"] {
        check(&[(&format!("*{name}"), "x"), temporary], &refused(name));
    }
    let one = "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n";
    let increment = ("*appendonly.aof.1.incr.aof", "x");
    check(&[increment, ("*temp-appendonly.aof.manifest", one)], "");
    let two = format!("{one}file appendonly.aof.2.incr.aof seq 2 type i\n");
    check(&[increment, ("*temp-appendonly.aof.manifest", &two)], &refused("appendonly.aof.1.incr.aof"));
    check(&[("*other.aof.1.base.rdb", "x"), ("*notes.txt", "x")], "");
    check(
        &[("*appendonly.aof.manifest", "")],
        "\n*** FATAL AOF MANIFEST FILE ERROR ***\n\nFound an empty AOF manifest (appendonly.aof.manifest)",
    );
}

#[test]
fn a_manifest_that_leaves_records_out_is_refused() {
    let refused = |found: &str| {
        format!(
            "The AOF manifest file {MANIFEST} does not list aofdir/{found}, which belongs to the log: put back a manifest \
             that does, or move the file away to start without what is in it"
        )
    };
    let (base, first) = ("*appendonly.aof.1.base.rdb", "*appendonly.aof.1.incr.aof");
    let line = |name: &str, seq: i64, kind: &str| format!("file {} seq {seq} type {kind}\n", &name[1..]);
    let list = [line(base, 1, "b"), line(first, 1, "i")].concat();
    let files = |list: &str, second: &str| {
        vec![
            ("*appendonly.aof.manifest", list.to_owned()),
            (base, "REDIS".to_owned()),
            (first, "xy".to_owned()),
            ("*appendonly.aof.2.incr.aof", second.to_owned()),
            // What a rewrite left that was interrupted.
            ("*appendonly.aof.2.base.rdb", "REDIS".to_owned()),
        ]
    };
    let check = |list: &str, second: &str, expected: &str| {
        let files = files(list, second);
        let files: Vec<(&str, &str)> = files.iter().map(|(name, content)| (*name, content.as_str())).collect();
        check(&files, expected);
    };
    check(&list, "", "appendonly.aof.1.base.rdb 5 base, appendonly.aof.1.incr.aof 2 last");
    check(&list, "z", &refused("appendonly.aof.2.incr.aof"));
    check(&line(base, 1, "b"), "", &refused("appendonly.aof.1.incr.aof"));
    check(&line(first, 1, "i"), "", &refused("appendonly.aof.1.base.rdb"));
    // A log that began while a server ran has its base still to come.
    let lacking = line(first, 1, "i").replace('\n', " lacks base\n");
    check(&lacking, "", "appendonly.aof.1.incr.aof 2 last");
    // An older increment is what a rewrite has not yet deleted.
    let newer = [line("*appendonly.aof.2.base.rdb", 2, "b"), line("*appendonly.aof.2.incr.aof", 2, "i")].concat();
    check(&newer, "z", "appendonly.aof.2.base.rdb 5 base, appendonly.aof.2.incr.aof 1 last");
}

#[test]
fn a_snapshot_of_no_bytes_is_refused() {
    let list = "file appendonly.aof.1.base.rdb seq 1 type b\n";
    check(
        &[("*appendonly.aof.manifest", list), ("*appendonly.aof.1.base.rdb", "")],
        "The base file appendonly.aof.1.base.rdb is empty, and was not when it was made: put it back, or take its line out of \
         the manifest and move it away to start without what was in it",
    );
    let list = "file appendonly.aof.1.base.aof seq 1 type b\n";
    check(
        &[("*appendonly.aof.manifest", list), ("*appendonly.aof.1.base.aof", "")],
        "appendonly.aof.1.base.aof 0 base last",
    );
}

#[test]
fn the_file_of_an_older_version_becomes_the_base() {
    let after = check(&[("appendonly.aof", "old")], "appendonly.aof 3 base old last");
    assert_eq!(after.content(Path::new("data/appendonly.aof")), None);
    assert_eq!(after.content(&names().path("appendonly.aof")).as_deref(), Some(&b"old"[..]));
    let manifest = "file appendonly.aof seq 1 type b\n";
    assert_eq!(after.content(&names().path(MANIFEST)).as_deref(), Some(manifest.as_bytes()));
    // A move that was interrupted goes on.
    check(&[("appendonly.aof", "old"), ("*appendonly.aof.manifest", manifest)], "appendonly.aof 3 base old last");
    // Beside a log it is left alone.
    let beside = [("appendonly.aof", "old"), ("*appendonly.aof.manifest", manifest), ("*appendonly.aof", "newer")];
    let after = check(&beside, "appendonly.aof 5 base old last");
    assert!(after.content(Path::new("data/appendonly.aof")).is_some());
    let other = [("appendonly.aof", "old"), ("*appendonly.aof.manifest", "file i seq 1 type i\n"), ("*i", "")];
    check(&other, "i 0 last");
}

#[test]
fn torn_tails_are_cut_or_refused() {
    let manifest = "file i.aof seq 1 type i\nfile j.aof seq 2 type i\n";
    let files = files(&[("*appendonly.aof.manifest", manifest), ("*i.aof", "0123456789"), ("*j.aof", "0123456789")]);
    let directory = Directory::open(Arc::new(files.clone()), names()).expect("it is fine");
    let parts = directory.parts().expect("all are there");
    let torn = |in_transaction| ReadError::Truncated { valid_up_to: 4, in_transaction };
    let refused = directory.cut_torn_tail(&parts[1], torn(false), LoadTruncated::Refuse).expect_err("not wanted");
    assert!(refused.to_string().starts_with(
        "Unexpected end of file reading the append only file j.aof (its last whole record ends at offset 4). You can: \
         1) Make a backup of your AOF file"
    ));
    let refused = directory.cut_torn_tail(&parts[0], torn(false), LoadTruncated::Cut).expect_err("not the last");
    assert!(refused.to_string().starts_with(
        "Fatal error: the truncated file is not the last file: i.aof, truncated at offset 4. Records are missing"
    ));
    let spoilt = ReadError::Format { at: 6, valid_up_to: 4, fault: tenon_persist::aof::read::Fault::NoNumber };
    let refused = directory.cut_torn_tail(&parts[1], spoilt, LoadTruncated::Cut).expect_err("it is no tail");
    assert!(refused.to_string().starts_with("Bad file format reading the append only file j.aof at offset 6: "));
    let cut = directory.cut_torn_tail(&parts[1], torn(true), LoadTruncated::Cut).expect("it is wanted");
    assert_eq!(cut.notes[0], "Revert incomplete MULTI/EXEC transaction in AOF file j.aof");
    assert_eq!(cut.notes[2], "!!! Truncating the AOF j.aof at offset 4, by 6 bytes !!!");
    assert_eq!(files.content(&names().path("j.aof")).as_deref(), Some(&b"0123"[..]));
    assert_eq!(files.content(&names().path("i.aof")).map(|bytes| bytes.len()), Some(10));
}

#[test]
fn a_first_start_makes_what_redis_makes() {
    let files = files(&[]);
    let directory = Directory::open(Arc::new(files.clone()), names()).expect("there is nothing");
    let aof = directory.append((BaseFormat::Rdb, b"REDIS..."), &Settings::default(), Arc::new(NoHooks));
    let aof = aof.expect("nothing fails");
    aof.log().append(b"*1\r\n$4\r\nPING\r\n");
    aof.close().expect("nothing fails");
    let content =
        |name: &str| String::from_utf8(files.content(&names().path(name)).expect("it is there")).expect("text");
    let manifest = "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n";
    assert_eq!(content(MANIFEST), manifest);
    assert_eq!(content("appendonly.aof.1.base.rdb"), "REDIS...");
    assert_eq!(content("appendonly.aof.1.incr.aof"), "*1\r\n$4\r\nPING\r\n");
    let statistics = aof.statistics();
    assert_eq!((statistics.current_size, statistics.base_size), (22, 8));
}

#[test]
fn a_directory_that_cannot_be_written_to_is_said() {
    for (plan, expected) in [
        ("open:erofs@1", "Can't open or create append-only dir aofdir: Read-only file system"),
        ("write:enospc@1", "Can't create the first AOF base file: No space left on device"),
        (
            "open:erofs@4",
            "Can't open the append-only file data/aofdir/appendonly.aof.1.incr.aof: Read-only file system",
        ),
        ("rename:eio", "Can't write the AOF manifest file: Input/output error"),
    ] {
        let faulty = Faulty::new(files(&[]), plan.parse().expect("a plan"));
        let directory = Directory::open(Arc::new(faulty.clone()), names()).expect("there is nothing");
        let begun = directory.append((BaseFormat::Rdb, b"REDIS..."), &Settings::default(), Arc::new(NoHooks));
        assert_eq!(begun.err().map(|error| error.to_string()).as_deref(), Some(expected), "{plan}");
        // Nothing of it stops a later start.
        faulty.set("".parse().expect("a plan"));
        let directory = Directory::open(Arc::new(faulty), names()).expect("what is left is of no value");
        let begun = directory.append((BaseFormat::Rdb, b"REDIS..."), &Settings::default(), Arc::new(NoHooks));
        begun.expect("nothing fails any more").close().expect("nothing fails any more");
    }
}
