//! Loading a log with several workers: what lies on different keys is done side by side, and comes to what one worker
//! makes of it. Knows of commands the few that it plays.

use std::fmt::Write;
use std::sync::Arc;
use tenon_engine::Engine;
use tenon_engine::config::{Config, Loader, Machine, Origin};
use tenon_testkit::journal;

fn engine(workers: usize) -> Arc<Engine> {
    let mut loader = Loader::new(Machine::detect());
    for (name, value) in [("workers", workers.to_string()), ("shards", "64".to_owned())] {
        loader.apply(name, &[value], &Origin::CommandLine).expect("it is a setting");
    }
    let config: Config = loader.finish().expect("they go together");
    Engine::new(config, tenon_commands::ALL, 0x5EED).share()
}

/// xorshift64*, so that a failure can be repeated by its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }
}

/// Lines as a log has them.
fn log(lines: &str) -> Vec<u8> {
    let mut log = Vec::new();
    for line in lines.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        log.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            log.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
        }
    }
    log
}

/// Commands whose order can be told from what they leave, most on one key, others on several or on all.
fn lines(seed: u64, count: usize) -> String {
    let mut random = Random(seed);
    let mut lines = String::new();
    let (mut in_multi, mut database) = (0, 0);
    for number in 0..count {
        let (a, b, c) = (random.below(40), random.below(40), random.below(40));
        match random.below(1_000) {
            0 if in_multi == 0 => writeln!(lines, "FLUSHDB"),
            1 if in_multi == 0 => writeln!(lines, "SWAPDB 0 1"),
            2..20 if in_multi == 0 => {
                database = random.below(2);
                writeln!(lines, "SELECT {database}")
            }
            20..60 if in_multi == 0 => {
                in_multi = 1 + random.below(4);
                writeln!(lines, "MULTI")
            }
            60..100 => writeln!(lines, "COPY k{a} k{} REPLACE", (a + 1 + b % 39) % 40),
            100..120 => writeln!(lines, "MSET k{a} {number} k{b} {number} k{c} {number}"),
            120..140 => writeln!(lines, "BITOP XOR k{a} k{b} k{c}"),
            140..150 => writeln!(lines, "MOVE k{a} {}", 1 - database),
            150..155 => writeln!(lines, "EVAL return(redis.call('APPEND',KEYS[1],redis.call('STRLEN','k{b}'))) 1 k{a}"),
            _ => writeln!(lines, "APPEND k{a} .{number}"),
        }
        .expect("a string takes whatever is written");
        if in_multi > 0 && !lines.ends_with("MULTI\n") {
            in_multi -= 1;
            if in_multi == 0 {
                lines.push_str("EXEC\n");
            }
        }
    }
    if in_multi > 0 {
        lines.push_str("EXEC\n");
    }
    lines
}

#[test]
fn several_workers_come_to_what_one_comes_to() {
    for seed in 1..=4 {
        let bytes = log(&lines(seed, 30_000));
        let alone = engine(1);
        let report = journal::load(&alone, &bytes).expect("one worker loads it");
        assert!(journal::state(&alone).len() > 20, "seed {seed}: something is left to compare");
        for workers in [2, 3, 8] {
            let together = engine(workers);
            assert_eq!(journal::load(&together, &bytes), Ok(report), "seed {seed}, {workers} workers");
            let differences = journal::differences(&alone, &together);
            assert!(differences.is_empty(), "seed {seed}, {workers} workers:\n{}", differences.join("\n"));
        }
    }
}

#[test]
fn the_first_command_that_fails_is_told() {
    let mut lines = String::new();
    for number in 0..20_000 {
        let line = match number {
            9_000.. if number % 1_000 == 0 => format!("INCR text{number}"),
            _ => format!("SET text{} {number}x", number + 1),
        };
        writeln!(lines, "{line}").expect("a string takes whatever is written");
    }
    let bytes = log(&lines);
    let first = log(&lines[..lines.find("INCR").expect("there is one")]).len();
    for workers in [1, 4] {
        let why = journal::load(&engine(workers), &bytes).expect_err("it fails");
        assert!(why.starts_with(&format!("at byte {first} of ")) && why.contains("INCR: ERR value is not an"), "{why}");
    }
}

#[test]
fn behind_what_scripts_have_withheld_commands_may_fail() {
    let (before, after) = (log("SET k text"), log("SELECT 0\nLPUSH k a\nSET l 1"));
    let with_note = [&before[..], b"#TENON:WITHHELD\r\n", &after].concat();
    for workers in [1, 4] {
        let why = journal::load(&engine(workers), &[&before[..], &after].concat()).expect_err("nothing is missing");
        assert!(why.contains("LPUSH: WRONGTYPE"), "{why}");
        let loaded = engine(workers);
        journal::load(&loaded, &with_note).expect("it is passed over");
        assert_eq!(journal::state(&loaded).len(), 2);
    }
}

#[test]
fn a_torn_end_is_cut_off_behind_what_was_loaded() {
    let lines = lines(7, 3_000);
    let whole = log(&lines);
    let mut torn = whole.clone();
    torn.extend_from_slice(b"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n");
    let (expected, found) = (engine(4), engine(4));
    let report = journal::load(&expected, &whole).expect("it is whole");
    assert_eq!(journal::load(&found, &torn), Ok(report));
    assert_eq!(journal::differences(&expected, &found), Vec::<String>::new());
}

#[test]
fn a_library_that_was_accepted_once_may_take_its_time() {
    let code = "#!lua name=slow\nfor i = 1, 300000000 do end \
                redis.register_function('answer', function() return 42 end)";
    let words = ["FUNCTION", "LOAD", "REPLACE", code];
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        write!(bytes, "${}\r\n{word}\r\n", word.len()).expect("a string takes whatever is written");
    }
    let engine = engine(1);
    journal::load(&engine, bytes.as_bytes()).expect("it is loaded");
}

#[test]
fn a_log_of_redis_8_6_has_what_streams_remember() {
    // As it writes it: what came again has no id, and is not trimmed; what is told of one that has gone is Tenon's. In the
    // last stream an id was past when it came again: whatever the time is now, the log says that it was added.
    let log = log("SELECT 0
XADD s IDMP p one 2000000000000-0 f v
XADD s IDMP p one MAXLEN 0 * f v
XADD s NOMKSTREAM IDMPAUTO q MAXLEN = 2 70000000000000-0 f v
XADD s IDMP p two 70000000000000-1 f v
XADD none IDMP p one * f v
XADD set 1-1 f v
XCFGSET set IDMP-DURATION 500 IDMP-MAXSIZE 2
XIDMPRECORD set p one 70000000000000-3
XIDMPRECORD set p two 1-1
XADD past IDMP p one 60000000000000-0 f v
XADD past IDMP p one 70000000000000-0 f v
XADD again 70000000000000-1 f v
XADD again 70000000000000-2 f v
XIDMPRECORD again p one 70000000000000-1
XIDMPRECORD again p one 70000000000000-2");
    let engine = engine(2);
    let report = journal::load(&engine, &log);
    report.expect("each of them can be run again");
    let shown: Vec<String> = journal::state(&engine).into_values().collect();
    let [again, past, s, set] = &shown[..] else { panic!("{shown:?}") };
    let told = |stream: &String, what: &str| assert!(stream.contains(what), "{stream}");
    told(again, "[\"p: one=70000000000000-2\"]");
    told(past, "added 2 [60000000000000-0 f=v] [70000000000000-0 f=v]");
    told(past, "<added 2 duplicates 0> [\"p: one=70000000000000-0\"]");
    told(s, "added 3 [2000000000000-0 f=v] [70000000000000-0 f=v] [70000000000000-1 f=v]");
    told(s, "producers 100 s 100 ids <added 3 duplicates 1>");
    told(s, "[\"p: one=2000000000000-0 two=70000000000000-1\", \"q: ");
    told(set, "producers 500 s 2 ids <added 2 duplicates 0> [\"p: one=70000000000000-3\"]");
}
