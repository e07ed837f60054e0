//! Doors that stay shut: passwords, what only an operator may, who comes from elsewhere. Knows no handler.

use crate::support::{PATIENCE, assert_alive, oracle, read_until_closed, resp, tenon};
use std::io::Write;
use std::net::{IpAddr, UdpSocket};
use tenon_client::{Address, Resp, Stream, Value};
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

fn error(text: &str) -> Value {
    Value::Error(text.as_bytes().to_vec())
}

#[test]
fn without_the_password_nothing_is_done() {
    let settings = [("requirepass", "secret")];
    let (server, redis) = (tenon(&settings), oracle(Dialect::Redis, &settings));
    let wrong = "WRONGPASS invalid username-password pair or user is disabled.";
    let (long, binary) = ([b's'; 16_384], b"secret\0".as_slice());
    let shut: Vec<(Vec<&[u8]>, &str)> = vec![
        (vec![b"GET", b"k"], "NOAUTH Authentication required."),
        (vec![b"FLUSHALL"], "NOAUTH Authentication required."),
        (vec![b"CONFIG", b"GET", b"requirepass"], "NOAUTH Authentication required."),
        (vec![b"CLIENT", b"LIST"], "NOAUTH Authentication required."),
        (vec![b"MULTI"], "NOAUTH Authentication required."),
        (vec![b"EXEC"], "EXECABORT Transaction discarded because of: NOAUTH Authentication required."),
        (vec![b"AUTH", b""], wrong),
        (vec![b"AUTH", b"Secret"], wrong),
        (vec![b"AUTH", b"secre"], wrong),
        (vec![b"AUTH", b"secretsecret"], wrong),
        (vec![b"AUTH", binary], wrong),
        (vec![b"AUTH", &long], wrong),
        (vec![b"AUTH", b"other", b"secret"], wrong),
        (vec![b"AUTH", b"", b"secret"], wrong),
        (vec![b"AUTH", b"default", b"secret", b"more"], "ERR syntax error"),
        (vec![b"AUTH"], "ERR wrong number of arguments for 'auth' command"),
        (vec![b"HELLO", b"3", b"AUTH", b"default", b"no"], wrong),
    ];
    for server in [Some(&server), redis.as_ref()].into_iter().flatten() {
        for (command, text) in &shut {
            let mut client = resp(server);
            assert_eq!(client.call(command).expect("an answer"), error(text), "{}", command[0].escape_ascii());
            let after = client.call(&[b"GET", b"k"]).expect("an answer");
            assert_eq!(after, error("NOAUTH Authentication required."), "{}", command[0].escape_ascii());
        }
        let mut client = resp(server);
        assert_eq!(client.call(&[b"AUTH", b"secret"]).expect("an answer"), Value::Simple(b"OK".to_vec()));
        assert_eq!(client.call(&[b"GET", b"k"]).expect("an answer"), Value::NullBulk);
        // A failed attempt does not end what was granted.
        assert_eq!(client.call(&[b"AUTH", b"no"]).expect("an answer"), error(wrong));
        assert_eq!(client.call(&[b"GET", b"k"]).expect("an answer"), Value::NullBulk);
    }
}

#[test]
fn what_only_an_operator_may_is_off_by_default() {
    let server = tenon(&[]);
    let mut client = resp(&server);
    for command in
        [vec![b"DEBUG".as_slice(), b"SLEEP", b"0"], vec![b"DEBUG", b"SEGFAULT"], vec![b"DEBUG", b"OBJECT", b"k"]]
    {
        let Value::Error(text) = client.call(&command).expect("an answer") else { panic!("DEBUG is off") };
        assert!(text.starts_with(b"ERR DEBUG command not allowed."), "{}", text.escape_ascii());
    }
    for setting in [b"dir".as_slice(), b"dbfilename"] {
        let Value::Error(text) = client.call(&[b"CONFIG", b"SET", setting, b"/tmp"]).expect("an answer") else {
            panic!("it is protected");
        };
        assert!(String::from_utf8_lossy(&text).contains("can't set protected config"), "{}", text.escape_ascii());
    }
    let answer = client.call(&[b"CONFIG", b"SET", b"enable-debug-command", b"yes"]).expect("an answer");
    let Value::Error(text) = answer else { panic!("it can't be switched on from a client") };
    assert!(String::from_utf8_lossy(&text).contains("can't set immutable config"), "{}", text.escape_ascii());
    assert_alive(&server);
}

/// An address of this machine that is not loopback, if it has one. Nothing is sent to find it.
fn outer_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

fn port(server: &Server, dialect: Dialect) -> u16 {
    match server.address(dialect).expect("it listens") {
        Address::Tcp { port, .. } => *port,
        Address::Unix(_) => panic!("a TCP address was asked for"),
    }
}

#[test]
fn protected_mode_turns_away_who_comes_from_elsewhere() {
    let Some(address) = outer_address() else {
        let _ = writeln!(std::io::stderr(), "skipped: this machine has no address but loopback");
        return;
    };
    // The later --bind counts.
    let server = tenon(&[("bind", "0.0.0.0")]);
    let told = |dialect| {
        let at = Address::Tcp { host: address.to_string(), port: port(&server, dialect) };
        let mut stream = Stream::connect(&at, Some(PATIENCE)).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        String::from_utf8(read_until_closed(&mut stream).expect("closed")).expect("text")
    };
    assert!(told(Dialect::Redis).starts_with("-DENIED "));
    assert!(told(Dialect::Memcache).starts_with("SERVER_ERROR "));
    assert_alive(&server);
    // With a password, RESP clients may come; what they may do is shut until they give it.
    let set = resp(&server).call(&[b"CONFIG", b"SET", b"requirepass", b"secret"]).expect("an answer");
    assert_eq!(set, Value::Simple(b"OK".to_vec()));
    let at = Address::Tcp { host: address.to_string(), port: port(&server, Dialect::Redis) };
    let mut outsider = Resp::connect_to(&at, Some(PATIENCE)).expect("connected");
    assert_eq!(outsider.call(&[b"PING"]).expect("an answer"), error("NOAUTH Authentication required."));
    assert!(told(Dialect::Memcache).starts_with("SERVER_ERROR "));
}
