//! What the kernel says about a process: CPU time, memory, instructions. Knows nothing of what the process does.

use anyhow::{Context, Result};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// CPU time of all threads of a process, the ended ones among them.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid.cast_signed()));
    Ok(clock.and_then(clock_gettime).with_context(|| format!("process {pid} has no CPU clock"))?.into())
}

/// CPU time of the calling thread.
pub fn own_thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// What of a process's CPU time was its own code's, as far as the kernel's clock ticks tell.
pub fn user_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    let ticks = user_ticks(&text).with_context(|| format!("{path}: {text:?}"))?;
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// Field 14 of /proc/PID/stat (proc(5)); the name before it may hold blanks, but ends with the last `)`.
fn user_ticks(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(11)?.parse().ok()
}

/// Resident memory of a process in bytes.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    // The rollup adds up the pages; the status file's counter lags.
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
    if let Some(bytes) = rollup.ok().and_then(|text| kilobytes(&text, "Rss:")) {
        return Ok(bytes);
    }
    counted_resident_bytes(pid)
}

/// Resident memory of a process in bytes, as the kernel's counter has it: it is read at once, and lags by up to a batch
/// of pages for each core.
pub fn counted_resident_bytes(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    kilobytes(&text, "VmRSS:").with_context(|| format!("{path} has no VmRSS"))
}

/// Resident memory of a process in bytes, of shared pages its part.
pub fn proportional_bytes(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let rollup = fs::read_to_string(&path).with_context(|| path.clone())?;
    kilobytes(&rollup, "Pss:").with_context(|| format!("{path} has no Pss"))
}

/// The processes that a process has made.
pub fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Instructions a process has executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// In its own code.
    pub user: u64,
    /// In the kernel on its behalf.
    pub kernel: u64,
}

/// A running `perf stat` that counts a process's instructions.
#[derive(Debug)]
pub struct Perf {
    child: Child,
}

const EVENTS: &str = "instructions:u,instructions:k";

impl Perf {
    /// Whether perf is installed and may count here; virtual machines often hide the counters.
    pub fn available() -> bool {
        let output = Command::new("perf").args(["stat", "-x", ",", "-e", EVENTS, "true"]).output();
        output.is_ok_and(|output| counts(&String::from_utf8_lossy(&output.stderr)).is_some())
    }

    /// Begins to count all threads of `pid`.
    pub fn attach(pid: u32) -> Result<Perf> {
        let mut command = Command::new("perf");
        command.args(["stat", "-x", ",", "-e", EVENTS, "-p", &pid.to_string()]);
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("perf")?;
        // Perf says nothing when it has attached; what it misses of the start is small beside a run of seconds.
        std::thread::sleep(Duration::from_millis(100));
        Ok(Perf { child })
    }

    /// Ends the counting.
    pub fn stop(self) -> Result<Instructions> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).context("perf cannot be stopped")?;
        let output = self.child.wait_with_output().context("perf")?;
        let text = String::from_utf8_lossy(&output.stderr);
        counts(&text).with_context(|| format!("perf counted nothing: {text}"))
    }
}

/// The counts from `perf stat -x ,`: a line each event, the count first, the event third (perf-stat(1)).
fn counts(text: &str) -> Option<Instructions> {
    let count = |event: &str| {
        let line = text.lines().find(|line| line.split(',').nth(2) == Some(event))?;
        line.split(',').next()?.parse().ok()
    };
    Some(Instructions { user: count("instructions:u")?, kernel: count("instructions:k")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(user_ticks("7 (a ) b) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0"), Some(150));
        assert_eq!(kilobytes("Name:\tx\nVmRSS:\t    1028 kB\n", "VmRSS:"), Some(1028 * 1024));
        let own = std::process::id();
        assert!(resident_bytes(own).unwrap() > 0);
        assert!(cpu_time(own).unwrap() > Duration::ZERO);
    }

    #[test]
    fn perf_counts_or_says_that_it_cannot() {
        let counted = "1200,,instructions:u,100,100.00,,\n3400,,instructions:k,100,100.00,,\n";
        assert_eq!(counts(counted), Some(Instructions { user: 1200, kernel: 3400 }));
        let refused = "<not supported>,,instructions:u,0,100.00,,\n<not supported>,,instructions:k,0,100.00,,\n";
        assert_eq!(counts(refused), None);
    }
}
