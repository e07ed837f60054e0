//! Short runs of the fuzz targets from their saved seeds. Knows nothing of what the targets feed.

use crate::ci::Outcome;
use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::process::Command;

/// The fuzz targets' own workspace, from the root.
pub const MANIFEST: &str = "fuzz/Cargo.toml";

/// What to run, and for how long.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// Seconds for each target.
    pub seconds: u32,
    /// The only target to run.
    pub target: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options { seconds: 20, target: None }
    }
}

/// Runs the targets, two at a time; what they find stays in `fuzz/artifacts`.
pub fn run(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    if !workspace.root.join(MANIFEST).exists() {
        return Ok(Outcome::Skipped(format!("there is no {MANIFEST}")));
    }
    if let Some(reason) = missing_tools(workspace)? {
        return Ok(Outcome::Skipped(reason));
    }
    let targets = targets(workspace)?;
    if let Some(target) = &options.target
        && !targets.contains(target)
    {
        bail!("no fuzz target '{target}': there are {}", targets.join(", "));
    }
    let chosen = targets.iter().filter(|target| options.target.as_ref().is_none_or(|only| only == *target));
    let runs: Vec<Command> = chosen.map(|target| fuzz(workspace, target, options.seconds)).collect::<Result<_>>()?;
    // Before they run: two builds would wait for one another.
    process::run(process::nightly(workspace, "cargo").args(["fuzz", "build"]).args(&options.target))?;
    process::run_two_at_a_time(runs)?;
    Ok(Outcome::Done)
}

/// The run of one target.
fn fuzz(workspace: &Workspace, target: &str, seconds: u32) -> Result<Command> {
    let corpus = format!("fuzz/corpus/{target}");
    std::fs::create_dir_all(workspace.root.join(&corpus)).with_context(|| corpus.clone())?;
    let mut command = process::nightly(workspace, "cargo");
    command.args(["fuzz", "run", target, &corpus]);
    let seeds = format!("fuzz/seeds/{target}");
    if workspace.root.join(&seeds).is_dir() {
        command.arg(seeds);
    }
    // libFuzzer's limits: a slow or greedy input is a finding too.
    command.args(["--", &format!("-max_total_time={seconds}"), "-timeout=10", "-rss_limit_mb=2048"]);
    Ok(command)
}

/// Why fuzzing cannot be done here, after installing what may be installed.
fn missing_tools(workspace: &Workspace) -> Result<Option<String>> {
    if !has_nightly() {
        if !process::in_ci() {
            return Ok(Some("no nightly toolchain: `rustup toolchain install nightly`".into()));
        }
        install_nightly()?;
    }
    if process::find("cargo-fuzz").is_none() {
        if !process::in_ci() {
            return Ok(Some("no cargo-fuzz: `cargo install cargo-fuzz --locked`".into()));
        }
        process::run(process::cargo(workspace).args(["install", "cargo-fuzz", "--locked"]))?;
    }
    Ok(None)
}

/// Whether rustup has a nightly toolchain.
pub fn has_nightly() -> bool {
    let listed = process::output(Command::new("rustup").args(["toolchain", "list"]));
    listed.is_ok_and(|list| list.lines().any(|line| line.starts_with("nightly")))
}

/// Lets rustup install the nightly toolchain.
pub fn install_nightly() -> Result<()> {
    process::run(Command::new("rustup").args(["toolchain", "install", "nightly", "--profile", "minimal"]))
}

fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let manifest = std::fs::read_to_string(workspace.root.join(MANIFEST)).context(MANIFEST)?;
    let manifest: toml::Table = manifest.parse().context(MANIFEST)?;
    let bins =
        manifest.get("bin").and_then(toml::Value::as_array).with_context(|| format!("{MANIFEST} has no [[bin]]"))?;
    Ok(bins.iter().filter_map(|bin| bin.get("name")?.as_str()).map(str::to_owned).collect())
}
