//! Starts the server as a newcomer would and uses it with well-known clients over both ports. Knows no command.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// The folder of shared data beside the project, or beside one of its parents.
fn weblog() -> Option<PathBuf> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|folder| folder.join("shared/data/weblog")).find(|folder| folder.is_dir())
}

/// A Python that has the clients, from `TENON_PYTHON` or the path.
fn python() -> Option<String> {
    let python = std::env::var("TENON_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_clients = Command::new(&python).args(["-c", "import redis, pymemcache, zstandard"]).output();
    has_clients.is_ok_and(|output| output.status.success()).then_some(python)
}

fn skipped(reason: &str) {
    assert!(std::env::var("TENON_REQUIRE_ORACLES").is_err(), "{reason}");
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

#[test]
fn a_web_log_goes_in_through_one_port_and_comes_out_of_the_other() {
    let Some(folder) = weblog() else {
        // The data is no part of the project: its absence is never an error.
        let _ = writeln!(std::io::stderr(), "skipped: the shared web log is not beside the project");
        return;
    };
    let Some(python) = python() else {
        return skipped("the newcomer's test: no Python with the packages redis, pymemcache and zstandard");
    };
    let server = Server::tenon(&[]).expect("tenon starts");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/newcomer/weblog.py");
    let port = |dialect| {
        let address = server.address(dialect).expect("both front ends listen").to_string();
        address.rsplit(':').next().expect("an address ends with its port").to_owned()
    };
    let output = Command::new(python)
        .arg(script)
        .arg(folder)
        .args([port(Dialect::Redis), port(Dialect::Memcache)])
        .output()
        .expect("Python starts");
    assert!(
        output.status.success(),
        "{}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        server.log()
    );
}
