//! A start that fails: what it leaves alone, and where it says why.
#![allow(missing_docs)]

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use tenon_testkit::patience::{self, wait_until};
use tenon_testkit::server::{Folder, tenon_binary};

/// What a server says that is started on an address which this test has.
fn start_on_taken_port(folder: &Path, settings: &[&str]) -> Output {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("it has an address").port().to_string();
    let mut command = Command::new(tenon_binary().expect("it is built"));
    command.args(["--port", &port, "--memcached-port", "0", "--save", "", "--dir"]).arg(folder).args(settings);
    let output = patience::run(&mut command).expect("tenon runs");
    if settings.contains(&"--daemonize") {
        let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
        wait_until("the end in the background", || log().contains("ERROR cannot listen on"));
    }
    output
}

#[test]
fn the_log_of_who_has_the_address_stays_where_it_is() {
    let folder = Folder::new().expect("a folder of our own");
    let old = folder.path.join("appendonly.aof");
    fs::write(&old, "*1\r\n$4\r\nPING\r\n").expect("it is written");
    let output = start_on_taken_port(&folder.path, &["--appendonly", "yes"]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && why.starts_with("tenon: cannot listen on 127.0.0.1:"), "{why}");
    let left: Vec<_> =
        fs::read_dir(&folder.path).expect("it is there").map(|file| file.expect("a file").path()).collect();
    assert_eq!(left, [old]);
}

#[test]
fn a_start_in_the_background_says_in_its_log_why_it_fails() {
    let folder = Folder::new().expect("a folder of our own");
    let output = start_on_taken_port(&folder.path, &["--daemonize", "yes", "--logfile", "log"]);
    // As with Redis, whoever has started it is gone by then.
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_background_without_its_directory_or_log_is_refused_while_somebody_listens() {
    let folder = Folder::new().expect("a folder of our own");
    let output = start_on_taken_port(&folder.path.join("nosuch"), &["--daemonize=yes"]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && why.ends_with("nosuch': No such file or directory\n"), "{why}");
    let output = start_on_taken_port(&folder.path, &["--daemonize=yes", "--logfile", "nosuch/log"]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && why.starts_with("tenon: cannot log to 'nosuch/log': "), "{why}");
}

#[test]
fn what_needs_no_file_need_not_be_let_into_where_it_is() {
    let folder = Folder::new().expect("a folder of our own");
    let inner = folder.path.join("inner");
    fs::create_dir(&inner).expect("a folder");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&folder.path, closed).expect("it is its own");
    let said = |words: &[&str]| {
        // Root's rights would let it in, so it runs as nobody; who is not root cannot try it.
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(tenon_binary().expect("it is built"));
        let output = patience::run(command.args(words).current_dir(&inner)).ok()?;
        Some(String::from_utf8_lossy(&output.stderr).into_owned()).filter(|text| !text.starts_with("setpriv"))
    };
    // An address that this machine has not.
    let Some(as_memcached) = said(&["memcached", "-l", "192.0.2.1", "-p", "1"]) else { return };
    assert!(as_memcached.contains("192.0.2.1"), "{as_memcached}");
    let other = said(&["--bind", "192.0.2.1", "--memcached-port", "0"]).expect("it was run");
    assert!(other.contains("cannot work in dir"), "{other}");
}

#[test]
fn what_comes_from_a_pipe_is_not_read_again_in_the_background() {
    let tenon = tenon_binary().expect("it is built");
    let line = "exec \"$0\" <(printf 'port 0\\nmemcached-port 0\\ndaemonize yes\\n')";
    let output = patience::run(Command::new("bash").args(["-c", line]).arg(tenon)).expect("bash runs");
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && why.contains("daemonize: what comes from"), "{why}");
}
