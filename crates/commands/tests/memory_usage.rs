//! MEMORY USAGE beside what the allocator has really given out, for every type and form, and MEMORY LARGEST beside a look
//! at all keys. Knows the commands that fill a key, and nothing of how it is kept.

mod one_worker;

use one_worker::{Random, Server};
use std::alloc::System;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use tenon_engine::allocator::Allocator;
use tenon_engine::ds::memory::{Counting, used};
use tenon_engine::wire::resp::Value;

/// As in the server: MEMORY USAGE is compared with what is counted.
#[global_allocator]
static ALLOCATOR: Counting<System> = Counting(System);

/// What is allocated is the whole process's: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// How far MEMORY USAGE may be from the truth.
const TOLERANCE: f64 = 0.15;

fn words<const N: usize>(words: [&str; N]) -> Vec<Vec<u8>> {
    words.map(|word| word.as_bytes().to_vec()).to_vec()
}

fn usage(server: &mut Server, key: &str) -> usize {
    match server.run(&words(["MEMORY", "USAGE", key])) {
        Value::Int(bytes) => bytes as usize,
        other => panic!("{key}: {other:?}"),
    }
}

/// Fills `keys` keys with `elements` elements of about `bytes` bytes each by a command, whose further arguments `element`
/// gives, and holds the sum of what they are said to take against what was allocated; adds what is too far off. The test
/// harness allocates as well, now and then: what is off for that is not off again.
fn check(
    problems: &mut Vec<String>,
    command: &str,
    keys: usize,
    elements: usize,
    element: impl Fn(usize) -> Vec<Vec<u8>>,
) {
    let compare = || compare(command, keys, elements, &element);
    if compare().is_some() {
        problems.extend(compare());
    }
}

/// What is said and what is so, where they differ too much.
fn compare(command: &str, keys: usize, elements: usize, element: &impl Fn(usize) -> Vec<Vec<u8>>) -> Option<String> {
    // A machine that is busy makes commands slow, and each of those would be kept with its arguments.
    let mut server = Server::new(1, &[("proto-max-bulk-len", "64mb"), ("slowlog-log-slower-than", "-1")]);
    // What a first command allocates for good is no key's.
    server.run(&words(["RPUSH", "first", "element"]));
    server.run(&words(["SET", "second", "value"]));
    let before = used();
    let names: Vec<String> = (0..keys).map(|key| format!("key:{key:06}")).collect();
    for name in &names {
        // An entry of a stream is a command of its own.
        let at_once = if command == "XADD" { 1 } else { 100 };
        for from in (0..elements).step_by(at_once) {
            let mut call = vec![command.as_bytes().to_vec(), name.as_bytes().to_vec()];
            (from..elements.min(from + at_once)).for_each(|index| call.extend(element(index)));
            let answer = server.run(&call);
            assert!(!matches!(answer, Value::Error(_)), "{command}: {answer:?}");
        }
    }
    server.worker.sweep();
    let own: usize = names.iter().map(String::capacity).sum::<usize>() + names.capacity() * size_of::<String>();
    let real = used().saturating_sub(before).saturating_sub(own);
    let said: usize = names.iter().map(|name| usage(&mut server, name)).sum();
    let off = said as f64 / real as f64 - 1.0;
    (off.abs() > TOLERANCE).then(|| {
        let each = (said / keys, real / keys);
        format!("{command}, {keys} keys of {elements}: said and really a key {each:?}: {off:+.3}")
    })
}

fn text(index: usize, bytes: usize) -> Vec<u8> {
    let mut text = format!("{index:08}").into_bytes();
    text.resize(bytes.max(8), b'x');
    text
}

#[test]
fn memory_usage_is_near_the_truth_for_every_type() {
    let _alone = ALONE.lock();
    let mut problems = Vec::new();
    let mut check = |command: &str, keys, elements, element: &dyn Fn(usize) -> Vec<Vec<u8>>| {
        check(&mut problems, command, keys, elements, element);
    };
    // Strings from a few bytes to chunks.
    for (keys, bytes) in [(5_000, 10), (5_000, 200), (2_000, 5_000), (100, 100_000), (20, 1_000_000), (3, 5_000_000)] {
        check("SET", keys, 1, &|index| vec![text(index, bytes)]);
    }
    check("SET", 5_000, 1, &|_| vec![b"12345".to_vec()]);
    // Each collection in its key's entry, as an object that is still packed, and large; with short and long elements.
    for (keys, elements, bytes) in [(2_000, 10, 10), (500, 100, 60), (1, 20_000, 10), (1, 5_000, 300), (1, 50, 200_000)]
    {
        check("RPUSH", keys, elements, &|index| vec![text(index, bytes)]);
        check("SADD", keys, elements, &|index| vec![text(index, bytes)]);
        check("HSET", keys, elements, &|index| vec![text(index, 8), text(index, bytes)]);
        check("ZADD", keys, elements, &|index| vec![format!("{index}.5").into_bytes(), text(index, bytes)]);
    }
    for (keys, elements, bytes) in [(500, 10, 10), (100, 200, 60), (1, 20_000, 10), (1, 100, 100_000)] {
        check("XADD", keys, elements, &|index| vec![b"*".to_vec(), b"field".to_vec(), text(index, bytes)]);
    }
    for (keys, elements) in [(2_000, 10), (100, 500), (1, 50_000)] {
        check("SADD", keys, elements, &|index| vec![(index * 70_000).to_string().into_bytes()]);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// What groups of streams take: entries that wait to be acknowledged, consumers, and the groups themselves.
#[test]
fn memory_usage_of_groups_is_near_the_truth() {
    const COUNT: usize = 20_000;
    let _alone = ALONE.lock();
    let mut server = Server::new(1, &[("slowlog-log-slower-than", "-1")]);
    let run = |server: &mut Server, line: &str| {
        let answer = server.run(&line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>());
        assert!(!matches!(answer, Value::Error(_)), "{line}: {answer:?}");
    };
    (1..=COUNT).for_each(|ms| run(&mut server, &format!("XADD s {ms}-1 f v")));
    run(&mut server, "XGROUP CREATE s g 0");
    let fills: [(&str, &dyn Fn(usize) -> String); 3] = [
        ("pending entries", &|_| "XREADGROUP GROUP g c COUNT 100 STREAMS s >".to_owned()),
        ("consumers", &|number| format!("XGROUP CREATECONSUMER s g consumer:{number:08}")),
        ("groups", &|number| format!("XGROUP CREATE s group:{number:08} 0")),
    ];
    for (what, fill) in fills {
        let before = (usage(&mut server, "s"), used());
        let times = if what == "pending entries" { COUNT / 100 } else { COUNT };
        (0..times).for_each(|number| run(&mut server, &fill(number)));
        server.worker.sweep();
        let said = usage(&mut server, "s") - before.0;
        let off = said as f64 / (used() - before.1) as f64 - 1.0;
        assert!(off.abs() < TOLERANCE, "{what}: {said} bytes are said, which is {off:+.3}");
    }
}

fn field<'a>(pairs: &'a [Value], wanted: &str) -> &'a Value {
    let at = pairs.iter().position(|item| *item == Value::Bulk(wanted.as_bytes().to_vec()));
    &pairs[at.unwrap_or_else(|| panic!("{wanted} is missing")) + 1]
}

/// What MEMORY LARGEST says: each key and its bytes.
fn largest(server: &mut Server, count: usize) -> Vec<(Vec<u8>, i64)> {
    let Value::Array(rows) = server.run(&words(["MEMORY", "LARGEST", "COUNT", &count.to_string()])) else {
        panic!("MEMORY LARGEST gives a list")
    };
    let row = |row: &Value| match row {
        Value::Array(pairs) => match (field(pairs, "key"), field(pairs, "bytes")) {
            (Value::Bulk(key), Value::Int(bytes)) => (key.clone(), *bytes),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    rows.iter().map(row).collect()
}

#[test]
fn the_largest_keys_are_those_that_a_look_at_all_keys_finds() {
    let _alone = ALONE.lock();
    let mut server = Server::new(3, &[("proto-max-bulk-len", "64mb")]);
    let mut random = Random(7);
    for step in 0..6_000 {
        let key = format!("k{}", random.below(400));
        let bytes = 1 << random.below(16);
        let value = String::from_utf8(text(step, bytes)).expect("it is text");
        let many = (random.below(8) + 1).to_string();
        let other = format!("k{}", random.below(400));
        const STEPS: [&str; 12] =
            ["RPUSH", "RPUSH", "RPUSH", "LPOP", "DEL", "HSET", "APPEND", "SET", "RENAME", "ZADD", "SADD", "tick"];
        let command = random.one_of(&STEPS);
        _ = match command {
            "RPUSH" => server.run(&words([command, &key, &value, &value])),
            "LPOP" => server.run(&words([command, &key, &many])),
            "DEL" => server.run(&words([command, &key])),
            "HSET" => server.run(&words([command, &key, &value[..8], &value])),
            "SET" => server.run(&words([command, &key, &value.repeat(3)])),
            "RENAME" => server.run(&words([command, &key, &other])),
            "ZADD" => server.run(&words([command, &key, "1", &value])),
            "APPEND" | "SADD" => server.run(&words([command, &key, &value])),
            _ => {
                server.engine.tick(&mut server.worker);
                continue;
            }
        };
    }
    let mut all: Vec<(Vec<u8>, i64)> = (0..400)
        .map(|number| format!("k{number}"))
        .filter_map(|key| match server.run(&words(["MEMORY", "USAGE", &key])) {
            Value::Int(bytes) => Some((key.into_bytes(), bytes)),
            _ => None,
        })
        .filter(|&(_, bytes)| bytes >= 16 * 1024)
        .collect();
    all.sort_unstable_by(|(key, bytes), (other, other_bytes)| other_bytes.cmp(bytes).then_with(|| key.cmp(other)));
    assert!(all.len() > 40, "only {} large keys", all.len());
    let found = largest(&mut server, 20);
    assert_eq!(found, all[..20]);
    // Once more, when everything was looked at.
    assert_eq!(largest(&mut server, 20), found);
    server.run(&words(["FLUSHALL"]));
    assert_eq!(largest(&mut server, 20), []);
}

#[test]
fn memory_purge_has_the_allocator_give_back_what_is_free() {
    static RELEASED: AtomicU32 = AtomicU32::new(0);
    fn release() {
        RELEASED.fetch_add(1, Ordering::Relaxed);
    }
    static COLLECTED: AtomicU32 = AtomicU32::new(0);
    fn collect() {
        COLLECTED.fetch_add(1, Ordering::Relaxed);
    }
    let mut server = Server::new(1, &[]);
    server.engine.allocator.get_or_init(|| Allocator { name: "one for tests", collect, release });
    let mut other = server.engine.stand_in(0);
    server.engine.rest(&mut other);
    assert_eq!(COLLECTED.load(Ordering::Relaxed), 0);
    assert_eq!(server.run(&words(["MEMORY", "PURGE"])), Value::Simple(b"OK".to_vec()));
    assert_eq!(RELEASED.load(Ordering::Relaxed), 1);
    // What other threads have follows, once each.
    server.engine.rest(&mut other);
    server.engine.rest(&mut other);
    assert_eq!(COLLECTED.load(Ordering::Relaxed), 1);
}

/// Small collections are changed in an allocation of the worker's own, which grows to what the largest of them needed:
/// that must not become the collection's when it gets one.
#[test]
fn a_small_collection_with_deadlines_takes_no_room_of_larger_ones() {
    let _alone = ALONE.lock();
    for (fill, expire, members) in
        [("HSET", "HPEXPIRE", "FIELDS"), ("SADD", "SPEXPIRE", "MEMBERS"), ("ZADD", "ZPEXPIRE", "MEMBERS")]
    {
        let mut server = Server::new(1, &[]);
        let large: Vec<String> = (0..60).map(|index| format!("{}", 1_000_000_000_000_u64 + index)).collect();
        let mut call = vec![fill, "large"];
        for text in &large {
            call.push(text);
            if fill != "SADD" {
                call.push(text);
            }
        }
        match fill {
            "SADD" => server.run(&words([fill, "small", "1"])),
            _ => server.run(&words([fill, "small", "1", "1"])),
        };
        // The second time it is changed where small collections are.
        for _ in 0..2 {
            server.run(&call.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>());
            call[2] = "1000000000099";
        }
        let answer = server.run(&words([expire, "small", "100000", members, "1", "1"]));
        assert_eq!(answer, Value::Array(vec![Value::Int(1)]), "{expire}");
        let small = usage(&mut server, "small");
        assert!(small <= 400, "{fill}: {small} bytes");
    }
}
