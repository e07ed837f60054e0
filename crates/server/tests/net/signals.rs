//! Signals and limits of a process, tried on another one: this test binary again, serving the echo.

use crate::harness::{Connection, PATIENCE, Server, eventually};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use tenon_server::net::FrontEnd;
use tenon_server::signals;

/// How long the served process waits for slow clients, in milliseconds.
const GRACE_MS: &str = "TENON_TEST_GRACE_MS";

/// The limit on open files of the served process; without, the inherited one.
const OPEN_FILES: &str = "TENON_TEST_OPEN_FILES";

#[test]
#[ignore = "the process that the other tests of this file start"]
fn serves_until_a_signal() {
    let grace = Duration::from_millis(std::env::var(GRACE_MS).unwrap().parse().unwrap());
    if let Ok(limit) = std::env::var(OPEN_FILES) {
        let limit = Some(limit.parse().unwrap());
        let old = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: old.maximum }).unwrap();
    }
    let server = Server::start();
    let asked = server.shutdown.clone();
    let on_end = move |_| _ = asked.request(grace);
    let like = signals::Like::Redis;
    signals::listen(like, server.shutdown.clone(), on_end, || false, || (), || println!("\nhangup")).unwrap();
    println!("\nlistens on {}", server.address(FrontEnd::Resp));
    server.shutdown.wait();
    println!("\nstopping");
    server.stop(grace);
}

struct Process {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Process {
    fn start(grace: Duration) -> (Process, Connection) {
        Process::start_with(grace, None)
    }

    fn start_with(grace: Duration, open_files: Option<u64>) -> (Process, Connection) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "signals::serves_until_a_signal", "--ignored", "--nocapture", "--test-threads=1"])
            .env(GRACE_MS, grace.as_millis().to_string())
            .envs(open_files.map(|limit| (OPEN_FILES, limit.to_string())))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let process = Process { child, lines };
        let address = process.told("listens on ");
        let mut connection = Connection::to(address.parse().unwrap());
        connection.ask("hello\n", "hello\n");
        (process, connection)
    }

    /// What follows this in the process's output.
    fn told(&self, before: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("the process tells no more");
            if let Some(told) = line.strip_prefix(before) {
                return told.to_owned();
            }
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    fn exit_code(&mut self) -> Option<i32> {
        eventually("the process to end", || self.child.try_wait().unwrap()).code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        let _ = self.child.kill();
    }
}

#[test]
fn sigterm_and_sigint_answer_what_was_asked_and_exit_well() {
    for signal in [Signal::TERM, Signal::INT] {
        let (mut process, client) = Process::start(PATIENCE);
        client.send("big 20000000\nlast\n");
        process.signal(signal);
        assert!(client.rest().ends_with(b">\nlast\n"));
        assert_eq!(process.exit_code(), Some(0));
    }
}

#[test]
fn a_second_sigint_ends_it_at_once() {
    let (mut process, mut client) = Process::start(PATIENCE * 10);
    client.send("big 100000000\n");
    client.exactly(1);
    process.signal(Signal::INT);
    process.told("stopping");
    process.signal(Signal::INT);
    assert_eq!(process.exit_code(), Some(1));
}

#[test]
fn sighup_and_sigpipe_do_not_end_it() {
    let (mut process, mut client) = Process::start(PATIENCE);
    process.signal(Signal::PIPE);
    process.signal(Signal::HUP);
    process.told("hangup");
    client.ask("alive\n", "alive\n");
    process.signal(Signal::TERM);
    assert_eq!(process.exit_code(), Some(0));
}

#[test]
fn a_process_without_free_descriptors_serves_whom_it_has_and_the_others_later() {
    let (mut process, mut first) = Process::start_with(PATIENCE, Some(40));
    let address = first.stream().peer_addr().unwrap();
    let mut clients: Vec<Connection> = (0..60).map(|_| Connection::to(address)).collect();
    clients.iter().for_each(|client| client.send("served\n"));
    let mut waiting = clients.split_off(50);
    first.ask("still served\n", "still served\n");
    assert_eq!(clients[0].line(), "served\n");
    drop(clients);
    for client in &mut waiting {
        assert_eq!(client.line(), "served\n");
    }
    process.signal(Signal::TERM);
    assert_eq!(process.exit_code(), Some(0));
}
