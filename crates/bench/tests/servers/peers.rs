//! Real servers, where they are installed: started, spoken to in every language, ended.

use crate::ended::ended;
use crate::toy::{Manners, Toy};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;
use tenon_bench::dialects::{Binary, Dialect, Meta, Postgres, Resp, Text};
use tenon_bench::generators::{Distribution, Inserted, KeyChooser};
use tenon_bench::load::{Draw, Observer, Pace, Plan, Until, run};
use tenon_bench::machine::placement;
use tenon_bench::peers::{External, Program, Server, Settings, find, postgres};
use tenon_bench::processes::{self, Job};
use tenon_bench::target::{Protocol, Target};
use tenon_bench::values::{Lengths, Values};
use tenon_bench::workloads::ycsb::{Layout, Mix as YcsbMix, Updates, Work};
use tenon_bench::workloads::{KeyValue, Keys, Misses, Mix, Spec};
use tenon_client::Value;

/// The installed server of this name, or a line on why the test is left out.
fn installed(name: &str) -> Option<Program> {
    match find(&[name.to_owned()]) {
        Ok(found) => found.programs.into_iter().next(),
        // A database is no oracle: nothing of Tenon's goes by it.
        Err(error) if std::env::var_os("TENON_REQUIRE_ORACLES").is_some() && name != "postgres" => panic!("{error:#}"),
        Err(error) => {
            writeln!(std::io::stderr(), "skipped: {name} is not measured in a test: {error:#}").expect("stderr");
            None
        }
    }
}

/// A directory for a test's servers.
fn scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("tenon-bench-peers-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    directory
}

/// A redis-server of a test, ended with this; then its directory goes.
struct Redis {
    server: Server,
    target: Target,
    scratch: Scratch,
}

impl Redis {
    /// With so many threads, where one is installed.
    fn start(test: &str, threads: usize) -> Option<Redis> {
        let program = installed("redis-server")?;
        let scratch = scratch(test);
        let server = program.start(&Settings::new(threads, &[], &scratch)).expect("it starts");
        let target = server.target(Protocol::Resp).expect("it speaks RESP");
        Some(Redis { server, target, scratch: Scratch(scratch) })
    }

    /// What the bench prints that measures it with these words. Its results are in the directory.
    fn measured(&self, words: &[&str]) -> Vec<u8> {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_tenon-bench"));
        bench.args(words).args(["--target", &self.target.to_string(), "--out"]).arg(&self.scratch.0);
        let output = ended(bench);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// What it answers.
    fn ask(&self, words: &[&[u8]]) -> Value {
        ask(&self.target, words)
    }
}

/// A directory that is gone with this.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // A test that has failed has said why.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn exercise<D: Dialect>(dialect: D, target: &Target) {
    const KEYS: u64 = 300;
    let (progress, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let tls = target.tls().expect("whom to trust is known");
    let plan = |until| Plan {
        target,
        tls: tls.as_ref(),
        connections: 3,
        pipeline: 16,
        pace: Pace::Closed,
        draw: Draw::default(),
        until,
        cores: &[],
        progress: &progress,
        stop: &stop,
    };
    for lengths in [Lengths::fixed(32), Lengths { min: 0, max: 400_000 }] {
        let spec = |mix, keys| Spec {
            mix,
            keys,
            first: 0,
            values: Values::new(lengths.max),
            lengths,
            // A table's rows stay.
            expire_s: if target.protocol == Protocol::Postgres { 0 } else { 86_400 },
            keys_a_get: 1,
            misses: Misses::Fail,
            seed: 1,
        };
        let fill = KeyValue::new(dialect, spec(Mix::SET, Keys::part(KEYS, 1, 0)));
        let (outcome, _) = run(&plan(Until::Exhausted), vec![fill], &mut ()).expect("it stores");
        assert_eq!(outcome.operations, KEYS);
        let chosen = Keys::Chosen(KeyChooser::new(Distribution::Uniform, &Arc::new(Inserted::new(KEYS)), 0));
        for keys_a_get in [1, 7] {
            let get = KeyValue::new(dialect, Spec { keys_a_get, ..spec(Mix::GET, chosen.clone()) });
            let (outcome, workloads) = run(&plan(Until::Operations(1_000)), vec![get], &mut ()).expect("it has all");
            assert_eq!(outcome.operations, 1_000 * keys_a_get as u64);
            assert_eq!(workloads[0].tally().hits, outcome.operations);
        }
        let mixed = Mix { get: 1.0, set: 1.0, delete: 1.0 };
        let mixed = KeyValue::new(dialect, Spec { misses: Misses::Fill, ..spec(mixed, chosen) });
        let (outcome, _) =
            run(&plan(Until::Operations(3_000)), vec![mixed], &mut ()).expect("it forgets what it is told to");
        assert!(outcome.kinds.iter().all(|(_, latency)| latency.count() > 0), "{:?}", outcome.operations);
    }
}

fn check(name: &str) {
    let Some(program) = installed(name) else { return };
    let scratch = scratch(name);
    let cores = placement::own_cores().expect("cores");
    let settings = Settings { tls: name == "redis-server", ..Settings::new(1, &cores[..1], &scratch) };
    let server = program.start(&settings).expect("it starts");
    assert_eq!(server.target(Protocol::RespTls).is_some(), settings.tls);
    for protocol in Protocol::ALL {
        let Some(target) = server.target(protocol) else { continue };
        match protocol {
            Protocol::Resp | Protocol::RespTls => exercise(Resp, &target),
            Protocol::Text => exercise(Text, &target),
            Protocol::Meta => exercise(Meta, &target),
            Protocol::Binary => exercise(Binary, &target),
            Protocol::Postgres => exercise(Postgres, &target),
        }
        let external = External::ask(&target).expect("it answers");
        // memcached tells its process in the text languages only, and those are what it is asked in.
        assert_eq!(external.pid, Some(server.pid()), "{protocol:?}");
        assert!(!external.version.is_empty());
    }
    let (pid, directory) = (server.pid(), server.directory().to_owned());
    assert!(directory.join("log").exists());
    drop(server);
    assert!(!directory.exists() && !PathBuf::from(format!("/proc/{pid}/task")).exists());
    std::fs::remove_dir_all(scratch).expect("nothing holds it");
}

/// A server in a container tells the number that it has there, which here is another's, or nobody's.
#[test]
fn a_server_is_not_believed_to_be_another_process() {
    let ask = |pid| {
        let toy = Toy::start(Manners::Claims { pid });
        let target = format!("redis://{}", toy.address).parse().expect("a target");
        let external = External::ask(&target).expect("it answers");
        assert_eq!(external.version, "7.0.0");
        (external.pid, external.note.is_some())
    };
    let own = std::process::id();
    assert_eq!(ask(own), (Some(own), false));
    let mut other = Command::new("sleep").arg("600").spawn().expect("sleep");
    let told = ask(other.id());
    other.kill().expect("it runs");
    other.wait().expect("it ends");
    assert_eq!(told, (None, true));
    assert_eq!(ask(other.id()), (None, true));
}

#[test]
fn redis_server_is_measured() {
    check("redis-server");
}

#[test]
fn memcached_is_measured() {
    check("memcached");
}

#[test]
fn postgres_is_measured() {
    check("postgres");
}

#[test]
fn a_database_is_tended_before_it_is_measured() {
    let Some(program) = installed("postgres") else { return };
    let scratch = Scratch(scratch("tended"));
    let server = program.start(&Settings::new(1, &[], &scratch.0)).expect("it starts");
    let target = server.target(Protocol::Postgres).expect("it is a database");
    let url = format!("postgres://postgres@{}/postgres", target.address);
    let words = ["--quick", "--seconds", "0.05", "--keys", "200", "--target", &url];
    for (experiment, table, filter) in [("latency", "tenon_bench", "get"), ("ycsb", "usertable", "C, ")] {
        let words = [&[experiment, "--filter", filter], &words[..]].concat();
        let mut bench = Command::new(env!("CARGO_BIN_EXE_tenon-bench"));
        bench.args(words).arg("--out").arg(&scratch.0);
        let output = ended(bench);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let ask =
            format!("SELECT vacuum_count || ' ' || analyze_count FROM pg_stat_user_tables WHERE relname = '{table}'");
        // The counts come from its processes when they have time.
        let tended = || postgres::query(&target, &ask).expect("an answer") == ["2 2"];
        assert!(
            (0..100).any(|_| tended() || {
                std::thread::sleep(Duration::from_millis(100));
                false
            }),
            "{table}"
        );
    }
}

/// How many clients a server has before and after a load, beside who asks.
struct Counted(Target, Vec<u64>);

impl Observer for Counted {
    fn begins(&mut self) -> anyhow::Result<()> {
        self.1.push(connected(&self.0));
        Ok(())
    }

    fn ended(&mut self) -> anyhow::Result<()> {
        self.begins()
    }
}

fn ask(target: &Target, words: &[&[u8]]) -> Value {
    let mut client =
        tenon_client::Resp::connect_to(&target.address, Some(Duration::from_secs(30))).expect("it listens");
    client.call(words).expect("an answer")
}

fn connected(target: &Target) -> u64 {
    let Value::Bulk(info) = ask(target, &[b"INFO", b"clients"]) else { panic!("INFO is text") };
    let text = String::from_utf8_lossy(&info);
    let line = text.lines().find_map(|line| line.strip_prefix("connected_clients:")).expect("they are counted");
    line.trim().parse::<u64>().expect("a number") - 1
}

#[test]
fn several_processes_load_a_server_together() {
    let Some(redis) = Redis::start("processes", 1) else { return };
    let bench = Path::new(env!("CARGO_BIN_EXE_tenon-bench"));
    let stop = AtomicBool::new(false);
    let job = |work, until| Job {
        target: redis.target.clone(),
        layout: Layout::new(4, 20),
        work,
        updates: Updates::Whole,
        connections: 7,
        threads: 2,
        pipeline: 4,
        pace: Pace::Closed,
        until,
        cores: Vec::new(),
    };
    let size = || match redis.ask(&[b"ZCARD", b"_indices"]) {
        Value::Int(size) => u64::try_from(size).expect("a count"),
        other => panic!("{other:?}"),
    };
    let mut seen = Counted(redis.target.clone(), Vec::new());
    let load = job(Work::Load { records: 1_000 }, Until::Exhausted).orders(3).expect("it can be shared out");
    let outcome = processes::run(bench, &load, &mut seen, &stop).expect("it runs");
    assert_eq!((outcome.operations, outcome.latency().count(), size()), (1_000, 1_000, 1_000));
    assert_eq!(seen.1, [7, 7], "all connections are open before and after");

    let mix = YcsbMix::of("WF").expect("known");
    let run = job(
        Work::Run { mix, records: 1_000, first_new: 1_000, expected_new: 0, seed: 1 },
        Until::Elapsed(Duration::from_millis(300)),
    );
    let outcome = processes::run(bench, &run.orders(3).expect("shared"), &mut (), &stop).expect("it runs");
    let inserted = outcome.kinds.iter().find(|(kind, _)| *kind == "insert").map_or(0, |(_, latency)| latency.count());
    assert!(inserted > 0 && inserted < outcome.operations);
    assert_eq!(size(), 1_000 + inserted, "no two processes insert the same record");

    let some = job(
        Work::Run { mix: YcsbMix::of("C").expect("known"), records: 1_000, first_new: 1_000, expected_new: 0, seed: 1 },
        Until::Operations(500),
    );
    let outcome = processes::run(bench, &some.orders(3).expect("shared"), &mut (), &stop).expect("it runs");
    assert_eq!(outcome.operations, 500, "each does its part of them");

    let mix = YcsbMix::of("WG").expect("known");
    let new = Work::Run { mix, records: 1_000, first_new: 1 << 40, expected_new: 0, seed: 1 };
    let run = job(new, Until::Elapsed(Duration::from_millis(300)));
    let (before, outcome) =
        (size(), processes::run(bench, &run.orders(2).expect("shared"), &mut (), &stop).expect("it runs"));
    let count = |name| outcome.kinds.iter().find(|(kind, _)| *kind == name).map_or(0, |(_, latency)| latency.count());
    assert!(count("delete") > 0 && count("insert") > 0);
    assert_eq!(size(), before + count("insert") - count("delete"), "nothing of what is inserted was there already");

    // Reads of records that are not there are wrong answers, and one process's failure is all's.
    let beyond = job(
        Work::Run { mix, records: 1 << 40, first_new: 1 << 40, expected_new: 0, seed: 1 },
        Until::Elapsed(Duration::from_secs(600)),
    );
    let error = processes::run(bench, &beyond.orders(2).expect("shared"), &mut (), &stop).expect_err("no such records");
    assert!(error.to_string().contains("a process of the client"), "{error:#}");
}

#[test]
fn ycsb_inserts_no_record_twice_from_any_number_of_connections() {
    let Some(redis) = Redis::start("insertions", 1) else { return };
    let run = |workloads: &str| {
        let words =
            ["ycsb", "--quick", "--seconds", "0.05", "--rounds", "2", "--keys", "300", "--workloads", workloads];
        redis.measured(&words);
        std::fs::read_to_string(redis.scratch.0.join("ycsb.jsonl")).expect("results")
    };
    let measured = run("D,E,WG");
    assert_eq!([50, 1, 48].map(|of| measured.matches(&format!("\"connections\":{of}.0")).count()), [4, 2, 2]);
    let Value::Bulk(statistics) = redis.ask(&[b"INFO", b"commandstats"]) else { panic!("INFO is text") };
    let statistics = String::from_utf8_lossy(&statistics).into_owned();
    let calls = |command: &str| {
        let line = statistics.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
        line.map_or(0, |line| line.split(',').next().and_then(|calls| calls.parse::<i64>().ok()).expect("a number"))
    };
    // Warm-ups, rounds and workloads together.
    assert!(calls("zadd") > 300, "{statistics}");
    // Those that were there at first were loaded twice, in each study's form.
    assert_eq!(redis.ask(&[b"ZCARD", b"_indices"]), Value::Int(calls("zadd") - 300 - calls("zrem")));

    // The Waterloo study's own come from its numbers of connections.
    redis.ask(&[b"FLUSHALL"]);
    let results = run("WF");
    let of = |connections: u64| results.matches(&format!("\"connections\":{connections}.0")).count();
    assert_eq!((results.matches("\"server\":").count(), of(1), of(48)), (4, 2, 2), "{results}");
}

#[test]
fn ycsb_is_offered_more_and_more_until_a_server_is_saturated() {
    let Some(redis) = Redis::start("offered", 1) else { return };
    let words = ["ycsb-load", "--quick", "--seconds", "0.1", "--keys", "300", "--workloads", "F", "--json"];
    // In no order.
    let rates = ["--rates", "20000000,1000,10000000", "--client-processes", "2"];
    let output = redis.measured(&[&words[..], &rates].concat());
    let records: Vec<serde_json::Value> = serde_json::from_slice(&output).expect("JSON and nothing else");
    let rates: Vec<f64> = records.iter().filter_map(|record| record["case"]["target op/s"].as_f64()).collect();
    // A machine that gives nobody any time is saturated at once.
    assert!(rates == [1e3, 1e7] || rates == [1e3], "nobody carries ten million: {rates:?}");
    assert!(records[0]["figures"]["client_late_p99_us"].is_f64(), "an open loop knows it: {}", records[0]);
}

#[test]
fn an_old_redis_reads_with_all_its_threads() {
    let Some(redis) = Redis::start("threads", 2) else { return };
    let asked = |name: &[u8]| match redis.ask(&[b"CONFIG", b"GET", name]) {
        Value::Array(pair) => pair.into_iter().nth(1),
        other => panic!("{other:?}"),
    };
    assert_eq!(asked(b"io-threads"), Some(Value::Bulk(b"2".to_vec())));
    // Newer ones know no such setting, or do as it says anyway.
    if redis.server.program.version.starts_with("7.") {
        assert_eq!(asked(b"io-threads-do-reads"), Some(Value::Bulk(b"yes".to_vec())));
    }
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let Some(program) = installed("redis-server") else { return };
    let scratch = scratch("unstartable");
    let settings = Settings { eviction: Some("no-such-policy"), ..Settings::new(1, &[], &scratch) };
    let error = program.start(&settings).expect_err("it refuses");
    assert!(format!("{error:#}").contains("last words"), "{error:#}");
    std::fs::remove_dir_all(scratch).expect("nothing holds it");
}
