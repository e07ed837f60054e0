//! Which servers are installed here. Starts none but to ask for its version.

use super::family::Family;
use super::identity;
use super::postgres;
use super::program::Program;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Newer builds than the system's are looked for in this directory's `bin`.
pub const PEERS_VARIABLE: &str = "TENON_PEERS";

/// The file that is measured as `tenon`.
pub const TENON_VARIABLE: &str = "TENON_BIN";

/// Looked for when nobody names any, in the order of the tables' rows.
static USUAL: [&str; 8] = [
    "tenon",
    "redis-server",
    "valkey-server",
    "memcached",
    "redis8-server",
    "valkey9-server",
    "memcached-new",
    "postgres",
];

/// What can be measured, and a line on each server that cannot.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Installed servers.
    pub programs: Vec<Program>,
    /// Why others are missing.
    pub missing: Vec<String>,
}

/// Looks for the servers named: by a program's name, or as `NAME=FILE`. None named: for all that are known.
///
/// # Errors
/// When a server was named that is not there.
pub fn find(named: &[String]) -> anyhow::Result<Found> {
    let mut found = Found::default();
    let names: Vec<&str> = if named.is_empty() { USUAL.to_vec() } else { named.iter().map(String::as_str).collect() };
    for name in names {
        match program(name) {
            Ok(program) => found.programs.push(program),
            Err(why) if named.is_empty() => found.missing.push(format!("{name}: not measured: {why}")),
            Err(why) => anyhow::bail!("{name}: {why}"),
        }
    }
    Ok(found)
}

fn program(name: &str) -> Result<Program, String> {
    let (name, file) = match name.split_once('=') {
        Some((name, file)) => (name, Some(file)),
        None if name.contains('/') => (name.rsplit('/').next().unwrap_or(name), Some(name)),
        None => (name, None),
    };
    let family = Family::of(name).ok_or_else(|| {
        "its name tells no family: write redis...=FILE, valkey...=, memcached...=, postgres...= or tenon...=".to_owned()
    })?;
    let path = match file {
        Some(file) => named(file.into())?,
        None => installed(name)?,
    };
    // It is started in a directory of its own.
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    let (version, said) = version(&path)?;
    let build = identity::of_file(&path, &said);
    Ok(Program { name: name.to_owned(), family, path, version, build })
}

/// A file that was named must be one that can be started.
fn named(file: PathBuf) -> Result<PathBuf, String> {
    match file.metadata() {
        Err(error) => Err(format!("{}: {error}", file.display())),
        Ok(data) if !data.is_file() => Err(format!("{} is no file", file.display())),
        Ok(_) if !is_executable(&file) => Err(format!("{} may not be executed", file.display())),
        Ok(_) => Ok(file),
    }
}

/// A server by its program's name, where programs are.
fn installed(name: &str) -> Result<PathBuf, String> {
    let beside = || Some(std::env::current_exe().ok()?.parent()?.join(name));
    if name == "tenon" {
        if let Some(tenon) = std::env::var_os(TENON_VARIABLE) {
            return named(tenon.into()).map_err(|why| format!("${TENON_VARIABLE} names {why}"));
        }
        if let Some(tenon) = beside().filter(|file| is_executable(file)) {
            return Ok(tenon);
        }
    }
    let peers = std::env::var_os(PEERS_VARIABLE).map(PathBuf::from).or_else(|| {
        let home = PathBuf::from(std::env::var_os("HOME")?);
        Some(home.join(".cache/tenon-peers"))
    });
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    places.extend(peers.map(|peers| peers.join("bin")));
    places.extend(postgres::debians());
    let found = places.into_iter().map(|place| place.join(name)).find(|file| is_executable(file));
    found.ok_or_else(|| match name {
        "tenon" => format!("not beside this program, not in ${TENON_VARIABLE} and not on PATH"),
        _ => format!("not on PATH and not in ${PEERS_VARIABLE}/bin"),
    })
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The program's version, and all that it says when it is asked for it.
fn version(path: &Path) -> Result<(String, String), String> {
    let output = Command::new(path).arg("--version").output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = version_in(&said).ok_or_else(|| "it tells no version".to_owned())?;
    Ok((version, said))
}

fn version_in(said: &str) -> Option<String> {
    let mut words = said.split_whitespace().map(|word| word.trim_start_matches("v=").trim_start_matches('v'));
    words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_servers_say() {
        for (said, version) in [
            ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=d8", "7.0.15"),
            ("Valkey server v=9.1.0 sha=00000000:0", "9.1.0"),
            ("memcached 1.6.18", "1.6.18"),
            ("tenon 0.1.0", "0.1.0"),
        ] {
            assert_eq!(version_in(said).as_deref(), Some(version));
        }
        assert_eq!(version_in("no idea"), None);
    }

    #[test]
    fn what_was_named_must_be_there() {
        for (named, why) in [
            ("redis-server-of-nobody", "not on PATH"),
            ("redis=/nowhere/redis-server", "/nowhere/redis-server: No such file"),
            ("/nowhere/redis-server", "/nowhere/redis-server: No such file"),
            ("redis=/dev/null", "/dev/null is no file"),
            ("redis=/etc/passwd", "/etc/passwd may not be executed"),
            ("sqlite", "tells no family"),
        ] {
            let said = find(&[named.to_owned()]).expect_err(named).to_string();
            assert!(said.contains(why), "{said}");
        }
    }
}
