//! What a log says could be done when it was written: settings that have changed since do not stop it. Knows no file.

use tenon_engine::Engine;
use tenon_engine::config::{Caller, Config, Machine};
use tenon_engine::replay::Replayer;
use tenon_engine::store::types::Stream;
use tenon_engine::string;

#[test]
fn a_log_may_hold_longer_strings_than_clients_may_make_by_now() {
    let engine = Engine::new(Config::new(Machine::detect()), tenon_commands::ALL, 1);
    engine.set_config(&[(b"proto-max-bulk-len", b"1mb")], Caller::Local).expect("it is a valid value");
    let mut worker = engine.worker(0);
    let mut replayer = Replayer::new(&engine);
    let long = vec![b'x'; 2 << 20];
    for words in [
        &[&b"SET"[..], b"k", &long][..],
        &[b"APPEND", b"k", b"y"],
        &[b"SETRANGE", b"k", b"3000000", b"z"],
        &[b"SETBIT", b"k", b"32000000", b"1"],
        &[b"BITFIELD", b"k", b"SET", b"u8", b"#5000000", b"7"],
    ] {
        let name = String::from_utf8_lossy(words[0]);
        replayer.command(&mut worker, words).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    // Nothing is longer than can be saved and loaded again.
    let error = replayer.command(&mut worker, &[b"SETRANGE", b"k", b"4294966271", b"z"]).unwrap_err();
    assert!(error.to_string().ends_with("string exceeds maximum allowed size (proto-max-bulk-len)"), "{error}");
    let hash = engine.shards.hash(b"k");
    let len = engine.with_key(&mut worker, 0, hash, b"k", |cx| {
        let slot = cx.find().expect("it was set");
        string::len(cx.string(slot).expect("it is a string"))
    });
    assert_eq!(len, 5_000_001);
}

#[test]
fn a_group_has_read_as_much_as_the_log_says() {
    let engine = Engine::new(Config::new(Machine::detect()), tenon_commands::ALL, 1);
    let mut worker = engine.worker(0);
    let mut replayer = Replayer::new(&engine);
    // The stream was told of less since.
    for words in [
        &[&b"XADD"[..], b"s", b"1-0", b"f", b"v"][..],
        &[b"XGROUP", b"CREATE", b"s", b"created", b"0", b"ENTRIESREAD", b"7"],
        &[b"XGROUP", b"CREATE", b"s", b"set", b"0"],
        &[b"XGROUP", b"SETID", b"s", b"set", b"1-0", b"ENTRIESREAD", b"6"],
    ] {
        replayer.command(&mut worker, words).expect("it was written");
    }
    let read = engine.with_key(&mut worker, 0, engine.shards.hash(b"s"), b"s", |cx| {
        let slot = cx.find().expect("it was added to");
        let stream = cx.collection::<Stream>(slot).expect("it is a stream");
        [&b"created"[..], b"set"].map(|name| stream.group(name).expect("it was made").entries_read())
    });
    assert_eq!(read, [Some(7), Some(6)]);
}
