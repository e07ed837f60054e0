//! The tests that try every order of the steps of threads, under loom. Knows nothing of the tests.

use crate::ci::Outcome;
use crate::process;
use crate::workspace::Workspace;
use anyhow::Result;

/// Runs them, in a target directory of their own: the flag has everything built anew.
pub fn run(workspace: &Workspace) -> Result<Outcome> {
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let mut command = process::cargo(workspace);
    command.env("RUSTFLAGS", format!("{flags} --cfg loom").trim_start());
    command.args(["test", "--package", "tenon-ds", "--lib", "--target-dir"]).arg(workspace.target.join("loom"));
    process::run(command.args(["--", "loom_tests::"]))?;
    Ok(Outcome::Done)
}
