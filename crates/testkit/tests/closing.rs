//! Closes clients of a running server by their addresses, over TCP and a UNIX socket, on all workers. What a transcript
//! cannot say, as it does not know the addresses.

use std::io::ErrorKind;
use std::net::Shutdown;
use std::time::Duration;
use tenon_client::{Address, Resp, Stream, Value};
use tenon_testkit::info;
use tenon_testkit::patience::{PATIENCE, wait_until};
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

const TIMEOUT: Option<Duration> = Some(PATIENCE);

fn connect(address: &Address) -> Resp {
    Resp::connect_to(address, TIMEOUT).expect("the server listens")
}

/// A field of the client's line in CLIENT LIST.
fn field(client: &mut Resp, name: &str) -> String {
    let Ok(Value::Bulk(line)) = client.call(&[b"CLIENT", b"INFO"]) else { panic!("CLIENT INFO gives a line") };
    let line = String::from_utf8(line).expect("the line is text");
    let mut fields = line.split_whitespace().filter_map(|field| field.split_once('='));
    fields.find(|(known, _)| *known == name).unwrap_or_else(|| panic!("{line} has {name}")).1.to_owned()
}

fn is_closed(client: &mut Resp) -> bool {
    matches!(client.receive(), Err(error) if error.kind() != ErrorKind::WouldBlock && error.kind() != ErrorKind::TimedOut)
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

#[test]
fn clients_are_closed_by_either_end_s_address() {
    let server = Server::tenon(&[("workers", "2")]).expect("tenon starts");
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    let mut me = connect(address);
    let mut others: Vec<Resp> = (0..8).map(|_| connect(address)).collect();
    let workers: Vec<String> = others.iter_mut().map(|client| field(client, "io-thread")).collect();
    assert!(workers.iter().any(|worker| *worker != workers[0]), "clients of both workers: {workers:?}");

    // The first form, for another and for oneself.
    let mut first = others.remove(0);
    let remote = field(&mut first, "addr");
    assert_eq!(me.call(&[b"CLIENT", b"KILL", remote.as_bytes()]).expect("a reply"), ok());
    assert!(is_closed(&mut first));
    let mut oneself = others.remove(0);
    let remote = field(&mut oneself, "addr");
    assert_eq!(oneself.call(&[b"CLIENT", b"KILL", remote.as_bytes()]).expect("the reply comes first"), ok());
    assert!(is_closed(&mut oneself));

    let mut second = others.remove(0);
    let remote = field(&mut second, "addr");
    assert_eq!(me.call(&[b"CLIENT", b"KILL", b"ADDR", remote.as_bytes()]).expect("a reply"), Value::Int(1));
    assert!(is_closed(&mut second));

    let local = field(&mut me, "laddr");
    let count = Value::Int(others.len() as i64);
    assert_eq!(me.call(&[b"CLIENT", b"KILL", b"LADDR", local.as_bytes()]).expect("a reply"), count);
    assert!(others.iter_mut().all(is_closed));
    assert_eq!(me.call(&[b"PING"]).expect("the caller is spared"), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn clients_of_the_unix_socket_have_its_path_for_an_address() {
    let server = Server::tenon(&[]).expect("tenon starts");
    let socket = server.unix().expect("the server has a UNIX socket");
    let Address::Unix(path) = socket else { panic!("it is one") };
    let name = format!("{}:0", path.display());
    let mut client = connect(socket);
    assert_eq!(field(&mut client, "flags"), "U");
    assert_eq!((field(&mut client, "addr"), field(&mut client, "laddr")), (name.clone(), name.clone()));
    let mut me = connect(server.address(Dialect::Redis).expect("RESP is spoken"));
    assert_eq!(me.call(&[b"CLIENT", b"KILL", name.as_bytes()]).expect("a reply"), ok());
    assert!(is_closed(&mut client));
}

#[test]
fn what_a_client_watches_and_has_subscribed_to_is_its_memory() {
    let server = Server::tenon(&[]).expect("tenon starts");
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    let [mut client, mut other] = [connect(address), connect(address)];
    let id = field(&mut client, "id");
    let mut memory = || {
        let line = other.call(&[b"CLIENT", b"LIST", b"ID", id.as_bytes()]).expect("a reply");
        let Value::Bulk(line) = line else { panic!("CLIENT LIST gives a text, not {line:?}") };
        let line = String::from_utf8(line).expect("the line is text");
        let bytes = line.split_whitespace().find_map(|field| field.strip_prefix("tot-mem=")).expect("it is told");
        bytes.parse::<u64>().expect("it is a number")
    };
    let before = memory();
    let names: Vec<Vec<u8>> = (0..1_000).map(|number| format!("name-{number:05}").into_bytes()).collect();
    let call = |client: &mut Resp, verb: &str, replies: usize| {
        let words: Vec<&[u8]> = std::iter::once(verb.as_bytes()).chain(names.iter().map(Vec::as_slice)).collect();
        client.send(&words).expect("it is sent");
        (0..replies).for_each(|_| drop(client.receive().expect("a reply")));
    };
    for (begin, end, replies) in [("WATCH", "UNWATCH", 1), ("SUBSCRIBE", "UNSUBSCRIBE", 1_000)] {
        call(&mut client, begin, replies);
        let with_all = memory();
        assert!(with_all >= before + 100_000, "{begin}: {with_all} bytes, {before} before");
        if end == "UNWATCH" {
            assert_eq!(client.call(&[b"UNWATCH"]).expect("a reply"), ok());
        } else {
            call(&mut client, end, replies);
        }
        assert_eq!(memory(), before, "{end}");
    }
    let tracked = names.iter().flat_map(|name| [&b"PREFIX"[..], name]);
    let words: Vec<&[u8]> = [&b"CLIENT"[..], b"TRACKING", b"ON", b"BCAST"].into_iter().chain(tracked).collect();
    assert_eq!(client.call(&words).expect("a reply"), ok());
    let with_all = memory();
    assert!(with_all >= before + 100_000, "CLIENT TRACKING: {with_all} bytes, {before} before");
    assert_eq!(client.call(&[b"CLIENT", b"TRACKING", b"OFF"]).expect("a reply"), ok());
    assert_eq!(memory(), before, "CLIENT TRACKING OFF");
    // Who takes most goes.
    call(&mut client, "WATCH", 1);
    assert_eq!(other.call(&[b"CONFIG", b"SET", b"maxmemory-clients", b"100000"]).expect("a reply"), ok());
    assert!(is_closed(&mut client));
    assert_eq!(other.call(&[b"PING"]).expect("a reply"), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn nothing_reaches_a_subscriber_behind_the_loss_of_its_rights() {
    let server = Server::tenon(&[("workers", "1")]).expect("tenon starts");
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    for (publishing, revoking) in [("m1", "resetchannels"), ("m2", "resetchannels &other")] {
        let (mut admin, mut subscriber) = (connect(address), connect(address));
        let set = [&b"ACL"[..], b"SETUSER", b"u", b"on", b"nopass", b"+@all", b"&ch"];
        assert_eq!(admin.call(&set).expect("a reply"), ok());
        assert_eq!(subscriber.call(&[b"AUTH", b"u", b"x"]).expect("a reply"), ok());
        subscriber.call(&[b"SUBSCRIBE", b"ch"]).expect("a reply");
        let mut revoke = vec![&b"ACL"[..], b"SETUSER", b"u"];
        revoke.extend(revoking.split(' ').map(str::as_bytes));
        let message = |text: &'static str| [&b"PUBLISH"[..], b"ch", text.as_bytes()];
        let replies = admin.pipeline(&[&message(publishing), &revoke, &message("secret")]).expect("replies");
        assert_eq!(replies[..2], [Value::Int(1), ok()]);
        // What came before may be lost with the connection, and nothing else comes.
        while let Ok(value) = subscriber.receive() {
            let Value::Array(words) = value else { panic!("a message was expected: {value:?}") };
            assert_eq!(words[2], Value::Bulk(publishing.as_bytes().to_vec()));
        }
    }
}

#[test]
fn who_sends_no_more_is_answered_by_what_takes_its_time() {
    let server = Server::tenon(&[("enable-debug-command", "yes")]).expect("tenon starts");
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    let (mut client, mut other) = (connect(address), connect(address));
    assert_eq!(other.call(&[b"DEBUG", b"FAULTS", b"sync:slow=300"]).expect("a reply"), ok());
    client.send_raw(b"SAVE\r\nPING\r\n").expect("sent");
    let Stream::Tcp(stream) = client.stream() else { panic!("it is over TCP") };
    stream.shutdown(Shutdown::Write).expect("it is open");
    assert_eq!(client.receive().expect("a reply"), ok());
    assert_eq!(client.receive().expect("a reply"), Value::Simple(b"PONG".to_vec()));
    assert!(is_closed(&mut client) && server.folder().join("dump.rdb").is_file());
}

#[test]
fn who_leaves_in_a_pause_is_gone_and_its_command_with_it() {
    let server = Server::tenon(&[("maxclients", "10")]).expect("tenon starts");
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    let mut one = connect(address);
    assert_eq!(one.call(&[b"CLIENT", b"PAUSE", b"100000000", b"WRITE"]).expect("a reply"), ok());
    for number in 0..30 {
        let mut other = connect(address);
        other.send_raw(format!("SET key:{number} v\r\n").as_bytes()).expect("sent");
        wait_until("it waits", || info::field(&mut one, "clients", "blocked_clients") == "1");
        drop(other);
        wait_until("it is gone", || info::field(&mut one, "clients", "connected_clients") == "1");
    }
    assert_eq!(one.call(&[b"CLIENT", b"UNPAUSE"]).expect("a reply"), ok());
    assert_eq!(one.call(&[b"DBSIZE"]).expect("a reply"), Value::Int(0));
}

#[test]
fn who_sends_no_more_in_a_pause_is_answered_what_came_before() {
    let settings = [("appendonly", "yes"), ("appendfsync", "always"), ("enable-debug-command", "yes")];
    let server = Server::tenon(&settings).expect("tenon starts");
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    let mut other = connect(address);
    assert_eq!(other.call(&[b"DEBUG", b"FAULTS", b"sync:slow=100"]).expect("a reply"), ok());
    for waits in ["CLIENT PAUSE 100000000 WRITE\r\nSET b 2\r\n", "SET a 2\r\nBLPOP c 0\r\n"] {
        let mut client = connect(address);
        client.send_raw(format!("SET a 1\r\n{waits}").as_bytes()).expect("sent");
        let Stream::Tcp(stream) = client.stream() else { panic!("it is over TCP") };
        stream.shutdown(Shutdown::Write).expect("it is open");
        assert_eq!([(); 2].map(|()| client.receive().expect("a reply")), [ok(), ok()]);
        assert!(is_closed(&mut client));
        assert_eq!(other.call(&[b"CLIENT", b"UNPAUSE"]).expect("a reply"), ok());
        assert_eq!(other.call(&[b"RPUSH", b"c", b"v"]).expect("a reply"), Value::Int(1));
        assert_eq!(other.call(&[b"EXISTS", b"b", b"c"]).expect("a reply"), Value::Int(1));
        assert_eq!(other.call(&[b"DEL", b"c"]).expect("a reply"), Value::Int(1));
    }
}

#[test]
fn who_quits_gets_its_replies_whatever_else_it_is_told() {
    let settings = [("appendonly", "yes"), ("appendfsync", "always"), ("workers", "1")];
    let server = Server::tenon(&settings).expect("tenon starts");
    let mut client = connect(server.address(Dialect::Redis).expect("RESP is spoken"));
    client.call(&[b"HELLO", b"3"]).expect("a reply");
    for words in [&[&b"CLIENT"[..], b"TRACKING", b"ON"][..], &[b"GET", b"k"]] {
        client.call(words).expect("a reply");
    }
    let set: &[&[u8]] = &[b"SET", b"k", b"v"];
    assert_eq!(client.pipeline(&[set, &[b"QUIT"]]).expect("replies"), [ok(), ok()]);
    assert!(is_closed(&mut client));
}

#[test]
fn who_is_sent_too_much_at_once_is_counted() {
    let server = Server::tenon(&[("client-output-buffer-limit", "pubsub 1mb 0 0")]).expect("tenon starts");
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    let (mut subscriber, mut other) = (connect(address), connect(address));
    subscriber.call(&[b"SUBSCRIBE", b"ch"]).expect("a reply");
    other.call(&[b"PUBLISH", b"ch", &vec![b'm'; 3 << 20]]).expect("a reply");
    assert!(is_closed(&mut subscriber));
    wait_until("the client to be counted", || {
        info::field(&mut other, "stats", "client_output_buffer_limit_disconnections") == "1"
    });
    wait_until("the line", || server.log().contains("its unsent output exceeded the limit"));
}

#[test]
fn who_does_not_take_its_last_replies_can_be_closed() {
    const LEN: usize = 16 << 20;
    for last in [&b"QUIT\r\n"[..], b"*1\r\n$abc\r\n"] {
        for is_killed in [true, false] {
            let server = Server::tenon(&[("workers", "1")]).expect("tenon starts");
            let address = server.address(Dialect::Redis).expect("RESP is spoken");
            let (mut client, mut other) = (connect(address), connect(address));
            other.call(&[b"SET", b"big", &vec![b'v'; LEN]]).expect("a reply");
            let id = field(&mut client, "id");
            client.send_raw(&[b"GET big\r\n", last].concat()).expect("sent");
            // It has read nothing, and so is there for others.
            wait_until("the client to leave", || {
                let line = other.call(&[b"CLIENT", b"LIST", b"ID", id.as_bytes()]).expect("a reply");
                matches!(&line, Value::Bulk(line) if String::from_utf8_lossy(line).contains(" flags=c "))
            });
            if is_killed {
                let killed = other.call(&[b"CLIENT", b"KILL", b"ID", id.as_bytes()]).expect("a reply");
                assert_eq!(killed, Value::Int(1));
            } else {
                other.call(&[b"CONFIG", b"SET", b"maxmemory-clients", b"4mb"]).expect("a reply");
            }
            wait_until("its end", || info::field(&mut other, "clients", "connected_clients") == "1");
            let evicted = info::field(&mut other, "stats", "evicted_clients");
            assert_eq!(evicted, if is_killed { "0" } else { "1" });
        }
    }
}
