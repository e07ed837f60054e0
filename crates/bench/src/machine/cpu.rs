//! CPU time of threads and processes, and how often they were switched. Knows nothing of what they do.

use anyhow::{Context, Result};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use std::fs;
use std::time::Duration;

/// CPU time of the calling thread.
pub fn own_thread() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The part of the calling thread's CPU time in the kernel, by its clock ticks; none where it does not say.
pub fn own_thread_system() -> Option<Duration> {
    let ([_, system], _) = ticks(&fs::read_to_string("/proc/thread-self/stat").ok()?)?;
    Some(seconds(system))
}

/// So many of the kernel's clock ticks.
fn seconds(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// How long the calling thread was ready to run and had no core; zero where the kernel does not say.
pub fn own_thread_queued() -> Duration {
    fs::read_to_string("/proc/thread-self/schedstat").ok().and_then(|text| queued(&text)).unwrap_or_default()
}

/// CPU time of all threads of a process, the ended ones among them, to the nanosecond.
///
/// # Errors
/// When there is no such process.
pub fn of_process(pid: u32) -> Result<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid.cast_signed()));
    let time = clock.and_then(clock_gettime).with_context(|| format!("process {pid} has no CPU clock"))?;
    Ok(time.into())
}

/// What a process has used since its start, and so have the processes that it has started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// All CPU time, to the nanosecond.
    pub total: Duration,
    /// The part in its own code, by the kernel's clock ticks.
    pub user: Duration,
    /// The part in the kernel, by the kernel's clock ticks.
    pub system: Duration,
    /// How often a living thread gave up its core itself.
    pub voluntary: u64,
    /// How often a living thread's core was taken from it.
    pub involuntary: u64,
}

impl Used {
    /// Of a running process and those that it has started, the ended ones to a tick.
    pub fn of(pid: u32) -> Result<Used> {
        let own = Used::of_one(pid)?;
        // A process may end between the listing and the reading; then its parent's record of the ended ones has it.
        let children = super::process::children(pid).into_iter().filter_map(|child| Used::of_one(child).ok());
        Ok(children.fold(own, Used::with))
    }

    /// Both together.
    pub fn with(self, other: Used) -> Used {
        Used {
            total: self.total + other.total,
            user: self.user + other.user,
            system: self.system + other.system,
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
        }
    }

    /// Of a running process alone, and of those that it has started and that have ended.
    pub fn of_one(pid: u32) -> Result<Used> {
        let tasks = format!("/proc/{pid}/task");
        let mut used = Used { total: of_process(pid)?, ..Used::default() };
        for task in fs::read_dir(&tasks).with_context(|| tasks.clone())? {
            let task = task.with_context(|| tasks.clone())?.path();
            // A thread may end between the listing and the reading.
            if let Ok(text) = fs::read_to_string(task.join("status")) {
                used.voluntary += count(&text, "voluntary_ctxt_switches:").unwrap_or(0);
                used.involuntary += count(&text, "nonvoluntary_ctxt_switches:").unwrap_or(0);
            }
        }
        let path = format!("/proc/{pid}/stat");
        let text = fs::read_to_string(&path).with_context(|| path.clone())?;
        let ([user, system], [user_ended, system_ended]) = ticks(&text).with_context(|| format!("{path}: {text:?}"))?;
        (used.user, used.system) = (seconds(user + user_ended), seconds(system + system_ended));
        used.total += seconds(user_ended) + seconds(system_ended);
        Ok(used)
    }

    /// What was used since `before`.
    pub fn since(self, before: Used) -> Used {
        Used {
            total: self.total.saturating_sub(before.total),
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}

/// The second field of schedstat: nanoseconds in the queue of a core.
fn queued(text: &str) -> Option<Duration> {
    text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// Fields 14 to 17 of /proc/PID/stat (proc(5)): user and system time, its own and that of the processes it has started
/// that have ended. The name before them may hold blanks, but ends with the last `)`.
fn ticks(stat: &str) -> Option<([u64; 2], [u64; 2])> {
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(4);
    let fields: Vec<u64> = fields.map(str::parse).collect::<Result<_, _>>().ok()?;
    let (own, ended) = fields.split_first_chunk::<2>()?;
    Some((*own, ended.try_into().ok()?))
}

fn count(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(queued("318912 54320 3\n"), Some(Duration::from_nanos(54_320)));
        assert_eq!(ticks("7 (a ) b) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 3 4 20 0 1 0"), Some(([150, 50], [3, 4])));
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(count(status, "voluntary_ctxt_switches:"), Some(12));
        assert_eq!(count(status, "nonvoluntary_ctxt_switches:"), Some(3));
        let own = Used::of(std::process::id()).unwrap();
        assert!(own.total > Duration::ZERO);
        assert!(own_thread() > Duration::ZERO);
        assert!(Used::of(std::process::id()).unwrap().since(own).total < own.total + Duration::from_secs(60));
    }

    #[test]
    fn what_ended_threads_have_used_is_counted() {
        const EACH: Duration = Duration::from_millis(50);
        let work = || while own_thread() < EACH {};
        let before = Used::of(std::process::id()).expect("it runs");
        // More at once than other tests could make up for.
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).clamp(2, 16);
        std::thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
        let used = Used::of(std::process::id()).expect("it runs").since(before);
        assert!(used.total >= EACH * threads as u32, "{used:?}");
    }

    #[test]
    fn a_process_that_has_gone_has_no_clock() {
        let mut child = std::process::Command::new("true").spawn().expect("true");
        child.wait().expect("it ends");
        assert!(of_process(child.id()).is_err());
    }
}
