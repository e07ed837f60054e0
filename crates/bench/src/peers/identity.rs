//! Which build a server is: its file, and what it says of itself. Knows not what is measured.

use super::answers::own_figures;
use super::postgres;
use crate::results::{Build, moment};
use crate::target::{Protocol, Target};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What servers say of their build, of all that INFO and memcached's stats have.
const SAID: [&str; 11] = [
    "server_name",
    "tenon_version",
    "valkey_version",
    "redis_version",
    "redis_git_sha1",
    "redis_git_dirty",
    "redis_build_id",
    "mem_allocator",
    "gcc_version",
    "version",
    "libevent",
];

/// The build of a program's file that says this of itself.
pub fn of_file(path: &Path, says: &str) -> Build {
    let says = says.lines().next().unwrap_or_default().trim().to_owned();
    let Ok(text) = std::fs::read(path) else { return Build { says, ..Build::default() } };
    let changed = path.metadata().and_then(|data| data.modified()).map(moment::utc).unwrap_or_default();
    let mut hash = Sha256::new();
    let mut bytes = text.len() as u64;
    hash.update(&text);
    for program in named_in(&text) {
        // What cannot be read is told apart by the script alone.
        let Ok(program) = std::fs::read(program) else { continue };
        bytes += program.len() as u64;
        hash.update(&program);
    }
    Build { says, sha256: in_hex(hash), bytes, changed }
}

/// The SHA-256 of a file's contents, in hexadecimal digits.
///
/// # Errors
/// When it cannot be read.
pub fn sha256_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(in_hex(hash)),
            len => hash.update(&piece[..len]),
        }
    }
}

fn in_hex(hash: Sha256) -> String {
    let mut digits = String::new();
    for byte in hash.finalize() {
        // Writing to a text does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The programs that a script names by whole paths; of what is none, nothing.
fn named_in(text: &[u8]) -> Vec<PathBuf> {
    if !text.starts_with(b"#!") {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(text);
    let words = text.split(|c: char| c.is_whitespace() || "'\"=:;()".contains(c));
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0);
    words.filter(|word| word.starts_with('/')).map(PathBuf::from).filter(is_program).collect()
}

/// What a running server says of its build, by name; nothing where it does not speak of itself.
pub fn said_by(target: &Target) -> BTreeMap<String, String> {
    if target.protocol == Protocol::Postgres {
        let said = postgres::query(target, "SELECT version()").ok().and_then(|rows| rows.into_iter().next());
        return said.map(|version| ("version".to_owned(), version)).into_iter().collect();
    }
    said_in(&own_figures(target).unwrap_or_default())
}

/// The same of all that a server says of itself.
pub fn said_in(figures: &[(String, String)]) -> BTreeMap<String, String> {
    figures.iter().filter(|(name, _)| SAID.contains(&name.as_str())).cloned().collect()
}

/// The same in one line.
pub fn in_a_line(said: &BTreeMap<String, String>) -> String {
    said.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_another_build_with_another_program() {
        let directory = std::env::temp_dir().join(format!("tenon-bench-identity-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let file = |name: &str, text: &str| {
            let path = directory.join(name);
            std::fs::write(&path, text).expect("a file");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its owner may");
            path
        };
        let program = file("program", "one");
        let script = file("script", &format!("#!/bin/sh\nexec '{}' \"$@\"\n", program.display()));
        let before = of_file(&script, "v=1\nand more");
        assert_eq!((before.says.as_str(), before.is(&of_file(&script, "v=1"))), ("v=1", true));
        file("program", "two");
        assert!(!before.is(&of_file(&script, "v=1")));
        // What `sha256sum` says.
        let one = of_file(&file("program", "one"), "");
        assert_eq!(one.sha256, "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed");
        assert_eq!((one.bytes, one.changed.len()), (3, 20));
        assert_eq!(sha256_of(&file("program", "one")).expect("it is there"), one.sha256);
        assert!(!of_file(&directory.join("nobody"), "").is_known());
        std::fs::remove_dir_all(directory).expect("it can go");
    }
}
