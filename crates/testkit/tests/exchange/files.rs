//! Snapshot files of the original servers, loaded by Tenon: every type and encoding, deadlines and several databases.

use crate::side::Side;
use std::fs;
use std::time::Duration;
use tenon_client::Value;
use tenon_testkit::server::{Server, StartError};

const DATABASES: [usize; 3] = [0, 3, 9];
/// In the year 2100, in milliseconds.
const FAR_MS: &str = "4102444800123";

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

/// Fills several databases and has them saved.
fn fill_and_save(side: &mut Side) {
    for database in DATABASES {
        side.say(&format!("SELECT {database}"));
        let keys = side.fill();
        for key in keys.iter().step_by(3) {
            assert_eq!(side.say(&format!("PEXPIREAT {key} {FAR_MS}")), Value::Int(1));
        }
        side.say("SET past value PX 1");
        side.call(&[b"SET", b"", b"the empty key"]);
        side.call(&[b"SET", b"\x00\xff\r\n", b"any byte"]);
        // Those that know no deadlines of fields answer with an error, and have none.
        side.say("HSET expiring a 1 b 2 c 3");
        side.say(&format!("HPEXPIREAT expiring {FAR_MS} FIELDS 2 a b"));
    }
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(side.say("SAVE"), ok());
}

/// Everything that the other has is the same in Tenon.
fn compare(other: &mut Side, tenon: &mut Side) {
    for database in DATABASES {
        let select = format!("SELECT {database}");
        assert_eq!((other.say(&select), tenon.say(&select)), (ok(), ok()));
        let keys = other.keys();
        assert!(keys.len() > 100);
        assert_eq!(tenon.keys(), keys, "database {database}");
        for key in keys {
            assert_eq!(tenon.content(&key), other.content(&key), "{}", key.escape_ascii());
        }
    }
}

/// A Tenon that finds the other's snapshot file.
fn tenon_over(other: &Side, settings: &[(&str, &str)]) -> Side {
    let folder = other.server.folder().to_str().expect("a path in UTF-8").to_owned();
    Side::tenon(&[&[("dir", &folder[..])], settings].concat())
}

fn loads_from(mut other: Side) -> Side {
    fill_and_save(&mut other);
    let mut tenon = tenon_over(&other, &[]);
    wait_until_loaded(&mut tenon);
    compare(&mut other, &mut tenon);
    other
}

/// Waits until the server has loaded what it found.
fn wait_until_loaded(side: &mut Side) {
    while let Value::Error(text) = side.say("EXISTS none") {
        assert_eq!(text, b"LOADING Redis is loading the dataset in memory");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn tenon_loads_what_redis_has_saved() {
    let Some(redis) = Side::redis() else { return };
    let mut redis = loads_from(redis);
    // Where both mean the same by a digest, of everything at once. Deadlines are part of it.
    let mut tenon = tenon_over(&redis, &[("workers", "1")]);
    wait_until_loaded(&mut tenon);
    assert_eq!(tenon.say("DEBUG DIGEST"), redis.say("DEBUG DIGEST"));
}

#[test]
fn tenon_loads_what_redis_8_has_saved() {
    Side::peer("redis8-server").map(loads_from);
}

#[test]
fn tenon_loads_what_valkey_9_has_saved() {
    Side::peer("valkey9-server").map(loads_from);
}

#[test]
fn a_file_that_is_no_whole_stops_the_start_and_stays_as_it_is() {
    let Some(mut redis) = Side::redis() else { return };
    fill_and_save(&mut redis);
    let path = redis.server.folder().join("dump.rdb");
    let whole = fs::read(&path).expect("the file is there");
    let folder = redis.server.folder().to_str().expect("a path in UTF-8").to_owned();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 0x40;
    for (name, bytes) in [("half", &whole[..whole.len() / 2]), ("flipped", &flipped), ("empty", &[])] {
        fs::write(&path, bytes).expect("written");
        let text = match Server::tenon(&[("dir", &folder)]) {
            Err(StartError::Failed(text)) => text,
            Err(error) => panic!("{name}: {error}"),
            // It answers while it loads.
            Ok(mut server) => {
                let status = server.wait_for_end(Duration::from_secs(60)).expect("it ends");
                assert!(!status.success(), "{name}");
                server.log()
            }
        };
        assert!(text.contains("cannot load 'dump.rdb': at byte "), "{name}: {text}");
        assert_eq!(fs::read(&path).expect("still there"), *bytes, "{name}");
    }
}
