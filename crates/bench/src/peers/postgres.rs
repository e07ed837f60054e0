//! PostgreSQL's own: a cluster of files in a server's directory, and the tables in it. Knows no load.

use super::external::is_local;
use super::program::{Persistence, Program};
use crate::dialects::postgres::TABLE;
use crate::load::opening;
use crate::machine::process::parent;
use crate::target::{Login, Target};
use anyhow::{Context, Result, bail};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tenon_client::Stream;

/// Debian keeps the servers of each version here, out of `PATH`.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The files of a cluster, in a server's directory.
pub const CLUSTER: &str = "cluster";

const PATIENCE: Duration = Duration::from_secs(5);

/// Where Debian has put `postgres`, the newest first.
pub fn debians() -> Vec<PathBuf> {
    let mut versions: Vec<PathBuf> =
        std::fs::read_dir(DEBIAN).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let number = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()).unwrap_or(0);
    versions.sort_by_key(|path| std::cmp::Reverse(number(path)));
    versions.into_iter().map(|version| version.join("bin")).collect()
}

/// Whom PostgreSQL runs as: it refuses to be root.
pub fn run_as(command: &mut Command) -> Result<()> {
    if let Some((user, group)) = other_user()? {
        command.uid(user).gid(group);
    }
    Ok(())
}

/// A user without privileges, where this process has some: `postgres`, else `nobody`.
fn other_user() -> Result<Option<(u32, u32)>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd").context("/etc/passwd")?;
    let found = ["postgres", "nobody"].iter().find_map(|name| user_in(&users, name));
    found.map(Some).context("PostgreSQL does not run as root, and there is no user postgres or nobody")
}

fn user_in(users: &str, name: &str) -> Option<(u32, u32)> {
    let mut words = users.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?.split(':').skip(1);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Makes a cluster in a server's directory, unless there is one.
///
/// # Errors
/// When `initdb` is not beside `postgres`, or fails.
pub fn initialise(program: &Program, directory: &Path) -> Result<()> {
    if directory.join(CLUSTER).exists() {
        return Ok(());
    }
    if let Some((user, group)) = other_user()? {
        std::os::unix::fs::chown(directory, Some(user), Some(group)).context("the cluster's directory")?;
    }
    // A link on PATH may have no initdb beside it.
    let postgres = program.path.canonicalize()?;
    let initdb = postgres.with_file_name("initdb");
    let mut command = Command::new(&initdb);
    command.args(["-D", CLUSTER, "-U", &Login::default().user, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
    command.current_dir(directory).stdin(Stdio::null());
    run_as(&mut command)?;
    let output = command.output().with_context(|| initdb.display().to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!("initdb failed: {}", said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no word"));
    }
    Ok(())
}

/// What its server is called with.
pub fn arguments(port: u16, persistence: Persistence) -> Vec<String> {
    let mut words: Vec<String> =
        ["-D", CLUSTER, "-p", &port.to_string(), "-h", "127.0.0.1"].map(str::to_owned).to_vec();
    let keeps = persistence != Persistence::Off;
    let waits = persistence == Persistence::AofAlways;
    let on = |yes: bool| if yes { "on" } else { "off" };
    for (name, value) in [
        ("unix_socket_directories", ""),
        // One process for each connection.
        ("max_connections", "1000"),
        // The data of a usual run fits.
        ("shared_buffers", "1GB"),
        ("fsync", on(keeps)),
        ("full_page_writes", on(keeps)),
        ("synchronous_commit", on(waits)),
        // It would wake once a minute and work on what was written, whoever is measured then.
        ("autovacuum", "off"),
        // What is not waited for goes to disk within a second.
        ("wal_writer_delay", "1000ms"),
    ] {
        words.extend(["-c".to_owned(), format!("{name}={value}")]);
    }
    words
}

/// Makes the table of plain values, unless there is one.
pub fn make_table(target: &Target, persistence: Persistence) -> Result<()> {
    let kind = if persistence == Persistence::Off { "UNLOGGED TABLE" } else { "TABLE" };
    query(target, &format!("CREATE {kind} IF NOT EXISTS {TABLE} (key text PRIMARY KEY, value bytea NOT NULL)"))?;
    Ok(())
}

/// Gives back what dead rows take and counts anew what there is, as whoever keeps a database has it done when nothing else is
/// to do: this one's does not do so by itself.
pub fn vacuum(target: &Target, table: &str) -> Result<()> {
    query(target, &format!("VACUUM ANALYZE {table}")).map(drop).with_context(|| format!("VACUUM ANALYZE {table}"))
}

/// Runs statements on a connection of their own: the first column of each row.
///
/// # Errors
/// When nobody answers, and what the server refuses.
pub fn query(target: &Target, statements: &str) -> Result<Vec<String>> {
    opening::query(&mut connect(target)?, statements)
}

/// A connection that is logged in, on which a query may take as long as it likes.
///
/// # Errors
/// When nobody answers, and what the server refuses.
pub fn connect(target: &Target) -> Result<Stream> {
    let login = target.login.clone().unwrap_or_default();
    let mut stream = Stream::connect(&target.address, Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    opening::open(&mut stream, &login, &[])?;
    // A query may take as long as it likes.
    stream.set_read_timeout(None)?;
    Ok(stream)
}

/// The version, and the process that all its others belong to, if it runs on this machine.
pub fn version_and_process(target: &Target) -> Result<(String, Option<u32>)> {
    let mut stream = connect(target)?;
    let ask = "SELECT current_setting('server_version') UNION ALL SELECT pg_backend_pid()::text";
    let mut said = opening::query(&mut stream, ask)?.into_iter();
    let version = said.next().unwrap_or_default();
    let backend = said.next().and_then(|pid| pid.parse().ok());
    let process = backend.filter(|_| is_local(&target.address)).and_then(parent);
    // The process of the connection is there only as long as this is.
    drop(stream);
    Ok((version.split(' ').next().unwrap_or_default().to_owned(), process))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found() {
        let users = "root:x:0:0::/:\npostgresql:x:1:1::/:\npostgres:x:101:104:PostgreSQL,,,:/var:/bin/sh\n";
        assert_eq!((user_in(users, "postgres"), user_in(users, "nobody")), (Some((101, 104)), None));
    }

    #[test]
    fn nothing_is_done_in_the_background_while_others_are_measured() {
        for persistence in [Persistence::Off, Persistence::AofAlways] {
            assert!(arguments(1, persistence).join(" ").contains(" -c autovacuum=off"));
        }
    }

    #[test]
    fn what_is_kept_is_what_is_asked_for() {
        let line = |persistence| arguments(1, persistence).join(" ");
        assert!(line(Persistence::Off).contains(" fsync=off ") && line(Persistence::AofAlways).contains(" fsync=on "));
        assert!(line(Persistence::AofAlways).contains("synchronous_commit=on"));
        assert!(line(Persistence::AofEverysec).contains("synchronous_commit=off"));
    }
}
