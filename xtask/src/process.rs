//! Starting other programs and finding them. Knows nothing of what they are for.

use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::{iter, thread};

/// The cargo that runs this program, in the workspace's root.
pub fn cargo(workspace: &Workspace) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(&workspace.root).stdin(Stdio::null());
    without_own_crate(&mut command);
    command
}

/// A program of the nightly toolchain, in the workspace's root.
pub fn nightly(workspace: &Workspace, program: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", program]).current_dir(&workspace.root).stdin(Stdio::null());
    // Cargo names its own toolchain to its children; the nightly one must not inherit that.
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    without_own_crate(&mut command);
    command
}

/// Keeps what cargo says about xtask itself from reaching build scripts and tests of other crates.
fn without_own_crate(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
}

/// Prints the command line, runs it to its end with this terminal, and fails if it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    eprintln!("$ {line}");
    let status = command.status().with_context(|| format!("`{line}` could not be started"))?;
    if !status.success() {
        bail!("`{line}`: {status}");
    }
    Ok(())
}

/// Runs two of the commands at a time, each for one core, until all have run; their lines mix. Fails if one has failed, when
/// all have ended.
pub fn run_two_at_a_time(commands: Vec<Command>) -> Result<()> {
    let rest = Mutex::new(commands.into_iter());
    let next = || rest.lock().unwrap_or_else(PoisonError::into_inner).next();
    let failure = |mut command: Command| run(&mut command).err().map(|error| format!("{error:#}"));
    let run_what_is_left = || iter::from_fn(next).filter_map(failure).collect::<Vec<String>>();
    let failed = thread::scope(|scope| {
        let runners = [(); 2].map(|()| scope.spawn(run_what_is_left));
        runners.map(|runner| runner.join().expect("a run says what failed")).concat()
    });
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    Ok(())
}

/// What the command prints on its standard output, if it ends well.
pub fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("`{line}` could not be started"))?;
    if !output.status.success() {
        bail!("`{line}`: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as one would type it.
pub fn line(command: &Command) -> String {
    let mut words =
        vec![Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    words.join(" ")
}

/// Where `program` lies on PATH.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| is_executable(file))
}

/// Whether `file` may be run.
pub fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file()
}

/// Whether this is a build service's run, where nothing may be left out for want of a tool.
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true" || value == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_have_run_and_what_failed_is_said() {
        assert!(run_two_at_a_time(Vec::new()).is_ok());
        let tests = |numbers: &[&str]| {
            let test = |number: &&str| {
                let mut command = Command::new("test");
                command.args([number, "-lt", "2"]);
                command
            };
            run_two_at_a_time(numbers.iter().map(test).collect())
        };
        assert!(tests(&["0", "1", "1", "0", "1"]).is_ok());
        let failed = tests(&["4", "0", "1", "3", "0"]).unwrap_err().to_string();
        assert!(failed.contains("`test 4 -lt 2`") && failed.contains("`test 3 -lt 2`"), "{failed}");
        assert_eq!(failed.lines().count(), 2, "{failed}");
    }
}
