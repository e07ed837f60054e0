//! Doors that stay shut: passwords, what only an operator may, who comes from elsewhere. Knows no handler.

use crate::support::{PATIENCE, assert_alive, connect, read_until_closed, resp, send, tenon, wait_until};
use std::io::Write;
use std::net::{IpAddr, UdpSocket};
use tenon_client::{Address, Resp, Stream, Value};
use tenon_testkit::oracle::oracle;
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

/// How many lines of the log have this in them.
fn lines_about(server: &Server, what: &str) -> usize {
    server.log().lines().filter(|line| line.contains(what)).count()
}

#[test]
fn who_speaks_http_fills_no_log() {
    let server = tenon(&[]);
    for dialect in [Dialect::Redis, Dialect::Memcache] {
        for _ in 0..5 {
            let mut stream = connect(&server, dialect);
            send(&mut stream, b"POST / HTTP/1.1\r\n\r\n");
            assert_eq!(read_until_closed(&mut stream), Ok(Vec::new()));
        }
    }
    assert_eq!(lines_about(&server, "HTTP"), 2, "one for each port: {}", server.log());
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
    for _ in 0..5 {
        assert!(told(Dialect::Redis).starts_with("-DENIED "));
        assert!(told(Dialect::Memcache).starts_with("SERVER_ERROR "));
    }
    assert_eq!(lines_about(&server, "protected mode"), 1, "{}", server.log());
    assert_alive(&server);
    // With a password, RESP clients may come; what they may do is shut until they give it.
    let set = resp(&server).call(&[b"CONFIG", b"SET", b"requirepass", b"secret"]).expect("an answer");
    assert_eq!(set, Value::Simple(b"OK".to_vec()));
    let at = Address::Tcp { host: address.to_string(), port: port(&server, Dialect::Redis) };
    let mut outsider = Resp::connect_to(&at, Some(PATIENCE)).expect("connected");
    assert_eq!(outsider.call(&[b"PING"]).expect("an answer"), error("NOAUTH Authentication required."));
    assert!(told(Dialect::Memcache).starts_with("SERVER_ERROR "));
}

/// Commands whose keys stand in odd places, or that do more to them than their names tell.
const ODD: &[&str] = &[
    "GET r",
    "GET w",
    "GET x",
    "GETEX r",
    "GETEX w",
    "GETEX rw EX 10",
    "GETDEL r",
    "GETDEL rw",
    "GETSET r v",
    "GETSET w v",
    "SET r v",
    "SET w v",
    "SET w v GET",
    "SET rw v GET",
    "SETRANGE w 0 x",
    "APPEND w x",
    "APPEND r x",
    "STRLEN w",
    "EXISTS r w",
    "EXISTS r x",
    "TYPE x",
    "TOUCH w r",
    "DEL r",
    "DEL w",
    "DEL w x",
    "UNLINK w r",
    "EXPIRE r 1",
    "EXPIRE w 1",
    "PERSIST w",
    "TTL w",
    "TTL r",
    "COPY r w",
    "COPY w r",
    "COPY r x",
    "RENAME rw w",
    "RENAME w rw",
    "RENAMENX r w",
    "MOVE w 1",
    "MOVE rw 1",
    "MGET r rw",
    "MGET r w",
    "MSET w 1 rw 2",
    "MSET w 1 r 2",
    "MSETNX w 1 x 2",
    "INCR w",
    "INCR rw",
    "INCRBYFLOAT r 1",
    "LCS r rw",
    "LCS r w",
    "OBJECT ENCODING x",
    "OBJECT ENCODING w",
    "MEMORY USAGE w",
    "MEMORY USAGE x",
    "WATCH w",
    "WATCH x",
    "SETBIT w 0 1",
    "SETBIT rw 0 1",
    "GETBIT r 0",
    "BITCOUNT w",
    "BITOP AND w r rw",
    "BITOP AND w r w",
    "BITOP AND r r",
    "BITOP NOT x r",
    "BITFIELD r GET u8 0",
    "BITFIELD w GET u8 0",
    "BITFIELD r SET u8 0 1",
    "BITFIELD r GET u8 0 INCRBY u8 0 1",
    "BITFIELD rw SET u8 0 1",
    "BITFIELD_RO r GET u8 0",
    "BITFIELD_RO w GET u8 0",
    "PFADD w 1",
    "PFCOUNT r",
    "PFCOUNT w r",
    "PFMERGE rw r",
    "PFMERGE w r",
    "PFMERGE rw w",
    "LPUSH w 1",
    "LPUSH r 1",
    "LPOP w",
    "LPOP rw",
    "LMOVE rw w LEFT LEFT",
    "LMOVE r w LEFT LEFT",
    "LMOVE rw r LEFT LEFT",
    "RPOPLPUSH rw w",
    "BLMOVE rw x LEFT LEFT 0",
    "BLPOP rw w 0",
    "BLPOP rw rw 0",
    "LMPOP 2 rw w LEFT",
    "LMPOP 1 rw LEFT",
    "BLMPOP 0 2 rw x LEFT",
    "HSET w f v",
    "HGET w f",
    "SMOVE rw w m",
    "SMOVE w w m",
    "SUNIONSTORE w r rw",
    "SUNIONSTORE w w",
    "SDIFFSTORE r r",
    "SINTERCARD 2 r rw",
    "SINTERCARD 2 r w",
    "ZADD w 1 m",
    "ZUNION 2 r rw",
    "ZUNION 2 r x",
    "ZUNIONSTORE w 2 r rw",
    "ZUNIONSTORE w 2 r w",
    "ZUNIONSTORE r 1 r",
    "ZUNIONSTORE w 2 r rw WEIGHTS 1 2",
    "ZUNIONSTORE x 9 r",
    "ZRANGESTORE w r 0 1",
    "ZRANGESTORE w w 0 1",
    "ZMPOP 1 rw MIN",
    "ZMPOP 1 r MIN",
    "BZMPOP 0 1 rw MIN",
    "BZPOPMIN rw r 0",
    "GEORADIUS r 0 0 1 m",
    "GEORADIUS r 0 0 1 m STORE w",
    "GEORADIUS r 0 0 1 m STORE r",
    "GEORADIUS r 0 0 1 m STOREDIST x",
    "GEORADIUS w 0 0 1 m STORE w",
    "GEORADIUSBYMEMBER r m 1 m STORE w",
    "GEOSEARCHSTORE w r FROMMEMBER m BYRADIUS 1 m",
    "GEOSEARCHSTORE w w FROMMEMBER m BYRADIUS 1 m",
    "SORT r",
    "SORT w",
    "SORT r STORE w",
    "SORT r STORE r",
    "SORT r BY nosort STORE x",
    "SORT r LIMIT 0 1 GET STORE STORE w",
    "SORT r STORE w STORE x",
    "SORT_RO r",
    "SORT_RO w",
    "XADD w * f v",
    "XREAD COUNT 1 STREAMS r rw 0 0",
    "XREAD STREAMS r w 0 0",
    "XREAD STREAMS w 0",
    "XREADGROUP GROUP g c STREAMS r 0",
    "XREADGROUP GROUP g c COUNT 1 STREAMS w 0",
    "XREADGROUP GROUP streams c STREAMS x 0",
    "EVAL s 1 rw",
    "EVAL s 2 rw r",
    "EVAL s 0 x",
    "EVAL_RO s 1 r",
    "EVAL_RO s 1 w",
    "FCALL f 1 w",
    "FCALL_RO f 2 r rw",
    "MIGRATE h 1 rw 0 1",
    "MIGRATE h 1 r 0 1",
    "MIGRATE h 1 \"\" 0 1 KEYS rw rw",
    "MIGRATE h 1 \"\" 0 1 KEYS rw w",
    "MIGRATE h 1 \"\" 0 1 AUTH keys KEYS rw x",
    "DUMP r",
    "DUMP w",
    "RESTORE w 0 x",
    "RESTORE r 0 x",
];

#[test]
fn keys_in_odd_places_are_guarded_as_redis_guards_them() {
    let server = tenon(&[]);
    let Some(redis) = oracle(Dialect::Redis, &[]) else { return };
    let (mut ours, mut theirs) = (resp(&server), resp(&redis));
    for client in [&mut ours, &mut theirs] {
        // Each pattern is a name, so that a right to the one is none to the other.
        let setuser: Vec<&[u8]> = "ACL SETUSER u +@all %R~r %W~w ~rw".split(' ').map(str::as_bytes).collect();
        assert_eq!(client.call(&setuser).expect("an answer"), Value::Simple(b"OK".to_vec()));
    }
    let mut compared = 0;
    for line in ODD {
        let words = line.split(' ').map(|word| if word == "\"\"" { &b""[..] } else { word.as_bytes() });
        let command: Vec<&[u8]> = [&b"ACL"[..], b"DRYRUN", b"u"].into_iter().chain(words).collect();
        let answer = |client: &mut Resp| client.call(&command).expect("an answer");
        let ours = answer(&mut ours);
        // What Tenon does not have it need not guard.
        if matches!(&ours, Value::Error(text) if text.ends_with(b"not found")) {
            continue;
        }
        assert_eq!(ours, answer(&mut theirs), "{line}");
        compared += 1;
    }
    assert!(compared > 70, "only {compared} of these commands are known");
}

#[test]
fn malformed_selectors_are_refused_and_leave_nothing_behind() {
    let server = tenon(&[]);
    let mut client = resp(&server);
    for rules in [
        "%",
        "%~",
        "%R",
        "%RR~x",
        "%RWR~x",
        "(%)",
        "(%~x)",
        "(%R)",
        "(",
        ")",
        "((",
        "(()",
        "(~a",
        "(~a (~b)",
        "(on)",
        "(>x)",
        "(reset)",
        "(+@nosuch)",
        "(+get|)",
        "(+client|nosuch)",
        "(~\"a)",
        "+client|id|x",
        "&",
        "+",
        "-",
        "+@",
        "-@all|x",
    ] {
        let command: Vec<&[u8]> = "ACL SETUSER u on".split(' ').chain(rules.split(' ')).map(str::as_bytes).collect();
        let answer = client.call(&command).expect("an answer");
        if matches!(rules, "&" | "%R" | "(%R)") {
            // An empty name is one, and so is an empty pattern.
            assert_eq!(answer, Value::Simple(b"OK".to_vec()));
            assert_eq!(client.call(&[b"ACL", b"DELUSER", b"u"]).expect("an answer"), Value::Int(1));
            continue;
        }
        assert!(matches!(answer, Value::Error(_)), "{rules}: {answer:?}");
        assert_eq!(client.call(&[b"ACL", b"GETUSER", b"u"]).expect("an answer"), Value::NullBulk, "{rules}");
    }
    assert_alive(&server);
}

#[test]
fn a_client_that_loses_its_user_in_the_middle_does_nothing_more() {
    let server = tenon(&[]);
    let mut admin = resp(&server);
    let words = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    let run = |client: &mut Resp, line: &str| {
        let words = words(line);
        client.call(&words.iter().map(Vec::as_slice).collect::<Vec<_>>())
    };
    let ok = Value::Simple(b"OK".to_vec());
    for last in ["ACL DELUSER u", "CLIENT KILL USER u"] {
        assert_eq!(run(&mut admin, "ACL SETUSER u on nopass ~* &* +@all").expect("an answer"), ok);
        let mut clients = [resp(&server), resp(&server), resp(&server), resp(&server)];
        for client in &mut clients {
            assert_eq!(run(client, "AUTH u x").expect("an answer"), ok);
        }
        assert_eq!(run(&mut clients[0], "MULTI").expect("an answer"), ok);
        assert_eq!(run(&mut clients[0], "SET k v").expect("an answer"), Value::Simple(b"QUEUED".to_vec()));
        assert!(matches!(run(&mut clients[1], "SUBSCRIBE c").expect("an answer"), Value::Array(_)));
        assert!(matches!(run(&mut clients[2], "HELLO 3").expect("an answer"), Value::Map(_)));
        assert_eq!(run(&mut clients[2], "CLIENT TRACKING ON").expect("an answer"), ok);
        assert_eq!(run(&mut clients[2], "GET tracked").expect("an answer"), Value::Null);
        clients[3].send(&[b"BLPOP", b"list", b"0"]).expect("sent");
        let info = |client: &mut Resp, field: &str| match run(client, "INFO clients").expect("an answer") {
            Value::Bulk(text) => String::from_utf8_lossy(&text).contains(field),
            other => panic!("{other:?} is no text"),
        };
        wait_until("the client waits", || info(&mut admin, "blocked_clients:1\r"));
        assert!(info(&mut admin, "tracking_clients:1\r"));
        assert!(matches!(run(&mut admin, last).expect("an answer"), Value::Int(1 | 4)));
        let [first, second, third, fourth] = &mut clients;
        for client in [first, second, third] {
            assert!(run(client, "EXEC").is_err(), "{last}: the connection is closed");
        }
        assert!(fourth.receive().is_err(), "{last}: the connection is closed");
        assert_eq!(run(&mut admin, "EXISTS k").expect("an answer"), Value::Int(0));
        wait_until("the subscription ends", || run(&mut admin, "PUBLISH c x").expect("an answer") == Value::Int(0));
        wait_until("the wait ends", || info(&mut admin, "blocked_clients:0\r"));
        wait_until("the tracking ends", || info(&mut admin, "tracking_clients:0\r"));
        // Nothing is taken for who is gone.
        assert_eq!(run(&mut admin, "RPUSH list a").expect("an answer"), Value::Int(1));
        assert_eq!(run(&mut admin, "LPOP list").expect("an answer"), Value::Bulk(b"a".to_vec()));
    }
    assert_alive(&server);
}
