//! A log that is switched on and off or rewritten while data is loaded, and one that cannot be written at the end: what was
//! confirmed is there after the next start. Knows of the files only how they are called.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::time::Duration;
use tenon_client::{Address, Resp, Value};
use tenon_testkit::info;
use tenon_testkit::patience::{PATIENCE, wait_for, wait_until};
use tenon_testkit::server::Server;
use tenon_testkit::slow_log::{SlowLog, Writer, make_pipe};
use tenon_testkit::target::Dialect;

fn call(client: &mut Resp, command: &str) -> Value {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    client.call(&words).expect("an answer")
}

fn ok(client: &mut Resp, command: &str) {
    assert_eq!(call(client, command), Value::Simple(b"OK".to_vec()), "{command}");
}

fn client(server: &Server) -> Resp {
    Resp::connect_to(server.address(Dialect::Redis).expect("a RESP port"), Some(PATIENCE)).expect("connected")
}

fn field(client: &mut Resp, name: &str) -> String {
    info::field(client, "persistence", name)
}

/// Where the server that loads says what it does.
fn log_of_loading(log: &SlowLog) -> PathBuf {
    log.folder.path.join("said")
}

/// Starts a server, calls `meanwhile` when half of the log is loaded, and gives the server that has all of it.
fn load(log: &SlowLog, meanwhile: impl FnOnce(&mut Resp)) -> Server {
    load_and_open(log, meanwhile, |_| ())
}

/// Likewise; `behind` is called when the log has come to its end, and is about to be opened.
fn load_and_open(log: &SlowLog, meanwhile: impl FnOnce(&mut Resp), behind: impl FnOnce(&mut Resp)) -> Server {
    let socket = log.folder.path.join("early.sock");
    let [dir, path, said] = [&log.folder.path, &socket, &log_of_loading(log)].map(|path| path.display().to_string());
    let settings = [
        ("dir", &*dir),
        ("appendonly", "yes"),
        ("enable-debug-command", "yes"),
        ("logfile", &*said),
        ("unixsocket", &*path),
        ("save", ""),
    ];
    std::thread::scope(|scope| {
        // It is there once it answers, which is when the data is.
        let server = scope.spawn(|| Server::tenon(&settings));
        let mut log = log.writer();
        log.set("early");
        let mut early = wait_for("a server", || Resp::connect_to(&Address::Unix(socket.clone()), Some(PATIENCE)).ok());
        assert_eq!(field(&mut early, "loading"), "1");
        meanwhile(&mut early);
        assert_eq!(field(&mut early, "loading"), "1");
        log.set("late");
        drop(log);
        behind(&mut early);
        server.join().expect("it does not panic").expect("tenon starts")
    })
}

fn end(mut server: Server) {
    server.signal("-TERM");
    assert!(server.wait_for_end(PATIENCE).expect("it ends").success());
}

fn again(folder: &Path) -> Server {
    let dir = folder.display().to_string();
    Server::tenon(&[("dir", &dir), ("appendonly", "yes"), ("save", "")]).expect("tenon starts")
}

#[test]
fn a_log_that_is_switched_off_and_on_while_it_is_loaded_keeps_all() {
    let log = SlowLog::new();
    let server = load(&log, |client| {
        ok(client, "CONFIG SET appendonly no");
        ok(client, "CONFIG SET appendonly yes");
        // A rewrite would have only half of the data to write.
        assert_eq!([field(client, "aof_rewrite_in_progress"), field(client, "aof_rewrites")], ["0", "0"]);
    });
    let mut client = client(&server);
    ok(&mut client, "SET last v");
    call(&mut client, "BGREWRITEAOF");
    wait_until("the end of the pipe", || !log.list().contains(".1.incr"));
    end(server);
    let server = again(&log.folder.path);
    assert_eq!(call(&mut self::client(&server), "EXISTS early late last"), Value::Int(3));
}

#[test]
fn a_log_that_is_switched_off_while_it_is_loaded_stays_as_it_is() {
    let log = SlowLog::new();
    let before = log.list();
    let server = load(&log, |client| ok(client, "CONFIG SET appendonly no"));
    let mut client = client(&server);
    ok(&mut client, "SET last v");
    assert_eq!(call(&mut client, "EXISTS early late last"), Value::Int(3));
    assert_eq!(field(&mut client, "aof_enabled"), "0");
    assert_eq!(log.list(), before);
    // It follows what is said from now on.
    ok(&mut client, "CONFIG SET appendonly yes");
    wait_until("the log's base", || field(&mut client, "aof_rewrites") != "0");
    end(server);
    assert_eq!(call(&mut self::client(&again(&log.folder.path)), "DBSIZE"), Value::Int(3));
}

#[test]
fn a_log_is_synced_as_it_was_said_while_it_was_opened() {
    let log = SlowLog::new();
    let server = load_and_open(
        &log,
        |client| ok(client, "DEBUG FAULTS sync-directory:slow=1000"),
        |client| {
            let said = || std::fs::read_to_string(log_of_loading(&log)).expect("it is there");
            wait_until("the end of loading", || said().contains("DB loaded from append only file"));
            ok(client, "CONFIG SET appendfsync always");
        },
    );
    let mut client = client(&server);
    ok(&mut client, "DEBUG FAULTS");
    let syncs = |client: &mut Resp| field(client, "aof_fsyncs").parse::<u64>().expect("a number");
    let before = syncs(&mut client);
    for number in 0..20 {
        ok(&mut client, &format!("SET key {number}"));
    }
    assert!(syncs(&mut client) >= before + 20);
}

#[test]
fn a_rewrite_has_its_moment_behind_a_reload() {
    let settings =
        [("appendonly", "yes"), ("auto-aof-rewrite-percentage", "0"), ("enable-debug-command", "yes"), ("save", "")];
    let mut server = Server::tenon(&settings).expect("tenon starts");
    let mut client = client(&server);
    ok(&mut client, "DEBUG POPULATE 1000");
    ok(&mut client, "SAVE");
    let dump = server.folder().join("dump.rdb");
    let saved = std::fs::read(&dump).expect("it was saved");
    std::fs::remove_file(&dump).expect("it is there");
    make_pipe(&dump);
    // The data is gone by the time the rewrite would have its moment, and comes again behind that.
    ok(&mut client, "DEBUG FAULTS sync-directory:slow=500");
    call(&mut client, "BGREWRITEAOF");
    client.send(&[b"DEBUG", b"RELOAD", b"NOSAVE"]).expect("it is sent");
    let mut pipe = Writer::of(&dump);
    let (first, second) = saved.split_at(saved.len() / 2);
    pipe.write(first);
    let list = server.folder().join("appendonlydir/appendonly.aof.manifest");
    wait_until("the next increment", || std::fs::read_to_string(&list).expect("a list").contains(".2.incr"));
    // Who does not wait for the data has begun by then.
    std::thread::sleep(Duration::from_secs(1));
    pipe.write(second);
    drop(pipe);
    assert_eq!(client.receive().expect("an answer"), Value::Simple(b"OK".to_vec()), "{}", server.log());
    ok(&mut client, "DEBUG FAULTS");
    wait_until("the rewrite", || field(&mut client, "aof_rewrite_in_progress") == "0");
    assert_eq!(field(&mut client, "aof_last_bgrewrite_status"), "ok");
    server.kill();
    std::fs::remove_file(&dump).expect("it is there");
    assert_eq!(call(&mut self::client(&again(server.folder())), "DBSIZE"), Value::Int(1000));
}

/// What a file had in the place of what the log has led to is not in the log, and what is then written to it fails there.
#[test]
fn what_is_written_to_older_data_does_not_stop_a_start() {
    for reload in ["DEBUG RELOAD NOSAVE", "DEBUG RELOAD NOSAVE NOFLUSH MERGE"] {
        let settings =
            [("appendonly", "yes"), ("appendfsync", "always"), ("enable-debug-command", "yes"), ("save", "")];
        let mut server = Server::tenon(&settings).expect("tenon starts");
        let mut client = client(&server);
        ok(&mut client, "MSET k 1 stays 1");
        ok(&mut client, "SAVE");
        assert_eq!(call(&mut client, "DEL k"), Value::Int(1));
        let changes = field(&mut client, "rdb_changes_since_last_save");
        ok(&mut client, reload);
        assert_eq!(field(&mut client, "rdb_changes_since_last_save"), changes, "{reload} is nobody's change");
        ok(&mut client, "RENAME k q");
        ok(&mut client, "SET later 1");
        server.kill();
        let again = again(server.folder());
        let mut client = self::client(&again);
        let there = call(&mut client, "MGET stays later");
        assert_eq!(there, Value::Array(vec![Value::Bulk(b"1".to_vec()), Value::Bulk(b"1".to_vec())]), "{reload}");
    }
}

#[test]
fn a_rewrite_ends_behind_who_reads_the_log_once_more() {
    let settings = [
        ("appendonly", "yes"),
        ("aof-use-rdb-preamble", "no"),
        ("auto-aof-rewrite-percentage", "0"),
        ("enable-debug-command", "yes"),
        ("save", ""),
    ];
    let mut server = Server::tenon(&settings).expect("tenon starts");
    let mut client = client(&server);
    ok(&mut client, "SET key v");
    // The base is read for as long as it takes the rewrite to delete what is read behind it.
    let directory = server.folder().join("appendonlydir");
    let (base, pipe) = (directory.join("appendonly.aof.1.base.aof"), server.folder().join("pipe"));
    make_pipe(&pipe);
    std::fs::rename(&pipe, &base).expect("it is there");
    ok(&mut client, "DEBUG FAULTS write:slow=3000");
    call(&mut client, "BGREWRITEAOF");
    wait_until("its moment", || {
        let mut names = std::fs::read_dir(&directory).expect("it is there").flatten().map(|entry| entry.file_name());
        names.any(|name| name.to_string_lossy().starts_with("temp-rewriteaof"))
    });
    client.send(&[b"DEBUG", b"LOADAOF"]).expect("it is sent");
    let mut pipe = Writer::of(&base);
    pipe.set("early");
    // Two slow writes later, who does not wait for the loading has ended.
    std::thread::sleep(Duration::from_secs(7));
    drop(pipe);
    assert_eq!(client.receive().expect("an answer"), Value::Simple(b"OK".to_vec()), "{}", server.log());
    ok(&mut client, "DEBUG FAULTS");
    wait_until("the rewrite", || field(&mut client, "aof_rewrite_in_progress") == "0");
    assert_eq!(field(&mut client, "aof_last_bgrewrite_status"), "ok");
    assert_eq!(call(&mut client, "EXISTS early key"), Value::Int(2));
    server.kill();
    assert_eq!(call(&mut self::client(&again(server.folder())), "EXISTS key"), Value::Int(1));
}

#[test]
fn a_log_that_is_loaded_once_more_is_whole_although_a_script_was_writing() {
    let settings = [
        ("appendonly", "yes"),
        ("auto-aof-rewrite-percentage", "0"),
        ("enable-debug-command", "yes"),
        ("workers", "2"),
        ("save", ""),
    ];
    let mut server = Server::tenon(&settings).expect("tenon starts");
    let (mut writer, mut other) = (client(&server), client(&server));
    ok(&mut other, "SET early v");
    ok(&mut other, "DEBUG FAULTS write:slow=300");
    // Its record is three times as long as the log's buffer, and is appended at its end.
    let script = b"redis.log(redis.LOG_WARNING, 'it has begun') local value = string.rep('v', 4194304) \
                   for _, key in ipairs(KEYS) do redis.call('SET', key, value) end \
                   local n = 0 for i = 1, 20000000 do n = n + i end return 'done'";
    let keys: Vec<String> = (0..6).map(|number| format!("big{number}")).collect();
    let words: Vec<&[u8]> = [&b"EVAL"[..], script, b"6"].into_iter().chain(keys.iter().map(String::as_bytes)).collect();
    writer.send(&words).expect("it is sent");
    wait_until("the script", || server.log().contains("it has begun"));
    ok(&mut other, "DEBUG LOADAOF");
    assert_eq!(writer.receive().expect("an answer"), Value::Bulk(b"done".to_vec()));
    ok(&mut other, "DEBUG FAULTS");
    assert_eq!(call(&mut other, "DBSIZE"), Value::Int(7));
    ok(&mut other, "CONFIG SET appendfsync always");
    ok(&mut other, "SET late v");
    server.kill();
    assert_eq!(call(&mut self::client(&again(server.folder())), "DBSIZE"), Value::Int(8));
}

#[test]
fn who_waits_gets_nothing_that_is_loaded_and_gone_again() {
    let server = Server::tenon(&[("appendonly", "yes"), ("enable-debug-command", "yes"), ("save", "")]).expect("tenon");
    let (mut client, mut waiting) = (client(&server), client(&server));
    assert_eq!(call(&mut client, "RPUSH list one"), Value::Int(1));
    assert_eq!(call(&mut client, "LPOP list"), Value::Bulk(b"one".to_vec()));
    waiting.send(&[b"BLMOVE", b"list", b"other", b"LEFT", b"RIGHT", b"0"]).expect("it is sent");
    wait_until("the wait", || info::field(&mut client, "clients", "blocked_clients") == "1");
    ok(&mut client, "DEBUG LOADAOF");
    assert_eq!(call(&mut client, "DBSIZE"), Value::Int(0));
    assert_eq!(call(&mut client, "RPUSH list two"), Value::Int(1));
    assert_eq!(waiting.receive().expect("an answer"), Value::Bulk(b"two".to_vec()));
}

#[test]
fn the_process_ends_when_what_was_confirmed_is_written() {
    let mut server =
        Server::tenon(&[("appendonly", "yes"), ("enable-debug-command", "yes"), ("save", "")]).expect("tenon");
    let mut client = client(&server);
    ok(&mut client, "DEBUG FAULTS write:eio");
    // With everysec this is confirmed before it is written.
    ok(&mut client, "SET k v");
    wait_until("the failure", || field(&mut client, "aof_last_write_status") == "err");
    let refused = call(&mut client, "SHUTDOWN NOSAVE");
    assert_eq!(refused, Value::Error(b"ERR Errors trying to SHUTDOWN. Check logs.".to_vec()));
    server.signal("-TERM");
    wait_until("the signal", || server.log().contains("SIGTERM"));
    ok(&mut client, "DEBUG FAULTS");
    // It goes on where the disk came five seconds too late for the signal.
    wait_for("the end", || {
        let end = server.wait_for_end(Duration::from_secs(6));
        end.inspect_err(|_| server.signal("-TERM")).ok().map(|status| assert!(status.success(), "{}", server.log()))
    });
    assert_eq!(call(&mut self::client(&again(server.folder())), "EXISTS k"), Value::Int(1));
}
