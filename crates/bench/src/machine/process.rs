//! Memory of a process and the limits of this one. Knows nothing of what they do.

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;

/// Resident memory of a process in bytes.
pub fn resident_bytes(pid: u32) -> Result<u64> {
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
    }
}
