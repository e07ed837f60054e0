//! Values that go from Tenon to redis-server and back, as payloads, by MIGRATE and in files: nothing is lost on the way. Knows no
//! form in which they go.

mod files;
mod side;
mod values;

use side::{PATIENCE, Side};
use std::io::Write as _;
use std::time::Duration;
use tenon_client::{Memcache, Resp, Stream, Value};
use tenon_testkit::info::field;
use tenon_testkit::patience::{self, wait_for, wait_until};
use tenon_testkit::ports::free_port;
use tenon_testkit::target::Dialect;

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
fn a_key_that_is_named_twice_arrives() {
    let (mut one, mut other) = (Side::tenon(&[]), Side::tenon(&[]));
    assert_eq!(one.say("MSET a 1 b 2"), ok());
    let line = format!("MIGRATE 127.0.0.1 {}  0 60000 REPLACE KEYS a b a a", other.port());
    assert_eq!(one.say(&line), ok());
    assert_eq!(one.say("DBSIZE"), Value::Int(0));
    assert_eq!(other.say("MGET a b"), Value::Array(vec![Value::Bulk(b"1".to_vec()), Value::Bulk(b"2".to_vec())]));
    assert_eq!(one.say(&line), Value::Simple(b"NOKEY".to_vec()));
}

#[test]
fn keys_that_are_sent_to_where_they_are_stay() {
    let mut one = Side::tenon(&[]);
    let to = format!("MIGRATE 127.0.0.1 {}", one.port());
    assert_eq!(one.say("MSET a 1 b 2"), ok());
    // Redis waits for itself until the time is over.
    let nothing_read = error("IOERR error or timeout reading from target instance");
    assert_eq!(one.say(&format!("{to} a 0 5000 REPLACE")), nothing_read);
    assert_eq!(one.say(&format!("{to}  0 5000 REPLACE KEYS a b")), nothing_read);
    assert_eq!(one.say("MGET a b"), Value::Array(vec![Value::Bulk(b"1".to_vec()), Value::Bulk(b"2".to_vec())]));
    // Another database is another place.
    assert_eq!(one.say(&format!("{to} a 3 5000")), ok());
    assert_eq!(one.say("EXISTS a b"), Value::Int(1));
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
        self.commands.recv_timeout(patience::PATIENCE).expect("a command comes")
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
    let mut others = one.another();
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
}

/// Has a client send a key to a slow target, as far as that it has the key and has not said so.
fn send_to(slow: &Slow, client: &mut Resp, key: &str) {
    let send = format!("MIGRATE 127.0.0.1 {} {key} 0 60000", slow.port);
    let words: Vec<&[u8]> = send.split(' ').map(str::as_bytes).collect();
    client.send(&words).expect("sent");
    assert_eq!(slow.next(), "SELECT 0");
    slow.answer();
    assert_eq!(slow.next(), format!("RESTORE {key}"));
}

#[test]
fn a_pause_is_answered_behind_what_migrate_deletes() {
    let slow = Slow::start();
    let mut one = Side::tenon(&[("workers", "1")]);
    assert_eq!(one.say("SET k v"), ok());
    let mut sender = one.another();
    send_to(&slow, &mut sender, "k");
    let mut pauser = one.another();
    pauser.send(&[b"CLIENT", b"PAUSE", b"1000000", b"WRITE"]).expect("sent");
    wait_until("the pause", || field(&mut one.client, "clients", "paused_actions") == "write");
    pauser.set_timeout(Some(Duration::from_millis(50))).expect("it is no timeout of zero");
    pauser.receive().expect_err("the key is to be deleted yet");
    pauser.set_timeout(PATIENCE).expect("it is no timeout of zero");
    slow.answer();
    assert_eq!(pauser.receive().expect("an answer"), ok());
    assert_eq!(one.say("EXISTS k"), Value::Int(0));
    assert_eq!(sender.receive().expect("an answer"), ok());
}

/// The one that comes later would find it gone when the other server has it, and have it deleted there.
#[test]
fn a_key_that_is_on_its_way_is_not_read_by_another_migrate() {
    const NAMES: usize = 30_000;
    let slow = Slow::start();
    let nobody = free_port();
    let mut one = Side::tenon(&[("workers", "2")]);
    let (mut sender, mut late) = (one.another(), one.another());
    // Keys that are not there take it some time to look for.
    let names: String = (0..NAMES).map(|number| format!(" {number}")).collect();
    let line = format!("MIGRATE 127.0.0.1 {nobody}  0 60000 REPLACE KEYS k{names}");
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    for round in 0..20 {
        assert_eq!(one.say("SET k v"), ok());
        send_to(&slow, &mut sender, "k");
        late.send(&words).expect("sent");
        std::thread::sleep(Duration::from_millis(round));
        slow.answer();
        assert_eq!(sender.receive().expect("an answer"), ok());
        let told = late.receive().expect("an answer");
        let is_left_alone = told == Value::Simple(b"NOKEY".to_vec())
            || told == error("TRYAGAIN Another MIGRATE of one of the keys is under way");
        assert!(is_left_alone, "round {round}: {told:?}");
    }
}

#[test]
fn what_is_saved_at_the_end_has_no_key_that_another_server_has_taken() {
    let slow = Slow::start();
    let mut one = Side::tenon(&[("workers", "1"), ("save", "3600 1")]);
    assert_eq!(one.say("MSET stays-here 1 goes-away 2"), ok());
    let mut sender = one.another();
    send_to(&slow, &mut sender, "goes-away");
    one.another().send(&[b"SHUTDOWN"]).expect("sent");
    wait_until("the end", || field(&mut one.client, "clients", "paused_reason") == "shutdown_in_progress");
    slow.answer();
    assert_eq!(sender.receive().expect("an answer"), ok());
    let status = one.server.wait_for_end(patience::PATIENCE).expect("it ends");
    assert!(status.success(), "{}", one.server.log());
    let saved = std::fs::read(one.server.folder().join("dump.rdb")).expect("it was saved");
    let has = |key: &[u8]| saved.windows(key.len()).any(|window| window == key);
    assert!(has(b"stays-here") && !has(b"goes-away"));
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

#[test]
fn a_key_that_the_target_has_taken_goes_although_its_client_is_gone() {
    let slow = Slow::start();
    let mut one = Side::tenon(&[("workers", "1")]);
    assert_eq!(one.say("MSET before 1 closed 2 behind 3"), ok());
    let mut tracker = one.another();
    tracker.call(&[b"HELLO", b"3"]).expect("an answer");
    tracker.call(&[b"CLIENT", b"TRACKING", b"ON", b"BCAST"]).expect("an answer");
    // The client leaves before the target has answered, by a reset or as one that only sends no more, or as it does.
    for key in ["before", "closed", "behind"] {
        let mut client = one.another();
        let id = client.call(&[b"CLIENT", b"ID"]).expect("an answer");
        if key == "before" {
            // An answer that nobody reads makes its end a reset.
            client.send(&[b"PING"]).expect("it is sent");
            let Stream::Tcp(stream) = client.stream() else { panic!("it is over TCP") };
            assert_eq!(stream.peek(&mut [0]).expect("it has come"), 1);
        }
        send_to(&slow, &mut client, key);
        if key == "before" {
            drop(client);
            let Value::Int(id) = id else { panic!("{id:?} is no number") };
            let gone = |listed: Value| matches!(listed, Value::Bulk(text) if text.is_empty());
            let id = id.to_string();
            let listed = || one.another().call(&[b"CLIENT", b"LIST", b"ID", id.as_bytes()]).expect("an answer");
            wait_until("the client's end", || gone(listed()));
            slow.answer();
        } else if key == "closed" {
            drop(client);
            slow.answer();
        } else {
            slow.answer();
            drop(client);
        }
        wait_until("the key's end", || {
            one.another().call(&[b"EXISTS", key.as_bytes()]).expect("an answer") == Value::Int(0)
        });
        // Whoever keeps it hears of that.
        let stale = Value::Array(vec![Value::Bulk(key.into())]);
        let told = Value::Push(vec![Value::Bulk(b"invalidate".to_vec()), stale]);
        let heard = wait_for("what is told", || {
            tracker.call(&[b"PING"]).expect("an answer");
            tracker.take_push()
        });
        assert_eq!(heard, told);
    }
    assert_eq!(one.say("DBSIZE"), Value::Int(0));
}
