//! The directory of the log: one server has it at a time, and it comes back when somebody removes it. Knows of its files the
//! names.

use std::path::Path;
use std::process::Command;
use tenon_client::{Resp, Value};
use tenon_testkit::patience::{self, PATIENCE, wait_until};
use tenon_testkit::server::{Server, StartError, tenon_binary};
use tenon_testkit::target::Dialect;

fn client(server: &Server) -> Resp {
    Resp::connect_to(server.address(Dialect::Redis).expect("a RESP port"), Some(PATIENCE)).expect("connected")
}

fn call(client: &mut Resp, command: &str) -> String {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    match client.call(&words).expect("an answer") {
        Value::Bulk(text) | Value::Simple(text) | Value::Error(text) => String::from_utf8(text).expect("it is text"),
        other => panic!("a text was expected: {other:?}"),
    }
}

/// A server with a log in its own folder, which goes with it.
fn start() -> Server {
    let settings = [
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("save", ""),
        ("enable-protected-configs", "local"),
        ("enable-debug-command", "local"),
    ];
    Server::tenon(&settings).expect("tenon starts")
}

/// Another one in that folder.
fn start_in(folder: &Path, appendonly: &str) -> Result<Server, StartError> {
    let dir = folder.to_str().expect("it is text");
    Server::tenon(&[("dir", dir), ("appendonly", appendonly), ("save", "")])
}

fn fix(folder: &Path) -> (bool, String) {
    let manifest = folder.join("appendonlydir/appendonly.aof.manifest");
    let tenon = tenon_binary().expect("it is built");
    let output = patience::run(Command::new(tenon).args(["check", "aof", "--fix"]).arg(manifest)).expect("tenon runs");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn who_asks_how_files_are_checked_is_told() {
    for (words, is_asked) in
        [(&["--help"][..], true), (&["-h"], true), (&["aof", "--help"], true), (&["nosuch"], false)]
    {
        let output = Command::new(tenon_binary().expect("it is built")).arg("check").args(words).output();
        let output = output.expect("tenon runs");
        assert_eq!(output.status.success(), is_asked, "{words:?}");
        let said = if is_asked { output.stdout } else { output.stderr };
        assert!(said.starts_with(b"Usage: tenon check aof"), "{words:?}");
    }
}

#[test]
fn a_second_server_is_refused_the_directory_of_a_log() {
    let mut first = start();
    let folder = first.folder().to_owned();
    assert_eq!(call(&mut client(&first), "SET key first"), "OK");
    let why = start_in(&folder, "yes").expect_err("the directory is the first one's").to_string();
    assert!(why.contains("appendonlydir is in use by another server"), "{why}");
    // Without a log it may start there, and gets none later.
    let without = start_in(&folder, "no").expect("tenon starts");
    let mut other = client(&without);
    let why = call(&mut other, "CONFIG SET appendonly yes");
    assert!(why.contains("Unable to turn on AOF. Check server logs."), "{why}");
    assert!(without.log().contains("appendonlydir is in use by another server"), "{}", without.log());
    call(&mut other, "BGREWRITEAOF");
    let rewritten = || tenon_testkit::info::field(&mut client(&without), "persistence", "aof_last_bgrewrite_status");
    wait_until("the end of the rewrite", || rewritten() == "err");
    let (is_fixed, told) = fix(&folder);
    assert!(!is_fixed && told.contains("A server has the files"), "{told}");
    // What the first one's crash leaves is anybody's.
    first.kill();
    assert!(fix(&folder).0);
    assert_eq!(call(&mut other, "CONFIG SET appendonly yes"), "OK");
    assert!(start_in(&folder, "yes").is_err());
    drop(without);
    let again = start_in(&folder, "yes").expect("tenon starts");
    drop(again);
}

#[test]
fn a_directory_that_was_removed_is_made_again() {
    let mut server = start();
    let folder = server.folder().to_owned();
    let mut resp = client(&server);
    assert_eq!(call(&mut resp, "SET before 1"), "OK");
    let directory = folder.join("appendonlydir");
    std::fs::remove_dir_all(&directory).expect("it is there");
    assert_eq!(call(&mut resp, "SET between 2"), "OK");
    wait_until("the list", || directory.join("appendonly.aof.manifest").exists());
    wait_until("the base", || {
        let names = std::fs::read_dir(&directory).expect("it is there");
        let is_base = |name: &str| name.contains(".base.") && !name.contains("temp");
        names.flatten().any(|entry| entry.file_name().to_str().is_some_and(is_base))
            && tenon_testkit::info::field(&mut resp, "persistence", "aof_rewrite_in_progress") == "0"
    });
    assert_eq!(call(&mut resp, "SET after 3"), "OK");
    assert!(start_in(&folder, "yes").is_err(), "the new directory is this server's, too");
    server.kill();
    let again = start_in(&folder, "yes").expect("tenon starts");
    let mut resp = client(&again);
    for (key, value) in [("before", "1"), ("between", "2"), ("after", "3")] {
        assert_eq!(call(&mut resp, &format!("GET {key}")), value, "{key}");
    }
}

#[test]
fn a_file_that_was_removed_is_replaced_although_the_disk_is_full_at_first() {
    for removed in ["incr.aof", "base.rdb"] {
        let mut server = start();
        let folder = server.folder().to_owned();
        let mut resp = client(&server);
        assert_eq!(call(&mut resp, "SET before 1"), "OK");
        // The list is the first write of a rewrite, and its base the second.
        assert_eq!(call(&mut resp, "DEBUG FAULTS write:enospc@2-"), "OK");
        std::fs::remove_file(folder.join(format!("appendonlydir/appendonly.aof.1.{removed}"))).expect("it is there");
        let status = |resp: &mut Resp| tenon_testkit::info::field(resp, "persistence", "aof_last_bgrewrite_status");
        wait_until("the failure", || status(&mut resp) == "err");
        assert_eq!(call(&mut resp, "DEBUG FAULTS"), "OK");
        wait_until("the rewrite", || status(&mut resp) == "ok");
        assert_eq!(call(&mut resp, "SET after 2"), "OK");
        server.kill();
        let again = start_in(&folder, "yes").expect("tenon starts");
        let mut resp = client(&again);
        for (key, value) in [("before", "1"), ("after", "2")] {
            assert_eq!(call(&mut resp, &format!("GET {key}")), value, "{removed}: {key}");
        }
    }
}

#[test]
fn a_log_moves_when_it_begins_anew() {
    let mut server = start();
    let mut resp = client(&server);
    let other = server.folder().join("other");
    std::fs::create_dir(&other).expect("it can be made");
    assert_eq!(call(&mut resp, "SET before 1"), "OK");
    assert_eq!(call(&mut resp, &format!("CONFIG SET dir {}", other.display())), "OK");
    assert!(server.log().contains("The append-only file stays in"), "{}", server.log());
    // A backup's way: who sets the directory for a moment moves no log.
    call(&mut resp, "BGREWRITEAOF");
    wait_until("the end of the rewrite", || {
        tenon_testkit::info::field(&mut resp, "persistence", "aof_rewrite_in_progress") == "0"
    });
    assert_eq!(call(&mut resp, "SET between 2"), "OK");
    assert!(!other.join("appendonlydir").exists());
    for appendonly in ["no", "yes"] {
        assert_eq!(call(&mut resp, &format!("CONFIG SET appendonly {appendonly}")), "OK");
    }
    wait_until("the base", || tenon_testkit::info::field(&mut resp, "persistence", "aof_rewrite_in_progress") == "0");
    assert_eq!(call(&mut resp, "SET after 3"), "OK");
    server.kill();
    let again = start_in(&other, "yes").expect("tenon starts");
    let mut resp = client(&again);
    for (key, value) in [("before", "1"), ("between", "2"), ("after", "3")] {
        assert_eq!(call(&mut resp, &format!("GET {key}")), value, "{key}");
    }
}

#[test]
fn a_damaged_base_is_named() {
    let mut server = start();
    let mut resp = client(&server);
    let folder = server.folder().to_owned();
    assert_eq!(call(&mut resp, "SET key value"), "OK");
    assert_eq!(call(&mut resp, "BGREWRITEAOF"), "Background append only file rewriting started");
    let base = folder.join("appendonlydir/appendonly.aof.2.base.rdb");
    wait_until("the base", || tenon_testkit::info::field(&mut resp, "persistence", "aof_rewrite_in_progress") == "0");
    server.kill();
    let mut bytes = std::fs::read(&base).expect("it is there");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&base, bytes).expect("it can be written");
    let why = start_in(&folder, "yes").expect_err("its checksum is wrong").to_string();
    assert!(why.contains("the snapshot in appendonly.aof.2.base.rdb cannot be loaded: "), "{why}");
}

#[test]
fn what_was_restored_is_loaded_although_there_is_less_memory() {
    let mut server = start();
    let mut resp = client(&server);
    let folder = server.folder().to_owned();
    let value = "a".repeat(3_000);
    let elements = vec![value.as_bytes(); 300];
    resp.call(&[&[&b"RPUSH"[..], b"list"], &elements[..]].concat()).expect("an answer");
    let Value::Bulk(payload) = resp.call(&[b"DUMP", b"list"]).expect("an answer") else { panic!("a payload") };
    assert!(payload.len() < 100_000, "what it comes to is more than itself");
    for key in ["one", "two", "three"] {
        let restored = resp.call(&[b"RESTORE", key.as_bytes(), b"0", &payload]).expect("an answer");
        assert_eq!(restored, Value::Simple(b"OK".to_vec()), "{key}");
    }
    server.kill();
    let dir = folder.to_str().expect("it is text");
    let again = Server::tenon(&[("dir", dir), ("appendonly", "yes"), ("save", ""), ("maxmemory", "1mb")]);
    let mut resp = client(again.as_ref().expect("tenon starts"));
    assert_eq!(resp.call(&[b"LLEN", b"three"]).expect("an answer"), Value::Int(300));
}

/// A killed server's folder, where a key was confirmed and is not in the log's file; nothing where no memory outlives it.
fn killed_before_it_wrote(names: &[(&str, &str)]) -> Option<Server> {
    let settings = [("appendonly", "yes"), ("appendfsync", "no"), ("save", ""), ("enable-debug-command", "local")];
    let mut server = Server::tenon(&[&settings[..], names].concat()).expect("tenon starts");
    let mut resp = client(&server);
    if tenon_testkit::info::field(&mut resp, "persistence", "aof_buffer_outlives_process") == "0" {
        return None;
    }
    // No write that waits holds up the end of a process.
    assert_eq!(call(&mut resp, "DEBUG FAULTS write:slow=600000"), "OK");
    assert_eq!(call(&mut resp, "SET key confirmed"), "OK");
    server.kill();
    Some(server)
}

#[test]
fn a_start_that_misses_a_file_leaves_what_belongs_to_it() {
    let Some(killed) = killed_before_it_wrote(&[]) else { return };
    let folder = killed.folder();
    let increment = folder.join("appendonlydir/appendonly.aof.1.incr.aof");
    let away = folder.join("away");
    std::fs::rename(&increment, &away).expect("it is there");
    let why = start_in(folder, "yes").expect_err("a file is missing").to_string();
    assert!(why.contains("appendonly.aof.1.incr.aof doesn't exist"), "{why}");
    let (is_fixed, told) = fix(folder);
    assert!(!is_fixed && told.contains("1.incr.aof: No such file or directory, aborting..."), "{told}");
    let without = start_in(folder, "no").expect("tenon starts");
    assert!(call(&mut client(&without), "CONFIG SET appendonly yes").contains("Unable to turn on AOF"));
    drop(without);
    std::fs::rename(&away, &increment).expect("it is there");
    let again = start_in(folder, "yes").expect("tenon starts");
    assert_eq!(call(&mut client(&again), "GET key"), "confirmed");
}

#[test]
fn another_log_of_the_same_directory_leaves_what_is_not_its_own() {
    let own = [("appendfilename", "own.aof")];
    let Some(killed) = killed_before_it_wrote(&own) else { return };
    let folder = killed.folder();
    let why = start_in(folder, "yes").expect_err("it would take the place").to_string();
    assert!(why.contains("for a file that is not on this list"), "{why}");
    let dir = folder.to_str().expect("it is text");
    let settings = [("dir", dir), ("appendonly", "yes"), ("save", "")];
    let again = Server::tenon(&[&settings[..], &own].concat()).expect("tenon starts");
    assert_eq!(call(&mut client(&again), "GET key"), "confirmed");
}
