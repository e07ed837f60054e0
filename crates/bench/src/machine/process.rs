//! Memory of a process, its end, and the limits of this one. Knows nothing of what they do.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

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

/// A process, those that it has started, and those that they have, as far as all between them run.
pub fn with_descendants(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parents: Vec<(u32, u32)> = all.filter_map(|child| Some((child, parent(child)?))).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(of) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, parent)| *parent == of).map(|(child, _)| *child));
        next += 1;
    }
    found
}

/// The process that has started a process.
pub fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field behind the name, which may hold blanks but ends with the last `)`.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Asks a child to end and waits for it; nothing is done where it has ended already.
///
/// # Errors
/// When it did not end within `patience`: then it was killed.
pub fn end(child: &mut Child, signal: Signal, patience: Duration) -> Result<()> {
    if child.try_wait()?.is_some() {
        return Ok(());
    }
    kill_process(Pid::from_child(child), signal)?;
    let begin = Instant::now();
    while child.try_wait()?.is_none() {
        if begin.elapsed() > patience {
            child.kill()?;
            child.wait()?;
            bail!("it did not end when asked to");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
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
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn a_child_that_does_not_end_when_asked_to_is_killed() {
        let mut deaf = Command::new("sh");
        deaf.args(["-c", "trap '' INT; echo; exec sleep 600"]).stdout(Stdio::piped());
        let mut deaf = deaf.spawn().expect("sh");
        BufReader::new(deaf.stdout.take().expect("it is piped")).read_line(&mut String::new()).expect("it is ready");
        end(&mut deaf, Signal::INT, Duration::ZERO).expect_err("it ignores the signal");
        assert!(deaf.try_wait().expect("it was waited for").is_some());
        end(&mut deaf, Signal::INT, Duration::ZERO).expect("it has ended");

        let mut willing = Command::new("sleep").arg("600").spawn().expect("sleep");
        // A shell's job in the background passes on that it ignores SIGINT.
        end(&mut willing, Signal::TERM, Duration::from_secs(600)).expect("it ends");
    }

    #[test]
    fn memory_is_read() {
        assert_eq!(kilobytes("Name:\tx\nVmRSS:\t    1028 kB\n", "VmRSS:"), Some(1028 * 1024));
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
        let mut child = Command::new("sleep").arg("600").spawn().expect("sleep");
        assert_eq!(parent(child.id()), Some(std::process::id()));
        assert!(children(std::process::id()).contains(&child.id()));
        assert!(with_descendants(parent(std::process::id()).expect("it has one")).contains(&child.id()));
        assert_eq!(with_descendants(child.id()), [child.id()]);
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }
}
