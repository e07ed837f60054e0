//! Memory of a process and the limits of this one. Knows nothing of what they do.

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;

/// Memory of a process in bytes: what is resident; of one that has started others, each one's part of what they share.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    let children = children(pid);
    if children.is_empty() {
        return resident_alone(pid);
    }
    let part = |pid: u32| {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
        rollup.ok().and_then(|text| kilobytes(&text, "Pss:"))
    };
    let own = part(pid).with_context(|| format!("/proc/{pid}/smaps_rollup has no Pss"))?;
    // A child may have ended since it was found.
    Ok(own + children.into_iter().filter_map(part).sum::<u64>())
}

/// The processes that a process has started and that still run.
pub fn children(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    all.filter(|other| parent(*other) == Some(pid)).collect()
}

/// The process that has started a process.
pub fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field behind the name, which may hold blanks but ends with the last `)`.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn resident_alone(pid: u32) -> Result<u64> {
    // The rollup adds up the pages; the status file's counter lags by up to a batch of pages for each thread.
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
    if let Some(bytes) = rollup.ok().and_then(|text| kilobytes(&text, "Rss:")) {
        return Ok(bytes);
    }
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    kilobytes(&text, "VmRSS:").with_context(|| format!("{path} has no VmRSS"))
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Lets this process, and what it starts, open as many files as the system allows it.
pub fn raise_open_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it is refused, the limit stays, and who needs more connections is told so when one cannot be opened.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read() {
        assert_eq!(kilobytes("Name:\tx\nVmRSS:\t    1028 kB\n", "VmRSS:"), Some(1028 * 1024));
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
        let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("sleep");
        assert_eq!(parent(child.id()), Some(std::process::id()));
        assert!(children(std::process::id()).contains(&child.id()));
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }
}
