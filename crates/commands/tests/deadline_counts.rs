//! How many keys have deadlines, as threads count it and INFO tells it, against what is in the shards, whatever happens to keys.

mod one_worker;

use one_worker::{Random, Server};
use std::time::Duration;
use tenon_engine::wire::resp::Value;

/// What may happen; `{k}` is a key, `{d}` a database, `{t}` a few milliseconds.
const COMMANDS: &[&str] = &[
    "SET {k} v",
    "SET {k} v EX 100",
    "SET {k} v PX {t}",
    "SET {k} v KEEPTTL",
    "GETSET {k} v",
    "GETEX {k} PX {t}",
    "GETEX {k} PERSIST",
    "MSET {k} 1 {k} 2",
    "PEXPIRE {k} {t}",
    "EXPIRE {k} 100",
    "EXPIRE {k} -1",
    "PERSIST {k}",
    "DEL {k} {k}",
    "GETDEL {k}",
    "RENAME {k} {k}",
    "COPY {k} {k} REPLACE",
    "COPY {k} {k} DB {d} REPLACE",
    "MOVE {k} {d}",
    "SWAPDB {d} {d}",
    "SELECT {d}",
    "HSET {k} f 1 g 2",
    "HSETEX {k} PX {t} FIELDS 1 f 1",
    "HPEXPIRE {k} {t} FIELDS 2 f g",
    "HEXPIRE {k} 100 FIELDS 1 f",
    "HPERSIST {k} FIELDS 1 f",
    "HDEL {k} f",
    "HGETALL {k}",
    "SUNIONSTORE {k} {k}",
    "EVAL redis.call('del',KEYS[1])redis.call('set',KEYS[1],1,'PX',{t}) 1 {k}",
    "MULTI",
    "EXEC",
    "TOUCH {k} {k}",
    "FLUSHDB",
    "FLUSHALL",
];

fn run(server: &mut Server, command: &str) -> Value {
    let words: Vec<Vec<u8>> = command.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    server.run(&words)
}

/// One of the commands, filled in. The last ones, which leave nothing, come seldom.
fn any(random: &mut Random) -> String {
    let mut choose = |count: usize| random.below(count);
    let seldom = choose(20) == 0;
    let template = COMMANDS[choose(COMMANDS.len() - if seldom { 0 } else { 2 })];
    let mut command = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        command.push_str(&rest[..at]);
        command += &match rest.as_bytes()[at + 1] {
            b'k' => format!("k{}", choose(8)),
            b'd' => choose(3).to_string(),
            _ => (1 + choose(5)).to_string(),
        };
        rest = &rest[at + 3..];
    }
    command + rest
}

fn check(server: &Server, after: &str) {
    for database in 0..4 {
        let mut expected = [0; 2];
        for index in 0..server.engine.shards.count() {
            if let Some(keyspace) = server.engine.shards.lock(index).shard.database(database) {
                expected[0] += keyspace.expiring() as u64;
                expected[1] += keyspace.with_deadlines() as u64;
            }
        }
        assert_eq!(server.engine.deadline_counts(database), Some(expected), "database {database} after {after}");
    }
}

#[test]
fn counts_are_what_the_shards_have() {
    let mut server = Server::new(1, &[("maxmemory-policy", "allkeys-random"), ("maxmemory", "0")]);
    let mut random = Random(0x5EED);
    for round in 0..20_000 {
        let command = any(&mut random);
        run(&mut server, &command);
        check(&server, &command);
        if round % 50 == 0 {
            std::thread::sleep(Duration::from_millis(2));
            server.engine.tick(&mut server.worker);
            check(&server, "a tick");
        }
        if round % 500 == 0 {
            for command in ["CONFIG SET maxmemory 1", "TOUCH k0", "CONFIG SET maxmemory 0"] {
                run(&mut server, command);
                check(&server, command);
            }
        }
    }
}

#[test]
fn info_tells_how_many_and_how_long_on_average() {
    let mut server = Server::new(1, &[]);
    let keyspace = |server: &mut Server| {
        let Value::Bulk(text) = run(server, "INFO keyspace") else { panic!("INFO gives text") };
        let text = String::from_utf8(text).expect("INFO gives text");
        let line = text.lines().find_map(|line| line.strip_prefix("db0:")).expect("there are keys").to_owned();
        let number = |word: &str| word.split_once('=').and_then(|(_, number)| number.parse::<u64>().ok());
        line.split(',').map(|word| number(word).expect("a number")).collect::<Vec<_>>()
    };
    (0..1_000).for_each(|key| drop(run(&mut server, &format!("SET k{key} v"))));
    assert_eq!(keyspace(&mut server), [1_000, 0, 0, 0]);
    (0..400).for_each(|key| drop(run(&mut server, &format!("EXPIRE k{key} {}", 500 + key % 2 * 1_000))));
    run(&mut server, "HSET h f 1");
    run(&mut server, "HEXPIRE h 100 FIELDS 1 f");
    // What was seen a moment ago is told again.
    for _ in 0..2 {
        let told = keyspace(&mut server);
        assert_eq!((told[0], told[1], told[3]), (1_001, 400, 1));
        assert!((900_000..=1_000_000).contains(&told[2]), "{told:?}");
    }
    run(&mut server, "PERSIST k0");
    assert_eq!(keyspace(&mut server)[1], 399);
}
