//! The program's end when it is interrupted or killed: no server outlives it, nor what one has written.

use super::{bench, installed, scratch, script};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};
use tenon_testkit::patience::wait_until;

/// What the bench says. It must have somebody to say it to as long as it runs.
type Lines = std::io::Lines<BufReader<ChildStderr>>;

/// A bench that measures a server of its own for a minute, once it has begun to; none where there is no server.
fn measuring(out: &Path) -> Option<(Child, Vec<i32>, Lines)> {
    if !installed("redis-server") {
        return None;
    }
    let words = ["latency", "--peers", "redis-server", "--seconds", "60", "--keys", "100"];
    let mut child = bench(out, &words).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let begun = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("latency 0/6: resp"));
    assert!(begun, "it measures");
    let started = children(child.id() as i32);
    assert!(started.iter().any(|pid| name(*pid).starts_with("redis-server")), "{started:?}");
    Some((child, started, lines))
}

/// The processes that a process has started.
fn children(parent: i32) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent_field = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
        parent_field == Some(&parent.to_string())
    })
    .collect()
}

fn name(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

/// Waits until none of them runs.
fn wait_for_the_end(pids: &[i32]) {
    let runs = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // One that has ended and was not yet waited for by its new parent has ended.
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while pids.iter().any(runs) {
        assert!(std::time::Instant::now() < deadline, "{pids:?} run on");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn an_interrupted_bench_ends_its_servers() {
    let out = scratch("interrupted");
    let Some((mut child, started, _lines)) = measuring(&out) else { return };
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    assert!(started.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()), "{started:?}");
    assert_eq!(std::fs::read_dir(&out).expect("a directory").count(), 0, "what was cut off is no result");
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn a_server_that_does_not_answer_is_not_waited_for_when_interrupted() {
    let out = scratch("deaf");
    let deaf =
        script(&out, "redis-deaf", "#!/bin/sh\n[ \"$1\" = --version ] && echo v=7.0.0 && exit\nexec sleep 600\n");
    let words = ["latency", "--peers", &deaf.display().to_string(), "--quick"];
    let mut child = bench(&out.join("results"), &words).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    assert!(lines.by_ref().map_while(Result::ok).any(|line| line.contains("starting redis-deaf")), "it starts");
    let since = std::time::Instant::now();
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    // A server has two minutes to answer.
    assert!(since.elapsed() < std::time::Duration::from_secs(60), "{:?}", since.elapsed());
    assert!(lines.map_while(Result::ok).any(|line| line.contains("interrupted")), "and not that it failed");
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn a_killed_bench_leaves_no_server_and_no_files() {
    let out = scratch("killed");
    let Some((mut child, started, _lines)) = measuring(&out) else { return };
    let servers: Vec<i32> = started.into_iter().filter(|pid| name(*pid).starts_with("redis-server")).collect();
    let files = std::env::temp_dir().join(format!("tenon-bench-{}", child.id()));
    assert!(files.is_dir(), "{}", files.display());
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    wait_for_the_end(&servers);
    wait_until("the end of what the server has written", || !files.exists());
    std::fs::remove_dir_all(out).expect("it can go");
}
