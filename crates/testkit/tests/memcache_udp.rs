//! memcached over UDP: the same requests to Tenon and to memcached, whose answers must be the same.
#![allow(missing_docs)]

use std::net::UdpSocket;
use std::time::Duration;
use tenon_client::{Address, Memcache, Resp, Value};
use tenon_testkit::info;
use tenon_testkit::oracle::oracle;
use tenon_testkit::patience::{PATIENCE, wait_until};
use tenon_testkit::ports::free_port;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

struct Side {
    server: Server,
    memcache: Memcache,
    socket: UdpSocket,
    port: u16,
}

/// A port that nobody had a moment ago.
impl Side {
    fn new(server: Server, port: u16) -> Side {
        let address = server.address(Dialect::Memcache).expect("it speaks memcached");
        let memcache = Memcache::connect_to(address, Some(PATIENCE)).expect("connected");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        Side { memcache, server, socket, port }
    }

    /// The answer to a request, put together, and of how many datagrams it was.
    fn ask(&self, request: &[u8]) -> (Vec<u8>, usize) {
        let datagram = [&[7, 9, 0, 0, 0, 1, 0, 0], request].concat();
        self.socket.send_to(&datagram, ("127.0.0.1", self.port)).expect("sent");
        self.receive()
    }

    /// The next answer.
    fn receive(&self) -> (Vec<u8>, usize) {
        let (mut parts, mut total) = (Vec::new(), 1);
        while parts.len() < total {
            let mut got = vec![0; 65_536];
            let len = self.socket.recv(&mut got).expect("an answer");
            assert_eq!(got[..2], [7, 9]);
            total = usize::from(u16::from_be_bytes([got[4], got[5]]));
            parts.push((u16::from_be_bytes([got[2], got[3]]), got[8..len].to_vec()));
        }
        parts.sort();
        (parts.into_iter().flat_map(|(_, part)| part).collect(), total)
    }
}

#[test]
fn answers_are_memcacheds() {
    let port = free_port();
    let settings = [("memcached-udp-port", &*port.to_string()), ("memcached-udp-amplification-max", "0")];
    let mut sides = vec![Side::new(Server::tenon(&settings).expect("tenon starts"), port)];
    let port = free_port();
    let of_oracle = oracle(Dialect::Memcache, &[("udp-port", &port.to_string())]);
    sides.extend(of_oracle.map(|server| Side::new(server, port)));
    let value = "v".repeat(20_000);
    for side in &mut sides {
        let stored = side.memcache.exchange(format!("set big 0 0 {}\r\n{value}", value.len()).as_bytes());
        assert_eq!(stored.expect("an answer"), b"STORED");
    }
    let mut noop = vec![0; 24];
    (noop[0], noop[1]) = (0x80, 0x0a);
    let requests: [&[u8]; 10] = [
        b"get none\r\n",
        b"set k 5 0 3\r\nabc\r\n",
        b"get k\r\n",
        b"incr k 1\r\n",
        b"set n 0 0 1\r\n5\r\n",
        b"incr n 2\r\n",
        b"delete n\r\n",
        b"mg k v f\r\n",
        b"get big\r\n",
        &noop,
    ];
    for request in requests {
        let answers: Vec<_> = sides.iter().map(|side| side.ask(request)).collect();
        for other in &answers[1..] {
            assert!(
                answers[0] == *other,
                "{}: {:?}",
                request.escape_ascii(),
                answers.iter().map(|it| (it.0.len(), it.1)).collect::<Vec<_>>()
            );
        }
        assert!(!answers[0].0.is_empty());
    }
    // Each request of a datagram has an answer of its own.
    let three = b"get big\r\nset s 0 0 1\r\n1\r\nmg none v q\r\nget s\r\n";
    let answers: Vec<_> = sides.iter().map(|side| [side.ask(three), side.receive(), side.receive()]).collect();
    assert_eq!([&answers[0][1].0[..], &answers[0][2].0], [&b"STORED\r\n"[..], b"VALUE s 0 1\r\n1\r\nEND\r\n"]);
    assert!(answers.iter().all(|other| answers[0] == *other));
    // memcached 1.6.18 leaves some of the items of such an answer out.
    let (answer, _) = sides[0].ask(b"get k none k\r\n");
    assert_eq!(answer, b"VALUE k 5 3\r\nabc\r\nVALUE k 5 3\r\nabc\r\nEND\r\n");
    let (answer, datagrams) = sides[0].ask(b"get big\r\n");
    assert_eq!(answer, format!("VALUE big 0 20000\r\n{value}\r\nEND\r\n").as_bytes());
    assert_eq!(datagrams, answer.len().div_ceil(1392));
}

#[test]
fn an_answer_is_bounded_by_its_request() {
    let port = free_port();
    let server = Server::tenon(&[("memcached-udp-port", &*port.to_string())]).expect("tenon starts");
    let mut side = Side::new(server, port);
    let value = "v".repeat(2_000);
    side.memcache.exchange(format!("set k 0 0 {}\r\n{value}", value.len()).as_bytes()).expect("an answer");
    assert_eq!(side.ask(b"get k\r\n").0, b"SERVER_ERROR response too large for UDP\r\n");
    // A request that is long enough is trusted with the answer.
    let request = format!("get k{}\r\n", " ".repeat(300));
    assert!(side.ask(request.as_bytes()).0.starts_with(b"VALUE k 0 2000\r\n"));
}

#[test]
fn nobody_answers_unless_asked_to() {
    let server = Server::tenon(&[]).expect("tenon starts");
    let Address::Tcp { port, .. } = *server.address(Dialect::Memcache).expect("it speaks memcached") else {
        panic!("it listens to TCP");
    };
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    socket.connect(("127.0.0.1", port)).expect("connected");
    socket.send(b"\x07\x09\0\0\0\x01\0\0version\r\n").expect("sent");
    // The system says that nobody listens.
    let error = socket.recv(&mut [0; 100]).expect_err("no answer");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn parts_and_pieces_are_no_requests() {
    let port = free_port();
    let settings = [("memcached-udp-port", &*port.to_string()), ("memcached-udp-amplification-max", "0")];
    // memcached keeps half a request for the next client's datagram.
    let side = Side::new(Server::tenon(&settings).expect("tenon starts"), port);
    let send = |bytes: &[u8]| side.socket.send_to(bytes, ("127.0.0.1", side.port)).expect("sent");
    // Of none of these there is an answer: the next one is to the request behind them.
    for len in 0..=8 {
        send(&[7, 9, 0, 0, 0, 1, 0, 0][..len]);
    }
    send(b"\x07\x09\0\0\0\x01\0\0get k");
    send(b"\x07\x09\0\0\0\x01\0\0set k 0 0 10\r\nabc");
    assert_eq!(side.ask(b"get k\r\n").0, b"END\r\n");
    // One of several, in order and out of it.
    for part in [b"\0\0\0\x02", b"\0\x01\0\x02", b"\0\0\0\0", b"\xff\xff\x01\x01"] {
        send(&[&[7, 9], &part[..], b"\0\0get k\r\n"].concat());
    }
    assert_eq!(side.ask(b"mn\r\n").0, b"MN\r\n");
    // Whatever the number of the only one.
    send(b"\x07\x09\xff\xff\0\x01\0\0get k\r\n");
    assert_eq!(side.receive().0, b"END\r\n");
}

#[test]
fn what_is_stored_is_said_to_be_when_it_is_on_disk() {
    let port = free_port();
    let settings = [
        ("memcached-udp-port", &*port.to_string()),
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("enable-debug-command", "yes"),
    ];
    let side = Side::new(Server::tenon(&settings).expect("tenon starts"), port);
    let address = side.server.address(Dialect::Redis).expect("it speaks RESP");
    let mut redis = Resp::connect_to(address, Some(PATIENCE)).expect("connected");
    let mut call = |words: &[&[u8]]| redis.call(words).expect("an answer");
    // From now on nothing gets durable, and only a rewrite makes the log whole again.
    call(&[b"DEBUG", b"FAULTS", b"sync:eio"]);
    side.socket.send_to(b"\x01\x02\0\0\0\x01\0\0set k 0 0 3\r\nabc\r\n", ("127.0.0.1", port)).expect("sent");
    wait_until("the value", || call(&[b"GET", b"k"]) == Value::Bulk(b"abc".into()));
    // Those that read do not wait, and nothing comes before their answer.
    assert_eq!(side.ask(b"get k\r\n").0, b"VALUE k 0 3\r\nabc\r\nEND\r\n");
    call(&[b"DEBUG", b"FAULTS"]);
    side.socket.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
    let mut got = [0; 100];
    wait_until("the answer", || {
        call(&[b"BGREWRITEAOF"]);
        side.socket.recv(&mut got).is_ok_and(|len| got[..len] == *b"\x01\x02\0\0\0\x01\0\0STORED\r\n")
    });
}

#[test]
fn answers_leave_from_the_address_that_was_asked() {
    let port = free_port();
    let settings = [("memcached-udp-port", &*port.to_string()), ("bind", "*")];
    let _server = Server::tenon(&settings).expect("tenon starts");
    for address in ["127.0.0.1", "127.0.0.2", "127.200.0.7"] {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        // From now on nothing is received that comes from elsewhere.
        socket.connect((address, port)).expect("connected");
        socket.send(b"\x07\x09\0\0\0\x01\0\0get none\r\n").expect("sent");
        let mut got = [0; 100];
        let len = socket.recv(&mut got).unwrap_or_else(|error| panic!("{address}: {error}"));
        assert_eq!(&got[8..len], b"END\r\n", "{address}");
    }
}

#[test]
fn many_datagrams_leave_no_memory_behind() {
    const DATAGRAMS: usize = 3_000;
    const LEN: usize = 60_000;
    const GROWTH_MAX: u64 = 64 << 20;
    let port = free_port();
    let settings = [("memcached-udp-port", &*port.to_string()), ("workers", "2")];
    let side = Side::new(Server::tenon(&settings).expect("tenon starts"), port);
    let mut redis = Resp::connect_to(side.server.address(Dialect::Redis).expect("it speaks RESP"), Some(PATIENCE))
        .expect("connected");
    let mut resident = || -> u64 { info::field(&mut redis, "memory", "used_memory_rss").parse().expect("a number") };
    // Long ones, so that all of what they are received into is written to.
    let request = format!("set k 0 0 {LEN}\r\n{}\r\n", "v".repeat(LEN));
    let before = resident();
    for _ in 0..DATAGRAMS {
        assert_eq!(side.ask(request.as_bytes()).0, b"STORED\r\n");
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < GROWTH_MAX, "{grown} bytes");
}
