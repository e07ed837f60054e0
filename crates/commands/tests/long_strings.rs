//! What commands that read a long string take beside it, at most: a few bytes of a command must not have it copied time and
//! again. Looks at what is allocated whenever work is counted, and knows nothing of how commands keep what they read.

mod one_worker;

use one_worker::Server;
use std::alloc::System;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenon_engine::ds::memory::{Counting, used};
use tenon_engine::ds::progress;
use tenon_engine::wire::resp::Value;

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting(System);

/// The most that was seen to be allocated.
static MOST: AtomicUsize = AtomicUsize::new(0);

/// What is allocated is the whole process's: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// Runs a command, and gives what it took at most, in bytes, and its answer.
fn taken_by(server: &mut Server, line: &str) -> (usize, Value) {
    let before = used();
    MOST.store(before, Ordering::Relaxed);
    let answer = server.run(&words(line));
    (MOST.load(Ordering::Relaxed).max(used()).saturating_sub(before), answer)
}

fn server() -> Server {
    // The first one stays: the server's own is called no more.
    progress::listen(|_| _ = MOST.fetch_max(used(), Ordering::Relaxed));
    Server::new(27, &[("proto-max-bulk-len", "64mb"), ("slowlog-log-slower-than", "-1")])
}

/// As in Redis an element's weight is a reference.
#[test]
fn sort_keeps_a_long_weight_once() {
    const ELEMENTS: usize = 1_000;
    const LEN: usize = 300_000;
    let _alone = ALONE.lock();
    let mut server = server();
    let text = "x".repeat(LEN);
    for line in [
        format!("SET shared_1 {}", &text[..20_000]),
        format!("SET inline_1 {}", &text[..10_000]),
        format!("SET rope_1 {text}"),
        format!("APPEND rope_1 {text}"),
        format!("SET growing_1 {text}"),
        "SETRANGE growing_1 100000 y".to_owned(),
        format!("HSET hash_1 field {text}"),
        "RPUSH list 2".to_owned(),
        format!("RPUSH list {}", vec!["1"; ELEMENTS].join(" ")),
    ] {
        let answer = server.run(&words(&line));
        assert!(!matches!(answer, Value::Error(_)), "{answer:?}");
    }
    for by in ["shared_*", "inline_*", "rope_*", "growing_*", "hash_*->field"] {
        let (taken, answer) = taken_by(&mut server, &format!("SORT list BY {by} ALPHA DESC"));
        let Value::Array(elements) = answer else { panic!("{by}: {answer:?}") };
        assert_eq!(elements.len(), ELEMENTS + 1);
        assert_eq!(elements.last(), Some(&Value::Bulk(b"2".to_vec())), "it has no weight");
        assert!(taken < 3 * LEN, "{by}: {taken} bytes");
    }
    let (_, answer) = taken_by(&mut server, "SORT list BY rope_* LIMIT 0 1");
    assert_eq!(answer, Value::Error(b"ERR One or more scores can't be converted into double".to_vec()));
    // A number ends at a NUL.
    server.run(&[b"SET".to_vec(), b"rope_1".to_vec(), [&b"-5\0"[..], text.as_bytes()].concat()]);
    let (_, answer) = taken_by(&mut server, "SORT list BY rope_* LIMIT 0 1");
    assert_eq!(answer, Value::Array(vec![Value::Bulk(b"1".to_vec())]));
}

/// As in Redis the header is looked at first, and what follows it where it is needed.
#[test]
fn a_long_string_is_not_copied_to_see_that_it_is_no_sketch() {
    const LEN: usize = 5_000_000;
    const NO_SKETCH: &str = "WRONGTYPE Key is not a valid HyperLogLog string value.";
    const CORRUPT: &str = "INVALIDOBJ Corrupted HLL object detected";
    let _alone = ALONE.lock();
    let mut server = server();
    server.run(&words("PFADD sketch a b c"));
    let dense = b"HYLL\0\0\0\0\0\0\0\0\0\0\0\x80".as_slice();
    let (sparse, counted) = (b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80".as_slice(), b"HYLL\x01".as_slice());
    for (header, count, others) in [
        (b"HYLX".as_slice(), NO_SKETCH, NO_SKETCH),
        (dense, NO_SKETCH, NO_SKETCH),
        (sparse, CORRUPT, CORRUPT),
        (counted, "", CORRUPT),
    ] {
        server.run(&words("DEL long"));
        server.run(&words(&format!("SETRANGE long {LEN} x")));
        server.run(&[b"SETRANGE".to_vec(), b"long".to_vec(), b"0".to_vec(), header.to_vec()]);
        for (command, error) in [
            ("PFCOUNT long", count),
            ("PFCOUNT long sketch", others),
            ("PFADD long a", others),
            ("PFMERGE sketch long", others),
            ("PFDEBUG TODENSE long", others),
        ] {
            let (taken, answer) = taken_by(&mut server, command);
            let expected = if error.is_empty() { Value::Int(0) } else { Value::Error(error.as_bytes().to_vec()) };
            assert_eq!(answer, expected, "{command} of {}", header.escape_ascii());
            assert!(taken < LEN / 10, "{command}: {taken} bytes");
        }
    }
}

/// A few bytes of a command must not have what is stored answered time and again; nor may a script.
#[test]
fn an_answer_is_no_longer_than_a_clients_output_may_be() {
    const LEN: usize = 1_000_000;
    let _alone = ALONE.lock();
    let mut server = server();
    let text = "x".repeat(LEN);
    for line in [
        ["CONFIG", "SET", "client-output-buffer-limit", "normal 3mb 0 0"].map(|word| word.as_bytes().to_vec()).to_vec(),
        words(&format!("SET string {text}")),
        words("RPUSH list g g g g g g"),
        words(&format!("XADD stream 1-1 field {text}")),
        words("XGROUP CREATE stream group 0"),
        words("XREADGROUP GROUP group one STREAMS stream >"),
    ] {
        let answer = server.run(&line);
        assert!(!matches!(answer, Value::Error(_)), "{answer:?}");
    }
    let refused = "ERR the answer would be longer than the 3145728 bytes that it may have";
    let script = "local t = {} for i = 1, tonumber(ARGV[1]) do t[i] = redis.call('GET', KEYS[1]) end return t";
    let script = |count: &str| {
        let words = ["EVAL", script, "1", "string", count];
        words.map(|word| word.as_bytes().to_vec()).to_vec()
    };
    for (short, long) in [
        (words("MGET string string string"), words("MGET string string string string")),
        (words("SORT list LIMIT 0 3 BY nosort GET strin*"), words("SORT list BY nosort GET strin*")),
        (
            words("XREAD STREAMS stream stream stream 0 0 0"),
            words("XREAD STREAMS s stream stream stream stream stream 0 0 0 0 0 0"),
        ),
        (script("3"), script("4")),
    ] {
        let shown = long[0].escape_ascii().to_string();
        let answer = server.run(&short);
        assert!(matches!(&answer, Value::Array(texts) if texts.len() == 3), "{shown}");
        let Value::Error(error) = server.run(&long) else { panic!("{shown} is answered") };
        assert_eq!(String::from_utf8_lossy(&error), refused, "{shown}");
    }
    // What a consumer was given already is not taken back.
    let Value::Array(streams) =
        server.run(&words("XREADGROUP GROUP group one STREAMS stream stream stream stream stream 0 0 0 0 0"))
    else {
        panic!("nothing is given")
    };
    assert_eq!(streams.len(), 4);
}

/// Where memory is used up, what is asked for once is answered, and what is asked for time and again is not.
#[test]
fn with_no_memory_left_each_field_is_answered_once() {
    const LEN: usize = 1_000_000;
    let _alone = ALONE.lock();
    let mut server = server();
    let text = "x".repeat(LEN);
    for field in ["a", "b", "c"] {
        assert_eq!(server.run(&words(&format!("HSET hash {field} {text}"))), Value::Int(1));
    }
    let full = used().to_string();
    assert_eq!(server.run(&words(&format!("CONFIG SET maxmemory {full}"))), Value::Simple(b"OK".to_vec()));
    assert!(matches!(server.run(&words("SET string x")), Value::Error(_)), "nothing more is stored");
    let Value::Array(values) = server.run(&words("HMGET hash a b c none")) else { panic!("it is not answered") };
    assert_eq!(values.iter().filter(|value| **value == Value::Bulk(text.clone().into_bytes())).count(), 3);
    let Value::Error(error) = server.run(&words("HMGET hash a b a")) else { panic!("it is answered") };
    assert!(error.starts_with(b"ERR the answer would be longer than the 1048576 bytes"), "{}", error.escape_ascii());
}
