//! The memory limit: a cache that may drop any key takes every write, and keeps the limit whatever is written.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenon_client::{Resp, Value};
use tenon_testkit::info;
use tenon_testkit::patience::{PATIENCE, wait_until};
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

const CLIENTS: usize = 4;
const ROUNDS: usize = 3_000;
/// Written at a time by each client: several events' worth of the room that workers take of one another.
const AT_ONCE: usize = 32;

#[test]
fn no_write_is_refused_where_any_key_may_go() {
    for policy in ["allkeys-lru", "allkeys-random", "allkeys-tenon"] {
        let settings = [("workers", "2"), ("maxmemory", "12mb"), ("maxmemory-policy", policy)];
        let server = Server::tenon(&settings).expect("tenon starts");
        let address = server.address(Dialect::Redis).expect("RESP is spoken");
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                scope.spawn(move || {
                    let mut connection = Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
                    (0..ROUNDS).for_each(|round| write(&mut connection, &format!("{client}:{round}")));
                });
            }
        });
        let mut connection = Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
        let Value::Int(keys) = connection.call(&[b"DBSIZE"]).expect("a reply") else { panic!("it is a number") };
        assert!((keys as usize) < CLIENTS * ROUNDS * AT_ONCE / 2, "{policy}: the limit was never reached, {keys} keys");
    }
}

/// Writes are not refused either while others hold all shards, where nobody could say which keys may go; nor in a transaction,
/// which holds them itself.
#[test]
fn no_write_is_refused_beside_who_holds_everything() {
    for policy in ["allkeys-lru", "allkeys-tenon"] {
        let settings = [("workers", "2"), ("maxmemory", "12mb"), ("maxmemory-policy", policy)];
        let server = Server::tenon(&settings).expect("tenon starts");
        let address = server.address(Dialect::Redis).expect("RESP is spoken");
        let connect = || Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
        let value = vec![b'v'; 3_000];
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (0..ROUNDS).for_each(|round| write(&mut connect(), &format!("a:{round}"))));
            let mut connection = connect();
            for round in 0.. {
                if round >= 300 && writer.is_finished() {
                    break;
                }
                let key = format!("b:{round}");
                let set = b"return redis.call('SET', KEYS[1], ARGV[1])";
                let commands: [&[&[u8]]; 4] = [
                    &[b"MULTI"],
                    &[b"SET", key.as_bytes(), &value],
                    &[b"EVAL", set, b"1", b"script", &value],
                    &[b"EXEC"],
                ];
                let answers = connection.pipeline(&commands).expect("replies");
                let ok = || Value::Simple(b"OK".to_vec());
                assert_eq!(answers[3], Value::Array(vec![ok(), ok()]), "{policy}, round {round}");
            }
        });
    }
}

#[test]
fn long_values_do_not_outrun_the_eviction_of_short_ones() {
    const LIMIT: u64 = 32 << 20;
    const LEN: usize = 500_000;
    const LONG_AT_ONCE: usize = 10;
    for policy in ["allkeys-lru", "allkeys-tenon"] {
        let limit = LIMIT.to_string();
        let settings = [("workers", "1"), ("maxmemory", &*limit), ("maxmemory-policy", policy)];
        let server = Server::tenon(&settings).expect("tenon starts");
        let address = server.address(Dialect::Redis).expect("RESP is spoken");
        let mut connection = Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
        (0..2 * ROUNDS).for_each(|round| write(&mut connection, &round.to_string()));
        let value = vec![b'v'; LEN];
        for round in 0..20 {
            let keys: Vec<String> = (0..LONG_AT_ONCE).map(|number| format!("long:{round}:{number}")).collect();
            set_all(&mut connection, &keys, &value);
            // What was written last may be over it, and what the connection holds.
            let used: u64 = info::field(&mut connection, "memory", "used_memory").parse().expect("it is a number");
            assert!(used < LIMIT + 2 * LEN as u64, "{policy}: {used} bytes after round {round}");
        }
    }
}

#[test]
fn a_lower_limit_during_a_save_leaves_as_much_as_has_room() {
    const LEN: usize = 20 << 20;
    const KEYS: usize = 6;
    for policy in ["allkeys-lru", "allkeys-tenon"] {
        let settings = [("workers", "2"), ("maxmemory", "300mb"), ("maxmemory-policy", policy)];
        let server = Server::tenon(&settings).expect("tenon starts");
        let address = server.address(Dialect::Redis).expect("RESP is spoken");
        let mut connection = Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
        // Nothing that could be compressed.
        let mut state = 1_u32;
        let value: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(LEN)
        .collect();
        let keys: Vec<String> = (0..KEYS).map(|number| number.to_string()).collect();
        set_all(&mut connection, &keys, &value);
        connection.call(&[b"BGSAVE"]).expect("a reply");
        connection.call(&[b"CONFIG", b"SET", b"maxmemory", b"50mb"]).expect("a reply");
        wait_until("the end of the save", || {
            info::field(&mut connection, "persistence", "rdb_bgsave_in_progress") == "0"
        });
        assert_eq!(info::field(&mut connection, "persistence", "rdb_last_bgsave_status"), "ok");
        // What waits to be written frees nothing when it is evicted: that is no reason to evict everything.
        let left = connection.call(&[b"DBSIZE"]).expect("a reply");
        assert!(matches!(left, Value::Int(1..)), "{policy}: {left:?}");
    }
}

/// What is evicted at once is freed behind the commands, and counts until then as what it takes.
#[test]
fn a_lower_limit_takes_no_more_large_values_than_it_must() {
    const KEYS: usize = 10;
    const ELEMENTS: usize = 10_000;
    let fill: [&[&[u8]]; 5] =
        [&[b"RPUSH", b"k"], &[b"SADD", b"k"], &[b"HSET", b"k"], &[b"ZADD", b"k"], &[b"XADD", b"k", b"*"]];
    for begin in fill {
        let name = String::from_utf8_lossy(begin[0]);
        let settings = [("workers", "2"), ("maxmemory", "0"), ("maxmemory-policy", "allkeys-lru")];
        let server = Server::tenon(&settings).expect("tenon starts");
        let address = server.address(Dialect::Redis).expect("RESP is spoken");
        let mut client = Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
        let elements: Vec<String> = (0..ELEMENTS).map(|number| format!("{number}{}", "x".repeat(100))).collect();
        if begin[0] == b"XADD" {
            for some in elements.chunks(100) {
                let fields = some.iter().flat_map(|element| [b"f", element.as_bytes()]);
                client.call(&begin.iter().copied().chain(fields).collect::<Vec<_>>()).expect("a reply");
            }
        } else {
            let words = elements.iter().flat_map(|element| {
                let score = (begin[0] == b"ZADD").then_some(&b"1"[..]);
                let value = (begin[0] == b"HSET").then_some(&b"value"[..]);
                score.into_iter().chain([element.as_bytes()]).chain(value)
            });
            client.call(&begin.iter().copied().chain(words).collect::<Vec<_>>()).expect("a reply");
        }
        for number in 1..KEYS {
            let copied = client.call(&[b"COPY", b"k", number.to_string().as_bytes()]).expect("a reply");
            assert_eq!(copied, Value::Int(1), "{name}");
        }
        let limit = (used_memory(&mut client) * 17 / 20).to_string();
        client.call(&[b"CONFIG", b"SET", b"maxmemory", limit.as_bytes()]).expect("a reply");
        wait_until("an eviction", || info::field(&mut client, "stats", "evicted_keys") != "0");
        wait_until("the limit to be kept", || used_memory(&mut client) <= limit.parse().expect("it is a number"));
        // Two would do.
        let left = client.call(&[b"DBSIZE"]).expect("a reply");
        assert!(matches!(left, Value::Int(left) if left as usize >= KEYS - 3), "{name}: {left:?} are left");
    }
}

#[test]
fn a_long_answer_drives_out_no_data() {
    const ELEMENTS: usize = 80_000;
    const LEN: usize = 100;
    for io in ["epoll", "io-uring"] {
        let settings = [("workers", "1"), ("io", io), ("maxmemory", "64mb"), ("maxmemory-policy", "allkeys-lru")];
        let server = Server::tenon(&settings).expect("tenon starts");
        let address = server.address(Dialect::Redis).expect("RESP is spoken");
        let mut connection = Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
        let element = [b'e'; LEN];
        let push: Vec<&[u8]> = [&b"RPUSH"[..], b"list"].into_iter().chain(vec![&element[..]; ELEMENTS]).collect();
        assert_eq!(connection.call(&push).expect("a reply"), Value::Int(ELEMENTS as i64));
        let evicted = |connection: &mut Resp| -> usize {
            info::field(connection, "stats", "evicted_keys").parse().expect("it is a number")
        };
        let mut round = 0;
        while evicted(&mut connection) == 0 {
            (0..100).for_each(|part| write(&mut connection, &format!("{round}:{part}")));
            // It is used, so others go.
            connection.call(&[b"LLEN", b"list"]).expect("a reply");
            round += 1;
        }
        // Accesses are known to the second: of keys that were used in the same one as the list any may go, and so may that.
        std::thread::sleep(Duration::from_millis(1_100));
        connection.call(&[b"LLEN", b"list"]).expect("a reply");
        let before = evicted(&mut connection);
        for _ in 0..5 {
            let Value::Array(elements) = connection.call(&[b"LRANGE", b"list", b"0", b"-1"]).expect("a reply") else {
                panic!("{io}: the list was driven out")
            };
            assert_eq!(elements.len(), ELEMENTS);
        }
        let gone = evicted(&mut connection) - before;
        // Each answer takes the memory of 50,000 such keys.
        assert!(gone < 25_000, "{io}: {gone} keys went for five answers");
    }
}

/// Has clients write one key again and again until `work` is done.
fn beside_writers(connect: impl Fn() -> Resp, of: &str, work: impl FnOnce()) {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for mut writer in [(); 4].map(|()| connect()) {
            let is_done = &is_done;
            scope.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    let reply = writer.call(&[b"SET", b"new", b"v"]).expect("a reply");
                    assert_eq!(reply, Value::Simple(b"OK".to_vec()), "{of}");
                }
            });
        }
        work();
        is_done.store(true, Ordering::Relaxed);
    });
}

fn used_memory(client: &mut Resp) -> usize {
    info::field(client, "memory", "used_memory").parse().expect("it is a number")
}

/// Sets the limit so many bytes above what is used; gives it.
fn leave_room(client: &mut Resp, bytes: usize) -> usize {
    let limit = used_memory(client) + bytes;
    client.call(&[b"CONFIG", b"SET", b"maxmemory", limit.to_string().as_bytes()]).expect("a reply");
    limit
}

/// Neither the table of LCS is data nor what is on its way to another server.
#[test]
fn what_a_long_call_takes_drives_out_no_data() {
    // It takes what is sent, as far as there is room for it.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("it has one").port().to_string();
    for policy in ["allkeys-lru", "noeviction"] {
        let settings = [("workers", "2"), ("maxmemory", "0"), ("maxmemory-policy", policy)];
        let server = Server::tenon(&settings).expect("tenon starts");
        let address = server.address(Dialect::Redis).expect("RESP is spoken");
        let connect = || Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
        let mut caller = connect();
        let keys: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
        set_all(&mut caller, &keys, &[b'v'; 400]);
        for (key, piece) in [(&b"a"[..], "ab"), (b"b", "bac")] {
            caller.call(&[b"SET", key, piece.repeat(7_000 / piece.len()).as_bytes()]).expect("a reply");
        }
        caller.call(&[b"SETRANGE", b"long", b"60000000", b"v"]).expect("a reply");
        leave_room(&mut caller, 20 << 20);
        beside_writers(connect, policy, || {
            // The table takes 196 MB.
            let matches = caller.call(&[b"LCS", b"a", b"b", b"IDX", b"MINMATCHLEN", b"100000"]);
            assert!(matches!(matches, Ok(Value::Array(_))), "{matches:?}");
            let moved = caller.call(&[b"MIGRATE", b"127.0.0.1", port.as_bytes(), b"long", b"0", b"300"]);
            assert!(matches!(moved, Ok(Value::Error(_))), "{moved:?}");
        });
        assert_eq!(info::field(&mut caller, "stats", "evicted_keys"), "0");
    }
}

#[test]
fn names_that_are_gathered_drive_out_no_keys() {
    const ROUNDS: usize = 100;
    const AT_ONCE: usize = 1_000;
    let settings = [("workers", "2"), ("maxmemory", "0"), ("maxmemory-policy", "allkeys-lru")];
    let server = Server::tenon(&settings).expect("tenon starts");
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    let connect = || Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
    let mut caller = connect();
    // 60 MB of names.
    let name = "n".repeat(600);
    for round in 0..ROUNDS {
        let keys: Vec<String> = (0..AT_ONCE).map(|number| format!("{name}{round}:{number}")).collect();
        set_all(&mut caller, &keys, b"v");
    }
    leave_room(&mut caller, 4 << 20);
    beside_writers(connect, "KEYS", || {
        // An answer would count until it is sent, as in Redis.
        let commands: [&[&[u8]]; 3] =
            [&[b"CLIENT", b"REPLY", b"OFF"], &[b"KEYS", b"nn*"], &[b"CLIENT", b"REPLY", b"ON"]];
        let mut bytes = Vec::new();
        commands.iter().for_each(|command| tenon_client::resp::encode_command(command, &mut bytes));
        caller.send_raw(&bytes).expect("sent");
        assert_eq!(caller.receive().expect("a reply"), Value::Simple(b"OK".to_vec()));
    });
    let evicted: usize = info::field(&mut caller, "stats", "evicted_keys").parse().expect("it is a number");
    assert!(evicted < ROUNDS, "{evicted}");
}

/// What was gathered in slices and sent is nobody's output any more, and data makes room again.
#[test]
fn an_answer_that_was_read_is_forgotten() {
    for io in ["epoll", "io-uring"] {
        let settings = [("workers", "1"), ("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lru"), ("io", io)];
        let server = Server::tenon(&settings).expect("tenon starts");
        let address = server.address(Dialect::Redis).expect("RESP is spoken");
        let connect = || Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
        let (mut client, name) = (connect(), "n".repeat(200));
        for round in 0..40 {
            let keys: Vec<String> = (0..1_000).map(|number| format!("{name}{round}:{number}")).collect();
            set_all(&mut client, &keys, b"v");
        }
        let whole = used_memory(&mut client);
        for _ in 0..5 {
            let mut asking = connect();
            let Value::Array(names) = asking.call(&[b"KEYS", b"*"]).expect("a reply") else { panic!("names") };
            assert_eq!(names.len(), 40_000);
            let Value::Bulk(list) = asking.call(&[b"CLIENT", b"LIST"]).expect("a reply") else { panic!("a list") };
            let list = String::from_utf8_lossy(&list);
            assert!(list.lines().all(|client| client.contains(" omem=0 ")), "{io}: {list}");
            assert_eq!(asking.call(&[b"KEYS", b"none*"]).expect("a reply"), Value::Array(Vec::new()));
        }
        // Five answers would be more than there is to free.
        let limit = whole / 2;
        client.call(&[b"CONFIG", b"SET", b"maxmemory", limit.to_string().as_bytes()]).expect("a reply");
        wait_until("the limit is kept", || used_memory(&mut client) <= limit + (1 << 20));
    }
}

/// What a pipeline has written with its earlier commands is data for its later ones, however long they take.
#[test]
fn a_pipeline_of_long_writes_keeps_the_limit() {
    const COPIES: usize = 300;
    for policy in ["noeviction", "allkeys-lru"] {
        let server = Server::tenon(&[("workers", "2"), ("maxmemory-policy", policy)]).expect("tenon starts");
        let address = server.address(Dialect::Redis).expect("RESP is spoken");
        let mut client = Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
        let element = [b'e'; 100];
        let push: Vec<&[u8]> = [&b"RPUSH"[..], b"big"].into_iter().chain(vec![&element[..]; 10_000]).collect();
        client.call(&push).expect("a reply");
        let limit = leave_room(&mut client, 20 << 20);
        let keys: Vec<String> = (0..COPIES).map(|number| format!("copy:{number}")).collect();
        let commands: Vec<[&[u8]; 3]> = keys.iter().map(|key| [&b"COPY"[..], b"big", key.as_bytes()]).collect();
        let commands: Vec<&[&[u8]]> = commands.iter().map(|command| &command[..]).collect();
        client.pipeline(&commands).expect("replies");
        let used = used_memory(&mut client);
        assert!(used < limit + (8 << 20), "{policy}: {used} bytes where {limit} are allowed");
    }
}

/// Scripts that the server has forgotten take no memory: 500 of EVAL are remembered.
#[test]
fn forgotten_scripts_take_no_memory() {
    const LEN: usize = 50_000;
    const SCRIPTS: usize = 1_000;
    let server = Server::tenon(&[("workers", "2")]).expect("tenon starts");
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    let mut clients: Vec<Resp> =
        (0..4).map(|_| Resp::connect_to(address, Some(PATIENCE)).expect("the server listens")).collect();
    let text = "x".repeat(LEN);
    for number in 0..SCRIPTS {
        let script = format!("return {number} --{text}");
        let result = clients[number % 4].call(&[b"EVAL", script.as_bytes(), b"0"]).expect("a reply");
        assert_eq!(result, Value::Int(number as i64));
    }
    wait_until("what is forgotten to go", || used_memory(&mut clients[0]) < 600 * LEN + (8 << 20));
}

#[test]
fn telling_of_evicted_keys_drives_out_no_others() {
    const KEYS: i64 = 300;
    // With two, another worker's clients have what they are told in their output, and it may count once more.
    let server = Server::tenon(&[("workers", "1"), ("maxmemory", "0")]).expect("tenon starts");
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    let connect = || Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
    let mut connection = connect();
    let mut trackers: Vec<Resp> = (0..10).map(|_| connect()).collect();
    for tracker in &mut trackers {
        tracker.call(&[b"HELLO", b"3"]).expect("a reply");
        tracker.call(&[b"CLIENT", b"TRACKING", b"ON"]).expect("a reply");
    }
    for number in 0..KEYS {
        let key = format!("{number}{}", "x".repeat(1_000));
        set_all(&mut connection, std::slice::from_ref(&key), b"v");
        for tracker in &mut trackers {
            tracker.call(&[b"GET", key.as_bytes()]).expect("a reply");
        }
    }
    let limit = (used_memory(&mut connection) - 40_000).to_string();
    let words: [&[u8]; 6] = [b"CONFIG", b"SET", b"maxmemory-policy", b"allkeys-lru", b"maxmemory", limit.as_bytes()];
    assert_eq!(connection.call(&words).expect("a reply"), Value::Simple(b"OK".to_vec()));
    wait_until("an eviction", || info::field(&mut connection, "stats", "evicted_keys") != "0");
    std::thread::sleep(Duration::from_millis(300));
    // Forty would do; each is told to ten, in more bytes than it had.
    let left = connection.call(&[b"DBSIZE"]).expect("a reply");
    assert!(matches!(left, Value::Int(left) if (200..KEYS).contains(&left)), "{left:?} are left");
}

/// A script's call whose reply or words are too much for the script leaves none of them behind, where nothing would free them
/// but another call of a script.
#[test]
fn a_scripts_call_that_fails_leaves_nothing() {
    const LEN: usize = 30 << 20;
    let server = Server::tenon(&[("workers", "1"), ("script-memory-max", "40mb")]).expect("tenon starts");
    let address = server.address(Dialect::Redis).expect("RESP is spoken");
    let mut connection = Resp::connect_to(address, Some(PATIENCE)).expect("the server listens");
    let value = vec![b'v'; 2 * LEN];
    assert_eq!(connection.call(&[b"SET", b"big", &value]).expect("a reply"), Value::Simple(b"OK".to_vec()));
    let error = connection.call(&[b"EVAL", b"return redis.call('get', 'big')", b"0"]).expect("a reply");
    assert!(matches!(&error, Value::Error(text) if text.starts_with(b"ERR")), "{error:?}");
    let script = b"redis.pcall('set', 'k', ARGV[1], {}) return 1";
    assert_eq!(connection.call(&[b"EVAL", script, b"0", &value[..LEN]]).expect("a reply"), Value::Int(1));
    assert_eq!(connection.call(&[b"DEL", b"big"]).expect("a reply"), Value::Int(1));
    wait_until("all of it to be freed", || used_memory(&mut connection) < LEN / 2);
}

/// Writes keys of a name of their own.
fn write(connection: &mut Resp, name: &str) {
    let keys: Vec<String> = (0..AT_ONCE).map(|number| format!("{name}:{number}")).collect();
    set_all(connection, &keys, &[b'v'; 100]);
}

/// Sets all keys at once, and wants each to be taken.
fn set_all(connection: &mut Resp, keys: &[String], value: &[u8]) {
    let commands: Vec<[&[u8]; 3]> = keys.iter().map(|key| [&b"SET"[..], key.as_bytes(), value]).collect();
    let commands: Vec<&[&[u8]]> = commands.iter().map(|command| &command[..]).collect();
    for answer in connection.pipeline(&commands).expect("replies") {
        assert_eq!(answer, Value::Simple(b"OK".to_vec()));
    }
}
