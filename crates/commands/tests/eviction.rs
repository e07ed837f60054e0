//! What goes at the limit: no more than has to, although what has gone is freed later, and the worst of the keys that there are,
//! although they are few. What is in use is the process's: one test at a time.

mod one_worker;

use one_worker::Server;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tenon_engine::persist::rdb::file::{FileOptions, Form};
use tenon_engine::reaper::Garbage;
use tenon_engine::snapshot::SnapshotOptions;
use tenon_engine::wire::rdb::Compression;
use tenon_engine::wire::resp::Value;

static ALONE: Mutex<()> = Mutex::new(());

fn run(server: &mut Server, words: &[&[u8]]) -> Value {
    let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
    server.run(&words)
}

/// A number that INFO tells.
fn told(server: &mut Server, section: &str, name: &str) -> u64 {
    let Value::Bulk(text) = run(server, &[b"INFO", section.as_bytes()]) else { panic!("INFO gives text") };
    let text = String::from_utf8(text).expect("INFO gives text");
    let number = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    number.expect("INFO tells it").parse().expect("it is a number")
}

/// Sets the limit to what is in use.
fn limit(server: &mut Server) {
    let used = told(server, "memory", "used_memory").to_string();
    run(server, &[b"CONFIG", b"SET", b"maxmemory", used.as_bytes()]);
}

/// What holds up whoever frees it.
struct Stuck(Receiver<()>);

impl Drop for Stuck {
    fn drop(&mut self) {
        let _ = self.0.recv();
    }
}

#[test]
fn what_is_freed_later_is_evicted_once() {
    const HASHES: usize = 60;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut server = Server::new(1, &[("maxmemory-policy", "allkeys-random")]);
    for hash in 0..HASHES {
        let name = format!("hash{hash}");
        let fields: Vec<String> = (0..2_000).map(|field| format!("field-{field:028}")).collect();
        let mut words: Vec<&[u8]> = vec![b"HSET", name.as_bytes()];
        fields.iter().for_each(|field| words.extend([field.as_bytes(), b"a value of some length"]));
        assert_eq!(run(&mut server, &words), Value::Int(2_000));
    }
    let (go_on, stuck) = channel();
    server.engine.reaper.free(vec![Garbage::Part(Box::new(Stuck(stuck)), 0)]);
    limit(&mut server);
    let mut written = 0;
    while told(&mut server, "stats", "evicted_keys") == 0 {
        written += 1;
        run(&mut server, &[b"APPEND", b"key", &[b'x'; 100]]);
        assert!(written < 100_000, "nothing is evicted");
    }
    for _ in 0..5 {
        run(&mut server, &[b"APPEND", b"key", &[b'x'; 100]]);
        server.engine.tick(&mut server.worker);
    }
    let evicted = told(&mut server, "stats", "evicted_keys");
    assert!(evicted <= 3, "{evicted} keys");
    assert!(told(&mut server, "memory", "lazyfree_pending_objects") >= 1);
    drop(go_on);
    // What is in use is the other test's from here.
    server.engine.reaper.wait_until(|| false, Duration::from_secs(60));
}

#[test]
fn what_was_flushed_and_is_not_saved_yet_has_nothing_else_go() {
    const KEYS: usize = 5_000;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for policy in ["allkeys-lru", "noeviction"] {
        let mut server = Server::new(1, &[("maxmemory-policy", policy)]);
        let ok = Value::Simple(b"OK".to_vec());
        for key in 0..2 * KEYS {
            assert_eq!(run(&mut server, &[b"SET", format!("old{key}").as_bytes(), &[b'x'; 1_000]]), ok);
        }
        limit(&mut server);
        let file = FileOptions { form: Form::Rdb, compression: Compression::Off, has_checksum: false };
        let options = SnapshotOptions { file, is_log_base: false };
        let begun = server.engine.begin_snapshot(&mut server.worker, options, |_| ()).expect("there is no other one");
        run(&mut server, &[b"FLUSHDB"]);
        for key in 0..KEYS {
            let set = run(&mut server, &[b"SET", format!("key{key}").as_bytes(), &[b'x'; 1_000]]);
            assert_eq!(set, ok, "{policy}, key {key}");
        }
        assert_eq!(run(&mut server, &[b"DBSIZE"]), Value::Int(KEYS as i64), "{policy}");
        begun.give_up(&server.engine);
        server.engine.reaper.wait_until(|| false, Duration::from_secs(60));
    }
}

/// Evicts of so many keys of which half are as good as new; gives how many have gone, and of those.
fn evicted_of(keys: usize, policy: &str, samples: &str, shards: &str) -> (usize, usize) {
    let mut server =
        Server::new(1, &[("maxmemory-policy", policy), ("maxmemory-samples", samples), ("shards", shards)]);
    run(&mut server, &[b"SET", b"one", &[b'x'; 10_000]]);
    let Value::Bulk(payload) = run(&mut server, &[b"DUMP", b"one"]) else { panic!("there is one") };
    run(&mut server, &[b"DEL", b"one"]);
    for key in 0..keys {
        let (name, is_old) = (format!("key{key}"), key % 2 == 0);
        let (idle, ttl) = if is_old { (b"2000", b"100000") } else { (b"1000", b"900000") };
        let words: [&[u8]; 6] = [b"RESTORE", name.as_bytes(), ttl, &payload, b"IDLETIME", idle];
        assert_eq!(run(&mut server, &words), Value::Simple(b"OK".to_vec()));
    }
    limit(&mut server);
    for key in 0..keys * 5 / 12 {
        run(&mut server, &[b"SET", format!("more{key}").as_bytes(), &[b'x'; 10_000]]);
    }
    let is_there =
        |server: &mut Server, key: usize| run(server, &[b"EXISTS", format!("key{key}").as_bytes()]) == Value::Int(1);
    let left: Vec<usize> = (0..keys).filter(|key| is_there(&mut server, *key)).collect();
    (keys - left.len(), keys / 2 - left.iter().filter(|key| **key % 2 == 1).count())
}

#[test]
fn of_few_keys_the_worst_go() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for policy in ["allkeys-lru", "volatile-lru", "volatile-ttl", "allkeys-tenon"] {
        for (keys, samples, shards) in [(600, "10", "4096"), (60, "10", "4096"), (40, "64", "4096"), (12, "5", "16")] {
            let (gone, good) = evicted_of(keys, policy, samples, shards);
            assert!(gone >= keys / 12, "{policy}, {shards}: of {keys}, {gone} are gone");
            // What allkeys-tenon takes first are those that are as bad as the ones before.
            let part = if policy == "allkeys-tenon" { 4 } else { 10 };
            assert!(good <= gone / part, "{policy}, {shards}: of {keys}, {good} of {gone} had been used");
        }
    }
}

#[test]
fn who_writes_or_wants_to_is_an_access() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut server = Server::new(1, &[("maxmemory-policy", "allkeys-lfu")]);
    for key in ["written", "often", "held", "held too", "held by many"] {
        run(&mut server, &[b"SET", key.as_bytes(), b"1"]);
    }
    for _ in 0..1_000 {
        run(&mut server, &[b"SET", b"written", b"2"]);
        run(&mut server, &[b"SET", b"often", b"another", b"EX", b"100"]);
        run(&mut server, &[b"SET", b"held", b"2", b"NX"]);
        run(&mut server, &[b"SETNX", b"held too", b"2"]);
        run(&mut server, &[b"MSETNX", b"held by many", b"2", b"new", b"2"]);
    }
    for key in ["written", "often", "held", "held too", "held by many"] {
        let Value::Int(frequency) = run(&mut server, &[b"OBJECT", b"FREQ", key.as_bytes()]) else { panic!("{key}") };
        assert!(frequency > 10, "{key}: {frequency}");
    }
    // Each is one, in small collections, too.
    run(&mut server, &[b"CONFIG", b"SET", b"lfu-log-factor", b"0", b"lfu-decay-time", b"0"]);
    let told = |server: &mut Server, key: &[u8]| match run(server, &[b"OBJECT", b"FREQ", key]) {
        Value::Int(frequency) => frequency,
        other => panic!("{other:?}"),
    };
    for words in [
        &[&b"SET"[..], b"s", b"1"][..],
        &[b"SET", b"s", b"another", b"EX", b"100"],
        &[b"APPEND", b"s", b"2"],
        &[b"INCRBYFLOAT", b"f", b"1"],
        &[b"HSET", b"h", b"a", b"1"],
        &[b"LPUSH", b"l", b"1"],
        &[b"SADD", b"set", b"a"],
        &[b"ZADD", b"z", b"1", b"a"],
    ] {
        run(&mut server, words);
        let before = told(&mut server, words[1]);
        let changed: Vec<&[u8]> = words.iter().map(|word| if *word == b"a" { b"b" } else { *word }).collect();
        run(&mut server, &changed);
        assert_eq!(told(&mut server, words[1]) - before, 1, "{words:?}");
    }
    // Nor does who looks before it changes something count twice, nor who puts something else in a key's place not at all.
    for words in [
        "RPUSH list a b c",
        "RPUSH other x",
        "SADD one a b c d e",
        "SADD two b",
        "ZADD zset 1 a 2 b 3 c 4 d 5 e",
        "XADD stream 1-1 f v",
        "XGROUP CREATE stream g 0",
        "ZADD place 1 x",
        "SADD union x",
        "SET bits x",
    ] {
        run(&mut server, &words.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    }
    for (words, keys) in [
        ("RPOPLPUSH list other", &["list", "other"][..]),
        ("SMOVE one two a", &["one", "two"]),
        ("SMOVE one two missing", &["one", "two"]),
        ("SPOP one 2", &["one"]),
        ("ZPOPMIN zset", &["zset"]),
        ("ZMPOP 1 zset MAX", &["zset"]),
        ("BZPOPMIN zset 0", &["zset"]),
        ("ZREMRANGEBYRANK zset 0 0", &["zset"]),
        ("XCLAIM stream g c 0 1-1", &["stream"]),
        ("XAUTOCLAIM stream g c 0 0", &["stream"]),
        ("ZRANGESTORE place zset 0 -1", &["place"]),
        ("SUNIONSTORE union one two", &["union"]),
        ("BITOP NOT bits s", &["bits"]),
    ] {
        let before: Vec<i64> = keys.iter().map(|key| told(&mut server, key.as_bytes())).collect();
        run(&mut server, &words.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        for (key, before) in keys.iter().zip(before) {
            assert_eq!(told(&mut server, key.as_bytes()) - before, 1, "{words}: {key}");
        }
    }
    run(&mut server, &[b"CONFIG", b"SET", b"maxmemory-policy", b"allkeys-lru"]);
    run(&mut server, &[b"SET", b"key", b"1"]);
    let Value::Bulk(payload) = run(&mut server, &[b"DUMP", b"key"]) else { panic!("there is one") };
    for words in [
        &[&b"SET"[..], b"old", b"2", b"NX"][..],
        &[b"SETNX", b"old", b"2"],
        &[b"SET", b"old", b"2", b"IFEQ", b"3"],
        &[b"COPY", b"key", b"old"],
        &[b"RENAMENX", b"key", b"old"],
    ] {
        run(&mut server, &[b"RESTORE", b"old", b"0", &payload, b"REPLACE", b"IDLETIME", b"1000"]);
        run(&mut server, words);
        assert_eq!(run(&mut server, &[b"OBJECT", b"IDLETIME", b"old"]), Value::Int(0), "{words:?}");
    }
}

#[test]
fn who_hears_nothing_of_its_own_changes_hears_of_evictions() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut server = Server::new(1, &[("maxmemory-policy", "allkeys-random")]);
    let set = |server: &mut Server, key: usize| {
        let reply = run(server, &[b"SET", format!("key{key}").as_bytes(), &[b'x'; 1_000]]);
        assert_eq!(reply, Value::Simple(b"OK".to_vec()));
    };
    (0..500).for_each(|key| set(&mut server, key));
    limit(&mut server);
    for words in [&[&b"HELLO"[..], b"3"][..], &[b"CLIENT", b"TRACKING", b"ON", b"BCAST", b"NOLOOP"]] {
        run(&mut server, words);
    }
    (500..800).for_each(|key| set(&mut server, key));
    run(&mut server, &[b"HELLO", b"2"]);
    let evicted = told(&mut server, "stats", "evicted_keys");
    let told_of = server.pushes.iter().map(|push| match &push[..] {
        [Value::Bulk(what), Value::Array(keys)] if what == b"invalidate" => keys.len() as u64,
        other => panic!("an invalidation was expected: {other:?}"),
    });
    assert!(evicted > 100, "{evicted} keys");
    assert_eq!(told_of.sum::<u64>(), evicted);
}
