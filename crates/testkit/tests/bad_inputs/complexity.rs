//! Patterns and names made to cost much time: they end soon enough for a patient client. Knows no algorithm.

use crate::support::{MIB, assert_alive, resp, tenon, within_memory};
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};
use tenon_client::{Resp, Value};

/// One of many names: in DJB2 "Ez" and "FY" have one hash, and so has every string of such pairs.
fn colliding(number: u32) -> Vec<u8> {
    (0..17).flat_map(|bit| if number >> bit & 1 == 0 { *b"Ez" } else { *b"FY" }).collect()
}

fn text(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

#[test]
fn globs_with_many_stars_end() {
    // CVE-2022-36021 and CVE-2024-31228: a matcher that backtracks needs more than the universe's age for these.
    let server = tenon(&[]);
    let mut client = resp(&server);
    let name = "a".repeat(50_000);
    client.call(&[b"SET", name.as_bytes(), b"v"]).expect("stored");
    let stars = "a*".repeat(5_000);
    let questions = "*?".repeat(2_000);
    let classes = "*[a-b]".repeat(2_000);
    let hopeless = [format!("{stars}b"), format!("{questions}b"), format!("{classes}b"), "*".repeat(100_000) + "b"];
    for pattern in &hopeless {
        assert_eq!(client.call(&[b"KEYS", pattern.as_bytes()]).expect("an answer"), Value::Array(vec![]));
        let page = client.call(&[b"SCAN", b"0", b"MATCH", pattern.as_bytes(), b"COUNT", b"1000"]).expect("an answer");
        assert_eq!(page, Value::Array(vec![text("0"), Value::Array(vec![])]));
        assert_eq!(client.call(&[b"CONFIG", b"GET", pattern.as_bytes()]).expect("an answer"), Value::Array(vec![]));
    }
    // The same patterns without their last letter do match.
    let pattern = stars.as_bytes();
    assert_eq!(client.call(&[b"KEYS", pattern]).expect("an answer"), Value::Array(vec![text(&name)]));
    for broken in ["[", "[a", "[a-", "\\", "[\\", "[^", "*[", "[]", "[z-a]"] {
        let answer = client.call(&[b"KEYS", broken.as_bytes()]).expect("an answer");
        assert_eq!(answer, Value::Array(vec![]), "{broken}");
    }
    assert_alive(&server);
}

#[test]
fn globs_with_many_stars_end_wherever_there_is_one() {
    let server = tenon(&[]);
    let (mut client, mut listener) = (resp(&server), resp(&server));
    let name = "a".repeat(20_000);
    let patterns = ["a*".repeat(2_000) + "b", "*?".repeat(1_000) + "b", "*[a-b]".repeat(1_000) + "b"];
    for pattern in &patterns {
        let pattern = pattern.as_bytes();
        let keys = [b"~", pattern].concat();
        let channels = [b"&", pattern].concat();
        assert!(matches!(listener.call(&[b"PSUBSCRIBE", pattern]).expect("an answer"), Value::Array(_)));
        assert_eq!(client.call(&[b"PUBLISH", name.as_bytes(), b"m"]).expect("an answer"), Value::Int(0));
        assert_eq!(client.call(&[b"PUBSUB", b"CHANNELS", pattern]).expect("an answer"), Value::Array(vec![]));
        assert_eq!(
            client.call(&[b"FUNCTION", b"LIST", b"LIBRARYNAME", pattern]).expect("an answer"),
            Value::Array(vec![])
        );
        let filter: &[&[u8]] = &[b"COMMAND", b"LIST", b"FILTERBY", b"PATTERN", pattern];
        assert_eq!(client.call(filter).expect("an answer"), Value::Array(vec![]));
        let user: &[&[u8]] = &[b"ACL", b"SETUSER", b"u", b"reset", b"on", b"+@all", &keys, &channels];
        assert_eq!(client.call(user).expect("an answer"), Value::Simple(b"OK".to_vec()));
        for command in [&[b"GET".as_slice(), name.as_bytes()][..], &[b"SUBSCRIBE", name.as_bytes()]] {
            let tried = [&[b"ACL".as_slice(), b"DRYRUN", b"u"], command].concat();
            let Value::Bulk(answer) = client.call(&tried).expect("an answer") else { panic!("a reason is a text") };
            let text = String::from_utf8_lossy(&answer).into_owned();
            assert!(text.contains(" user has no permissions to access "), "{text}");
        }
        for (fill, scan) in [(&[b"SADD".as_slice(), b"s"][..], b"SSCAN".as_slice()), (&[b"HSET", b"h", b"f"], b"HSCAN")]
        {
            client.call(&[fill, &[name.as_bytes()]].concat()).expect("an answer");
            let page = client.call(&[scan, fill[1], b"0", b"MATCH", pattern]).expect("an answer");
            assert_eq!(page, Value::Array(vec![text("0"), Value::Array(vec![])]));
        }
    }
    assert_alive(&server);
}

#[test]
fn names_that_collide_elsewhere_do_not_collide_here() {
    // Names that share every bit but a few, and those that FNV, DJB2 and CRC16 give one hash: the hash is seeded and
    // looks at everything, so that they are stored as fast as any others. A table that chained them all up would need
    // minutes; that it grows by a bounded amount of memory shows that it is not widened to keep them apart either.
    let server = tenon(&[]);
    let mut client = resp(&server);
    let count = 100_000;
    within_memory(&server, 64 * MIB, || {
        for from in (0..count).step_by(1_000) {
            let names: Vec<Vec<u8>> = (from..from + 1_000).map(colliding).collect();
            let commands: Vec<[&[u8]; 3]> = names.iter().map(|name| [b"SET".as_slice(), name, name]).collect();
            let commands: Vec<&[&[u8]]> = commands.iter().map(|command| command.as_slice()).collect();
            let answers = client.pipeline(&commands).expect("answers");
            assert!(answers.iter().all(|answer| *answer == Value::Simple(b"OK".to_vec())));
        }
    });
    assert_eq!(client.call(&[b"DBSIZE"]).expect("an answer"), Value::Int(i64::from(count)));
    let name = colliding(77_777);
    assert_eq!(client.call(&[b"GET", &name]).expect("an answer"), Value::Bulk(name));
    assert_alive(&server);
}

#[test]
fn elements_that_collide_elsewhere_do_not_collide_here() {
    let server = tenon(&[]);
    let mut client = resp(&server);
    let count = 50_000;
    within_memory(&server, 64 * MIB, || {
        for from in (0..count).step_by(500) {
            let names: Vec<Vec<u8>> = (from..from + 500).map(colliding).collect();
            let call =
                |client: &mut Resp, start: &[&[u8]], before: Option<&'static [u8]>, behind: Option<&'static [u8]>| {
                    let mut words = start.to_vec();
                    for name in &names {
                        words.extend(before);
                        words.push(name);
                        words.extend(behind);
                    }
                    assert_eq!(client.call(&words).expect("an answer"), Value::Int(500));
                };
            call(&mut client, &[b"SADD", b"set"], None, None);
            call(&mut client, &[b"HSET", b"hash"], None, Some(b"v"));
            call(&mut client, &[b"ZADD", b"zset"], Some(b"1"), None);
        }
    });
    let name = colliding(33_333);
    assert_eq!(client.call(&[b"SISMEMBER", b"set", &name]).expect("an answer"), Value::Int(1));
    assert_eq!(client.call(&[b"HGET", b"hash", &name]).expect("an answer"), text("v"));
    assert_eq!(client.call(&[b"ZSCORE", b"zset", &name]).expect("an answer"), text("1"));
    assert_alive(&server);
}

/// The microseconds that a command took on average, from INFO.
fn usec_per_call(client: &mut Resp, command: &str) -> f64 {
    let Value::Bulk(info) = client.call(&[b"INFO", b"commandstats"]).expect("an answer") else {
        panic!("INFO is text")
    };
    let info = String::from_utf8(info).expect("INFO is text");
    let line = info.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:")));
    let field = line.and_then(|line| line.split(',').find_map(|field| field.strip_prefix("usec_per_call=")));
    field.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{command} did not run: {info}"))
}

/// Fills `set` with so many members.
fn fill(client: &mut Resp, count: usize) {
    for from in (0..count).step_by(1_000) {
        let members: Vec<String> = (from..from + 1_000).map(|number| format!("member:{number}")).collect();
        let words = [b"SADD".as_slice(), b"set"].into_iter().chain(members.iter().map(|member| member.as_bytes()));
        client.call(&words.collect::<Vec<_>>()).expect("an answer");
    }
}

#[test]
fn large_values_are_freed_beside_the_commands() {
    let server = tenon(&[]);
    let mut client = resp(&server);
    let count = 300_000;
    let ways: [(&str, &[&[u8]]); 5] = [
        ("del", &[b"DEL", b"set"]),
        ("unlink", &[b"UNLINK", b"set"]),
        ("set", &[b"SET", b"set", b"v"]),
        ("pexpireat", &[b"PEXPIREAT", b"set", b"1"]),
        ("flushall", &[b"FLUSHALL", b"ASYNC"]),
    ];
    for (name, way) in ways {
        // A machine that is busy may stop the server in the middle of a command, but not of each.
        let mut tries = Vec::new();
        let was_quick = (0..5).any(|_| {
            fill(&mut client, count);
            // A look at every member shows what a walk through all of them costs on this machine.
            let all = client.call(&[b"SINTERCARD", b"2", b"set", b"set"]).expect("an answer");
            assert_eq!(all, Value::Int(count as i64));
            let answer = client.call(way).expect("an answer");
            assert!(!matches!(answer, Value::Error(_)), "{name}: {answer:?}");
            let (walk, gone) = (usec_per_call(&mut client, "sintercard"), usec_per_call(&mut client, name));
            client.call(&[b"DEL", b"set"]).expect("an answer");
            client.call(&[b"CONFIG", b"RESETSTAT"]).expect("an answer");
            tries.push((gone, walk));
            gone < walk / 4.0
        });
        assert!(was_quick, "{name}: microseconds, and those of a walk: {tries:?}");
    }
    assert_alive(&server);
}

/// Has `looker` look at all keys, and `other` ask for one again and again until it is answered: how often that is, the longest
/// that it waits, and how long the look takes.
fn served_beside(looker: &mut Resp, other: &mut Resp) -> (usize, Duration, Duration) {
    let begun = Instant::now();
    looker.send(&[b"KEYS", b"*7*7*7*7*"]).expect("sent");
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            looker.receive().expect("an answer");
            done.send(begun.elapsed()).expect("the test goes on");
        });
        let (mut served, mut longest) = (0, Duration::ZERO);
        loop {
            let asked = Instant::now();
            assert!(matches!(other.call(&[b"GET", b"key:77"]).expect("an answer"), Value::Bulk(_)));
            longest = longest.max(asked.elapsed());
            match is_done.try_recv() {
                Ok(took) => return (served, longest, took),
                Err(TryRecvError::Empty) => served += 1,
                Err(TryRecvError::Disconnected) => panic!("there was no answer"),
            }
        }
    })
}

#[test]
fn a_look_at_all_keys_lets_other_workers_go_on() {
    let server = tenon(&[("workers", "2"), ("enable-debug-command", "yes")]);
    // Two clients of different workers.
    let mut clients: Vec<Resp> = (0..8).map(|_| resp(&server)).collect();
    let worker = |client: &mut Resp| {
        let Value::Bulk(info) = client.call(&[b"CLIENT", b"INFO"]).expect("an answer") else { panic!("a text") };
        let info = String::from_utf8(info).expect("it is text");
        info.split(' ').find_map(|field| field.strip_prefix("io-thread=").map(str::to_owned)).expect("a worker")
    };
    let first = worker(&mut clients[0]);
    let other = clients.iter_mut().position(|client| worker(client) != first).expect("both workers have clients");
    let mut other = clients.swap_remove(other);
    let mut looker = clients.swap_remove(0);
    looker.call(&[b"DEBUG", b"POPULATE", b"400000"]).expect("an answer");
    // As often as it takes for all threads to have a core meanwhile.
    let mut tries = Vec::new();
    let goes_on = (0..20).any(|_| {
        let (served, longest, took) = served_beside(&mut looker, &mut other);
        tries.push((served, longest, took));
        served >= 10 && longest < took / 3
    });
    assert!(goes_on, "answers meanwhile, the longest wait for one, and how long the look took: {tries:?}");
    assert_alive(&server);
}

#[test]
fn answers_that_repeat_what_is_stored_are_bounded() {
    let server = tenon(&[("client-output-buffer-limit", "normal 3mb 0 0")]);
    let mut client = resp(&server);
    let long = vec![b'x'; MIB];
    for fill in [
        &[b"SADD", b"set".as_slice(), &long][..],
        &[b"ZADD", b"zset", b"1", &long],
        &[b"HSET", b"hash", b"field", &long],
        &[b"RPUSH", b"list", &long],
    ] {
        assert_eq!(client.call(fill).expect("an answer"), Value::Int(1));
    }
    let mut fields: Vec<&[u8]> = vec![b"HMGET", b"hash"];
    fields.extend([b"field".as_slice(); 10]);
    let asked: [&[&[u8]]; 5] = [
        &[b"SRANDMEMBER", b"set", b"-16000000"],
        &[b"ZRANDMEMBER", b"zset", b"-16000000"],
        &[b"ZRANDMEMBER", b"zset", b"-5", b"WITHSCORES"],
        &[b"HRANDFIELD", b"hash", b"-5", b"WITHVALUES"],
        &fields,
    ];
    let refused = Value::Error(b"ERR the answer would be longer than the 3145728 bytes that it may have".to_vec());
    for command in asked {
        assert_eq!(client.call(command).expect("an answer"), refused);
    }
    let two = client.call(&[b"SRANDMEMBER", b"set", b"-2"]).expect("an answer");
    assert_eq!(two, Value::Array(vec![Value::Bulk(long.clone()), Value::Bulk(long)]));

    // A transaction is done to its end, but what it answers is not.
    client.call(&[b"MULTI"]).expect("an answer");
    for _ in 0..100 {
        client.call(&[b"LRANGE", b"list", b"0", b"-1"]).expect("an answer");
    }
    client.call(&[b"SET", b"done", b"yes"]).expect("an answer");
    assert!(client.call(&[b"EXEC"]).is_err(), "the connection ends");
    assert_eq!(resp(&server).call(&[b"GET", b"done"]).expect("an answer"), text("yes"));
}
