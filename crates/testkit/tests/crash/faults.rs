//! A disk that fails while the server runs: writes are refused and reads go on, until it is well again; then nothing is
//! missing. Knows no file.

use crate::load::PATIENCE;
use crate::{Data, start};
use std::sync::Barrier;
use std::thread;
use tenon_client::memcache::Stored;
use tenon_client::{Memcache, Resp, Value};
use tenon_testkit::patience::wait_until;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

fn connect(server: &Server) -> Resp {
    Resp::connect_to(server.address(Dialect::Redis).unwrap(), PATIENCE).expect("connected")
}

fn call(resp: &mut Resp, words: &[&str]) -> Value {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    resp.call(&words).expect("an answer")
}

fn error(value: &Value) -> String {
    match value {
        Value::Error(text) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("{other:?} is no error"),
    }
}

fn field(resp: &mut Resp, name: &str) -> String {
    tenon_testkit::info::field(resp, "persistence", name)
}

fn start_to_fail(data: &Data, policy: &str) -> Server {
    start(&data.0, &[("appendfsync", policy), ("enable-debug-command", "local"), ("auto-aof-rewrite-percentage", "0")])
}

/// The server after a kill, with what it has kept.
fn again(server: Server, data: &Data, policy: &str) -> (Server, Resp) {
    drop(server);
    let server = start_to_fail(data, policy);
    let resp = connect(&server);
    (server, resp)
}

#[test]
fn a_full_disk_refuses_writes_until_it_has_room_again() {
    for policy in ["everysec", "always"] {
        let data = Data::new(&format!("full-{policy}"));
        let server = start_to_fail(&data, policy);
        let mut resp = connect(&server);
        assert_eq!(call(&mut resp, &["SET", "before", "1"]), Value::Simple(b"OK".to_vec()));
        // Or with `everysec` it would be this one that meets the full disk.
        wait_until("it to be written", || field(&mut resp, "aof_buffer_length") == "0");
        assert_eq!(call(&mut resp, &["DEBUG", "FAULTS", "write:enospc"]), Value::Simple(b"OK".to_vec()));
        // The write that meets the full disk is done, and with `always` not confirmed before it is on disk.
        let mut other = connect(&server);
        other.send(&[b"SET", b"meanwhile", b"2"]).expect("sent");
        wait_until("the write to fail", || field(&mut resp, "aof_last_write_status") == "err");
        wait_until("writes to be refused", || matches!(call(&mut resp, &["PING"]), Value::Error(_)));
        let refused = error(&call(&mut resp, &["SET", "refused", "3"]));
        assert_eq!(refused, "MISCONF Errors writing to the AOF file: No space left on device");
        assert!(error(&call(&mut resp, &["PING"])).starts_with("MISCONF "));
        assert!(error(&call(&mut resp, &["EVAL", "return redis.call('SET', 'refused', 1)", "0"])).contains("MISCONF"));
        let mut items = Memcache::connect_to(server.address(Dialect::Memcache).unwrap(), PATIENCE).expect("connected");
        items.send_raw(b"set refused 0 0 1\r\nx\r\n").expect("sent");
        let line = String::from_utf8(items.receive_line().expect("a line")).expect("it is text");
        assert_eq!(line, "SERVER_ERROR Errors writing to the AOF file: No space left on device");
        assert!(items.get(b"before").expect("reads go on").is_some());
        assert_eq!(call(&mut resp, &["GET", "before"]), Value::Bulk(b"1".to_vec()));

        assert_eq!(call(&mut resp, &["DEBUG", "FAULTS"]), Value::Simple(b"OK".to_vec()));
        assert_eq!(other.receive().expect("it is confirmed now"), Value::Simple(b"OK".to_vec()));
        wait_until("writes to be taken", || call(&mut resp, &["SET", "after", "4"]) == Value::Simple(b"OK".to_vec()));
        wait_until("all to be written", || field(&mut resp, "aof_buffer_length") == "0");
        assert_eq!(field(&mut resp, "aof_last_write_status"), "ok");
        let (_server, mut resp) = again(server, &data, policy);
        let Value::Array(found) = call(&mut resp, &["MGET", "before", "meanwhile", "after", "refused"]) else {
            panic!("MGET answers an array")
        };
        let wanted = [&b"1"[..], b"2", b"4"].map(|value| Value::Bulk(value.to_vec()));
        assert_eq!(found, [&wanted[..], &[Value::NullBulk]].concat());
    }
}

#[test]
fn a_kill_while_the_disk_has_no_room_loses_nothing_confirmed() {
    let data = Data::new("room");
    let server = start_to_fail(&data, "everysec");
    let mut resp = connect(&server);
    assert_eq!(call(&mut resp, &["DEBUG", "FAULTS", "room:enospc"]), Value::Simple(b"OK".to_vec()));
    // Room was kept before, and is used up bit by bit.
    let value = "x".repeat(100_000);
    let mut confirmed = 0;
    let refused = loop {
        assert!(confirmed < 20_000, "two gigabytes find room on a disk that has none");
        match call(&mut resp, &["SET", &format!("key{confirmed}"), &value]) {
            Value::Simple(_) => confirmed += 1,
            refused => break error(&refused),
        }
    };
    assert_eq!(refused, "MISCONF Errors writing to the AOF file: No space left on device");
    assert_eq!(field(&mut resp, "aof_last_write_status"), "err");
    wait_until("all to be written", || field(&mut resp, "aof_buffer_length") == "0");
    let (_server, mut resp) = again(server, &data, "everysec");
    assert_eq!(call(&mut resp, &["DBSIZE"]), Value::Int(confirmed));
}

#[test]
fn a_failed_fsync_is_repaired_by_a_rewrite() {
    let data = Data::new("fsync");
    let server = start_to_fail(&data, "always");
    let mut resp = connect(&server);
    assert_eq!(call(&mut resp, &["SET", "before", "1"]), Value::Simple(b"OK".to_vec()));
    call(&mut resp, &["DEBUG", "FAULTS", "sync:eio"]);
    let mut other = connect(&server);
    other.send(&[b"SET", b"meanwhile", b"2"]).expect("sent");
    wait_until("the sync to fail", || field(&mut resp, "aof_last_write_status") == "err");
    wait_until("writes to be refused", || matches!(call(&mut resp, &["PING"]), Value::Error(_)));
    assert!(error(&call(&mut resp, &["SET", "refused", "3"])).starts_with("MISCONF Errors writing to the AOF file: "));
    assert_eq!(call(&mut resp, &["GET", "meanwhile"]), Value::Bulk(b"2".to_vec()), "reads go on");
    // As long as the disk fails no rewrite helps.
    wait_until("a rewrite to fail", || field(&mut resp, "aof_last_bgrewrite_status") == "err");
    assert!(matches!(call(&mut resp, &["SET", "refused", "3"]), Value::Error(_)));
    call(&mut resp, &["DEBUG", "FAULTS"]);
    assert_eq!(other.receive().expect("the rewrite confirms it"), Value::Simple(b"OK".to_vec()));
    wait_until("writes to be taken", || call(&mut resp, &["SET", "after", "4"]) == Value::Simple(b"OK".to_vec()));
    let (_server, mut resp) = again(server, &data, "always");
    let Value::Array(found) = call(&mut resp, &["MGET", "before", "meanwhile", "after"]) else {
        panic!("MGET answers an array")
    };
    assert_eq!(found, [&b"1"[..], b"2", b"4"].map(|value| Value::Bulk(value.to_vec())));
}

#[test]
fn many_clients_share_an_fsync_and_readers_wait_for_none() {
    const WRITERS: usize = 50;
    const EACH: usize = 40;
    let data = Data::new("slow");
    let server = start_to_fail(&data, "always");
    let mut resp = connect(&server);
    call(&mut resp, &["DEBUG", "FAULTS", "sync:slow=5"]);
    let syncs = |resp: &mut Resp| field(resp, "aof_fsyncs").parse::<u64>().expect("a number");
    let before = syncs(&mut resp);
    let clients: Vec<Resp> = (0..WRITERS).map(|_| connect(&server)).collect();
    let all = Barrier::new(WRITERS);
    thread::scope(|scope| {
        for (writer, mut client) in clients.into_iter().enumerate() {
            let all = &all;
            scope.spawn(move || {
                all.wait();
                for number in 0..EACH {
                    let key = format!("{writer}:{number}");
                    assert_eq!(call(&mut client, &["SET", &key, "v"]), Value::Simple(b"OK".to_vec()));
                }
            });
        }
    });
    let syncs = syncs(&mut resp) - before;
    let writes = (WRITERS * EACH) as u64;
    // One write an fsync would be far from sharing; how many share one depends on how busy the machine is.
    assert!(syncs * 5 < writes, "{writes} writes took {syncs} syncs");
    assert_eq!(call(&mut resp, &["DBSIZE"]), Value::Int(writes as i64));
}

/// A server of one worker whose log is written to slowly, a client that looks at it, and one for writes.
fn start_slowly(data: &Data) -> (Server, [Resp; 2]) {
    let settings = [("workers", "1"), ("enable-debug-command", "local"), ("auto-aof-rewrite-percentage", "0")];
    let server = start(&data.0, &settings);
    let mut clients = [connect(&server), connect(&server)];
    assert_eq!(call(&mut clients[0], &["DEBUG", "FAULTS", "write:slow=3000"]), Value::Simple(b"OK".to_vec()));
    (server, clients)
}

fn await_short_room(reader: &mut Resp) {
    wait_until("the log to have little room", || {
        tenon_testkit::info::field(reader, "clients", "paused_reason") == "aof_buffer_full"
    });
}

#[test]
fn writes_wait_for_a_log_that_is_slow_and_reads_go_on() {
    const WRITES: usize = 12_000;
    let data = Data::new("short");
    let (server, [mut reader, mut writer]) = start_slowly(&data);
    let mut items = Memcache::connect_to(server.address(Dialect::Memcache).unwrap(), PATIENCE).expect("connected");
    assert_eq!(call(&mut writer, &["SET", "other", "value"]), Value::Simple(b"OK".to_vec()));
    let value = vec![b'v'; 1_000];
    thread::scope(|scope| {
        scope.spawn(|| {
            let keys: Vec<Vec<u8>> = (0..WRITES).map(|number| number.to_string().into_bytes()).collect();
            for some in keys.chunks(500) {
                some.iter().for_each(|key| writer.send(&[b"SET", key, &value]).expect("sent"));
                some.iter()
                    .for_each(|_| assert_eq!(writer.receive().expect("an answer"), Value::Simple(b"OK".to_vec())));
            }
        });
        await_short_room(&mut reader);
        scope.spawn(|| assert_eq!(items.set(b"item", &value, 0, 0).expect("an answer"), Stored::Stored));
        assert_eq!(call(&mut reader, &["GET", "other"]), Value::Bulk(b"value".to_vec()));
        assert_eq!(call(&mut reader, &["DEBUG", "FAULTS"]), Value::Simple(b"OK".to_vec()));
    });
    assert_eq!(call(&mut reader, &["DBSIZE"]), Value::Int(WRITES as i64 + 2));
    assert_eq!(field(&mut reader, "aof_write_stalls"), "0", "nobody waits in the middle of a write");
    // With `everysec` what a kill finds in the ring is lost.
    wait_until("all to be written", || field(&mut reader, "aof_buffer_length") == "0");
    let (_server, mut reader) = again(server, &data, "everysec");
    assert_eq!(call(&mut reader, &["DBSIZE"]), Value::Int(WRITES as i64 + 2));
}

#[test]
fn a_write_longer_than_the_room_for_it_holds_up_nobody() {
    let data = Data::new("long");
    let (_server, [mut reader, mut writer]) = start_slowly(&data);
    let value = vec![b'v'; 20 << 20];
    writer.send(&[b"SET", b"long", &value]).expect("sent");
    await_short_room(&mut reader);
    assert_eq!(call(&mut reader, &["DEBUG", "FAULTS"]), Value::Simple(b"OK".to_vec()));
    assert_eq!(writer.receive().expect("an answer"), Value::Simple(b"OK".to_vec()));
    wait_until("the long one to be counted", || field(&mut reader, "aof_write_stalls") == "1");
}
