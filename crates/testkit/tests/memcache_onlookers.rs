//! What MONITOR, SLOWLOG, HOTKEYS and watchers show of memcached's clients, in either of their protocols.
#![allow(missing_docs)]

use std::io::{BufRead, BufReader, Read, Write};
use std::time::{Duration, Instant};
use tenon_client::{Resp, Value};
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

fn resp(server: &Server) -> Resp {
    Resp::connect_to(server.address(Dialect::Redis).expect("RESP is spoken"), Some(PATIENCE)).expect("connected")
}

/// Sends bytes over a new connection and reads until so many have come.
fn ask(server: &Server, bytes: &[u8], len: usize) -> Vec<u8> {
    let mut stream = server.connect(Dialect::Memcache, PATIENCE).expect("connected");
    stream.write_all(bytes).expect("sent");
    let mut answer = vec![0; len];
    stream.read_exact(&mut answer).expect("an answer");
    answer
}

fn request(opcode: u8, extras: &[u8], key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x80, opcode, 0, key.len() as u8, extras.len() as u8, 0, 0, 0];
    out.extend(((extras.len() + key.len() + data.len()) as u32).to_be_bytes());
    out.extend([0; 12]);
    [&out[..], extras, key, data].concat()
}

/// Requests of both protocols, each answered before the next.
fn requests(server: &Server) {
    ask(server, b"set text 0 0 2\r\nhi\r\n", b"STORED\r\n".len());
    ask(server, b"mg text v\r\n", b"VA 2\r\nhi\r\n".len());
    let extras = [7u32.to_be_bytes(), 60u32.to_be_bytes()].concat();
    ask(server, &request(0x01, &extras, b"binary", b"value"), 24);
    ask(server, &request(0x0d, b"", b"binary", b""), 24 + 4 + b"binaryvalue".len());
    let counting = [&3u64.to_be_bytes()[..], &5u64.to_be_bytes(), &0u32.to_be_bytes()].concat();
    ask(server, &request(0x05, &counting, b"n", b""), 24 + 8);
    ask(server, &request(0x04, b"", b"binary", b""), 24);
}

const SHOWN: [&str; 6] = [
    r#""set" "text" "0" "0" "2" "hi""#,
    r#""mg" "text" "v""#,
    r#""set" "binary" "7" "60" "value""#,
    r#""getkq" "binary""#,
    r#""increment" "n" "3" "5""#,
    r#""delete" "binary""#,
];

fn start() -> Server {
    Server::tenon(&[]).expect("tenon starts")
}

#[test]
fn monitors_see_both_protocols() {
    let server = start();
    let mut monitor = resp(&server);
    assert_eq!(monitor.call(&[b"MONITOR"]).expect("a reply"), Value::Simple(b"OK".to_vec()));
    requests(&server);
    for shown in SHOWN {
        let Value::Simple(line) = monitor.receive().expect("a line") else { panic!("no line") };
        let line = String::from_utf8(line).expect("text");
        assert!(line.ends_with(shown), "{line} does not end with {shown}");
    }
}

#[test]
fn the_slow_log_has_both_protocols_and_no_password() {
    let server = Server::tenon(&[("memcached-auth", "yes"), ("requirepass", "secret")]).expect("tenon starts");
    let mut redis = resp(&server);
    redis.call(&[b"AUTH", b"secret"]).expect("a reply");
    redis.call(&[b"CONFIG", b"SET", b"slowlog-log-slower-than", b"0"]).expect("a reply");
    let login = request(0x21, b"", b"PLAIN", b"\0default\0secret");
    let get = request(0x00, b"", b"nosuch", b"");
    ask(&server, &[login, get].concat(), 24 + b"Authenticated".len() + 24 + b"Not found".len());
    let token = b"set a 0 0 14\r\ndefault secret\r\n";
    ask(&server, &[token, &b"get nosuch\r\n"[..]].concat(), b"STORED\r\nEND\r\n".len());
    let shown = format!("{:?}", redis.call(&[b"SLOWLOG", b"GET", b"-1"]).expect("a reply"));
    let list = |words: &[&[u8]]| {
        let words = words.iter().map(|word| Value::Bulk(word.to_vec())).collect();
        format!("{:?}", Value::Array(words))
    };
    assert!(shown.contains(&list(&[b"sasl_auth", b"PLAIN", b"(redacted)"])), "{shown}");
    assert_eq!(shown.matches(&list(&[b"get", b"nosuch"])).count(), 2, "{shown}");
    let secret = format!("{:?}", b"secret");
    assert!(!shown.contains(secret.trim_matches(['[', ']'])), "{shown}");
}

#[test]
fn a_list_of_clients_tells_what_each_has_been_sent() {
    let server = start();
    let mut stream = server.connect(Dialect::Memcache, PATIENCE).expect("connected");
    for (asked, answer) in
        [(&b"set a 0 0 2\r\nhi\r\n"[..], "STORED\r\n"), (b"get a\r\n", "VALUE a 0 2\r\nhi\r\nEND\r\n")]
    {
        stream.write_all(asked).expect("sent");
        let mut got = vec![0; answer.len()];
        stream.read_exact(&mut got).expect("an answer");
        assert_eq!(got, answer.as_bytes());
    }
    let mut redis = resp(&server);
    // The answer may be there before it is counted.
    let deadline = Instant::now() + PATIENCE;
    loop {
        let Value::Bulk(list) = redis.call(&[b"CLIENT", b"LIST"]).expect("a reply") else { panic!("no list") };
        let list = String::from_utf8(list).expect("text");
        if list.lines().any(|line| line.contains("tot-net-in=24 tot-net-out=30 ")) {
            return;
        }
        assert!(Instant::now() < deadline, "{list}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_login_that_fails_stands_in_the_acl_log() {
    let server = Server::tenon(&[("memcached-auth", "yes"), ("requirepass", "secret")]).expect("tenon starts");
    let mut redis = resp(&server);
    redis.call(&[b"AUTH", b"secret"]).expect("a reply");
    ask(&server, b"set a 0 0 13\r\nmallory guess\r\n", b"CLIENT_ERROR authentication failure\r\n".len());
    ask(&server, &request(0x21, b"", b"PLAIN", b"\0mallet\0guess"), 24);
    let log = format!("{:?}", redis.call(&[b"ACL", b"LOG"]).expect("a reply"));
    for shown in [&b"mallory"[..], b"set", b"mallet", b"sasl_auth", b"auth"] {
        assert!(log.contains(&format!("{:?}", Value::Bulk(shown.to_vec()))), "{shown:?} is not in {log}");
    }
    let Value::Bulk(info) = redis.call(&[b"INFO", b"stats"]).expect("a reply") else { panic!("no text") };
    let info = String::from_utf8(info).expect("text");
    assert!(info.contains("acl_access_denied_auth:2\r\n"), "{info}");
}

#[test]
fn a_watcher_whose_user_loses_its_rights_is_closed() {
    let server = Server::tenon(&[("memcached-auth", "yes"), ("requirepass", "secret")]).expect("tenon starts");
    let mut redis = resp(&server);
    redis.call(&[b"AUTH", b"secret"]).expect("a reply");
    let ok = Value::Simple(b"OK".to_vec());
    for loss in [b"off".as_slice(), b"-get", b"resetkeys"] {
        let user: &[&[u8]] = &[b"ACL", b"SETUSER", b"user", b"reset", b"on", b">pass", b"+@all", b"~*", b"&*"];
        assert_eq!(redis.call(user).expect("a reply"), ok);
        let mut watcher = server.connect(Dialect::Memcache, PATIENCE).expect("connected");
        for (asked, answer) in [("set a 0 0 9\r\nuser pass\r\n", "STORED\r\n"), ("watch mutations\r\n", "OK\r\n")] {
            watcher.write_all(asked.as_bytes()).expect("sent");
            let mut answered = vec![0; answer.len()];
            watcher.read_exact(&mut answered).expect("an answer");
            assert_eq!(answered, answer.as_bytes());
        }
        assert_eq!(redis.call(&[b"ACL", b"SETUSER", b"user", loss]).expect("a reply"), ok);
        let mut rest = Vec::new();
        watcher.read_to_end(&mut rest).expect("the connection ends");
        assert_eq!(rest, b"");
    }
}

#[test]
fn busy_keys_are_found_in_both_protocols() {
    let server = start();
    let mut redis = resp(&server);
    let started = redis.call(&[b"HOTKEYS", b"START", b"METRICS", b"1", b"NET"]).expect("a reply");
    assert_eq!(started, Value::Simple(b"OK".to_vec()));
    requests(&server);
    let shown = format!("{:?}", redis.call(&[b"HOTKEYS", b"GET"]).expect("a reply"));
    for key in [&b"text"[..], b"binary", b"n"] {
        assert!(shown.contains(&format!("{:?}", Value::Bulk(key.to_vec()))), "{key:?} is not in {shown}");
    }
}

#[test]
fn watchers_are_told_of_what_binary_requests_store_and_do_not() {
    let server = start();
    let mut watcher = server.connect(Dialect::Memcache, PATIENCE).expect("connected");
    watcher.write_all(b"watch mutations\r\n").expect("sent");
    let mut said = [0; 4];
    watcher.read_exact(&mut said).expect("an answer");
    let extras = [0u32.to_be_bytes(), 0u32.to_be_bytes()].concat();
    let counting = [&3u64.to_be_bytes()[..], &15u64.to_be_bytes(), &60u32.to_be_bytes()].concat();
    ask(&server, &request(0x02, &extras, b"item", b"x"), 24);
    ask(&server, &request(0x02, &extras, b"item", b"x"), 24);
    ask(&server, &request(0x03, &extras, b"none", b"x"), 24);
    ask(&server, &request(0x05, &counting, b"n", b""), 24 + 8);
    let lines: Vec<String> = BufReader::new(watcher).lines().take(4).map(|line| line.expect("a line")).collect();
    // memcached 1.6.45 says the same.
    for (line, [key, status, how]) in lines.iter().zip([
        ["item", "stored", "add"],
        ["item", "not_stored", "add"],
        ["none", "not_stored", "replace"],
        ["n", "stored", "add"],
    ]) {
        assert!(line.contains(&format!("type=item_store key={key} status={status} cmd={how} ttl=")), "{line}");
    }
    assert!(lines[3].ends_with("size=2"), "{}", lines[3]);
}
