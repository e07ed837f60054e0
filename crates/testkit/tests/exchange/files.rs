//! Files of the original servers, loaded by Tenon, and Tenon's, loaded by newer ones: every type and encoding, deadlines
//! and several databases.

use crate::side::Side;
use std::fs;
use std::time::Duration;
use tenon_client::Value;
use tenon_testkit::patience::{PATIENCE, wait_until};
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
    wait_until("the end of loading", || match side.say("EXISTS none") {
        Value::Error(text) => {
            assert_eq!(text, b"LOADING Redis is loading the dataset in memory");
            false
        }
        _ => true,
    });
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
                let status = server.wait_for_end(PATIENCE).expect("it ends");
                assert!(!status.success(), "{name}");
                server.log()
            }
        };
        assert!(text.contains("cannot load 'dump.rdb': at byte "), "{name}: {text}");
        assert_eq!(fs::read(&path).expect("still there"), *bytes, "{name}");
    }
}

/// Rewrites the log, so that it has a snapshot in front, and waits until that is done.
fn rewrite_log(redis: &mut Side) {
    assert!(matches!(redis.say("BGREWRITEAOF"), Value::Simple(_)));
    wait_until("the end of the rewrite", || {
        let Value::Bulk(info) = redis.say("INFO persistence") else { panic!("INFO gives a text") };
        String::from_utf8_lossy(&info).contains("aof_rewrite_in_progress:0")
    });
}

#[test]
fn tenon_goes_on_with_the_log_of_redis() {
    let Some(mut redis) = Side::redis_with(&[("appendonly", "yes"), ("appendfsync", "always")]) else { return };
    fill_and_save(&mut redis);
    rewrite_log(&mut redis);
    for line in [
        "SELECT 0",
        "SET later v",
        "INCRBYFLOAT float 1.5",
        "RPUSH list-later a b c",
        "LPOP list-later",
        "SADD pops a b c d",
        "SPOP pops 2",
        "XADD stream-long * field 1",
        "DEL string-0",
        "EVAL return(redis.call('SET','scripted','v')) 0",
        "SELECT 3",
        "SET other v PXAT 4102444800123",
        "MULTI",
        "SET one 1",
        "SET two 2",
        "EXEC",
    ] {
        let answer = redis.say(line);
        assert!(!matches!(answer, Value::Error(_)), "{line}: {answer:?}");
    }
    // Redis goes on with its own.
    let dir = copy_of_log(&redis);
    let settings = [("dir", &dir[..]), ("appendonly", "yes")];
    let mut tenon = Side::tenon(&settings);
    wait_until_loaded(&mut tenon);
    compare(&mut redis, &mut tenon);
    // What is written from now on is in the log too.
    for side in [&mut redis, &mut tenon] {
        // Redis's log stands in database 3, which it has written to last.
        assert_eq!((side.say("SELECT 0"), side.say("SET mine v")), (ok(), ok()));
        assert_eq!(
            (side.say("SELECT 9"), side.say("SET mine v"), side.say("DEL string-1")),
            (ok(), ok(), Value::Int(1))
        );
    }
    tenon.client.send(&[b"SHUTDOWN"]).expect("sent");
    assert!(tenon.server.wait_for_end(PATIENCE).expect("it ends").success());
    let mut tenon = Side::tenon(&settings);
    wait_until_loaded(&mut tenon);
    compare(&mut redis, &mut tenon);
}

/// A folder with a copy of the server's log, of which it takes no more notice.
fn copy_of_log(side: &Side) -> String {
    let (from, to) = (side.server.folder().join("appendonlydir"), side.server.folder().join("copy/appendonlydir"));
    fs::create_dir_all(&to).expect("a folder");
    for entry in fs::read_dir(from).expect("the log is there") {
        let path = entry.expect("a file").path();
        fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
    }
    to.parent().and_then(|path| path.to_str()).expect("a path in UTF-8").to_owned()
}

/// Which of Tenon's own forms a server knows.
#[derive(Clone, Copy, PartialEq)]
enum Knows {
    /// The form in which Redis 7.4 and later keep hashes whose fields expire.
    ExpiringFields,
    /// None of them.
    Redis7,
    /// Nor how Redis has elements of some lengths in a listpack.
    Valkey9,
}

/// What is filled in beside the keys of all types: those that not every server can have.
fn add_what_expires(tenon: &mut Side, knows: Knows) {
    for database in DATABASES {
        tenon.say(&format!("SELECT {database}"));
        if knows != Knows::ExpiringFields {
            assert_eq!(tenon.say("DEL expiring"), Value::Int(1));
        }
        if knows == Knows::Valkey9 {
            assert_eq!(tenon.say("DEL stream-at-16378 stream-at-2097146"), Value::Int(2));
        }
        // Only Tenon has deadlines of these: elsewhere the members are there and stay.
        tenon.say("SADD expiring-set a b c");
        tenon.say(&format!("SPEXPIREAT expiring-set {FAR_MS} MEMBERS 1 a"));
        tenon.say("ZADD expiring-zset 1 a 2 b 3.5 c");
        tenon.say(&format!("ZPEXPIREAT expiring-zset {FAR_MS} MEMBERS 1 a"));
        // What it remembers of its producers stands behind it; elsewhere it is the stream.
        tenon.say(&format!("XADD expiring-stream {FAR_MS}-0 f v"));
        assert_eq!(tenon.say(&format!("XIDMPRECORD expiring-stream p one {FAR_MS}-0")), ok());
    }
}

/// A server loads what Tenon saves and logs, and has what Tenon has.
fn loads_what_tenon_writes(start: impl Fn(&[(&str, &str)]) -> Option<Side>, knows: Knows) {
    for preamble in ["yes", "no"] {
        loads_what_tenon_writes_as(&start, knows, preamble);
    }
}

/// The same with a base of this form.
fn loads_what_tenon_writes_as(start: impl Fn(&[(&str, &str)]) -> Option<Side>, knows: Knows, preamble: &str) {
    let log = [("appendonly", "yes"), ("appendfsync", "always"), ("aof-use-rdb-preamble", preamble)];
    let mut tenon = Side::tenon(&log);
    fill_and_save(&mut tenon);
    add_what_expires(&mut tenon, knows);
    if preamble == "yes" {
        assert_eq!(tenon.say("SAVE"), ok());
        let folder = tenon.server.folder().to_str().expect("a path in UTF-8").to_owned();
        let Some(mut other) = start(&[("dir", &folder)]) else { return };
        wait_until_loaded(&mut other);
        compare(&mut tenon, &mut other);
    }
    // The log as it came, each command by itself.
    tenon.say("SELECT 0");
    tenon.say("SET of-the-log v PX 100000000");
    tenon.say("SADD pops a b c d");
    tenon.say("SPOP pops 2");
    if knows == Knows::ExpiringFields {
        tenon.say("HSET more a 1 b 2");
        tenon.say(&format!("HPEXPIREAT more {FAR_MS} FIELDS 1 a"));
        tenon.say("HGETEX more EX 100000 FIELDS 1 b");
        tenon.say("HSETEX more EX 200000 FIELDS 1 c 3");
    }
    // The others know no command for these.
    for database in DATABASES {
        tenon.say(&format!("SELECT {database}"));
        assert_eq!(tenon.say("DEL expiring-set expiring-zset expiring-stream"), Value::Int(3));
        if preamble == "no" {
            // No command says that an entry which is gone waits to be acknowledged; this lets go of such.
            for group in ["early", "late", "g"] {
                tenon.say(&format!("XAUTOCLAIM stream-groups {group} alice 99999999999 0 COUNT 1000"));
            }
        }
    }
    rewrite_log(&mut tenon);
    for line in ["SELECT 9", "MULTI", "SET one 1", "INCRBYFLOAT two 2.5", "EXEC", "GETDEL one", "XADD s * f v"] {
        let answer = tenon.say(line);
        assert!(!matches!(answer, Value::Error(_)), "{line}: {answer:?}");
    }
    if knows == Knows::ExpiringFields {
        tenon.say("HSET last a 1 b 2");
        tenon.say("HPEXPIRE last 100000000 FIELDS 1 a");
    }
    let dir = copy_of_log(&tenon);
    let base = if preamble == "yes" { "appendonly.aof.2.base.rdb" } else { "appendonly.aof.2.base.aof" };
    let start_of_base =
        fs::read(format!("{dir}/appendonlydir/{base}")).expect("the base is of the form that was asked for");
    assert_eq!(start_of_base.starts_with(b"REDIS"), preamble == "yes");
    let Some(mut other) = start(&[("dir", &dir), ("appendonly", "yes")]) else { return };
    wait_until_loaded(&mut other);
    compare(&mut tenon, &mut other);
    // Whose log is begun by one and gone on with by the other is the first one's again.
    assert_eq!(
        (other.say("SELECT 3"), other.say("SET theirs v"), other.say("DEL string-1")),
        (ok(), ok(), Value::Int(1))
    );
    other.client.send(&[b"SHUTDOWN"]).expect("sent");
    assert!(other.server.wait_for_end(PATIENCE).expect("it ends").success());
    let mut again = Side::tenon(&[("dir", &dir), ("appendonly", "yes")]);
    wait_until_loaded(&mut again);
    assert_eq!(
        (tenon.say("SELECT 3"), tenon.say("SET theirs v"), tenon.say("DEL string-1")),
        (ok(), ok(), Value::Int(1))
    );
    compare(&mut tenon, &mut again);
}

#[test]
fn redis_7_loads_what_tenon_writes() {
    loads_what_tenon_writes(Side::redis_with, Knows::Redis7);
}

#[test]
fn redis_8_loads_what_tenon_writes() {
    loads_what_tenon_writes(|settings| Side::peer_with("redis8-server", settings), Knows::ExpiringFields);
}

#[test]
fn valkey_9_loads_what_tenon_writes() {
    loads_what_tenon_writes(|settings| Side::peer_with("valkey9-server", settings), Knows::Valkey9);
}
