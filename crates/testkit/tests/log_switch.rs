//! CONFIG SET appendonly while a rewrite of the log is under way: that makes way, and what is confirmed is in the log. Knows
//! of the files only who reads them.

use tenon_client::{Resp, Value};
use tenon_testkit::oracle::oracle;
use tenon_testkit::patience::{PATIENCE, wait_until};
use tenon_testkit::server::{Server, StartError};
use tenon_testkit::target::Dialect;

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

fn text_list(value: Value) -> Vec<String> {
    let Value::Array(items) = value else { panic!("a list was expected: {value:?}") };
    items.into_iter().map(text).collect()
}

fn ok(client: &mut Resp, command: &str) {
    assert_eq!(text(call(client, command)), "OK", "{command}");
}

fn info(client: &mut Resp, field: &str) -> String {
    tenon_testkit::info::field(client, "persistence", field)
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

/// Kills the server and starts another one in its folder.
fn kill_and_restart(mut server: Server) -> (Server, Server, Resp) {
    server.kill();
    let folder = server.folder().to_str().expect("it is text").to_owned();
    let again = Server::tenon(&[("dir", &folder), ("appendonly", "yes")]).expect("tenon starts");
    let resp = client(&again);
    // The folder goes with the first one, which is dropped last.
    (server, again, resp)
}

/// Kills the server, and looks what another one finds in its files.
fn check_files(server: Server, last: &str) {
    let names = std::fs::read_dir(server.folder().join("appendonlydir")).expect("there are files");
    let names: Vec<_> = names.map(|entry| entry.expect("it is listed").file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with("temp")), "{names:?}");
    let (_folder, _again, mut resp) = kill_and_restart(server);
    wait_until("the end of loading", || call(&mut resp, "DBSIZE") == Value::Int(KEYS + 1));
    assert_eq!(text(call(&mut resp, "GET last")), last);
}

#[test]
fn a_log_that_has_ended_gives_its_memory_back() {
    let server = Server::tenon(&[("save", "")]).expect("tenon starts");
    let mut client = client(&server);
    let used = |client: &mut Resp| -> u64 {
        tenon_testkit::info::field(client, "memory", "used_memory").parse().expect("a number")
    };
    let before = used(&mut client);
    ok(&mut client, "CONFIG SET appendonly yes");
    wait_until("the base", || info(&mut client, "aof_rewrite_in_progress") == "0");
    // Its ring has eight, which are not the data's.
    wait_until("the base's memory", || used(&mut client) < before + (2 << 20));
    let maps = || std::fs::read_to_string(format!("/proc/{}/maps", server.pid())).expect("it runs");
    let outlives_process = info(&mut client, "aof_buffer_outlives_process") == "1";
    assert_eq!(maps().contains("tenon-log-"), outlives_process);
    ok(&mut client, "CONFIG SET appendonly no");
    wait_until("the memory", || used(&mut client) < before + (2 << 20));
    wait_until("the ring's", || !maps().contains("tenon-log-"));
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
fn who_waits_for_a_log_that_ends_is_answered_although_another_begins_at_once() {
    // One worker: it comes to what it holds only when the other log is there.
    let settings = [
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("enable-debug-command", "yes"),
        ("workers", "1"),
        ("save", ""),
    ];
    let server = Server::tenon(&settings).expect("tenon starts");
    let (mut writer, mut other) = (client(&server), client(&server));
    ok(&mut other, "DEBUG FAULTS sync:slow=100");
    let value = vec![b'v'; 100_000];
    writer.send(&[b"SET", b"key", &value]).expect("it is sent");
    wait_until("the write", || call(&mut other, "EXISTS key") == Value::Int(1));
    let end = [&b"CONFIG"[..], b"SET", b"appendonly", b"no"];
    let begin = [&b"CONFIG"[..], b"SET", b"appendonly", b"yes"];
    let answers = other.pipeline(&[&end, &begin]).expect("answers");
    assert_eq!(answers.into_iter().map(text).collect::<Vec<_>>(), ["OK", "OK"]);
    assert_eq!(text(writer.receive().expect("an answer")), "OK");
}

/// The names of the log's files, in order; none while there is no directory.
fn names(server: &Server) -> Vec<String> {
    let Ok(listed) = std::fs::read_dir(server.folder().join("appendonlydir")) else { return Vec::new() };
    let mut names: Vec<_> =
        listed.map(|entry| entry.expect("it is listed").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn what_is_confirmed_once_the_log_has_begun_survives_although_its_base_is_not_there() {
    for before in ["nothing", "BGSAVE", "BGREWRITEAOF", "SAVE"] {
        let (server, mut client) = slow_server("no");
        match before {
            "nothing" => {}
            "SAVE" => {
                ok(&mut client, "DEBUG FAULTS");
                ok(&mut client, "SET last saved");
                call(&mut client, "RPUSH list saved");
                ok(&mut client, "SAVE");
                ok(&mut client, "DEBUG FAULTS write:slow=100");
            }
            _ => _ = call(&mut client, before),
        }
        ok(&mut client, "SET text 1");
        ok(&mut client, "CONFIG SET appendonly yes");
        let names = names(&server);
        for name in ["appendonly.aof.manifest", "appendonly.aof.1.incr.aof"] {
            assert!(names.iter().any(|there| there == name), "{before}: {names:?}");
        }
        assert_eq!(call(&mut client, "INCR counter"), Value::Int(1));
        ok(&mut client, "SET last 1");
        // Its key is nowhere but in memory, and is not what the command finds behind a crash.
        ok(&mut client, "RENAME text renamed");
        ok(&mut client, "MSET a 1 b 2");
        assert_eq!(info(&mut client, "aof_rewrite_in_progress"), "1", "{before}");
        let (folder, again, mut resp) = kill_and_restart(server);
        assert_eq!(text(call(&mut resp, "GET last")), "1", "{before}");
        assert_eq!(text(call(&mut resp, "GET b")), "2", "{before}");
        assert_eq!(text(call(&mut resp, "GET counter")), "1", "{before}");
        let log = again.log();
        assert!(log.contains(" 1 of the commands in the append-only file appendonly.aof."), "{log}");
        let saved = Value::Int(i64::from(before == "SAVE"));
        assert_eq!(call(&mut resp, "EXISTS list"), saved, "{before}");
        // What was found gets its base by itself.
        let manifest = folder.folder().join("appendonlydir/appendonly.aof.manifest");
        let listed = || std::fs::read_to_string(&manifest).expect("there is a list");
        wait_until("the base", || listed().contains("type b") && !listed().contains("lacks"));
        drop(again);
    }
}

#[test]
fn redis_reads_a_log_whose_base_is_not_there() {
    let (mut server, mut client) = slow_server("no");
    ok(&mut client, "CONFIG SET appendonly yes");
    ok(&mut client, "SET last 1");
    assert_eq!(info(&mut client, "aof_rewrite_in_progress"), "1");
    server.kill();
    let folder = server.folder().to_str().expect("it is text").to_owned();
    let Some(redis) = oracle(Dialect::Redis, &[("dir", &folder), ("appendonly", "yes")]) else { return };
    assert_eq!(text(call(&mut self::client(&redis), "GET last")), "1");
}

#[test]
fn a_log_that_begins_again_stands_on_the_older_one_until_its_base_is_there() {
    let (server, mut client) = slow_server("yes");
    ok(&mut client, "SET last 1");
    ok(&mut client, "CONFIG SET appendonly no");
    ok(&mut client, "SET last 2");
    ok(&mut client, "CONFIG SET appendonly yes");
    assert_eq!(call(&mut client, "APPEND last 3"), Value::Int(2));
    assert_eq!(info(&mut client, "aof_rewrite_in_progress"), "1");
    let (_folder, _again, mut resp) = kill_and_restart(server);
    // Not what was between the two logs.
    assert_eq!(text(call(&mut resp, "GET last")), "13");
}

#[test]
fn a_log_that_ends_before_its_base_stands_on_no_later_file() {
    let (server, mut client) = slow_server("no");
    for round in 0..2 {
        assert_eq!(call(&mut client, "INCR counter"), Value::Int(3 * round + 1));
        ok(&mut client, "CONFIG SET appendonly yes");
        assert_eq!(call(&mut client, "INCR counter"), Value::Int(3 * round + 2));
        assert_eq!(info(&mut client, "aof_rewrite_in_progress"), "1");
        ok(&mut client, "CONFIG SET appendonly no");
        assert_eq!(call(&mut client, "INCR counter"), Value::Int(3 * round + 3));
        wait_until("the end of the rewrite", || info(&mut client, "aof_rewrite_in_progress") == "0");
        assert_eq!(names(&server), [""; 0], "round {round}");
    }
    ok(&mut client, "DEBUG FAULTS");
    ok(&mut client, "SAVE");
    let (_folder, _again, mut resp) = kill_and_restart(server);
    assert_eq!(text(call(&mut resp, "GET counter")), "6");
    assert_eq!(call(&mut resp, "DBSIZE"), Value::Int(KEYS + 1));
}

#[test]
fn a_log_that_cannot_have_its_files_does_not_begin() {
    const REFUSED: &str =
        "ERR CONFIG SET failed (possibly related to argument 'appendonly') - Unable to turn on AOF. Check server logs.";
    let (server, mut client) = slow_server("no");
    let directory = server.folder().join("appendonlydir");
    let refused = |client: &mut Resp| {
        assert_eq!(text(call(client, "CONFIG SET appendonly yes")), REFUSED);
        assert_eq!(text_list(call(client, "CONFIG GET appendonly")), ["appendonly", "no"]);
        assert_eq!(info(client, "aof_enabled"), "0");
        ok(client, "SET last 1");
    };
    std::fs::write(&directory, "it is a file").expect("it is written");
    refused(&mut client);
    // Who rewrites goes on.
    std::fs::remove_file(&directory).expect("it is removed");
    begin_rewrite(&mut client);
    wait_until("its file", || names(&server).iter().any(|name| name.starts_with("temp-rewriteaof")));
    std::fs::rename(&directory, server.folder().join("aside")).expect("it is there");
    std::fs::write(&directory, "it is a file").expect("it is written");
    refused(&mut client);
    assert_eq!(info(&mut client, "aof_rewrite_in_progress"), "1");
    std::fs::remove_file(&directory).expect("it is removed");
    std::fs::rename(server.folder().join("aside"), &directory).expect("it is there");
    for plan in ["open:enospc", "write:enospc", "sync:eio", "rename:eio", "sync-directory:eio"] {
        ok(&mut client, &format!("DEBUG FAULTS {plan}"));
        refused(&mut client);
    }
    ok(&mut client, "DEBUG FAULTS");
    wait_until("the end of the rewrite", || info(&mut client, "aof_rewrite_in_progress") == "0");
    ok(&mut client, "CONFIG SET appendonly yes");
    await_rewrite(&mut client);
    ok(&mut client, "SET last 2");
    check_files(server, "2");
}

#[test]
fn a_first_base_that_fails_is_tried_again() {
    let (server, mut client) = slow_server("no");
    ok(&mut client, "CONFIG SET appendonly yes");
    ok(&mut client, "SET last 1");
    ok(&mut client, "DEBUG FAULTS rename:eio");
    wait_until("the failure", || info(&mut client, "aof_last_bgrewrite_status") == "err");
    assert_eq!(info(&mut client, "aof_enabled"), "1");
    ok(&mut client, "DEBUG FAULTS");
    wait_until("the base", || info(&mut client, "aof_last_bgrewrite_status") == "ok");
    check_files(server, "1");
}

#[test]
fn the_process_ends_when_a_log_that_has_begun_has_its_base() {
    for is_signal in [false, true] {
        let (mut server, mut client) = slow_server("no");
        ok(&mut client, "CONFIG SET appendonly yes");
        let mut leaving = self::client(&server);
        if is_signal {
            server.signal("-TERM");
        } else {
            leaving.send(&[b"SHUTDOWN"]).expect("it is sent");
            wait_until("the wait", || server.log().contains("Writing initial AOF"));
            ok(&mut client, "SHUTDOWN ABORT");
            let refused = text(leaving.receive().expect("an answer"));
            assert_eq!(refused, "ERR Errors trying to SHUTDOWN. Check logs.");
            // Who wants nothing saved does not wait for minutes, nor lose what is nowhere but in memory.
            assert_eq!(text(call(&mut leaving, "SHUTDOWN NOSAVE")), refused);
            leaving.send(&[b"SHUTDOWN"]).expect("it is sent");
        }
        wait_until("the wait", || server.log().contains("Writing initial AOF"));
        // Clients go on meanwhile.
        ok(&mut client, "SET last 1");
        ok(&mut client, "DEBUG FAULTS");
        assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
        let folder = server.folder().to_str().expect("it is text").to_owned();
        let again = Server::tenon(&[("dir", &folder), ("appendonly", "yes")]).expect("tenon starts");
        let mut resp = self::client(&again);
        wait_until("the end of loading", || call(&mut resp, "DBSIZE") == Value::Int(KEYS + 1));
    }
}

#[test]
fn the_process_does_not_end_without_the_base_unless_it_is_forced_to() {
    let (mut server, mut client) = slow_server("no");
    ok(&mut client, "CONFIG SET appendonly yes");
    ok(&mut client, "DEBUG FAULTS rename:eio");
    wait_until("the failure", || info(&mut client, "aof_last_bgrewrite_status") == "err");
    for words in ["SHUTDOWN", "SHUTDOWN NOSAVE", "SHUTDOWN SAVE"] {
        assert_eq!(text(call(&mut client, words)), "ERR Errors trying to SHUTDOWN. Check logs.", "{words}");
        ok(&mut client, "SET last 1");
    }
    assert!(client.call(&[b"SHUTDOWN", b"NOSAVE", b"FORCE"]).is_err(), "the connection ends");
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
}

#[test]
fn no_file_has_what_the_log_has_before_that_has_its_base() {
    // A save is under way when the log begins: it has nothing of the log.
    let settings = [("enable-debug-command", "yes"), ("save", "3600 1"), ("auto-aof-rewrite-percentage", "0")];
    let mut server = Server::tenon(&settings).expect("tenon starts");
    let mut client = client(&server);
    ok(&mut client, &format!("DEBUG POPULATE {KEYS} key 100"));
    ok(&mut client, "DEBUG FAULTS write:slow=100");
    assert_eq!(text(call(&mut client, "BGSAVE")), "Background saving started");
    ok(&mut client, "CONFIG SET appendonly yes");
    assert_eq!(call(&mut client, "INCR counter"), Value::Int(1));
    // The next one would have the log's commands, which a start plays once more upon what is in the file.
    ok(&mut client, "DEBUG FAULTS rename:eio");
    wait_until("the failures", || {
        ["rdb_last_bgsave_status", "aof_last_bgrewrite_status"].iter().all(|status| info(&mut client, status) == "err")
    });
    let saves = info(&mut client, "rdb_saves");
    ok(&mut client, "CONFIG SET stop-writes-on-bgsave-error no");
    let refused = "ERR Background append only file rewriting in progress";
    assert_eq!(text(call(&mut client, "SAVE")), refused);
    assert_eq!(info(&mut client, "rdb_saves"), saves);
    assert_eq!(call(&mut client, "INCR counter"), Value::Int(2));
    ok(&mut client, "DEBUG FAULTS");
    server.signal("-TERM");
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
    assert!(server.folder().join("dump.rdb").is_file(), "{}", server.log());
    let folder = server.folder().to_str().expect("it is text").to_owned();
    let again = Server::tenon(&[("dir", &folder), ("appendonly", "yes")]).expect("tenon starts");
    assert_eq!(text(call(&mut self::client(&again), "GET counter")), "2");
}

#[test]
fn a_log_without_a_base_is_not_played_upon_what_comes_after_it() {
    for next in ["SAVE", "CONFIG SET appendonly yes"] {
        let (mut server, mut client) = slow_server("no");
        for command in ["SET n 0", "DEBUG FAULTS", "SAVE", "DEBUG FAULTS write:slow=100", "CONFIG SET appendonly yes"] {
            ok(&mut client, command);
        }
        assert_eq!(call(&mut client, "INCR n"), Value::Int(1));
        server.kill();

        // Who starts without a log is told of it, and goes on from the file.
        let folder = server.folder().to_str().expect("it is text").to_owned();
        let settings = [
            ("dir", &*folder),
            ("appendonly", "no"),
            ("appendfsync", "always"),
            ("save", ""),
            ("enable-debug-command", "yes"),
        ];
        let mut without = Server::tenon(&settings).expect("tenon starts");
        assert!(without.log().contains("to have them, end this server without saving"), "{}", without.log());
        let mut client = self::client(&without);
        assert_eq!(text(call(&mut client, "GET n")), "0");
        if next == "SAVE" {
            assert_eq!(call(&mut client, "INCR n"), Value::Int(1));
            ok(&mut client, next);
        } else {
            ok(&mut client, "DEBUG FAULTS write:slow=100");
            ok(&mut client, next);
            assert_eq!(call(&mut client, "INCR n"), Value::Int(1));
        }
        without.kill();
        let again = Server::tenon(&[("dir", &folder), ("appendonly", "yes")]).expect("tenon starts");
        assert_eq!(text(call(&mut self::client(&again), "GET n")), "1", "{next}: {}", again.log());
    }
}

#[test]
fn what_a_log_without_a_base_has_live_on_is_kept_although_its_time_has_come_since() {
    for time_ms in [500, 5_000, 50_000] {
        let (mut server, mut client) = slow_server("no");
        ok(&mut client, "DEBUG FAULTS");
        ok(&mut client, "FLUSHALL");
        ok(&mut client, &format!("SET lives-on value PX {time_ms}"));
        ok(&mut client, "SAVE");
        let saved = std::fs::read(server.folder().join("dump.rdb")).expect("it was saved");
        if !saved.windows(8).any(|part| part == b"lives-on") {
            // This machine is too slow for that.
            continue;
        }
        wait_until("its time", || call(&mut client, "EXISTS lives-on") == Value::Int(0));
        server.kill();
        let directory = server.folder().join("appendonlydir");
        std::fs::create_dir(&directory).expect("it can be made");
        let manifest = "file appendonly.aof.1.incr.aof seq 1 type i lacks base\n";
        std::fs::write(directory.join("appendonly.aof.manifest"), manifest).expect("it can be written");
        let persist = "*2\r\n$7\r\nPERSIST\r\n$8\r\nlives-on\r\n";
        std::fs::write(directory.join("appendonly.aof.1.incr.aof"), persist).expect("it can be written");
        let folder = server.folder().to_str().expect("it is text").to_owned();
        let again = Server::tenon(&[("dir", &folder), ("appendonly", "yes")]).expect("tenon starts");
        assert_eq!(text(call(&mut self::client(&again), "GET lives-on")), "value");
        assert!(
            again.log().contains("began while a server ran that ended before the base was written"),
            "{}",
            again.log()
        );
        return;
    }
    panic!("no save was quick enough");
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
fn a_log_whose_last_sync_fails_is_not_rewritten_when_it_has_ended() {
    let settings =
        [("appendonly", "yes"), ("appendfsync", "no"), ("enable-debug-command", "yes"), ("workers", "1"), ("save", "")];
    let server = Server::tenon(&settings).expect("tenon starts");
    let mut client = client(&server);
    ok(&mut client, "SET key value");
    ok(&mut client, "DEBUG FAULTS sync:eio@1");
    ok(&mut client, "CONFIG SET appendonly no");
    assert!(server.log().contains("the end of the append-only file could not be written"), "{}", server.log());
    // Only ticks take out keys that nobody asks for: behind the second time one has looked whether a rewrite is due.
    for _ in 0..2 {
        ok(&mut client, "SET due value PX 1");
        wait_until("a tick", || call(&mut client, "DBSIZE") == Value::Int(1));
    }
    assert_eq!([info(&mut client, "aof_rewrites"), info(&mut client, "aof_rewrite_scheduled")], ["0", "0"]);
    ok(&mut client, "SET key other");
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

/// Starts a server of one kind with these settings.
type Start = fn(&[(&str, &str)]) -> Result<Server, StartError>;

/// Transactions in which the log begins or ends, with what of them is in it afterwards: everything or nothing.
const SWITCHES: [(&str, &str, bool); 7] = [
    ("no", "SET a 1, CONFIG SET appendonly yes, SET b 1", true),
    ("no", "CONFIG SET appendonly yes, SET a 1, SET b 1", true),
    ("no", "SET a 1, SET b 1, CONFIG SET appendonly yes", true),
    ("yes", "SET a 1, CONFIG SET appendonly yes, SET b 1", true),
    ("yes", "SET a 1, CONFIG SET appendonly no, CONFIG SET appendonly yes, SET b 1", true),
    ("yes", "SET a 1, CONFIG SET appendonly no, SET b 1", false),
    ("no", "SET a 1, CONFIG SET appendonly yes, SET b 1, CONFIG SET appendonly no", false),
];

/// Runs a transaction; gives what EXEC answers.
fn transaction(client: &mut Resp, commands: &str) -> Value {
    ok(client, "MULTI");
    for command in commands.split(", ") {
        assert_eq!(text(call(client, command)), "QUEUED", "{command}");
    }
    call(client, "EXEC")
}

#[test]
fn a_transaction_in_which_the_log_begins_or_ends_is_whole_in_it_or_absent() {
    for (before, commands, is_there) in SWITCHES {
        let (server, mut client) = slow_server(before);
        // The last one is of another database.
        let commands = format!("{commands}, SELECT 3, SET c 1, SELECT 0");
        let answers = transaction(&mut client, &commands);
        assert_eq!(answers, Value::Array(vec![Value::Simple(b"OK".to_vec()); commands.split(", ").count()]));
        let (_folder, _again, mut resp) = kill_and_restart(server);
        let there = i64::from(is_there);
        assert_eq!(call(&mut resp, "EXISTS a b"), Value::Int(2 * there), "{commands}");
        ok(&mut resp, "SELECT 3");
        assert_eq!(call(&mut resp, "EXISTS c"), Value::Int(there), "{commands}");
    }
}

#[test]
fn transactions_with_the_log_answer_and_keep_what_redis_does() {
    if oracle(Dialect::Redis, &[]).is_none() {
        return;
    }
    for (before, commands, _) in SWITCHES {
        let of = |start: Start| {
            let settings = [("appendonly", before), ("appendfsync", "always"), ("save", "")];
            let mut server = start(&settings).expect("it starts");
            let mut client = client(&server);
            let in_script = call(&mut client, "EVAL return(redis.call('CONFIG','SET','appendonly','yes')) 0");
            assert!(text(in_script).contains("This Redis command is not allowed from script"));
            let answers = transaction(&mut client, commands);
            let setting = text_list(call(&mut client, "CONFIG GET appendonly"));
            // Of one moment: a rewrite that is scheduled begins between two answers.
            wait_until("the end of the rewrite", || {
                let figures = text(call(&mut client, "INFO persistence"));
                ["aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0"].iter().all(|figure| figures.contains(figure))
            });
            server.kill();
            let folder = server.folder().to_str().expect("it is text").to_owned();
            let again = start(&[("dir", &folder), ("appendonly", "yes")]).expect("it starts");
            let found = call(&mut self::client(&again), "MGET a b");
            (answers, setting, found)
        };
        assert_eq!(of(Server::tenon), of(Server::redis), "{commands}");
    }
}

#[test]
fn a_log_that_cannot_begin_is_an_error_in_the_transaction() {
    let (server, mut client) = slow_server("no");
    ok(&mut client, "DEBUG FAULTS open:enospc");
    let Value::Array(answers) = transaction(&mut client, "SET a 1, CONFIG SET appendonly yes, SET b 1") else {
        panic!("it was run");
    };
    let answers: Vec<String> = answers.into_iter().map(text).collect();
    assert_eq!([&*answers[0], &*answers[2]], ["OK"; 2]);
    assert!(answers[1].starts_with("ERR CONFIG SET failed (possibly related to argument 'appendonly')"), "{answers:?}");
    assert_eq!(text_list(call(&mut client, "CONFIG GET appendonly")), ["appendonly", "no"]);
    ok(&mut client, "DEBUG FAULTS");
    ok(&mut client, "CONFIG SET appendonly yes");
    ok(&mut client, "SET last 1");
    let (_folder, _again, mut resp) = kill_and_restart(server);
    assert_eq!(text(call(&mut resp, "GET last")), "1");
}

#[test]
fn rewrites_are_counted_from_one_log_to_the_next() {
    let server = Server::tenon(&[("appendonly", "yes"), ("save", "")]).expect("tenon starts");
    let mut client = client(&server);
    let count = |client: &mut Resp, expected: &str| {
        wait_until("the end of the rewrite", || info(client, "aof_rewrite_in_progress") == "0");
        assert_eq!(info(client, "aof_rewrites"), expected);
    };
    count(&mut client, "0");
    assert_eq!(text(call(&mut client, "BGREWRITEAOF")), "Background append only file rewriting started");
    count(&mut client, "1");
    ok(&mut client, "CONFIG SET appendonly no");
    count(&mut client, "1");
    ok(&mut client, "CONFIG SET appendonly yes");
    count(&mut client, "2");
    ok(&mut client, "CONFIG RESETSTAT");
    count(&mut client, "0");
}
