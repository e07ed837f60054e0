//! Long commands count their work as it goes on, each part of it: for what counts nothing the worker's other clients wait where
//! its core is theirs too.

mod one_worker;

use one_worker::Server;
use std::cell::Cell;
use tenon_engine::ds::progress;
use tenon_engine::wire::resp::Value;

/// Elements of each collection.
const LEN: usize = 20_000;

/// Steps from one call of who listens to the next.
const STEPS: usize = 256;

/// What a count of the many elements of a node loses, as it is told of once.
const SPARE: f64 = 0.3;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// Runs a command and gives how many steps it counts for an element, about.
fn steps_of(server: &mut Server, command: &[Vec<u8>]) -> (f64, Value) {
    let before = CALLS.get();
    let reply = server.run(command);
    assert!(!matches!(reply, Value::Error(_)), "{}: {reply:?}", command[0].escape_ascii());
    (((CALLS.get() - before) * STEPS) as f64 / LEN as f64, reply)
}

fn server() -> Server {
    // The first one stays: the server's own is called no more.
    progress::listen(|_| CALLS.set(CALLS.get() + 1));
    let mut server = Server::new(7, &[("stream-node-max-entries", "16"), ("list-max-listpack-size", "16")]);
    let mut run = |line: String| _ = steps_of(&mut server, &words(&line));
    run("XGROUP CREATE stream group 0 MKSTREAM".to_owned());
    run("XGROUP CREATE stream crowd 0".to_owned());
    for number in 0..LEN {
        run(format!("RPUSH list {}", 100_000 + number));
        run(format!("GEOADD places {} {} place{number}", number as f64 / 1e3, number as f64 / 1e3));
        run(format!("XADD stream {}-1 field value", 1 + number));
        run(format!("XGROUP CREATECONSUMER stream crowd consumer{number}"));
    }
    run(format!("XREADGROUP GROUP group one COUNT {LEN} STREAMS stream >"));
    server
}

#[test]
fn each_part_of_long_work_is_counted() {
    let mut server = server();
    for (line, at_least) in [
        ("LRANGE list 0 -1", 1),
        // They are read, parsed, made to be compared, compared, numbered and answered.
        ("SORT list", 6),
        ("SORT list DESC LIMIT 0 19999", 6),
        ("SORT list BY nosort", 3),
        ("SORT list BY nosort GET # GET #", 5),
        ("SORT list ALPHA", 4),
        ("SORT list BY nokey*", 6),
        ("SORT list BY nokey* ALPHA", 5),
        ("SORT list STORE to", 6),
        ("XPENDING stream group - + 20000", 1),
        ("XPENDING stream group - + 20000 one", 1),
        ("XINFO CONSUMERS stream crowd", 1),
        // The entries, those of the group and those of its consumer, and the other group's consumers.
        ("XINFO STREAM stream FULL COUNT 0", 4),
        // They are looked at, put together, and answered or stored.
        ("GEOSEARCH places FROMLONLAT 10 10 BYRADIUS 9999 km", 3),
        ("GEOSEARCH places FROMLONLAT 10 10 BYRADIUS 9999 km ASC", 4),
        ("GEOSEARCHSTORE to places FROMLONLAT 10 10 BYRADIUS 9999 km", 3),
    ] {
        let (steps, _) = steps_of(&mut server, &words(line));
        assert!(steps > at_least as f64 - SPARE, "{line}: {steps} steps for an element, not {at_least}");
    }
}

#[test]
fn a_command_of_very_many_keys_is_counted_before_it_begins() {
    let mut server = server();
    let keys = |name: &str, and: &[&str]| {
        let parts = (0..LEN).flat_map(|number| {
            let key = format!("key{number}").into_bytes();
            std::iter::once(key).chain(and.iter().map(|word| word.as_bytes().to_vec()))
        });
        std::iter::once(name.as_bytes().to_vec()).chain(parts).collect::<Vec<_>>()
    };
    // Their keys are hashed, their shards put in order, and each is looked for.
    for (name, and) in [("MSET", &["value"][..]), ("MGET", &[]), ("EXISTS", &[]), ("DEL", &[])] {
        let (steps, _) = steps_of(&mut server, &keys(name, and));
        assert!(steps > 3.0 - SPARE, "{name}: {steps} steps for a key");
    }
}

#[test]
fn what_becomes_of_a_long_reply_in_a_script_is_counted() {
    let mut server = server();
    for (body, at_least) in [
        ("return #redis.call('LRANGE',KEYS[1],0,-1)", 2),
        ("redis.setresp(3);return #redis.call('LRANGE',KEYS[1],0,-1)", 2),
    ] {
        let mut command = words("EVAL body 1 list");
        command[1] = body.as_bytes().to_vec();
        let (steps, _) = steps_of(&mut server, &command);
        assert!(steps > f64::from(at_least) - SPARE, "{body}: {steps} steps for an element, not {at_least}");
    }
}

#[test]
fn a_stream_is_written_and_read_in_counted_parts() {
    let mut server = server();
    let (steps, payload) = steps_of(&mut server, &words("DUMP stream"));
    // The entries, those that wait in the group and those of its consumer, and the other group's consumers.
    assert!(steps > 4.0 - SPARE, "DUMP: {steps} steps for an element");
    let Value::Bulk(payload) = payload else { panic!("DUMP: {payload:?}") };
    let mut restore = words("RESTORE copy 0");
    restore.push(payload.to_vec());
    let (steps, _) = steps_of(&mut server, &restore);
    assert!(steps > 2.0 - SPARE, "RESTORE: {steps} steps for an element");
}

#[test]
fn prefixes_that_a_client_is_told_of_are_counted() {
    let mut server = server();
    let prefixes = (0..LEN).flat_map(|number| ["PREFIX".into(), format!("prefix{number:06}:").into_bytes()]);
    let on: Vec<Vec<u8>> = words("CLIENT TRACKING ON BCAST").into_iter().chain(prefixes).collect();
    // They are held against each other, and noted.
    for (command, at_least) in [(on, 2), (words("CLIENT TRACKING OFF"), 1)] {
        let (steps, _) = steps_of(&mut server, &command);
        assert!(steps > f64::from(at_least) - SPARE, "{at_least}: {steps} steps for a prefix");
    }
}
