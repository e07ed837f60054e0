//! The whole server under AddressSanitizer or ThreadSanitizer while the tests drive it. Knows nothing of the tests.

use crate::workspace::Workspace;
use crate::{fuzz, process};
use anyhow::{Context, Result, bail};
use std::fs;
use std::process::Command;

/// What to look for, and by which tests.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// Which sanitizer it is.
    pub sanitizer: Sanitizer,
    /// Only tests whose name contains it.
    pub filter: Option<String>,
}

/// Which faults are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sanitizer {
    /// Memory that is used after it was freed, or past its end.
    Address,
    /// Data races.
    Thread,
}

impl Sanitizer {
    /// The one of this name, as the compilers call it.
    pub fn named(name: &str) -> Option<Sanitizer> {
        [Sanitizer::Address, Sanitizer::Thread].into_iter().find(|sanitizer| sanitizer.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Sanitizer::Address => "address",
            Sanitizer::Thread => "thread",
        }
    }

    /// The variable that it reads its options from.
    fn variable(self) -> &'static str {
        match self {
            Sanitizer::Address => "ASAN_OPTIONS",
            Sanitizer::Thread => "TSAN_OPTIONS",
        }
    }
}

/// Builds the server with the sanitizer, the standard library and Lua too, and runs the tests that start servers. Each report
/// is a file; one is a failure. So is what debug assertions and overflow checks find.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    if !fuzz::has_nightly() {
        bail!("no nightly toolchain: `rustup toolchain install nightly --component rust-src`");
    }
    let name = options.sanitizer.name();
    let target = workspace.target.join("sanitize").join(name);
    let host = host(workspace)?;
    process::run(build(workspace, name, &host).arg("--target-dir").arg(&target))?;

    let reports = target.join("reports");
    let _ = fs::remove_dir_all(&reports);
    fs::create_dir_all(&reports).context("the folder for reports cannot be made")?;
    let mut command = process::cargo(workspace);
    command.args(["test", "--package", "tenon-testkit", "--tests", "--no-fail-fast"]).args(&options.filter);
    command.env("TENON_BIN", target.join(host).join("release/tenon"));
    // At its end the server leaves its keys to the system, and tables hold addresses with tags, which no search for leaks finds.
    let log = reports.join(name);
    command.env(options.sanitizer.variable(), format!("log_path='{}':detect_leaks=0", log.display()));
    let tested = process::run(&mut command);
    let found: Vec<String> =
        fs::read_dir(&reports)?.map(|file| Ok(file?.path().display().to_string())).collect::<Result<_>>()?;
    if !found.is_empty() {
        bail!("the sanitizer has found something:\n{}", found.join("\n"));
    }
    tested
}

fn build(workspace: &Workspace, name: &str, host: &str) -> Command {
    let mut command = process::nightly(workspace, "cargo");
    let own = std::env::var("RUSTFLAGS").unwrap_or_default();
    let flags = format!("{own} -Zsanitizer={name} --cfg sanitized --cfg sanitized=\"{name}\"");
    command.env("RUSTFLAGS", flags.trim_start());
    // Of C code all that becomes part of the server, but not what build scripts are made of.
    let c_flags = format!("CFLAGS_{}", host.replace('-', "_"));
    command.env(c_flags, format!("-fsanitize={name} -fno-omit-frame-pointer"));
    let profile = [("LTO", "off"), ("CODEGEN_UNITS", "16"), ("DEBUG_ASSERTIONS", "true"), ("OVERFLOW_CHECKS", "true")];
    for (setting, value) in profile {
        command.env(format!("CARGO_PROFILE_RELEASE_{setting}"), value);
    }
    command.args(["build", "--release", "--package", "tenon-server", "--bin", "tenon"]);
    command.args(["-Zbuild-std", "--target", host]);
    command
}

/// The machine's own target: what is built for it by that name leaves build scripts without the sanitizer.
fn host(workspace: &Workspace) -> Result<String> {
    let version = process::output(process::nightly(workspace, "rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say what it runs on")?.to_owned())
}
