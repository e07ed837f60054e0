//! WAITAOF with an append-only file, as processes see it: who waits is answered when its writes are on disk. Knows the log by
//! its settings only.

use std::time::Duration;
use tenon_client::{Memcache, Resp, Value};
use tenon_testkit::patience::{self, wait_until};
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

const PATIENCE: Option<Duration> = Some(patience::PATIENCE);

fn server(fsync: &str) -> Server {
    let settings = [("appendonly", "yes"), ("appendfsync", fsync), ("workers", "2"), ("enable-debug-command", "yes")];
    Server::tenon(&settings).expect("tenon starts")
}

fn client(server: &Server) -> Resp {
    Resp::connect_to(server.address(Dialect::Redis).expect("a RESP port"), PATIENCE).expect("connected")
}

fn call(client: &mut Resp, command: &str) -> Value {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    client.call(&words).expect("an answer")
}

fn copies(local: i64, elsewhere: i64) -> Value {
    Value::Array(vec![Value::Int(local), Value::Int(elsewhere)])
}

/// Waits until a command's reply has a text in it.
fn await_text(client: &mut Resp, command: &str, wanted: &str) {
    let has_it = |value: &Value| matches!(value, Value::Bulk(text) if String::from_utf8_lossy(text).contains(wanted));
    wait_until(wanted, || has_it(&call(client, command)));
}

#[test]
fn who_waits_is_answered_once_its_writes_are_on_disk() {
    for fsync in ["always", "everysec"] {
        let server = server(fsync);
        let mut client = client(&server);
        for number in 0..3 {
            let (set, wait) = (format!("SET k {number}"), ["WAITAOF 1 0 0", "WAITAOF 1 0 100000"][number % 2]);
            let words = |command: &'static str| command.split(' ').map(str::as_bytes).collect::<Vec<_>>();
            let set: Vec<&[u8]> = set.split(' ').map(str::as_bytes).collect();
            let replies = client.pipeline(&[&set, &words(wait)]).expect("answers");
            assert_eq!(replies[1], copies(1, 0), "{fsync}");
        }
        // Replicas have none, and within MULTI it does not wait.
        assert_eq!(call(&mut client, "WAITAOF 1 1 20"), copies(1, 0));
        assert_eq!(call(&mut client, "WAITAOF 0 0 0"), copies(1, 0));
        assert_eq!(call(&mut client, "WAIT 0 0"), Value::Int(0));
    }
}

#[test]
fn without_a_sync_it_waits_until_its_time_is_over() {
    let server = server("no");
    let (mut writer, mut reader) = (client(&server), client(&server));
    call(&mut writer, "SET k v");
    assert_eq!(call(&mut writer, "WAITAOF 1 0 50"), copies(0, 0));
    // Who has written nothing has nothing to wait for.
    assert_eq!(call(&mut reader, "WAITAOF 1 0 0"), copies(1, 0));
    call(&mut writer, "MULTI");
    call(&mut writer, "WAITAOF 1 0 0");
    assert_eq!(call(&mut writer, "EXEC"), Value::Array(vec![copies(0, 0)]));
    // A setting that has the log synced ends the wait.
    writer.send(&[b"WAITAOF", b"1", b"0", b"0"]).expect("sent");
    await_text(&mut reader, "INFO clients", "blocked_clients:1\r\n");
    call(&mut reader, "CONFIG SET appendfsync always");
    call(&mut reader, "SET other v");
    assert_eq!(writer.receive().expect("an answer"), copies(1, 0));
}

#[test]
fn in_transactions_and_scripts_it_does_not_wait() {
    let server = server("always");
    let mut client = client(&server);
    let of_script =
        |client: &mut Resp, script: &str| client.call(&[b"EVAL", script.as_bytes(), b"0"]).expect("an answer");
    assert_eq!(of_script(&mut client, "return redis.call('WAIT', 1, 0)"), Value::Int(0));
    assert_eq!(of_script(&mut client, "return redis.call('WAITAOF', 1, 1, 0)"), copies(1, 0));
    // What it has written itself is on disk when it is answered, and not before.
    let writes = "redis.call('SET', 'k', 'v') return redis.call('WAITAOF', 1, 0, 0)";
    assert_eq!(of_script(&mut client, writes), copies(0, 0));
    for command in ["MULTI", "SET k v", "WAITAOF 1 0 0", "WAIT 1 0"] {
        call(&mut client, command);
    }
    let replies = vec![Value::Simple(b"OK".to_vec()), copies(0, 0), Value::Int(0)];
    assert_eq!(call(&mut client, "EXEC"), Value::Array(replies));
    assert_eq!(call(&mut client, "WAITAOF 1 0 0"), copies(1, 0));
}

#[test]
fn a_log_that_ends_ends_the_wait() {
    let server = server("no");
    let (mut writer, mut other) = (client(&server), client(&server));
    call(&mut writer, "SET k v");
    writer.send(&[b"WAITAOF", b"1", b"0", b"0"]).expect("sent");
    await_text(&mut other, "INFO clients", "blocked_clients:1\r\n");
    call(&mut other, "CONFIG SET appendonly no");
    let reply = writer.receive().expect("an answer");
    let expected = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
    assert!(matches!(&reply, Value::Error(text) if text == expected.as_bytes()), "{reply:?}");
    assert_eq!(call(&mut writer, "WAITAOF 0 0 0"), copies(0, 0));
}

#[test]
fn a_reply_confirms_what_its_client_has_written_silently_before() {
    for front_end in [Dialect::Memcache, Dialect::Redis] {
        let mut server = server("always");
        let (mut first, mut controller) = (client(&server), client(&server));
        call(&mut controller, "DEBUG FAULTS sync:slow=1000");
        // What comes while this is synced waits for the next time.
        first.send(&[b"SET", b"first", b"v"]).expect("sent");
        await_text(&mut controller, "GET first", "v");
        std::thread::sleep(Duration::from_millis(100));
        if front_end == Dialect::Memcache {
            let address = server.address(front_end).expect("it is spoken");
            let mut client = Memcache::connect_to(address, PATIENCE).expect("connected");
            client.send_raw(b"set k 0 0 1 noreply\r\nv\r\n").expect("sent");
            await_text(&mut controller, "GET k", "v");
            assert_eq!(client.exchange(b"mn").expect("an answer"), b"MN");
        } else {
            let mut client = client(&server);
            client.send_raw(b"CLIENT REPLY OFF\r\nSET k v\r\n").expect("sent");
            await_text(&mut controller, "GET k", "v");
            assert_eq!(call(&mut client, "CLIENT REPLY ON"), Value::Simple(b"OK".to_vec()));
        }
        server.kill();
        let folder = server.folder().to_str().expect("it is text").to_owned();
        let again = Server::tenon(&[("dir", &folder), ("appendonly", "yes")]).expect("tenon starts");
        assert_eq!(call(&mut client(&again), "EXISTS k"), Value::Int(1), "{front_end:?}");
    }
}
