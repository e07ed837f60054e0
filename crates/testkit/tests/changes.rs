//! How many changes a command counts as, which is what save points go by: as many as in Redis.

use std::io::Write;
use std::time::Duration;
use tenon_client::{Resp, Value};
use tenon_testkit::in_process::InProcess;
use tenon_testkit::oracle::oracle;
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::server::{Server, find_peer};
use tenon_testkit::target::{Demand, Dialect, Link, Received, Target};

const COMMANDS: &str = "
SET s 1
MSET s 1 t 2
MSETNX s 1 u 2
APPEND s x
SETRANGE s 0 y
INCR n
INCRBYFLOAT n 1
GETSET n 5
SETBIT b 3 1
BITFIELD b2 INCRBY u8 0 1
BITFIELD b2 SET u8 0 1 SET u8 8 2
BITFIELD b2 SET u8 0 1
BITFIELD b2 INCRBY u8 0 1 INCRBY u8 0 1
BITFIELD b2 INCRBY u8 80 1 INCRBY u8 80 1 INCRBY u8 0 0 GET u8 0
BITFIELD b2 INCRBY u8 80 0
BITFIELD b4 INCRBY u8 0 0 INCRBY u8 8 1 INCRBY u8 0 0
BITFIELD b5 OVERFLOW FAIL INCRBY u8 0 300
BITFIELD b5 OVERFLOW FAIL INCRBY u8 8 300 INCRBY u8 0 300
BITFIELD b5 OVERFLOW FAIL INCRBY u8 16 300 INCRBY u8 0 0
BITOP NOT b3 b
EXPIRE s 100
PERSIST s
GETEX s EX 100
GETDEL s
COPY t t2
RENAME t2 t3
RENAMENX t3 t4
MOVE t4 1
DEL t n none
PFADD h a b c
PFADD h a
PFMERGE h2 h
RPUSH l a b c d e f g h i j
LPUSHX l k l
LPOP l
LPOP l 2
LSET l 0 x
LINSERT l BEFORE x y
LREM l 0 x
LTRIM l 0 3
LMOVE l m LEFT RIGHT
RPOPLPUSH l m
BLMOVE l m LEFT RIGHT 0
BLPOP m 0
LMPOP 1 m LEFT COUNT 5
SADD a 1 2 3 4 5
SADD a 1 6
SREM a 1 2 none
SMOVE a c 3
SPOP a 2
SUNIONSTORE d a c
SINTERSTORE d a none
SPOP c
ZADD z 1 a 2 b 3 c 4 d 5 e 6 f
ZADD z 2 a 9 g
ZADD z CH 2 a
ZINCRBY z 1 a
ZREM z g none
ZREMRANGEBYRANK z 0 1
ZPOPMIN z
ZPOPMAX z 2
ZMPOP 1 z MIN COUNT 3
ZADD z 1 a 2 b
ZUNIONSTORE y 1 z
ZRANGESTORE x z 0 -1
GEOADD g 1 2 p 3 4 q
GEOSEARCHSTORE g2 g FROMMEMBER p BYRADIUS 10000 km
HSET k a 1 b 2 c 3
HSET k a 1
HMSET k d 4 e 5
HSETNX k f 6
HINCRBY k a 1
HINCRBYFLOAT k a 1
HDEL k a b none
RPUSH sorted 3 1 2
SORT sorted STORE sorted2
XADD st 1-1 f v
XADD st 1-2 f v
XADD st 1-3 f v
XADD st MAXLEN 2 1-4 f v
XDEL st 1-3 1-9
XGROUP CREATE st grp 0
XREADGROUP GROUP grp con STREAMS st >
XACK st grp 1-4
XADD st 2-1 f v
XADD st 2-2 f v
XREADGROUP GROUP grp con STREAMS st >
XCLAIM st grp con 0 2-1 2-2
XCLAIM st grp con 0 2-2 JUSTID LASTID 3-1
XCLAIM st grp con 0 9-9 LASTID 4-1
XCLAIM st grp con 0 9-9 LASTID 4-1
XCLAIM st grp new 0 2-1 2-2
XAUTOCLAIM st grp con 0 0
XAUTOCLAIM st grp other 0 0 COUNT 1
XAUTOCLAIM st grp con 1000000 0
XACK st grp 2-1 2-2
XDEL st 1-4 2-1
XADD st 2-3 f v
XTRIM st MAXLEN 0
SETRANGE none 0 \"\"
SWAPDB 0 1
SWAPDB 0 1
UNLINK z y
";

/// What Redis 7 does not know.
const NEWER_COMMANDS: &str = "
HSETEX k EX 100 FIELDS 3 a 1 b 2 c 3
HSETEX k FIELDS 3 a 1 b 2 d 3
HSETEX k KEEPTTL FIELDS 2 a 1 b 2
HSETEX k FNX FIELDS 1 a 1
HSETEX k PXAT 1 FIELDS 2 a 1 none 2
HSETEX gone PXAT 1 FIELDS 2 a 1 b 2
HSET k a 1 b 2 c 3 d 4
HEXPIRE k 100 FIELDS 3 a b none
HEXPIRE k 100 NX FIELDS 3 a b c
HPEXPIRE k 100000 FIELDS 3 a b c
HPERSIST k FIELDS 3 a b d
HEXPIREAT k 1 FIELDS 2 a none
HPEXPIREAT k 1 FIELDS 2 b c
HSET k a 1 b 2 c 3 d 4
HGETEX k FIELDS 2 a b
HGETEX k EX 100 FIELDS 4 a b c none
HGETEX k PERSIST FIELDS 4 a b d none
HGETEX k PERSIST FIELDS 4 a b d none
HGETEX k PXAT 1 FIELDS 2 a b
HGETDEL k FIELDS 1 none
HGETDEL k FIELDS 3 c d none
";

struct Ours {
    link: Box<dyn Link>,
}

impl Ours {
    fn call(&mut self, words: &[&[u8]]) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        self.link.send(&bytes).expect("the connection stays open");
        let mut reply = Vec::new();
        while self.link.receive(&mut reply, Duration::ZERO).expect("it does not break") == Received::Bytes {}
        reply
    }
}

fn changes(info: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(info).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
    line.and_then(|number| number.trim().parse().ok()).expect("INFO says how many")
}

#[test]
fn a_command_counts_as_many_changes_as_in_redis() {
    let Some(redis) = oracle(Dialect::Redis, &[]) else { return };
    check(&redis, &format!("{COMMANDS}{}", dense_sketch()));
}

#[test]
fn a_newer_command_counts_as_many_changes_as_in_redis_8() {
    let Some(program) = find_peer("redis8-server") else {
        let _ = writeln!(std::io::stderr(), "skipped: the comparison with Redis 8, which is not installed");
        return;
    };
    check(&Server::redis_program(&program, &[]).expect("a server that is installed starts"), NEWER_COMMANDS);
}

/// Makes a sketch of so many elements that it is dense, and adds more.
fn dense_sketch() -> String {
    let many: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    format!("PFADD dense {}\nPFADD dense b1 b1 b2 b3 b4 b5 b6 c1 c2 c3 c4 c5\nPFADD dense b1 b2\n", many.join(" "))
}

fn check(redis: &Server, commands: &str) {
    let address = redis.address(Dialect::Redis).expect("it listens");
    let mut theirs = Resp::connect_to(address, Some(PATIENCE)).expect("it listens");
    let mut server = InProcess::default();
    server.prepare(&Demand { dialect: Dialect::Redis, settings: &[], fresh: true }).expect("it needs nothing");
    let mut ours = Ours { link: server.open(Dialect::Redis) };
    let info: [&[u8]; 2] = [b"INFO", b"persistence"];
    let theirs_changes = |theirs: &mut Resp| match theirs.call(&info).expect("an answer") {
        Value::Bulk(text) => changes(&text),
        other => panic!("{other:?}"),
    };
    let mut wrong = Vec::new();
    for line in commands.lines().filter(|line| !line.is_empty()) {
        let words: Vec<&[u8]> =
            line.split(' ').map(|word| if word == "\"\"" { &b""[..] } else { word.as_bytes() }).collect();
        let before = (theirs_changes(&mut theirs), changes(&ours.call(&info)));
        let answer = theirs.call(&words).expect("an answer");
        assert!(!matches!(answer, Value::Error(_)), "{line}: {answer:?}");
        ours.call(&words);
        let after = (theirs_changes(&mut theirs), changes(&ours.call(&info)));
        let (theirs, ours) = (after.0 - before.0, after.1 - before.1);
        if theirs != ours {
            wrong.push(format!("{line}: {ours} instead of {theirs}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
