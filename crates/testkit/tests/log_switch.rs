//! CONFIG SET appendonly while a rewrite of the log is under way: that makes way, and what is confirmed is in the log. Knows
//! of the files only who reads them.

use std::process::Command;
use std::time::{Duration, Instant};
use tenon_client::{Resp, Value};
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

const PATIENCE: Duration = Duration::from_secs(120);
const KEYS: i64 = 100_000;

fn client(server: &Server) -> Resp {
    Resp::connect_to(server.address(Dialect::Redis).expect("a RESP port"), Some(PATIENCE)).expect("connected")
}

fn call(client: &mut Resp, command: &str) -> Value {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    client.call(&words).expect("an answer")
}

fn text(value: Value) -> String {
    match value {
        Value::Bulk(text) | Value::Simple(text) | Value::Error(text) => String::from_utf8(text).expect("it is text"),
        other => panic!("a text was expected: {other:?}"),
    }
}

fn ok(client: &mut Resp, command: &str) {
    assert_eq!(text(call(client, command)), "OK", "{command}");
}

fn info(client: &mut Resp, field: &str) -> String {
    let all = text(call(client, "INFO persistence"));
    let found = all.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    found.unwrap_or_else(|| panic!("INFO has no {field}")).to_owned()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what} does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A server with many keys, whose disk is so slow that a rewrite is not done before a test has looked at it.
fn slow_server(appendonly: &str) -> (Server, Resp) {
    let settings = [
        ("appendonly", appendonly),
        ("appendfsync", "always"),
        ("enable-debug-command", "yes"),
        ("auto-aof-rewrite-percentage", "0"),
        ("save", ""),
    ];
    let server = Server::tenon(&settings).expect("tenon starts");
    let mut client = client(&server);
    ok(&mut client, &format!("DEBUG POPULATE {KEYS} key 100"));
    ok(&mut client, "DEBUG FAULTS write:slow=100");
    (server, client)
}

fn begin_rewrite(client: &mut Resp) {
    assert_eq!(text(call(client, "BGREWRITEAOF")), "Background append only file rewriting started");
    assert_eq!(info(client, "aof_rewrite_in_progress"), "1");
}

fn await_rewrite(client: &mut Resp) {
    ok(client, "DEBUG FAULTS");
    wait_until("the end of the rewrite", || info(client, "aof_rewrite_in_progress") == "0");
}

/// Kills the server, and looks what another one finds in its files.
fn check_files(mut server: Server, last: &str) {
    let names = std::fs::read_dir(server.folder().join("appendonlydir")).expect("there are files");
    let names: Vec<_> = names.map(|entry| entry.expect("it is listed").file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with("temp")), "{names:?}");
    let pid = server.pid().to_string();
    assert!(Command::new("kill").args(["-KILL", &pid]).status().expect("kill runs").success());
    server.wait_for_end(PATIENCE).expect("it ends");
    let folder = server.folder().to_str().expect("it is text").to_owned();
    let again = Server::tenon(&[("dir", &folder), ("appendonly", "yes")]).expect("tenon starts");
    let mut resp = client(&again);
    wait_until("the end of loading", || call(&mut resp, "DBSIZE") == Value::Int(KEYS + 1));
    assert_eq!(text(call(&mut resp, "GET last")), last);
}

#[test]
fn a_log_that_begins_has_a_rewrite_make_way() {
    let (server, mut client) = slow_server("no");
    begin_rewrite(&mut client);
    ok(&mut client, "CONFIG SET appendonly yes");
    assert_eq!(info(&mut client, "aof_enabled"), "1");
    ok(&mut client, "SET last 1");
    await_rewrite(&mut client);
    assert_eq!(info(&mut client, "aof_last_bgrewrite_status"), "ok");
    ok(&mut client, "SET last 2");
    assert!(server.log().contains("Stopping background AOF and starting a rewrite now"), "{}", server.log());
    check_files(server, "2");
}

#[test]
fn a_log_that_ends_stops_its_rewrite() {
    let (server, mut client) = slow_server("yes");
    begin_rewrite(&mut client);
    ok(&mut client, "CONFIG SET appendonly no");
    assert_eq!(info(&mut client, "aof_enabled"), "0");
    // The disk is as slow as it was: it has not come to its end by itself.
    wait_until("the end of the rewrite", || info(&mut client, "aof_rewrite_in_progress") == "0");
    assert!(server.log().contains("Background AOF rewrite terminated: it was stopped"), "{}", server.log());
    ok(&mut client, "SET last 1");
    ok(&mut client, "CONFIG SET appendonly yes");
    await_rewrite(&mut client);
    ok(&mut client, "SET last 2");
    check_files(server, "2");
}

#[test]
fn a_log_may_be_switched_again_and_again() {
    let (server, mut client) = slow_server("yes");
    for round in 0..10 {
        begin_rewrite_or_not(&mut client, round);
        ok(&mut client, "CONFIG SET appendonly no");
        ok(&mut client, "CONFIG SET appendonly yes");
        ok(&mut client, &format!("SET last {round}"));
    }
    ok(&mut client, "CONFIG SET appendonly no");
    ok(&mut client, "DEBUG FAULTS");
    wait_until("the end of the rewrite", || info(&mut client, "aof_rewrite_in_progress") == "0");
    assert_eq!(info(&mut client, "aof_enabled"), "0");
    ok(&mut client, "SET last none");
    ok(&mut client, "CONFIG SET appendonly yes");
    await_rewrite(&mut client);
    assert_eq!(info(&mut client, "aof_last_bgrewrite_status"), "ok");
    ok(&mut client, "SET last 99");
    check_files(server, "99");
}

/// In some rounds there is one that was asked for; in others the one with which the log begins is under way.
fn begin_rewrite_or_not(client: &mut Resp, round: u32) {
    if round.is_multiple_of(2) {
        call(client, "BGREWRITEAOF");
    }
}
