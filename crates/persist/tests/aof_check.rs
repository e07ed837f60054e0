//! What looking through append-only files says and cuts off. Knows what `redis-check-aof` says where it is installed.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tenon_persist::aof::check::{Check, Mode};
use tenon_persist::aof::names::BaseFormat;
use tenon_persist::aof::{Directory, Names};
use tenon_persist::journal::files::{Disk, Faulty, Files, Want};
use tenon_persist::journal::log::NoHooks;
use tenon_persist::journal::{Log, Policy, Settings};

const PING: &str = "*1\r\n$4\r\nPING\r\n";
const MULTI: &str = "*1\r\n$5\r\nMULTI\r\n";
const EXEC: &str = "*1\r\n$4\r\nEXEC\r\n";

/// A directory of its own, gone with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, files: &[(&str, &str)]) -> Place {
        let place = Place(std::env::temp_dir().join(format!("tenon-aof-check-{name}-{}", std::process::id())));
        // What a run that was killed left.
        let _ = std::fs::remove_dir_all(&place.0);
        std::fs::create_dir_all(&place.0).expect("it can be made");
        for (name, content) in files {
            std::fs::write(place.0.join(name), content).expect("it can be written");
        }
        place
    }

    /// What is said of a file, and whether all is well.
    fn check(&self, mode: Mode, name: &str, answer: bool) -> (String, bool) {
        let mut out = Vec::new();
        let mut check_rdb = |source: &mut dyn Read, out: &mut dyn Write| {
            // Snapshots of nine bytes, of which some are bad.
            let mut bytes = Vec::new();
            source.read_to_end(&mut bytes)?;
            writeln!(out, "(snapshot)")?;
            Ok((bytes[5] != b'!').then_some(9))
        };
        let mut check = Check { files: &Disk, mode, out: &mut out, may_cut: &mut || answer, check_rdb: &mut check_rdb };
        let well = check.run(&self.0.join(name)).expect("a vector takes whatever is written");
        let text = String::from_utf8(out).expect("text").replace(&format!("{}/", self.0.display()), "");
        (text, well)
    }

    fn content(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).expect("it is there")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_torn_file_is_cut_when_asked_and_answered() {
    let torn = format!("{PING}{PING}*2\r\n$3\r\nGET\r\n$10\r\nabc");
    let place = Place::new("torn", &[("a.aof", &torn)]);
    let analyzed = "Start checking Old-Style AOF\n\
                    0x              2e: Expected to read 12 bytes, got 3 bytes\n\
                    AOF analyzed: filename=a.aof, size=49, ok_up_to=28, ok_up_to_line=11, diff=21\n";
    let refused = format!("{analyzed}AOF a.aof is not valid. Use the --fix option to try fixing it.\n");
    assert_eq!(place.check(Mode::Look, "a.aof", true), (refused, false));
    let asked = format!(
        "{analyzed}This will shrink the AOF a.aof from 49 bytes, with 21 bytes, to 28 bytes\nContinue? [y/N]: "
    );
    assert_eq!(place.check(Mode::Fix, "a.aof", false), (format!("{asked}Aborting...\n"), false));
    assert_eq!(place.content("a.aof"), torn);
    assert_eq!(place.check(Mode::Fix, "a.aof", true), (format!("{asked}Successfully truncated AOF a.aof\n"), true));
    assert_eq!(place.content("a.aof"), format!("{PING}{PING}"));
    let (text, well) = place.check(Mode::Look, "a.aof", true);
    assert!(well && text.ends_with("AOF a.aof is valid\n"), "{text}");
}

#[test]
fn parts_are_looked_through_in_their_order() {
    let manifest =
        "file b.rdb seq 1 type b\nfile i.aof seq 1 type i\nfile j.aof seq 2 type i\nfile k.aof seq 3 type i\n";
    let files = [("m", manifest), ("b.rdb", "REDIS0010"), ("i.aof", PING), ("j.aof", PING), ("k.aof", "")];
    let place = Place::new("parts", &files);
    let expected = "Start checking Multi Part AOF\nStart to check BASE AOF (RDB format).\n(snapshot)\n\
                    RDB preamble is OK, proceeding with AOF tail...\n\
                    AOF analyzed: filename=b.rdb, size=9, ok_up_to=9, ok_up_to_line=1, diff=0\n\
                    BASE AOF b.rdb is valid\nStart to check INCR files.\n\
                    AOF analyzed: filename=i.aof, size=14, ok_up_to=14, ok_up_to_line=4, diff=0\n\
                    INCR AOF i.aof is valid\n\
                    AOF analyzed: filename=j.aof, size=14, ok_up_to=14, ok_up_to_line=4, diff=0\n\
                    INCR AOF j.aof is valid\nINCR AOF k.aof is empty\nAll AOF files and manifest are valid\n";
    assert_eq!(place.check(Mode::Look, "m", false), (expected.to_owned(), true));

    std::fs::write(place.0.join("j.aof"), "*1\r\n$4\r\nPI").expect("it can be written");
    let (text, well) = place.check(Mode::Fix, "m", true);
    assert!(well && text.contains("Successfully truncated AOF j.aof\n"), "only empty ones follow: {text}");
    std::fs::write(place.0.join("i.aof"), "*1\r\n$4\r\nPI").expect("it can be written");
    std::fs::write(place.0.join("j.aof"), PING).expect("it can be written");
    let (text, well) = place.check(Mode::Fix, "m", true);
    assert!(
        !well && text.contains("Failed to truncate AOF i.aof because it is not the last file\nPut a whole"),
        "{text}"
    );

    std::fs::write(place.0.join("b.rdb"), "REDIS!010").expect("it can be written");
    let (text, well) = place.check(Mode::Look, "m", true);
    assert!(!well && text.ends_with("RDB preamble of AOF file is not sane, aborting.\n"), "{text}");
    std::fs::remove_file(place.0.join("b.rdb")).expect("it is there");
    let (text, well) = place.check(Mode::Look, "m", true);
    assert!(!well && text.ends_with("b.rdb: No such file or directory, aborting...\n"), "{text}");
    std::fs::write(place.0.join("m"), "file ../x seq 1 type b\n").expect("it can be written");
    let (text, well) = place.check(Mode::Look, "m", true);
    assert!(!well && text.ends_with("File can't be a path, just a filename\n"), "{text}");
}

#[test]
fn what_has_a_manifests_name_is_never_cut() {
    for (content, fault) in [
        ("", "Found an empty AOF manifest\n"),
        ("\n", "Invalid AOF manifest file format\n"),
        ("\0\0\0", "The AOF manifest file contains too long line\n"),
    ] {
        let place = Place::new("manifest", &[("a.manifest", content)]);
        let (text, well) = place.check(Mode::Fix, "a.manifest", true);
        assert!(!well && text.ends_with(fault), "{text}");
        assert_eq!(place.content("a.manifest"), content);
    }
    let list = "file a.1.base.rdb seq 1 type b\n";
    let place = Place::new("no-base", &[("a.manifest", list), ("a.1.base.rdb", "")]);
    let (text, well) = place.check(Mode::Fix, "a.manifest", true);
    assert!(!well && text.ends_with("BASE AOF a.1.base.rdb is empty, and was not when it was made\n"), "{text}");
}

#[test]
fn a_snapshot_is_not_cut_as_an_increment() {
    let place = Place::new("not-base", &[("a.manifest", "file b.rdb seq 1 type i\n"), ("b.rdb", "REDIS0010")]);
    let (text, well) = place.check(Mode::Fix, "a.manifest", true);
    assert!(!well && text.contains("b.rdb is a snapshot, and only the base of a log can be one"), "{text}");
    assert_eq!(place.content("b.rdb"), "REDIS0010");
}

#[test]
fn commands_behind_a_snapshot_are_looked_through() {
    let place = Place::new("preamble", &[("a.aof", &format!("REDIS0010{PING}x"))]);
    let (text, well) = place.check(Mode::Look, "a.aof", true);
    let expected = "Start checking Old-Style AOF\n(snapshot)\nRDB preamble is OK, proceeding with AOF tail...\n\
                    0x              17: Expected prefix '*', got: 'x'\nAOF a.aof format error\n\
                    AOF analyzed: filename=a.aof, size=24, ok_up_to=23, ok_up_to_line=4, diff=1\n\
                    AOF a.aof is not valid. Use the --fix option to try fixing it.\n";
    assert_eq!((text.as_str(), well), (expected, false));
}

#[test]
fn what_came_later_is_cut_off() {
    let file = format!("#TS:100\r\n{PING}#TS:200\r\n{PING}{PING}#TS:300\r\n{PING}");
    let place = Place::new("timestamps", &[("a.aof", &file)]);
    let said = |to, expected: &str, is_well: bool| {
        let (text, well) = place.check(Mode::TruncateTo(to), "a.aof", false);
        assert_eq!((text.as_str(), well), (format!("Start checking Old-Style AOF\n{expected}").as_str(), is_well));
    };
    said(99, "AOF a.aof has nothing before timestamp 99, aborting...\n", false);
    said(300, "Truncate nothing in AOF a.aof to timestamp 300\nAOF a.aof is valid\n", true);
    assert_eq!(place.content("a.aof"), file);
    said(250, "Successfully truncated AOF a.aof to timestamp 250\n", true);
    assert_eq!(place.content("a.aof"), format!("#TS:100\r\n{PING}#TS:200\r\n{PING}{PING}"));
    // In front of a transaction, too, and within it: that goes as a whole.
    for transaction in [
        format!("#TS:200\r\n{MULTI}{PING}{EXEC}"),
        format!("{MULTI}#TS:200\r\n{PING}{EXEC}"),
        format!("{MULTI}{PING}#TS:200\r\n{EXEC}"),
    ] {
        let place = Place::new("timestamps", &[("a.aof", &format!("#TS:100\r\n{PING}{transaction}{PING}"))]);
        let (text, well) = place.check(Mode::TruncateTo(150), "a.aof", false);
        assert!(well && text.ends_with("Successfully truncated AOF a.aof to timestamp 150\n"), "{text}");
        assert_eq!(place.content("a.aof"), format!("#TS:100\r\n{PING}"), "{transaction:?}");
    }
    let place = Place::new("bad-timestamps", &[("a.aof", &format!("#TS:x\r\n{PING}"))]);
    assert_eq!(
        place.check(Mode::TruncateTo(1), "a.aof", false).0,
        "Start checking Old-Style AOF\nInvalid timestamp annotation\n"
    );
}

#[test]
fn what_a_killed_server_had_not_written_is_looked_through_with_the_rest() {
    let manifest = "file a.1.incr.aof seq 1 type i\n";
    let file = format!("#TS:100\r\n{PING}");
    for (to, kept) in
        [(150, format!("{file}#TS:120\r\n{PING}")), (400, format!("{file}#TS:120\r\n{PING}#TS:300\r\n{PING}"))]
    {
        let place = Place::new(
            "left",
            &[
                ("a.manifest", manifest),
                ("other.manifest", "file b.1.incr.aof seq 1 type i\n"),
                ("b.1.incr.aof", ""),
                ("a.1.incr.aof", &file),
            ],
        );
        let settings = Settings { policy: Policy::No, ..Settings::default() };
        let memory = Disk.kept_memory(&place.0, Log::memory_len(&settings), Want::Room);
        // Where the system has no such memory nothing is left in any.
        let Ok(memory @ Some(_)) = memory else { return };
        let files = Faulty::new(Disk, "write:eio".parse().expect("a plan"));
        let open = files.append(&place.0.join("a.1.incr.aof")).expect("it is there");
        let log = Log::start_in(memory, open, &settings, Arc::new(NoHooks)).expect("it starts");
        log.append(format!("#TS:120\r\n{PING}").as_bytes());
        log.append(format!("#TS:300\r\n{PING}").as_bytes());
        log.close().expect_err("the disk takes nothing");
        drop(log);
        assert!(place.check(Mode::Look, "a.manifest", false).1);
        // Nor does who names another list, or the file alone, behind which it would come.
        for name in ["other.manifest", "a.1.incr.aof"] {
            let (text, well) = place.check(Mode::TruncateTo(to), name, false);
            assert!(!well && text.contains("A killed server had confirmed something"), "{text}");
        }
        assert_eq!(place.content("a.1.incr.aof"), file, "who only looks changes nothing");
        let (text, well) = place.check(Mode::TruncateTo(to), "a.manifest", false);
        let brought = "A killed server had confirmed 46 bytes and not written them: now they are in a.1.incr.aof\n";
        assert!(well && text.contains(brought), "{text}");
        assert_eq!(place.content("a.1.incr.aof"), kept);
        let again = Disk.kept_memory(&place.0, Log::memory_len(&settings), Want::Left);
        assert!(again.expect("it is free").is_none());
    }
}

/// What the original says, but for the line that begins with an offset, which we give more exactly.
fn original(place: &Place, words: &[&str], name: &str) -> Option<(String, bool)> {
    let mut child = Command::new("redis-check-aof")
        .args(words)
        .arg(name)
        .current_dir(&place.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let _ = child.stdin.take().expect("it is piped").write_all(b"y\n");
    let output = child.wait_with_output().expect("it ends");
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success()))
}

fn without_offsets(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("0x")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_original_says_the_same() {
    let set = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
    for (number, content) in [
        "".to_owned(),
        PING.to_owned(),
        format!("{PING}{set}"),
        format!("{set}*3\r\n$3\r\nSET\r\n$1\r\nk"),
        format!("{set}*3\r\n$3\r\nSET\r\n"),
        format!("{PING}{MULTI}{set}{EXEC}{PING}"),
        format!("{PING}{MULTI}{set}"),
        format!("{PING}{MULTI}{set}*3\r\n$3\r\nS"),
        format!("#TS:1700000000\r\n{PING}"),
        format!("{PING}nonsense"),
        format!("{PING}*1\r\n+4\r\nPING\r\n"),
        format!("{PING}*1\r\n$4\r\nPINGxy"),
    ]
    .into_iter()
    .enumerate()
    {
        for (mode, words) in [(Mode::Look, &[][..]), (Mode::Fix, &["--fix"][..])] {
            let (ours, theirs) = (format!("ours-{number}"), format!("theirs-{number}"));
            let ours = Place::new(&ours, &[("a.aof", &content)]);
            let theirs = Place::new(&theirs, &[("a.aof", &content)]);
            let Some(expected) = original(&theirs, words, "a.aof") else {
                writeln!(std::io::stderr(), "skipped: redis-check-aof is not installed").expect("stderr is there");
                return;
            };
            let said = ours.check(mode, "a.aof", true);
            assert_eq!(without_offsets(&said.0), without_offsets(&expected.0), "{content:?}");
            assert_eq!(said.1, expected.1, "{content:?}");
            assert_eq!(ours.content("a.aof"), theirs.content("a.aof"), "{content:?}");
        }
    }
}

#[test]
fn the_original_takes_what_is_written() {
    let place = Place::new("written", &[]);
    // A quote is in the list of files as Redis writes and reads it.
    let names = Names { dir: place.0.clone(), appenddirname: "dir".into(), appendfilename: "it \"is\".aof".into() };
    let settings = Settings { policy: Policy::Always, timestamps: true, ..Settings::default() };
    let directory = Directory::open(Arc::new(Disk), names.clone()).expect("there is nothing");
    let aof = directory.append((BaseFormat::Aof, b""), &settings, Arc::new(NoHooks)).expect("it can be made");
    aof.log().append(format!("{MULTI}{PING}{EXEC}").as_bytes());
    let mut rewrite = aof.begin_rewrite().expect("nothing fails");
    aof.log().append(PING.as_bytes());
    aof.cut(&mut rewrite);
    aof.log().append(PING.as_bytes());
    std::fs::write(rewrite.base_path(), PING).expect("it can be written");
    aof.finish_rewrite(rewrite, (BaseFormat::Aof, PING.len() as u64)).expect("nothing fails");
    aof.close().expect("nothing fails");
    let listed = std::fs::read_dir(names.directory()).expect("it is there").count();
    assert_eq!(listed, 3, "the list, the base and an increment");
    let (text, well) = place.check(Mode::Look, &format!("dir/{}", names.manifest()), false);
    assert!(well && text.ends_with("All AOF files and manifest are valid\n"), "{text}");
    match original(&place, &[], &format!("dir/{}", names.manifest())) {
        Some((text, well)) => assert!(well && text.ends_with("All AOF files and manifest are valid\n"), "{text}"),
        None => writeln!(std::io::stderr(), "skipped: redis-check-aof is not installed").expect("stderr is there"),
    }
}

#[test]
fn a_file_that_grows_meanwhile_is_valid() {
    let place = Place::new("growing", &[("a.aof", "REDIS0010")]);
    let path = place.0.join("a.aof");
    let mut out = Vec::new();
    let mut check_rdb = |_: &mut dyn Read, _: &mut dyn Write| {
        std::fs::OpenOptions::new().append(true).open(&path)?.write_all(PING.as_bytes())?;
        Ok(Some(9))
    };
    let mode = Mode::Look;
    let mut check = Check { files: &Disk, mode, out: &mut out, may_cut: &mut || false, check_rdb: &mut check_rdb };
    assert!(check.run(&path).expect("a vector takes whatever is written"));
    let text = String::from_utf8(out).expect("text");
    assert!(text.contains(", size=23, ok_up_to=23, ") && text.ends_with("is valid\n"), "{text}");
}
