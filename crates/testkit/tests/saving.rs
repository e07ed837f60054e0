//! The data in a file, as processes see it: a file of Tenon's in redis-server, save points, the end of the process, and
//! disks that fail. Knows of the file only who reads it.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use tenon_client::{Resp, Stream, Value};
use tenon_testkit::patience::{self, PATIENCE, wait_until};
use tenon_testkit::server::{Server, find_on_path};
use tenon_testkit::target::Dialect;

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

/// A field of INFO.
fn info(client: &mut Resp, field: &str) -> String {
    tenon_testkit::info::field(client, "persistence", field)
}

fn ok(client: &mut Resp, command: &str) {
    assert_eq!(text(call(client, command)), "OK", "{command}");
}

/// Keys of every type and encoding that redis-server 7.0 knows, in two databases.
fn fill(client: &mut Resp) {
    for database in [0, 3] {
        ok(client, &format!("SELECT {database}"));
        ok(client, "SET int 12345");
        ok(client, "SET negative -7");
        ok(client, "SET big 9223372036854775807");
        ok(client, &format!("SET long {}", "abc".repeat(30_000)));
        ok(client, "SET short value");
        ok(client, "SET due value EX 100000");
        call(client, "SETRANGE rope 700000 end");
        call(client, "PFADD hll a b c");
        let each = |count: u32, what: &dyn Fn(u32) -> String| (0..count).map(what).collect::<String>();
        call(client, "RPUSH list a b 1 -2 70000");
        call(client, &format!("RPUSH long-list{}", each(5_000, &|at| format!(" element-of-a-list-{at}"))));
        call(client, &format!("RPUSH plain-node {} x", "y".repeat(20_000)));
        call(client, "HSET hash f1 v1 f2 2");
        call(client, &format!("HSET large-hash{}", each(3_000, &|at| format!(" field{at} {at}"))));
        call(client, "SADD ints 1 2 -70000 9223372036854775807");
        call(client, "SADD set a b 1");
        call(client, &format!("SADD large-set{}", each(3_000, &|at| format!(" member-{at}"))));
        call(client, "ZADD zset 1 a -2.5 b inf c");
        call(client, &format!("ZADD large-zset{}", each(3_000, &|at| format!(" {}.5 member-{at}", at % 70))));
        for number in 0..300 {
            call(client, &format!("XADD stream {number}-1 field {number} other {}", "z".repeat(100)));
        }
        call(client, "XDEL stream 5-1");
        call(client, "XGROUP CREATE stream group 10");
        call(client, "XREADGROUP GROUP group alice COUNT 5 STREAMS stream >");
        call(client, "EXPIRE large-zset 100000");
    }
    ok(client, "SELECT 0");
}

#[test]
fn redis_loads_what_tenon_saves() {
    let Some(check) = find_on_path("redis-check-rdb") else {
        let _ = writeln!(std::io::stderr(), "skipped: redis_loads_what_tenon_saves: redis-server is not installed");
        return;
    };
    for settings in [
        &[("enable-debug-command", "yes")][..],
        &[("enable-debug-command", "yes"), ("rdbcompression", "no"), ("rdbchecksum", "no")],
        &[("enable-debug-command", "yes"), ("maxmemory-policy", "allkeys-lfu"), ("rdb-save-incremental-fsync", "no")],
        &[("enable-debug-command", "yes"), ("maxmemory-policy", "volatile-lru"), ("shards", "16")],
    ] {
        let tenon = Server::tenon(settings).expect("tenon starts");
        let mut ours = client(&tenon);
        fill(&mut ours);
        let library = b"#!lua name=lib\nredis.register_function('answer', function() return 42 end)";
        assert_eq!(text(ours.call(&[b"FUNCTION", b"LOAD", library]).expect("an answer")), "lib");
        ok(&mut ours, "SAVE");
        let checked = patience::run(Command::new(&check).arg(tenon.folder().join("dump.rdb"))).expect("it runs");
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
        let folder = tenon.folder().to_str().expect("it is text");
        let redis = Server::redis(&[("dir", folder)]).expect("redis-server starts");
        let mut theirs = client(&redis);
        assert_eq!(text(call(&mut theirs, "FCALL answer 0").to_text()), "42");
        for database in [0, 3] {
            ok(&mut ours, &format!("SELECT {database}"));
            ok(&mut theirs, &format!("SELECT {database}"));
            assert_eq!(call(&mut ours, "DBSIZE"), call(&mut theirs, "DBSIZE"));
            for key in ["due", "large-zset"] {
                let command = format!("PEXPIRETIME {key}");
                assert_eq!(call(&mut ours, &command), call(&mut theirs, &command));
            }
            let group = "XINFO GROUPS stream";
            assert_eq!(call(&mut ours, group), call(&mut theirs, group));
        }
        assert_eq!(text(call(&mut ours, "DEBUG DIGEST")), text(call(&mut theirs, "DEBUG DIGEST")));
    }
}

/// What a reply is as a text.
trait ToText {
    fn to_text(self) -> Value;
}

impl ToText for Value {
    fn to_text(self) -> Value {
        match self {
            Value::Int(int) => Value::Bulk(int.to_string().into_bytes()),
            other => other,
        }
    }
}

fn temporary_files(folder: &Path) -> usize {
    let names = fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("it is there").file_name());
    names.filter(|name| name.to_string_lossy().starts_with("temp-")).count()
}

#[test]
fn a_save_in_the_background_and_what_is_said_of_it() {
    let server = Server::tenon(&[]).expect("tenon starts");
    let mut client = client(&server);
    assert_eq!(info(&mut client, "rdb_saves"), "0");
    fill(&mut client);
    assert_ne!(info(&mut client, "rdb_changes_since_last_save"), "0");
    assert_eq!(text(call(&mut client, "BGSAVE SCHEDULE")), "Background saving started");
    wait_until("the end of the save", || info(&mut client, "rdb_bgsave_in_progress") == "0");
    assert_eq!(info(&mut client, "rdb_changes_since_last_save"), "0");
    assert_eq!(
        (info(&mut client, "rdb_saves"), info(&mut client, "rdb_last_bgsave_status")),
        ("1".into(), "ok".into())
    );
    assert_eq!(call(&mut client, "LASTSAVE").to_text(), Value::Bulk(info(&mut client, "rdb_last_save_time").into()));
    assert!(server.folder().join("dump.rdb").is_file());
    assert_eq!(temporary_files(server.folder()), 0);
    // Within MULTI it begins afterwards.
    ok(&mut client, "MULTI");
    call(&mut client, "SET after 1");
    call(&mut client, "BGSAVE");
    let Value::Array(replies) = call(&mut client, "EXEC") else { panic!("EXEC answers each command") };
    assert_eq!(text(replies[1].clone()), "Background saving scheduled");
    wait_until("the scheduled save", || {
        info(&mut client, "rdb_saves") == "2" && info(&mut client, "rdb_bgsave_in_progress") == "0"
    });
    assert_eq!(info(&mut client, "rdb_changes_since_last_save"), "0");
    ok(&mut client, "CONFIG RESETSTAT");
    assert_eq!(info(&mut client, "rdb_saves"), "0");
}

#[test]
fn save_points_save() {
    let server = Server::tenon(&[("save", "3600 1000 1 2")]).expect("tenon starts");
    let mut client = client(&server);
    ok(&mut client, "SET a 1");
    ok(&mut client, "SET b 1");
    wait_until("the file", || server.folder().join("dump.rdb").is_file());
    wait_until("the end of the save", || info(&mut client, "rdb_changes_since_last_save") == "0");
}

#[test]
fn the_end_saves_where_that_is_wanted() {
    type End = fn(&Server, &mut Resp);
    let shutdown: End = |_, client| _ = client.call(&[b"SHUTDOWN"]);
    let shutdown_save: End = |_, client| _ = client.call(&[b"SHUTDOWN", b"SAVE"]);
    let shutdown_nosave: End = |_, client| _ = client.call(&[b"SHUTDOWN", b"NOSAVE"]);
    let sigterm: End = |server, _| server.signal("-TERM");
    let sigint: End = |server, _| server.signal("-INT");
    let points: &[(&str, &str)] = &[("save", "3600 1")];
    let term_saves: &[(&str, &str)] = &[("shutdown-on-sigterm", "save now")];
    let int_saves_not: &[(&str, &str)] = &[("save", "3600 1"), ("shutdown-on-sigint", "nosave")];
    let on_exit: &[(&str, &str)] = &[("save-on-exit", "yes")];
    for (settings, end, is_saved) in [
        (&[][..], shutdown, false),
        (&[], shutdown_save, true),
        (&[], sigterm, false),
        (points, shutdown, true),
        (points, shutdown_nosave, false),
        (points, sigterm, true),
        (on_exit, shutdown, true),
        (on_exit, sigterm, true),
        (term_saves, sigterm, true),
        (term_saves, sigint, false),
        (int_saves_not, sigint, false),
        (int_saves_not, sigterm, true),
    ] {
        let mut server = Server::tenon(settings).expect("tenon starts");
        let mut client = client(&server);
        ok(&mut client, "SET key value");
        end(&server, &mut client);
        let status = server.wait_for_end(PATIENCE).expect("it ends");
        assert!(status.success(), "{}", server.log());
        assert_eq!(server.folder().join("dump.rdb").is_file(), is_saved, "{settings:?}: {}", server.log());
    }
}

#[test]
fn a_signal_that_is_to_ends_the_process_although_nothing_can_be_saved() {
    let settings = [("save", "3600 1"), ("enable-debug-command", "local"), ("shutdown-on-sigterm", "force")];
    let mut server = Server::tenon(&settings).expect("tenon starts");
    let mut client = client(&server);
    ok(&mut client, "SET key value");
    ok(&mut client, "DEBUG FAULTS write:enospc");
    server.signal("-INT");
    wait_until("the failure", || server.log().contains("the data could not be saved"));
    ok(&mut client, "SET key other");
    server.signal("-TERM");
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
    assert!(!server.folder().join("dump.rdb").exists());
}

/// Has the log refuse writes: its next file has no room.
fn take_room(client: &mut Resp) {
    ok(client, "DEBUG FAULTS room:enospc");
    call(client, "BGREWRITEAOF");
    wait_until("the refusal", || text(call(client, "SET key other")).starts_with("MISCONF"));
}

/// Sends the server a signal by its name for `kill`.
#[test]
fn the_end_saves_although_the_log_cannot_be_written_where_it_is_forced() {
    for is_signal in [false, true] {
        let settings = [
            ("appendonly", "yes"),
            ("enable-debug-command", "local"),
            ("save", ""),
            ("shutdown-on-sigterm", "save force"),
        ];
        let mut server = Server::tenon(&settings).expect("tenon starts");
        let mut client = client(&server);
        ok(&mut client, "SET key value");
        take_room(&mut client);
        if is_signal {
            server.signal("-TERM");
        } else {
            assert!(client.call(&[b"SHUTDOWN", b"SAVE", b"FORCE"]).is_err(), "the connection ends");
        }
        assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
        assert!(server.folder().join("dump.rdb").is_file(), "{}", server.log());
    }
}

/// All that was confirmed is in the file: there is nothing to wait for.
#[test]
fn a_log_that_has_no_room_for_more_does_not_stop_the_end() {
    for is_signal in [false, true] {
        let settings = [("appendonly", "yes"), ("enable-debug-command", "local"), ("save", "")];
        let mut server = Server::tenon(&settings).expect("tenon starts");
        let mut writer = client(&server);
        ok(&mut writer, "SET key value");
        take_room(&mut writer);
        wait_until("the rewrite's end", || info(&mut writer, "aof_rewrite_in_progress") == "0");
        if is_signal {
            server.signal("-TERM");
        } else {
            assert!(writer.call(&[b"SHUTDOWN", b"NOSAVE"]).is_err(), "{}", server.log());
        }
        assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
        let folder = server.folder().to_str().expect("it is text").to_owned();
        let again = Server::tenon(&[("dir", &folder), ("appendonly", "yes")]).expect("tenon starts");
        let value = text(call(&mut client(&again), "GET key"));
        assert!(["value", "other"].contains(&value.as_str()), "{value}");
    }
}

#[test]
fn of_a_save_that_the_end_interrupts_nothing_stays() {
    for insists in [false, true] {
        let settings = [("save", "3600 1"), ("enable-debug-command", "local")];
        let mut server = Server::tenon(&settings).expect("tenon starts");
        let mut client = client(&server);
        ok(&mut client, "DEBUG POPULATE 100000 key 100");
        ok(&mut client, "SET key value");
        ok(&mut client, "DEBUG FAULTS write:slow=300");
        let sigint = || {
            server.signal("-INT");
        };
        if insists {
            sigint();
        } else {
            call(&mut client, "BGSAVE");
        }
        let unfinished = server.folder().join(format!("temp-{}.rdb", server.pid()));
        wait_until("the file", || unfinished.exists());
        if insists {
            sigint();
        } else {
            _ = client.call(&[b"SHUTDOWN", b"NOSAVE"]);
        }
        let status = server.wait_for_end(PATIENCE).expect("it ends");
        assert_eq!(status.success(), !insists, "{}", server.log());
        assert!(!unfinished.exists() && !server.folder().join("dump.rdb").exists(), "{}", server.log());
    }
}

#[test]
fn a_directory_that_is_gone_fails_saves_and_nothing_else() {
    let server = Server::tenon(&[("save", "3600 1"), ("enable-protected-configs", "yes")]).expect("tenon starts");
    let mut client = client(&server);
    ok(&mut client, "SET key value");
    let gone = server.folder().join("gone");
    fs::create_dir(&gone).expect("a directory");
    ok(&mut client, &format!("CONFIG SET dir {}", gone.display()));
    fs::remove_dir(&gone).expect("it was empty");
    assert_eq!(call(&mut client, "SAVE"), Value::Error(b"ERR".to_vec()));
    ok(&mut client, "SET key value");
    assert_eq!(text(call(&mut client, "BGSAVE")), "Background saving started");
    wait_until("the failure", || info(&mut client, "rdb_last_bgsave_status") == "err");
    let refused = text(call(&mut client, "SET key other"));
    assert!(refused.starts_with("MISCONF Redis is configured to save RDB snapshots, but"), "{refused}");
    assert_eq!(text(call(&mut client, "GET key")), "value");
    // What may be sent to replicas and changes nothing runs in a transaction as it does alone.
    for harmless in ["PUBLISH channel hello", "PFCOUNT nosuch", "FCALL nosuch 0"] {
        ok(&mut client, "MULTI");
        assert_eq!(text(call(&mut client, harmless)), "QUEUED");
        assert!(matches!(call(&mut client, "EXEC"), Value::Array(_)), "{harmless}");
    }
    ok(&mut client, "MULTI");
    let refused = text(client.call(&[b"EVAL", b"#!lua\nreturn 1", b"0"]).expect("an answer"));
    assert!(refused.starts_with("MISCONF Redis is configured to save RDB snapshots, but"), "{refused}");
    let refused = text(call(&mut client, "EXEC"));
    assert_eq!(refused, "EXECABORT Transaction discarded because of previous errors.");
    // It would lose what cannot be saved.
    let refused = text(call(&mut client, "SHUTDOWN"));
    assert_eq!(refused, "ERR Errors trying to SHUTDOWN. Check logs.");
    ok(&mut client, "CONFIG SET stop-writes-on-bgsave-error no");
    ok(&mut client, "SET key other");
    // A transaction that has begun to write is whole, whatever stands against writes before its end.
    ok(&mut client, "MULTI");
    for queued in ["SET key third", "CONFIG SET stop-writes-on-bgsave-error yes"] {
        assert_eq!(text(call(&mut client, queued)), "QUEUED");
    }
    for script in ["return redis.call('SET', 'key', 'script')", "#!lua\nreturn redis.call('SET', 'key', 'script')"] {
        let queued = client.call(&[b"EVAL", script.as_bytes(), b"0"]).expect("an answer");
        assert_eq!(text(queued), "QUEUED");
    }
    let ok_four_times = Value::Array(vec![Value::Simple(b"OK".to_vec()); 4]);
    assert_eq!(call(&mut client, "EXEC"), ok_four_times);
    assert!(text(call(&mut client, "SET key other")).starts_with("MISCONF "));
    fs::create_dir(&gone).expect("a directory");
    assert_eq!(text(call(&mut client, "BGSAVE")), "Background saving started");
    wait_until("a save that goes well", || info(&mut client, "rdb_last_bgsave_status") == "ok");
    ok(&mut client, "SET key other");
    assert!(gone.join("dump.rdb").is_file());
    assert_eq!(temporary_files(&gone), 0);
}

#[test]
fn a_save_goes_where_it_was_to_go_when_it_began() {
    // As in Redis, whose child has the directory and the name of its start.
    let (server, mut client) = slow_server(&[("enable-protected-configs", "yes")]);
    let other = server.folder().join("other");
    fs::create_dir(&other).expect("a directory");
    let path = other.display();
    assert_eq!(text(call(&mut client, "BGSAVE")), "Background saving started");
    // Both have come before the disk has taken anything.
    client
        .send(&[b"CONFIG", b"SET", b"dir", path.to_string().as_bytes(), b"dbfilename", b"later.rdb"])
        .expect("it is sent");
    assert_eq!(text(client.receive().expect("an answer")), "OK");
    ok(&mut client, "DEBUG FAULTS");
    wait_until("the end of the save", || info(&mut client, "rdb_bgsave_in_progress") == "0");
    assert!(server.folder().join("dump.rdb").is_file());
    assert_eq!(fs::read_dir(&other).expect("it is there").count(), 0);
    ok(&mut client, "SAVE");
    assert!(other.join("later.rdb").is_file());
    // Nor is another file read back.
    ok(&mut client, "SET key other");
    ok(&mut client, "DEBUG RELOAD");
    assert_eq!(text(call(&mut client, "GET key")), "other");
}

#[test]
fn a_log_that_nobody_writes_is_loaded_once_more() {
    let tenon = Server::tenon(&[("enable-debug-command", "yes")]).expect("tenon starts");
    let mut client = client(&tenon);
    ok(&mut client, "SET k before EX 1000");
    // Redis ends where there is nothing to load.
    let refused = "ERR Error trying to load the AOF files, check server logs";
    assert_eq!(text(call(&mut client, "DEBUG LOADAOF")), refused);
    assert_eq!(text(call(&mut client, "GET k")), "before");
    call(&mut client, "BGREWRITEAOF");
    wait_until("a log", || info(&mut client, "aof_rewrite_in_progress") == "0");
    ok(&mut client, "SET k after");
    ok(&mut client, "SET l after");
    ok(&mut client, "DEBUG LOADAOF");
    assert_eq!(text(call(&mut client, "GET k")), "before");
    assert!(matches!(call(&mut client, "TTL k"), Value::Int(900..=1_000)));
    assert_eq!(call(&mut client, "DBSIZE"), Value::Int(1));
}

#[test]
fn a_disk_that_fails_leaves_the_old_file_and_refuses_writes_until_a_save_goes_well() {
    let settings = [("save", "3600 1"), ("enable-debug-command", "local")];
    let server = Server::tenon(&settings).expect("tenon starts");
    let mut client = client(&server);
    let file = server.folder().join("dump.rdb");
    ok(&mut client, "SET key old");
    ok(&mut client, "SAVE");
    let old = fs::read(&file).expect("it was saved");
    fill(&mut client);
    for fault in ["open:erofs", "write:enospc", "write:enospc@2-", "write:torn", "sync:eio", "rename:eio"] {
        ok(&mut client, &format!("DEBUG FAULTS {fault}"));
        assert_eq!(call(&mut client, "SAVE"), Value::Error(b"ERR".to_vec()), "{fault}");
        // As in Redis, whom a client's own save fails is told so, and nobody else.
        ok(&mut client, "SET key value");
        assert_eq!(text(call(&mut client, "BGSAVE")), "Background saving started", "{fault}");
        wait_until("the failure", || info(&mut client, "rdb_last_bgsave_status") == "err");
        let refused = text(call(&mut client, "SET key other"));
        assert!(refused.starts_with("MISCONF Redis is configured to save RDB snapshots, but"), "{fault}: {refused}");
        assert_eq!(text(call(&mut client, "GET key")), "value", "{fault}");
        assert_eq!(fs::read(&file).expect("the old one stays"), old, "{fault}");
        assert_eq!(temporary_files(server.folder()), 0, "{fault}");
        ok(&mut client, "DEBUG FAULTS");
        assert!(text(call(&mut client, "SET key other")).starts_with("MISCONF "), "{fault}: it has not been saved yet");
        let saves = info(&mut client, "rdb_saves");
        assert_eq!(text(call(&mut client, "BGSAVE")), "Background saving started", "{fault}");
        wait_until("a save that goes well", || info(&mut client, "rdb_last_bgsave_status") == "ok");
        assert_ne!(info(&mut client, "rdb_saves"), saves);
        ok(&mut client, "SET key other");
        assert_ne!(fs::read(&file).expect("a new one"), old, "{fault}");
        fs::write(&file, &old).expect("put back for the next fault");
    }
    // A write that takes only half of the bytes is gone on with.
    ok(&mut client, "DEBUG FAULTS write:short");
    ok(&mut client, "SAVE");
    let keys = call(&mut client, "DBSIZE");
    let folder = server.folder().to_str().expect("it is text").to_owned();
    let again = Server::tenon(&[("dir", &folder)]).expect("tenon starts");
    let mut resp =
        Resp::connect_to(again.address(Dialect::Redis).expect("a RESP port"), Some(PATIENCE)).expect("connected");
    wait_until("the end of loading", || call(&mut resp, "DBSIZE") == keys);
    assert_eq!(text(call(&mut resp, "GET key")), "other");
}

/// A server with save points and many keys, whose disk is so slow that a save is not done before a test has looked at it.
fn slow_server(settings: &[(&str, &str)]) -> (Server, Resp) {
    let settings = [&[("save", "3600 1"), ("enable-debug-command", "local")], settings].concat();
    let server = Server::tenon(&settings).expect("tenon starts");
    let mut client = client(&server);
    ok(&mut client, "DEBUG POPULATE 100000 key 100");
    ok(&mut client, "SET key value");
    ok(&mut client, "DEBUG FAULTS write:slow=1000");
    (server, client)
}

#[test]
fn a_save_has_every_key_that_a_file_replaces_meanwhile() {
    let (mut server, mut client) = slow_server(&[]);
    ok(&mut client, "DEBUG FAULTS");
    ok(&mut client, "SAVE");
    ok(&mut client, "DEBUG FAULTS write:slow=60");
    assert_eq!(text(call(&mut client, "BGSAVE")), "Background saving started");
    ok(&mut client, "DEBUG RELOAD NOSAVE NOFLUSH MERGE");
    ok(&mut client, "DEBUG FAULTS");
    wait_until("the end of the save", || info(&mut client, "rdb_bgsave_in_progress") == "0");
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok", "{}", server.log());
    assert!(client.call(&[b"SHUTDOWN"]).is_err(), "the connection ends");
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
}

/// Asks for the end through a client of its own, and waits until the data is being saved.
fn begin_shutdown(server: &Server) -> Resp {
    let mut leaving = client(server);
    leaving.send(&[b"SHUTDOWN"]).expect("it is sent");
    wait_until("the save", || temporary_files(server.folder()) > 0);
    leaving
}

#[test]
fn the_process_ends_although_who_has_asked_for_that_is_gone() {
    for end in ["killed", "reset", "closed"] {
        let (mut server, mut other) = slow_server(&[]);
        let mut leaving = client(&server);
        let Value::Int(id) = call(&mut leaving, "CLIENT ID") else { panic!("a client has a number") };
        if end == "reset" {
            // An answer that nobody reads makes it one.
            leaving.send(&[b"PING"]).expect("it is sent");
            let Stream::Tcp(stream) = leaving.stream() else { panic!("it is over TCP") };
            assert_eq!(stream.peek(&mut [0]).expect("it has come"), 1);
        }
        drop(leaving.send(&[b"SHUTDOWN"]));
        wait_until("the save", || temporary_files(server.folder()) > 0);
        if end == "killed" {
            assert_eq!(call(&mut other, &format!("CLIENT KILL ID {id}")), Value::Int(1));
        } else {
            drop(leaving);
        }
        // Who only sends no more may still wait for the answer.
        if end != "closed" {
            wait_until("the client's end", || text(call(&mut other, &format!("CLIENT LIST ID {id}"))).is_empty());
        }
        ok(&mut other, "DEBUG FAULTS");
        assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
        assert!(server.folder().join("dump.rdb").is_file());
    }
}

#[test]
fn an_end_that_saves_is_not_cut_short_by_one_that_need_not() {
    for behind in ["-TERM", "-INT", "SHUTDOWN"] {
        let (mut server, mut other) = slow_server(&[("save", "")]);
        let (mut leaving, mut also_leaving) = (client(&server), client(&server));
        leaving.send(&[b"SHUTDOWN", b"SAVE"]).expect("it is sent");
        wait_until("the save", || temporary_files(server.folder()) > 0);
        if behind == "SHUTDOWN" {
            also_leaving.send(&[b"SHUTDOWN"]).expect("it is sent");
            wait_until("both", || text(call(&mut other, "CLIENT LIST")).matches("cmd=shutdown").count() == 2);
        } else {
            server.signal(behind);
            wait_until("the signal", || server.log().contains("Received SIG"));
        }
        ok(&mut other, "DEBUG FAULTS");
        assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{behind}: {}", server.log());
        let folder = server.folder().to_str().expect("it is text").to_owned();
        let again = Server::tenon(&[("dir", &folder)]).expect("tenon starts");
        assert_eq!(text(call(&mut client(&again), "GET key")), "value", "{behind}");
    }
}

#[test]
fn clients_end_no_pause_but_their_own_and_a_shutdown_that_fails_ends_its_own_alone() {
    let (mut server, mut other) = slow_server(&[]);
    let pause = |client: &mut Resp| {
        ["paused_reason", "paused_actions"].map(|field| tenon_testkit::info::field(client, "clients", field))
    };
    ok(&mut other, "CLIENT PAUSE 1000000 WRITE");
    ok(&mut other, "DEBUG FAULTS write:enospc");
    assert_eq!(text(call(&mut other, "SHUTDOWN")), "ERR Errors trying to SHUTDOWN. Check logs.");
    assert_eq!(pause(&mut other), ["client_pause", "write"]);
    ok(&mut other, "CLIENT UNPAUSE");
    assert_eq!(pause(&mut other), ["none", "none"]);
    ok(&mut other, "SET key other");
    ok(&mut other, "DEBUG FAULTS write:slow=1000");
    let mut leaving = begin_shutdown(&server);
    ok(&mut other, "CLIENT PAUSE 1000000 ALL");
    ok(&mut other, "CLIENT UNPAUSE");
    assert_eq!(pause(&mut other), ["shutdown_in_progress", "write"]);
    let mut writer = client(&server);
    writer.send(&[b"SET", b"key", b"lost"]).expect("it is sent");
    assert_eq!(text(call(&mut other, "GET key")), "other");
    ok(&mut other, "DEBUG FAULTS");
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
    assert!(leaving.receive().is_err() && writer.receive().is_err(), "neither is confirmed");
}

#[test]
fn what_a_call_that_is_under_way_still_writes_is_saved_at_the_end() {
    for ends in ["SHUTDOWN SAVE", "SIGTERM"] {
        let settings = [("save", "3600 1"), ("workers", "2")];
        let mut server = Server::tenon(&settings).expect("tenon starts");
        let (mut writer, mut other) = (client(&server), client(&server));
        // It holds no shard before it writes.
        let script = b"redis.log(redis.LOG_WARNING, 'it has begun') local n = 0 for i = 1, 20000000 do n = n + i end \
                       return redis.call('SET', 'key', 'value')";
        writer.send(&[b"EVAL", script, b"0"]).expect("it is sent");
        wait_until("the script", || server.log().contains("it has begun"));
        if ends == "SIGTERM" {
            server.signal("-TERM");
        } else {
            other.send(&[b"SHUTDOWN", b"SAVE"]).expect("it is sent");
        }
        assert_eq!(text(writer.receive().expect("an answer")), "OK");
        assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
        let folder = server.folder().to_str().expect("it is text").to_owned();
        let again = Server::tenon(&[("dir", &folder)]).expect("tenon starts");
        assert_eq!(text(call(&mut client(&again), "GET key")), "value", "{ends}");
    }
}

#[test]
fn the_end_stops_a_rewrite_of_the_log_and_can_be_called_off() {
    let log = [("appendonly", "yes"), ("auto-aof-rewrite-percentage", "0")];
    let (mut server, mut other) = slow_server(&log);
    assert_eq!(text(call(&mut other, "BGREWRITEAOF")), "Background append only file rewriting started");
    let directory = server.folder().join("appendonlydir");
    wait_until("the new base", || {
        let mut names = fs::read_dir(&directory).expect("it is there").flatten().map(|entry| entry.file_name());
        names.any(|name| name.to_string_lossy().starts_with("temp-rewriteaof"))
    });
    let mut leaving = begin_shutdown(&server);
    ok(&mut other, "SHUTDOWN ABORT");
    assert_eq!(text(leaving.receive().expect("an answer")), "ERR Errors trying to SHUTDOWN. Check logs.");
    wait_until("the rewrite's end", || server.log().contains("Background AOF rewrite terminated: it was stopped"));
    assert_eq!(text(call(&mut other, "SHUTDOWN ABORT")), "ERR No shutdown in progress.");
    ok(&mut other, "SET key other");
    ok(&mut other, "DEBUG FAULTS");
    assert!(other.call(&[b"SHUTDOWN"]).is_err(), "the connection ends");
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success(), "{}", server.log());
}

#[test]
fn flushall_leaves_a_save_alone_that_another_client_waits_for() {
    let (server, mut other) = slow_server(&[]);
    let mut saving = client(&server);
    saving.send(&[b"SAVE"]).expect("it is sent");
    wait_until("the save", || temporary_files(server.folder()) > 0);
    ok(&mut other, "FLUSHALL");
    ok(&mut other, "DEBUG FAULTS");
    assert_eq!(text(saving.receive().expect("an answer")), "OK");
    // The empty data is saved, too, as in Redis.
    wait_until("the save of nothing", || {
        info(&mut other, "rdb_saves") == "2" && info(&mut other, "rdb_changes_since_last_save") == "0"
    });
}
