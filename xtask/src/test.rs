//! Running the workspace's tests and saying what they left out. Knows nothing of what a test does; a test that leaves
//! something out writes a line that begins with `skipped:` to the real standard error, past the test harness.

use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// How to run the tests.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// Unoptimised server, few cases for each property test.
    pub quick: bool,
    /// Only tests whose name contains it.
    pub filter: Option<String>,
}

/// Programs that tests need, and the package (by Debian's name) that has them.
static ORACLES: [(&str, &str); 3] =
    [("redis-server", "redis-server"), ("redis-cli", "redis-tools"), ("memcached", "memcached")];

/// Begins the line of a test that left something out.
const SKIPPED: &str = "skipped:";

/// Stands in the line that sums up a set of transcripts of which some were left out.
const SOME_SKIPPED: &str = "; skipped ";

/// Builds the server, runs the tests, and says at the end what was skipped.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    // End-to-end tests start the binary as a newcomer would.
    let profile = if options.quick { "dev" } else { "release" };
    let directory = if options.quick { "debug" } else { "release" };
    let mut server = process::cargo(workspace);
    server.args(["build", "--package", "tenon-server", "--profile", profile]);
    let mut tests = process::cargo(workspace);
    tests.args(["test", "--workspace", "--no-run"]);
    // Linking the server as a whole is work for one core.
    process::run_two_at_a_time(vec![server, tests])?;

    let mut command = process::cargo(workspace);
    command.args(["test", "--workspace", "--no-fail-fast"]).args(&options.filter);
    command.env("TENON_BIN", workspace.tenon(directory)).stderr(Stdio::piped());
    if options.quick {
        command.env("PROPTEST_CASES", "16");
    }
    let line = process::line(&command);
    eprintln!("$ {line}");
    let mut child = command.spawn().with_context(|| format!("`{line}` could not be started"))?;
    let mut skipped = missing_programs();
    let stderr = child.stderr.take().context("the standard error of the tests is not piped")?;
    for said in BufReader::new(stderr).split(b'\n') {
        let said = said.context("the standard error of the tests cannot be read")?;
        let said = String::from_utf8_lossy(&said);
        eprintln!("{said}");
        skipped.extend(left_out(&said));
    }
    let status = child.wait()?;
    if !skipped.is_empty() {
        println!("\nNot everything was tested:");
        skipped.iter().for_each(|what| println!("  - {what}"));
    }
    if !status.success() {
        bail!("`{line}`: {status}");
    }
    Ok(())
}

/// What a line on the standard error says was left out.
fn left_out(line: &str) -> Option<String> {
    let line = line.trim();
    match line.strip_prefix(SKIPPED) {
        Some(what) => Some(what.trim().to_owned()),
        None => line.contains(SOME_SKIPPED).then(|| line.to_owned()),
    }
}

fn missing_programs() -> BTreeSet<String> {
    let missing = ORACLES.iter().filter(|(program, _)| process::find(program).is_none());
    missing
        .map(|(program, package)| format!("whatever needs {program}: install the package `{package}` to include it"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_found() {
        assert_eq!(left_out("skipped: no IPv6").as_deref(), Some("no IPv6"));
        let summed_up = "transcripts against redis-server: 2 files, 9 steps; skipped 1: needs redis-server 8.4";
        assert_eq!(left_out(summed_up).as_deref(), Some(summed_up));
        assert_eq!(left_out("     Running unittests src/lib.rs"), None);
    }
}
