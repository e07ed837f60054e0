//! The program as people call it: results and reports, and below its end.

mod ends;
mod examples;
mod unmeasured;

use crate::ended::ended;
use crate::toy::{Manners, Toy};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tenon_bench::peers::find;

fn bench(out: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenon-bench"));
    command.args(words).arg("--out").arg(out).stdin(Stdio::null());
    command
}

fn scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("tenon-bench-program-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    directory
}

fn text(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

const SHORT: [&str; 5] = ["--quick", "--seconds", "0.05", "--keys", "200"];

#[test]
fn a_server_that_runs_already_is_measured_and_reported_on() {
    let out = scratch("target");
    let toy = Toy::start(Manners::Good);
    let target = format!("redis://{}", toy.address);
    for experiment in ["latency", "throughput", "skew"] {
        let output = ended(bench(&out, &[&[experiment, "--target", &target], &SHORT[..]].concat()));
        assert!(output.status.success(), "{}", text(&output));
        assert!(text(&output).contains(&format!("| {target} |")), "{}", text(&output));
        for (part, of) in [("| get of 16 keys |", "throughput"), ("| hotspot ", "skew"), ("| sequential ", "skew")] {
            assert_eq!(text(&output).contains(part), experiment == of, "{}", text(&output));
        }
    }
    let json = ended(bench(&out, &[&["latency", "--target", &target, "--json"], &SHORT[..]].concat()));
    let records: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON and nothing else");
    assert_eq!(records.as_array().expect("an array").len(), 2);
    assert!(records[0]["command"].is_null(), "somebody else has started it");
    assert!(records[0]["figures"]["p99_us"].as_f64().expect("a figure") > 0.0);

    let output = ended(bench(&out, &["report"]));
    assert!(output.status.success(), "{}", text(&output));
    let page = std::fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("<section id=\"skew\">") && page.contains("<svg"), "{page}");
    assert!(std::fs::read_to_string(out.join("report.md")).expect("a summary").contains("## Popular keys"));
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn a_server_that_wants_a_password_is_told_it_and_nobody_else_is() {
    let out = scratch("password");
    let toy = Toy::start(Manners::Wants { password: "se:cret" });
    let place = toy.address.to_string();
    let run = |target: &str| ended(bench(&out, &[&["latency", "--target", target], &SHORT[..]].concat()));
    let output = run(&format!("redis://:se%3Acret@{place}"));
    let results = std::fs::read_to_string(out.join("latency.jsonl")).expect("results");
    assert!(output.status.success() && results.matches("\"server\":").count() == 2, "{}", text(&output));
    assert!(text(&output).contains(&format!("| redis://{place} |")), "{}", text(&output));
    assert!(!text(&output).contains("cret") && !results.contains("cret"), "{}\n{results}", text(&output));
    for (wrong, why) in [
        (format!("redis://{place}"), "NOAUTH"),
        (format!("redis://:cretin@{place}"), "the login: "),
        (format!("redis://cretin@{place}"), "no password"),
        (format!("memcache://:cretin@{place}"), "need a user"),
        (format!("http://:cretin@{place}"), "no scheme"),
    ] {
        let said = text(&run(&wrong));
        assert!(said.contains(why) && !said.contains("cretin"), "{said}");
    }
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn a_server_that_loses_keys_fails_the_experiment() {
    let out = scratch("forgets");
    // PING, INFO, 200 sets: then the first get.
    let toy = Toy::start(Manners::Forgets { at: 203 });
    let target = format!("redis://{}", toy.address);
    let output = ended(bench(&out, &[&["latency", "--target", &target], &SHORT[..]].concat()));
    let said = text(&output);
    assert!(!output.status.success() && said.contains("1 runs failed their own check"), "{said}");
    assert!(said.contains("the server has lost 'key:"), "{said}");

    // What failed is measured again, and nothing else is.
    let before = std::fs::read_to_string(out.join("latency.jsonl")).expect("results");
    let kept: Vec<&str> =
        before.lines().filter(|line| line.contains("\"server\":") && !line.contains("\"failure\"")).collect();
    let again = ended(bench(&out, &[&["latency", "--target", &target, "--continue"], &SHORT[..]].concat()));
    assert!(again.status.success(), "{}", text(&again));
    let after = std::fs::read_to_string(out.join("latency.jsonl")).expect("results");
    assert!(
        kept.iter().all(|line| after.contains(line)) && after.matches("\"server\":").count() == 2,
        "{before}\n{after}"
    );
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn a_server_that_loses_what_it_is_only_told_to_store_fails_the_experiment() {
    let out = scratch("swallows");
    // PING, INFO, 200 sets: then the load, which has no gets.
    let toy = Toy::start(Manners::Swallows { from: 203 });
    let target = format!("redis://{}", toy.address);
    let words = ["latency", "--target", &target, "--filter", "set"];
    let output = ended(bench(&out, &[&words, &SHORT[..]].concat()));
    let said = text(&output);
    assert!(!output.status.success() && said.contains("the server has lost 'key:"), "{said}");
    std::fs::remove_dir_all(out).expect("it can go");
}

/// What `--json` printed.
fn records(output: &Output) -> Vec<serde_json::Value> {
    assert!(output.status.success(), "{}", text(output));
    serde_json::from_slice(&output.stdout).expect("JSON and nothing else")
}

#[test]
fn a_suite_prints_one_document() {
    let out = scratch("suite");
    let toy = Toy::start(Manners::Good);
    let target = format!("redis://{}", toy.address);
    // Two experiments have such cases.
    let words = ["suite", "--target", &target, "--filter", "resp, get, value bytes 10", "--json"];
    let measured = records(&ended(bench(&out, &[&words, &SHORT[..]].concat())));
    let mut experiments: Vec<&str> = measured.iter().filter_map(|record| record["experiment"].as_str()).collect();
    experiments.dedup();
    assert_eq!(experiments, ["sizes", "counters"], "{measured:?}");
    let nothing = ended(bench(&out, &["latency", "--target", &target, "--filter", "gte", "--json"]));
    assert_eq!((nothing.status.code(), &nothing.stdout[..]), (Some(1), &b"[]\n"[..]), "{}", text(&nothing));
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn snapshots_are_taken_while_their_price_is_measured() {
    let out = scratch("snapshots");
    if !installed("redis-server") {
        return;
    }
    let words = ["persistence", "--peers", "redis-server", "--filter", "rdb", "--json"];
    let records = records(&ended(bench(&out, &[&words, &SHORT[..]].concat())));
    let [record] = &records[..] else { panic!("one case was asked for: {records:?}") };
    let figures = &record["figures"];
    // Where the files were belongs to it.
    let mut notes = record["notes"].as_array().expect("notes").iter().filter_map(|note| note.as_str());
    assert!(notes.any(|note| note.starts_with("files ")), "{record}");
    assert!(figures["snapshots"].as_f64().expect("they are counted") >= 1.0, "{figures}");
    assert!(figures["snapshot_share"].as_f64().expect("it is known") > 0.0, "{figures}");
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn servers_keep_their_files_where_they_are_told_to() {
    let out = scratch("files");
    let toy = Toy::start(Manners::Good);
    let target = format!("redis://{}", toy.address);
    let nowhere = out.join("nowhere");
    for (directory, why) in [(Path::new("/proc"), "/proc/tenon-bench-"), (&nowhere, "there is no such directory")] {
        let words = ["latency", "--target", &target, "--data-dir", &directory.display().to_string()];
        let output = ended(bench(&out, &[&words, &SHORT[..]].concat()));
        assert!(!output.status.success() && text(&output).contains(why), "{}", text(&output));
    }
    assert!(!nowhere.exists());
    std::fs::remove_dir_all(out).expect("it can go");
}

/// A redis-server that writes down how it is called.
fn telling(directory: &Path) -> (PathBuf, PathBuf) {
    let calls = directory.join("calls");
    let text = format!("#!/bin/sh\necho \"$@\" >> '{}'\nexec redis-server \"$@\"\n", calls.display());
    (script(directory, "redis-telling", &text), calls)
}

/// A script that can be started.
fn script(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).expect("a file");
    executable(&path);
    path
}

fn executable(path: &Path) {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its owner may");
}

#[test]
fn no_log_is_rewritten_while_a_server_is_filled_and_killed() {
    let out = scratch("recovery");
    if !installed("redis-server") {
        return;
    }
    let (program, calls) = telling(&out);
    // With everysec Redis keeps back what it has confirmed while a slow disk still syncs what was before.
    let words = ["recovery", "--peers", &program.display().to_string(), "--filter", "always, keys 200", "--json"];
    let records = records(&ended(bench(&out, &[&words, &SHORT[..]].concat())));
    let command = records[0]["command"].as_str().expect("how it was started is kept");
    assert!(command.contains("redis-telling --bind ") && command.contains(" --appendonly yes "), "{command}");
    let figures = &records[0]["figures"];
    assert_eq!(figures["lost_keys"], 0.0, "{figures}");
    assert!(figures["disk_mb"].as_f64().expect("it is known") > 200.0 * 32.0 / 1e6, "{figures}");
    assert!(figures["recovery_server_cpu_us"].as_f64().expect("it is known") > 0.0, "{figures}");
    let calls = std::fs::read_to_string(calls).expect("it was called");
    let started: Vec<&str> = calls.lines().filter(|line| line.contains("--port")).collect();
    assert_eq!(started.len(), 2, "{calls}");
    assert!(started.iter().all(|line| line.contains("--auto-aof-rewrite-percentage 0")), "{calls}");
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn a_server_is_named_by_where_it_lies_from_here() {
    let out = scratch("relative");
    if !installed("redis-server") {
        return;
    }
    script(&out, "redis-here", "#!/bin/sh\nexec redis-server \"$@\"\n");
    for peer in ["./redis-here", "redis-other=redis-here"] {
        let mut command = bench(&out.join("results"), &[&["latency", "--peers", peer], &SHORT[..]].concat());
        command.current_dir(&out);
        let output = ended(command);
        assert!(output.status.success(), "{peer}: {}", text(&output));
    }
    std::fs::remove_dir_all(out).expect("it can go");
}

/// A redis-server that finds no snapshot when it starts.
fn forgetful(directory: &Path) -> PathBuf {
    script(directory, "redis-forgetful", "#!/bin/sh\nrm -f dump.rdb\nexec redis-server \"$@\"\n")
}

#[test]
fn a_snapshot_that_is_lost_fails_the_run() {
    let out = scratch("forgetful");
    if !installed("redis-server") {
        return;
    }
    let recovery = |peer: &str| {
        let words = ["recovery", "--peers", peer, "--filter", "rdb, keys 200", "--json"];
        ended(bench(&out, &[&words, &SHORT[..]].concat()))
    };
    let kept = records(&recovery("redis-server"));
    let figures = &kept[0]["figures"];
    // What came behind the snapshot is lost, and the rest was read.
    assert_eq!(
        (figures["lost_keys"].as_f64(), figures["read_back_keys"].as_f64()),
        (Some(20.0), Some(180.0)),
        "{figures}"
    );
    let output = recovery(&forgetful(&out).display().to_string());
    let said = text(&output);
    assert!(!output.status.success() && said.contains("180 of the 180 keys that were stored before"), "{said}");
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn ycsb_gives_every_server_the_same_work_and_says_how_much() {
    let out = scratch("ycsb");
    if !installed("redis-server") {
        return;
    }
    let (program, calls) = telling(&out);
    let peers = format!("{},redis-server", program.display());
    let words = ["ycsb", "--quick", "--peers", &peers, "--keys", "300", "--rounds", "2", "--json"];
    let of = |workload: &str| {
        let filter = format!("{workload}, ");
        let words = [&words[..], &["--workloads", workload, "--filter", &filter]].concat();
        records(&ended(bench(&out, &words)))
    };
    let measured = of("WE");
    assert_eq!(measured.len(), 8, "two servers, two rounds, 1 and 48 connections: {measured:?}");
    for record in &measured {
        let (figures, setup) = (&record["figures"], &record["setup"]);
        assert_eq!(figures["operations"], 300.0, "{record}");
        let told = ["records", "operations", "record fields", "field bytes"].map(|name| setup[name].as_str());
        assert_eq!(told, [Some("300"), Some("300"), Some("16"), Some("255")], "{setup}");
        assert!(setup["keys"].is_null() && setup["seconds"].is_null() && setup["connections"].is_null(), "{setup}");
        let alike = |other: &&serde_json::Value| other["case"] == record["case"] && other["round"] == record["round"];
        let inserted = |record: &serde_json::Value| record["figures"]["insert_count"].as_f64().expect("most are");
        assert!(measured.iter().filter(alike).all(|other| inserted(other) == inserted(record)), "{measured:?}");
    }
    // What was inserted is there for no other run.
    let started = || std::fs::read_to_string(&calls).expect("it was called").matches("--port").count();
    assert_eq!(started(), 4);
    assert_eq!(of("WA").len(), 8);
    assert_eq!(started(), 5, "without insertions one is enough");
    let words = [&words[..], &["--workloads", "WA,A", "--filter", "A, "]].concat();
    let mut forms: Vec<[String; 3]> = records(&ended(bench(&out, &words)))
        .iter()
        .map(|record| [&record["case"]["workload"], &record["setup"]["record fields"], &record["setup"]["field bytes"]])
        .map(|form| form.map(|value| value.as_str().expect("it is told").to_owned()))
        .collect();
    forms.sort();
    forms.dedup();
    assert_eq!(forms, [["A", "10", "100"], ["WA", "16", "255"]], "each study has records of its own");
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn results_say_how_they_were_measured_and_not_how_they_were_not() {
    let out = scratch("setups");
    if !installed("memcached") {
        return;
    }
    let run = |words: &[&str]| {
        let words = [&words[..1], &["--json"], &SHORT[..], &words[1..]].concat();
        records(&ended(bench(&out, &words)))
    };
    let toy = Toy::start(Manners::Good);
    let target = format!("redis://{}", toy.address);
    let told = |record: &serde_json::Value, name: &str| record["setup"][name].as_str().map(str::to_owned);
    let latency = run(&["latency", "--target", &target]);
    assert_eq!(told(&latency[0], "connections").as_deref(), Some("1"));
    assert_eq!(told(&latency[0], "keys").as_deref(), Some("200"));
    let sizes = run(&["sizes", "--target", &target, "--filter", "get, value bytes 10"]);
    assert_eq!(told(&sizes[0], "connections").as_deref(), Some("10"));
    // Servers are filled in the language that was asked for.
    let memory = run(&["memory", "--peers", "memcached", "--protocols", "meta", "--filter", "keys 20,"]);
    let [record] = &memory[..] else { panic!("one case was asked for: {memory:?}") };
    assert_eq!((record["case"]["protocol"].as_str(), told(record, "seconds")), (Some("meta"), None));
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn what_a_full_cache_evicts_is_counted() {
    let out = scratch("evicts");
    for peer in ["redis-server", "memcached"] {
        if !installed(peer) {
            continue;
        }
        let words = ["fragmentation", "--quick", "--seconds", "0.05", "--peers", peer, "--json"];
        let measured = records(&ended(bench(&out, &words)));
        assert_eq!(measured.len(), 4, "{measured:?}");
        let evicted: Vec<f64> =
            measured.iter().map(|record| record["figures"]["evicted_keys"].as_f64().expect("it is counted")).collect();
        assert!(evicted[1..].iter().all(|evicted| *evicted > 0.0), "{evicted:?}");
    }
    for protocol in ["resp", "text"] {
        if !installed("tenon") {
            continue;
        }
        let words = ["fragmentation", "--peers", "tenon", "--protocols", protocol, "--filter", "100 to", "--json"];
        let measured = records(&ended(bench(&out, &[&words, &["--quick", "--seconds", "0.05"][..]].concat())));
        let command = measured[0]["command"].as_str().expect("it is kept");
        assert_eq!(command.contains("--maxmemory-counts-startup no"), protocol == "text", "{command}");
    }
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn another_build_is_measured_anew_or_refused() {
    let out = scratch("builds");
    if !installed("redis-server") {
        return;
    }
    let real = find(&["redis-server".to_owned()]).expect("it is there").programs.remove(0);
    // A copy that says another version of itself once it runs.
    let mut changed = std::fs::read(&real.path).expect("it can be read");
    let version = real.version.as_bytes();
    let places: Vec<usize> =
        (0..changed.len() - version.len()).filter(|at| changed[*at..].starts_with(version)).collect();
    for at in places {
        changed[at + version.len() - 1] ^= 1;
    }
    let (copy, which) = (out.join("changed"), out.join("which"));
    std::fs::write(&copy, changed).expect("a file");
    executable(&copy);
    let start = |file: &Path| std::fs::write(&which, file.display().to_string()).expect("a file");
    let text_of = |comment: &str| {
        let which = which.display();
        format!(
            "#!/bin/sh\n# {comment}\n[ \"$1\" = --version ] && exec redis-server \"$1\"\nexec \"$(cat {which})\" \"$@\"\n"
        )
    };
    let program = script(&out, "redis-scripted", &text_of("one"));
    let peer = program.display().to_string();
    let run = || {
        let words = ["latency", "--peers", &peer, "--continue", "--filter", "get"];
        let output = ended(bench(&out, &[&words, &SHORT[..]].concat()));
        (output.status.success(), text(&output), std::fs::read_to_string(out.join("latency.jsonl")).expect("results"))
    };
    start(&real.path);
    let (done, said, results) = run();
    assert!(done && !said.contains("earlier results"), "{said}");
    let record: serde_json::Value = serde_json::from_str(results.lines().nth(1).expect("a line")).expect("JSON");
    assert_eq!(record["said"]["redis_version"], real.version, "{record}");
    let (build, at) = (&record["build"], record["at"].as_str().expect("a time"));
    assert_eq!((build["sha256"].as_str().map(str::len), at.len()), (Some(64), 20), "{record}");
    assert!(build["says"].as_str().is_some_and(|says| says.contains(&real.version)), "{record}");
    assert!(said.contains("- Measured at 20") && said.contains("SHA-256 "), "{said}");

    // The same file: it is there already.
    assert_eq!(run().2, results);
    // The same file, which starts another program: no result of it stands beside the earlier ones.
    start(&copy);
    let words = ["latency", "--peers", &peer, "--continue", "--filter", "set"];
    let output = ended(bench(&out, &[&words, &SHORT[..]].concat()));
    assert!(
        !output.status.success() && text(&output).contains("is another build than was measured earlier"),
        "{}",
        text(&output)
    );
    // Another file.
    start(&real.path);
    script(&out, "redis-scripted", &text_of("two"));
    let (done, said, results) = run();
    assert!(
        done && said.contains("redis-scripted: earlier results are of ") && said.contains("measured anew"),
        "{said}"
    );
    assert_eq!(
        results.lines().filter(|line| line.contains("\"server\":") && !line.contains("\"failure\"")).count(),
        2,
        "{results}"
    );
    assert_eq!(said.matches("| build ").count(), 2, "each row says which: {said}");
    std::fs::remove_dir_all(out).expect("it can go");
}

/// A server that tells its version and cannot be started.
fn broken(directory: &Path) -> PathBuf {
    script(directory, "redis-broken", "#!/bin/sh\n[ \"$1\" = --version ] && echo v=7.0.0\n")
}

#[test]
fn a_server_goes_through_all_steps_whatever_is_kept_of_them() {
    let out = scratch("steps");
    if !installed("redis-server") {
        return;
    }
    let log = out.join("log.tsv");
    std::fs::write(&log, "host\tstatus\tbytes\na\t200\t7000\nb\t404\t0\n").expect("a file");
    let log = log.display().to_string();
    let weblog = |words: &[&str]| {
        let output = ended(bench(&out, &[&["weblog", "--quick", "--weblog", &log], words].concat()));
        let lines = std::fs::read_to_string(out.join("weblog.jsonl")).expect("results");
        (output, lines.lines().filter(|line| line.contains("\"server\":")).map(str::to_owned).collect::<Vec<String>>())
    };
    // Only the searches, which find what the steps before them have stored. A server that cannot be started takes no other
    // with it.
    let peers = format!("redis-broken={},redis-server", broken(&out).display());
    let (output, lines) = weblog(&["--peers", &peers, "--filter", "records 1000, query"]);
    assert!(!output.status.success() && text(&output).contains("2 runs had no server"), "{}", text(&output));
    let count = |lines: &[String], part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!(
        (
            lines.len(),
            count(&lines, "\"query in the"),
            count(&lines, "could not be started: redis-broken ended before it answered")
        ),
        (4, 4, 2)
    );
    assert_eq!(count(&lines, "\"matches\":500.0"), 2, "{lines:?}");
    assert_eq!(count(&lines, "\"server_cpu_us\":"), 2, "inside the server, too: {lines:?}");

    // What is there stays, and what is not finds what those have stored.
    let kept = |lines: &[String]| -> Vec<String> {
        lines.iter().filter(|line| !line.contains("\"failure\"")).cloned().collect()
    };
    let before = kept(&lines);
    let (output, lines) = weblog(&["--peers", "redis-server", "--continue"]);
    assert!(output.status.success(), "{}", text(&output));
    let after = kept(&lines);
    assert!(before.iter().all(|line| after.contains(line)) && after.len() == 12, "{before:?} {after:?}");
    // Nothing is left to do.
    let (output, lines) = weblog(&["--peers", "redis-server", "--continue"]);
    assert!(output.status.success() && kept(&lines) == after, "{}", text(&output));
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn a_server_that_refuses_the_records_is_not_measured_on_them() {
    let out = scratch("refuses");
    // It knows no records.
    let toy = Toy::start(Manners::Good);
    let target = format!("redis://{}", toy.address);
    let words = ["ycsb", "--target", &target, "--workloads", "A,D,E", "--quick", "--keys", "100"];
    let output = ended(bench(&out, &words));
    let said = text(&output);
    let failed = format!("failed: resp, connections 50, {target}: the server could not be filled: ");
    assert!(said.contains(&failed) && said.contains("1 runs had no server"), "{said}");
    assert!(output.status.code() == Some(1) && said.matches("failed: ").count() == 1, "{said}");
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn a_run_is_not_continued_with_other_sizes() {
    let out = scratch("sizes");
    let toy = Toy::start(Manners::Good);
    let target = format!("redis://{}", toy.address);
    let lines = |keys: &str| {
        let words = ["latency", "--target", &target, "--continue", "--quick", "--seconds", "0.05", "--keys", keys];
        let output = ended(bench(&out, &words));
        assert!(output.status.success(), "{}", text(&output));
        (
            std::fs::read_to_string(out.join("latency.jsonl")).expect("results").matches("\"server\":").count(),
            text(&output),
        )
    };
    assert_eq!(lines("100").0, 2);
    assert_eq!(lines("100").0, 2, "what is there need not be measured again");
    let (measured, said) = lines("200");
    assert_eq!(measured, 4);
    assert!(said.contains("| keys 100") && said.contains("| keys 200"), "{said}");
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn servers_of_one_name_are_refused() {
    let out = scratch("names");
    let toy = Toy::start(Manners::Good);
    let target = format!("redis://{}", toy.address);
    let output = ended(bench(&out, &["latency", "--target", &target, "--target", &target]));
    let said = text(&output);
    assert!(!output.status.success() && said.contains(&format!("two servers are called {target}")), "{said}");

    // Whatever tells its version passes for a server that could be started.
    let program = |directory: &str| {
        let file = out.join(directory).join("tenon");
        std::fs::create_dir_all(out.join(directory)).expect("a directory");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tenon-bench"), &file).expect("a link");
        file.display().to_string()
    };
    let (one, other) = (program("a"), program("b"));
    let output = ended(bench(&out, &["latency", "--peers", &format!("{one},{other}")]));
    let said = text(&output);
    assert!(!output.status.success() && said.contains("two servers are called tenon"), "{said}");
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn the_client_divides_the_keys_over_nodes_that_know_nothing_of_each_other() {
    let out = scratch("divided");
    for peer in ["memcached", "tenon"] {
        if !installed(peer) {
            continue;
        }
        let words = ["cluster", "--peers", peer, "--protocols", "text", "--filter", "get, nodes 3", "--json"];
        let words = [&words, &["--quick", "--seconds", "0.05", "--keys", "9"][..]].concat();
        let records = records(&ended(bench(&out, &words)));
        let [record] = &records[..] else { panic!("one case was asked for: {records:?}") };
        // There were keys for each node, and each get has found what was stored under its key, on the node that has it.
        assert!(record["figures"]["get_count"].as_f64().expect("they are counted") > 0.0, "{record}");
    }
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn rounds_go_through_all_cases_and_another_server_is_first_in_each() {
    let out = scratch("order");
    let toys = [Toy::start(Manners::Good), Toy::start(Manners::Good)];
    let [one, other] = toys.each_ref().map(|toy| format!("redis://{}", toy.address));
    let words = ["latency", "--target", &one, "--target", &other, "--rounds", "2"];
    let output = ended(bench(&out, &[&words, &SHORT[..]].concat()));
    assert!(output.status.success(), "{}", text(&output));
    let results = std::fs::read_to_string(out.join("latency.jsonl")).expect("results");
    let order: Vec<(u64, bool, bool)> = results
        .lines()
        .filter(|line| line.contains("\"server\":"))
        .map(|line| {
            let record: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
            let round = record["round"].as_u64().expect("a number");
            (round, record["case"]["operation"] == "set", record["server"] == other[..])
        })
        .collect();
    let round = |round: u64, first: bool| [false, true].map(|set| [(round, set, first), (round, set, !first)]).concat();
    assert_eq!(order, [round(0, false), round(1, true)].concat());
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn servers_are_started_only_for_cases_that_are_left() {
    let out = scratch("left");
    if !installed("redis-server") || !installed("memcached") {
        return;
    }
    let words = ["skew", "--peers", "redis-server,memcached", "--continue", "--filter"];
    let started = |filter: &str| {
        let output = ended(bench(&out, &[&words[..], &[filter], &SHORT[..]].concat()));
        assert!(output.status.success(), "{}", text(&output));
        ["redis-server", "memcached"].map(|peer| text(&output).contains(&format!("starting {peer}")))
    };
    assert_eq!(started("text, get:set 10:1, hotspot"), [false, true]);
    assert_eq!(started("hotspot"), [true, false], "what is there need not be measured again");
    assert_eq!(started("hotspot"), [false, false]);
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn long_values_need_no_more_keys_than_there_are() {
    let out = scratch("few");
    let toy = Toy::start(Manners::Good);
    let target = format!("redis://{}", toy.address);
    let words = ["sizes", "--target", &target, "--filter", "get", "--quick", "--seconds", "0.05", "--keys", "3"];
    let output = ended(bench(&out, &[&words[..], &["--json"]].concat()));
    assert_eq!(records(&output).len(), 5, "{}", text(&output));
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn what_matches_no_case_is_an_error() {
    let out = scratch("no-case");
    let toy = Toy::start(Manners::Good);
    let target = format!("redis://{}", toy.address);
    let measured = ended(bench(&out, &[&["latency", "--target", &target], &SHORT[..]].concat()));
    assert!(measured.status.success(), "{}", text(&measured));
    let results = || std::fs::read_to_string(out.join("latency.jsonl")).expect("results");
    let earlier = results();
    assert_eq!(earlier.matches("\"server\":").count(), 2);
    for (words, why) in [
        (
            ["--filter", "gte"],
            "no case has 'gte' in its name, which --filter asks for: there are 'resp, get', 'resp, set'",
        ),
        (["--protocols", "text"], "no server that takes part speaks text, which --protocols asks for"),
    ] {
        let words = [&["latency", "--target", &target], &words[..], &SHORT[..]].concat();
        let output = ended(bench(&out, &words));
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty() && text(&output).contains(why), "{}", text(&output));
        assert_eq!(results(), earlier, "there is nothing to replace it with");
    }
    for (experiment, why) in [
        ("eviction", "name a trace"),
        ("weblog", "name a log with --weblog"),
        ("memory", "needs servers that the bench starts itself"),
        ("expiry", "needs servers that the bench starts itself"),
        ("recovery", "needs servers that the bench starts itself"),
    ] {
        let output = ended(bench(&out, &[experiment, "--target", &target, "--quick"]));
        assert!(output.status.code() == Some(1) && text(&output).contains(why), "{}", text(&output));
    }
    if installed("memcached") {
        let output = ended(bench(&out, &["recovery", "--peers", "memcached", "--quick"]));
        assert!(text(&output).contains("has no case for the servers that take part, in text"), "{}", text(&output));
    }
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn nothing_to_measure_is_an_error() {
    let out = scratch("nothing");
    let output = ended(bench(&out, &["latency", "--target", "redis://127.0.0.1:1"]));
    assert!(
        !output.status.success() && text(&output).contains("nobody at redis://127.0.0.1:1 answers"),
        "{}",
        text(&output)
    );
    let output = ended(bench(&out, &["report"]));
    assert!(!output.status.success() && text(&output).contains("no results"), "{}", text(&output));
    std::fs::remove_dir_all(out).expect("it can go");
}

/// Whether this server is there; a line on what is left out if it is not.
fn installed(name: &str) -> bool {
    let Err(error) = find(&[name.to_owned()]) else { return true };
    assert!(std::env::var_os("TENON_REQUIRE_ORACLES").is_none(), "{error:#}");
    writeln!(std::io::stderr(), "skipped: the bench is not run on {name}: {error:#}").expect("stderr");
    false
}
