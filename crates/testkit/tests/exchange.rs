//! Values that go from Tenon to redis-server and back, as payloads and by MIGRATE: nothing is lost on the way. Knows no
//! form in which they go.

use std::io::Write as _;
use std::time::Duration;
use tenon_client::{Memcache, Resp, Value};
use tenon_testkit::server::{Server, StartError};
use tenon_testkit::target::Dialect;

const PATIENCE: Option<Duration> = Some(Duration::from_secs(120));

/// Keys of every type and encoding, the lengths around which an encoding ends among them. `{name}` is the key.
fn commands() -> Vec<(String, Vec<Vec<u8>>)> {
    let mut commands: Vec<(String, Vec<Vec<u8>>)> = Vec::new();
    let mut add = |name: &str, words: Vec<Vec<u8>>| commands.push((name.to_owned(), words));
    let text = |text: &str| text.as_bytes().to_vec();
    let words = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    // Bytes that no compression shortens, and such as it does.
    let noise = |len: usize, mut random: u32| -> Vec<u8> {
        let mut next = || {
            random = random.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            (random >> 24) as u8
        };
        (0..len).map(|_| next()).collect()
    };
    let pattern = |len: usize| -> Vec<u8> { b"abcabcd ".iter().copied().cycle().take(len).collect() };
    for (index, value) in
        ["", "a", "0", "-1", "127", "-128", "128", "32767", "-32769", "2147483647", "2147483648", "-0"]
            .iter()
            .chain(&["9223372036854775807", "-9223372036854775808", "9223372036854775808", "00", "1.5"])
            .enumerate()
    {
        add(&format!("string-{index}"), vec![text("SET"), text("{name}"), text(value)]);
    }
    for len in [19, 20, 21, 44, 45, 63, 64, 300, 16_383, 16_384, 262_144, 262_145, 1_000_000] {
        add(&format!("noise-{len}"), vec![text("SET"), text("{name}"), noise(len, len as u32)]);
        add(&format!("pattern-{len}"), vec![text("SET"), text("{name}"), pattern(len)]);
    }
    add("bits", words("SETBIT {name} 100000 1"));
    add("counted", words("PFADD {name} a b c d"));
    let element = |number: usize, len: usize| -> Vec<u8> {
        let mut element = format!("{number}:").into_bytes();
        element.extend(std::iter::repeat_n(b'x', len));
        element
    };
    // Below, at and above the lengths and numbers at which small forms end in either server.
    for (count, len) in
        [(1, 0), (3, 61), (3, 62), (3, 63), (127, 5), (128, 5), (129, 5), (512, 3), (513, 3), (5_000, 20)]
    {
        let elements: Vec<Vec<u8>> = (0..count).map(|number| element(number, len)).collect();
        add(&format!("list-{count}-{len}"), [vec![text("RPUSH"), text("{name}")], elements.clone()].concat());
        add(&format!("set-{count}-{len}"), [vec![text("SADD"), text("{name}")], elements.clone()].concat());
        let pairs = |second: &dyn Fn(usize) -> Vec<u8>| -> Vec<Vec<u8>> {
            elements.iter().enumerate().flat_map(|(number, element)| [element.clone(), second(number)]).collect()
        };
        let fields = pairs(&|number| number.to_string().into_bytes());
        add(&format!("hash-{count}-{len}"), [vec![text("HSET"), text("{name}")], fields].concat());
        let scored: Vec<Vec<u8>> = elements
            .iter()
            .enumerate()
            .flat_map(|(number, element)| [format!("{}", number as f64 / 7.0 - 3.0).into_bytes(), element.clone()])
            .collect();
        add(&format!("zset-{count}-{len}"), [vec![text("ZADD"), text("{name}")], scored].concat());
        let ints = (0..count as i64).map(|number| (number * (1 << (len % 40))).to_string().into_bytes());
        add(&format!("ints-{count}-{len}"), [vec![text("SADD"), text("{name}")], ints.collect()].concat());
    }
    add(
        "list-mixed",
        words("RPUSH {name} 0 127 128 -1 4095 -4096 32767 -32768 8388607 2147483648 a 9223372036854775807"),
    );
    add("list-long", vec![text("RPUSH"), text("{name}"), noise(9_000, 1), text("x"), pattern(70_000), text("y")]);
    add("ints-wide", words("SADD {name} 9223372036854775807 -9223372036854775808 0"));
    add("set-mixed", words("SADD {name} 1 2 three 4.5"));
    add("hash-long", vec![text("HSET"), text("{name}"), text("f"), pattern(5_000), text(""), text("")]);
    for number in 1..=300 {
        let id = format!("{}-{}", 5 + number / 7, number);
        add("stream-long", words(&format!("XADD {{name}} {id} field {number} other text")));
    }
    add("stream-long", words("XDEL {name} 6-3 40-250"));
    add("stream-long", words("XTRIM {name} MAXLEN 250"));
    add("stream-groups", words("XADD {name} 1-1 a 1 b 2"));
    add("stream-groups", words("XADD {name} 1-2 a 1 b 2"));
    add(
        "stream-groups",
        vec![text("XADD"), text("{name}"), text("7-0"), text(""), pattern(3_000), text("b"), noise(99, 3)],
    );
    add("stream-groups", words("XADD {name} 9-18446744073709551615 x 9223372036854775807"));
    add("stream-groups", words("XGROUP CREATE {name} early 0"));
    add("stream-groups", words("XGROUP CREATE {name} late $"));
    add("stream-groups", words("XGROUP CREATECONSUMER {name} late idle"));
    add("stream-groups", words("XREADGROUP GROUP early one COUNT 2 STREAMS {name} >"));
    add("stream-groups", words("XREADGROUP GROUP early two COUNT 1 STREAMS {name} >"));
    add("stream-groups", words("XACK {name} early 1-1"));
    add("stream-groups", words("XDEL {name} 1-2"));
    add("stream-empty", words("XGROUP CREATE {name} g 0 MKSTREAM"));
    add("zset-edges", words("ZADD {name} inf a -inf b 0 c 1e300 d 5e-324 e 0.1 f 3 g 9007199254740993 h -2.5 i"));
    commands
}

/// A server and a connection to it.
struct Side {
    server: Server,
    client: Resp,
}

impl Side {
    fn new(server: Server) -> Side {
        let client =
            Resp::connect_to(server.address(Dialect::Redis).expect("a RESP port"), PATIENCE).expect("connected");
        Side { server, client }
    }

    fn tenon(settings: &[(&str, &str)]) -> Side {
        Side::new(Server::tenon(&[&[("enable-debug-command", "yes")], settings].concat()).expect("tenon starts"))
    }

    /// Nothing where it is not installed.
    fn redis() -> Option<Side> {
        match Server::redis(&[("sanitize-dump-payload", "yes")]) {
            Ok(server) => Some(Side::new(server)),
            Err(StartError::Missing(what)) => {
                assert!(std::env::var("TENON_REQUIRE_ORACLES").is_err(), "{what}");
                let _ = writeln!(std::io::stderr(), "skipped the exchange with the original server: {what}");
                None
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn call(&mut self, words: &[&[u8]]) -> Value {
        self.client.call(words).expect("an answer")
    }

    fn say(&mut self, line: &str) -> Value {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.call(&words)
    }

    fn fill(&mut self) -> Vec<String> {
        let commands = commands();
        for (name, words) in &commands {
            let words: Vec<&[u8]> =
                words.iter().map(|word| if word == b"{name}" { name.as_bytes() } else { &word[..] }).collect();
            let answer = self.call(&words);
            assert!(!matches!(answer, Value::Error(_)), "{name}: {answer:?}");
        }
        let mut names: Vec<String> = commands.into_iter().map(|(name, _)| name).collect();
        names.dedup();
        names
    }

    /// A digest of what a key holds, and what is no part of it.
    fn digest(&mut self, key: &str) -> Vec<Value> {
        let mut told = vec![self.say(&format!("DEBUG DIGEST-VALUE {key}"))];
        if self.say(&format!("TYPE {key}")) == Value::Simple(b"stream".to_vec()) {
            told.push(self.say(&format!("XLEN {key}")));
            told.push(self.say(&format!("XINFO GROUPS {key}")));
            // Of a group that is not there the error names the key.
            let pending = ["early", "g"].map(|group| self.say(&format!("XPENDING {key} {group}")));
            told.extend(pending.into_iter().filter(|answer| !matches!(answer, Value::Error(_))));
        }
        told
    }

    fn dump(&mut self, key: &str) -> Vec<u8> {
        match self.say(&format!("DUMP {key}")) {
            Value::Bulk(payload) => payload,
            other => panic!("{key}: {other:?}"),
        }
    }

    fn port(&self) -> String {
        let address = self.server.address(Dialect::Redis).expect("a RESP port").to_string();
        address.rsplit(':').next().expect("a port").to_owned()
    }
}

/// Takes every key from one side to the other and back, and to the first side again under another name.
fn exchange(one: &mut Side, other: &mut Side) {
    for key in one.fill() {
        let before = one.digest(&key);
        let payload = one.dump(&key);
        assert_eq!(other.call(&[b"RESTORE", key.as_bytes(), b"0", &payload]), Value::Simple(b"OK".to_vec()), "{key}");
        assert_eq!(other.digest(&key), before, "{key}");
        let payload = other.dump(&key);
        assert_eq!(
            one.call(&[b"RESTORE", b"again", b"0", &payload, b"REPLACE"]),
            Value::Simple(b"OK".to_vec()),
            "{key}"
        );
        assert_eq!(one.digest("again"), before, "{key}");
        let encodings = [&key, "again"].map(|key| one.say(&format!("OBJECT ENCODING {key}")));
        // A string that was changed where it is counts as raw until it is loaded anew.
        assert!(encodings[0] == encodings[1] || key == "counted", "{key}: {encodings:?}");
    }
}

#[test]
fn tenon_and_redis_load_what_the_other_has_dumped() {
    let Some(mut redis) = Side::redis() else { return };
    exchange(&mut Side::tenon(&[]), &mut redis);
    redis.say("FLUSHALL");
    exchange(&mut redis, &mut Side::tenon(&[]));
}

#[test]
fn limits_of_the_receiver_hold() {
    let mut large = Side::tenon(&[
        ("hash-max-listpack-entries", "10000"),
        ("set-max-listpack-entries", "10000"),
        ("set-max-intset-entries", "10000"),
        ("zset-max-listpack-entries", "10000"),
        ("list-max-listpack-size", "-5"),
    ]);
    let mut small = Side::tenon(&[
        ("hash-max-listpack-entries", "0"),
        ("set-max-listpack-entries", "0"),
        ("set-max-intset-entries", "0"),
        ("zset-max-listpack-entries", "0"),
        ("list-max-listpack-size", "1"),
    ]);
    for key in large.fill() {
        let before = large.digest(&key);
        let payload = large.dump(&key);
        assert_eq!(small.call(&[b"RESTORE", key.as_bytes(), b"0", &payload]), Value::Simple(b"OK".to_vec()), "{key}");
        assert_eq!(small.digest(&key), before, "{key}");
        let encoding = small.say(&format!("OBJECT ENCODING {key}"));
        let is_small = matches!(&encoding, Value::Bulk(name) if name == b"listpack" || name == b"intset");
        assert!(!is_small || key == "list-1-0", "{key}: {encoding:?}");
        let payload = small.dump(&key);
        assert_eq!(large.call(&[b"RESTORE", b"again", b"0", &payload, b"REPLACE"]), Value::Simple(b"OK".to_vec()));
        assert_eq!(large.digest("again"), before, "{key}");
    }
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn error(text: &str) -> Value {
    Value::Error(text.as_bytes().to_vec())
}

/// Moves every key from one side to the other.
fn migrate_all(one: &mut Side, other: &mut Side, options: &str) {
    let keys = one.fill();
    let before: Vec<Vec<Value>> = keys.iter().map(|key| one.digest(key)).collect();
    let port = other.port();
    let (single, many) = keys.split_at(5);
    for key in single {
        assert_eq!(one.say(&format!("MIGRATE 127.0.0.1 {port} {key} 0 60000{options}")), ok(), "{key}");
    }
    let line = format!("MIGRATE 127.0.0.1 {port}  0 60000{options} KEYS {}", many.join(" "));
    assert_eq!(one.say(&line), ok());
    assert_eq!(one.say("DBSIZE"), Value::Int(0));
    assert_eq!(other.say("DBSIZE"), Value::Int(keys.len() as i64));
    for (key, before) in keys.iter().zip(before) {
        assert_eq!(other.digest(key), before, "{key}");
    }
}

#[test]
fn tenon_and_redis_migrate_to_each_other() {
    let Some(mut redis) = Side::redis() else { return };
    let mut tenon = Side::tenon(&[]);
    migrate_all(&mut tenon, &mut redis, "");
    redis.say("FLUSHALL");
    migrate_all(&mut redis, &mut tenon, "");
}

#[test]
fn what_migrate_was_told_is_done() {
    let mut one = Side::tenon(&[]);
    let mut other = Side::tenon(&[("requirepass", "secret")]);
    assert_eq!(other.say("AUTH secret"), ok());
    assert_eq!(other.say("ACL SETUSER mover on >moving ~* +@all"), ok());
    let to = format!("MIGRATE 127.0.0.1 {}", other.port());
    assert_eq!(one.say("SET k v EX 1000"), ok());
    // Whose server it is.
    let refused = |answer: Value| match answer {
        Value::Error(text) => String::from_utf8(text).expect("errors are text"),
        other => panic!("{other:?} is no error"),
    };
    assert!(refused(one.say(&format!("{to} k 0 5000"))).starts_with("ERR Target instance replied with error: NOAUTH"));
    let wrong = refused(one.say(&format!("{to} k 0 5000 AUTH wrong")));
    assert!(wrong.starts_with("ERR Target instance replied with error: WRONGPASS"), "{wrong}");
    assert_eq!(one.say("EXISTS k"), Value::Int(1));
    // COPY leaves it here; then the key is there already.
    assert_eq!(one.say(&format!("{to} k 3 5000 COPY AUTH secret")), ok());
    let busy = error("ERR Target instance replied with error: BUSYKEY Target key name already exists.");
    assert_eq!(one.say(&format!("{to} k 3 5000 AUTH2 mover moving")), busy);
    assert_eq!(one.say("GET k"), Value::Bulk(b"v".to_vec()));
    assert_eq!(one.say("SET k w KEEPTTL"), ok());
    assert_eq!(one.say(&format!("{to} k 3 5000 REPLACE AUTH2 mover moving")), ok());
    assert_eq!(one.say("EXISTS k"), Value::Int(0));
    assert_eq!(other.say("SELECT 3"), ok());
    assert_eq!(other.say("GET k"), Value::Bulk(b"w".to_vec()));
    assert!(matches!(other.say("TTL k"), Value::Int(900..=1000)));
    // Of several keys those that can go go.
    assert_eq!(one.say("MSET a 1 k 2 b 3"), ok());
    assert_eq!(one.say(&format!("{to}  3 5000 AUTH secret KEYS a missing k b")), busy);
    assert_eq!(one.say("MGET a k b"), Value::Array(vec![Value::NullBulk, Value::Bulk(b"2".to_vec()), Value::NullBulk]));
    // A database that is not there.
    let none = error("ERR Target instance replied with error: ERR DB index is out of range");
    assert_eq!(one.say(&format!("{to} k 99 5000 AUTH secret")), none);
    assert_eq!(one.say("EXISTS k"), Value::Int(1));
    // Passwords are kept out of the slow log.
    assert_eq!(one.say("CONFIG SET slowlog-log-slower-than 0"), ok());
    one.say(&format!("{to} none 0 5000 AUTH2 mover moving"));
    let log = format!("{:?}", one.say("SLOWLOG GET 10"));
    assert!(log.contains("MIGRATE") || log.contains("77, 73, 71"), "the log has the command");
    let hidden = format!("{:?}", Value::Bulk(b"moving".to_vec()));
    assert!(!log.contains(&hidden), "and not the password");
}

/// A server that answers nothing until it is told to, then `+OK` to every command.
struct Slow {
    port: u16,
    /// A message for each answer to give.
    answers: std::sync::mpsc::Sender<()>,
    /// Every command that came, with its first two words.
    commands: std::sync::mpsc::Receiver<String>,
}

impl Slow {
    fn start() -> Slow {
        use std::io::Read as _;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (answers, wanted) = std::sync::mpsc::channel();
        let (came, commands) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let (mut input, mut room) = (Vec::new(), [0; 4096]);
                'connection: loop {
                    while let Some((command, len)) = first_command(&input) {
                        input.drain(..len);
                        let Ok(()) = came.send(command) else { return };
                        let Ok(()) = wanted.recv() else { return };
                        if stream.write_all(b"+OK\r\n").is_err() {
                            break 'connection;
                        }
                    }
                    match stream.read(&mut room) {
                        Ok(0) | Err(_) => break,
                        Ok(len) => input.extend_from_slice(&room[..len]),
                    }
                }
            }
        });
        Slow { port, answers, commands }
    }

    fn next(&self) -> String {
        self.commands.recv_timeout(Duration::from_secs(60)).expect("a command comes")
    }

    fn answer(&self) {
        self.answers.send(()).expect("the server is there");
    }
}

/// The first two words of the first command in these bytes, and its length.
fn first_command(input: &[u8]) -> Option<(String, usize)> {
    let line = |at: usize| -> Option<(usize, usize)> {
        let end = input[at..].windows(2).position(|two| two == b"\r\n")? + at;
        Some((std::str::from_utf8(&input[at + 1..end]).ok()?.parse().ok()?, end + 2))
    };
    let (count, mut at) = line(0)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let (len, start) = line(at)?;
        let word = input.get(start..start + len)?;
        words.push(String::from_utf8_lossy(word).into_owned());
        at = start + len + 2;
    }
    (at <= input.len()).then(|| (words[..2].join(" "), at))
}

#[test]
fn a_slow_target_stops_nobody_and_gets_what_changes_meanwhile() {
    let slow = Slow::start();
    let mut one = Side::tenon(&[("workers", "1")]);
    let mut others =
        Resp::connect_to(one.server.address(Dialect::Redis).expect("a port"), PATIENCE).expect("connected");
    let mut other = |line: &str| {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        others.call(&words).expect("an answer")
    };
    assert_eq!(one.say("MSET changed 1 kept 1 deleted 1"), ok());
    let send = format!("MIGRATE 127.0.0.1 {}  0 60000 KEYS changed kept deleted", slow.port);
    let words: Vec<&[u8]> = send.split(' ').map(str::as_bytes).collect();
    one.client.send(&words).expect("sent");
    assert_eq!(slow.next(), "SELECT 0");
    // The worker has one client in MIGRATE and serves the other, the keys that are on their way among all.
    assert_eq!(other("GET changed"), Value::Bulk(b"1".to_vec()));
    assert_eq!(other("SET changed 2"), ok());
    assert_eq!(other("DEL deleted"), Value::Int(1));
    for expected in ["RESTORE changed", "RESTORE kept", "RESTORE deleted"] {
        slow.answer();
        assert_eq!(slow.next(), expected);
    }
    slow.answer();
    // What has changed goes once more, what is gone goes there too.
    assert_eq!(slow.next(), "SELECT 0");
    assert_eq!(other("MGET changed kept"), Value::Array(vec![Value::Bulk(b"2".to_vec()), Value::NullBulk]));
    slow.answer();
    assert_eq!(slow.next(), "RESTORE changed");
    slow.answer();
    assert_eq!(slow.next(), "DEL deleted");
    slow.answer();
    assert_eq!(one.client.receive().expect("an answer"), ok());
    assert_eq!(other("DBSIZE"), Value::Int(0));
}

#[test]
fn a_target_that_says_nothing_times_out_and_the_key_stays() {
    let slow = Slow::start();
    let mut one = Side::tenon(&[("workers", "1")]);
    assert_eq!(one.say("SET k v"), ok());
    let answer = one.say(&format!("MIGRATE 127.0.0.1 {} k 0 50", slow.port));
    assert_eq!(answer, error("IOERR error or timeout reading from target instance"));
    assert_eq!(one.say("GET k"), Value::Bulk(b"v".to_vec()));
    // A client that goes in the middle leaves everything as it is.
    drop(slow);
    let slow = Slow::start();
    let send = format!("MIGRATE 127.0.0.1 {} k 0 60000", slow.port);
    let words: Vec<&[u8]> = send.split(' ').map(str::as_bytes).collect();
    one.client.send(&words).expect("sent");
    assert_eq!(slow.next(), "SELECT 0");
    one.client = Resp::connect_to(one.server.address(Dialect::Redis).expect("a port"), PATIENCE).expect("connected");
    while !matches!(one.say("CLIENT LIST"), Value::Bulk(list) if list.iter().filter(|byte| **byte == b'\n').count() == 1)
    {
        std::thread::yield_now();
    }
    slow.answer();
    assert_eq!(slow.next(), "RESTORE k");
    slow.answer();
    assert_eq!(one.say("GET k"), Value::Bulk(b"v".to_vec()));
}

#[test]
fn flags_of_memcached_clients_and_deadlines_of_members_travel_along() {
    let mut one = Side::tenon(&[]);
    let mut other = Side::tenon(&[]);
    let connect = |side: &Side| {
        let address = side.server.address(Dialect::Memcache).expect("a memcached port");
        Memcache::connect_to(address, PATIENCE).expect("connected")
    };
    connect(&one).set(b"item", b"value", 123_456, 0).expect("stored");
    let payload = one.dump("item");
    assert_eq!(other.call(&[b"RESTORE", b"item", b"0", &payload]), ok());
    let item = connect(&other).get(b"item").expect("an answer").expect("the item");
    assert_eq!((item.flags, &item.value[..]), (123_456, &b"value"[..]));
    if let Some(mut redis) = Side::redis() {
        assert_eq!(redis.call(&[b"RESTORE", b"item", b"0", &payload]), ok());
        assert_eq!(redis.say("GET item"), Value::Bulk(b"value".to_vec()));
    }

    for (fill, expire, ttl) in [
        ("HSET k a 1 b 2", "HEXPIRE k 1000 FIELDS 1 a", "HTTL k FIELDS 2 a b"),
        ("SADD k a b", "SEXPIRE k 1000 MEMBERS 1 a", "STTL k MEMBERS 2 a b"),
        ("ZADD k 1 a 2 b", "ZEXPIRE k 1000 MEMBERS 1 a", "ZTTL k MEMBERS 2 a b"),
    ] {
        one.say("DEL k");
        assert_eq!(one.say(fill), Value::Int(2), "{fill}");
        assert_eq!(one.say(expire), Value::Array(vec![Value::Int(1)]), "{expire}");
        let payload = one.dump("k");
        assert_eq!(other.call(&[b"RESTORE", b"k", b"0", &payload, b"REPLACE"]), ok(), "{fill}");
        let left = other.say(ttl);
        let is_right =
            matches!(&left, Value::Array(left) if matches!(left[..], [Value::Int(900..=1000), Value::Int(-1)]));
        assert!(is_right, "{ttl}: {left:?}");
        // By MIGRATE too.
        one.say("RENAME k moved");
        assert_eq!(one.say(&format!("MIGRATE 127.0.0.1 {} moved 0 5000 REPLACE", other.port())), ok());
        other.say("RENAME moved k");
        assert!(
            matches!(&other.say(ttl), Value::Array(left) if matches!(left[..], [Value::Int(900..=1000), _])),
            "{ttl}"
        );
    }
}
