//! What cores have done for others than this process and those that it has started. Knows nothing of what those do.

use super::cpu::Used;
use super::process::with_descendants;
use anyhow::{Context, Result};
use std::fs;
use std::time::{Duration, Instant};

/// What some cores have done up to a moment.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    at: Instant,
    /// The time in which they could have worked between two looks, for each second.
    cores: u32,
    /// Time in which they ran processes, by the kernel's clock ticks.
    busy: Duration,
    /// Time that a virtual machine's host gave to others, by the same ticks.
    stolen: Duration,
    /// CPU time of the processes that are no neighbours.
    ours: Duration,
}

/// Which shares of the cores' time others had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbours {
    /// Other processes.
    pub processes: f64,
    /// Other machines on the same host.
    pub machines: f64,
}

/// In less time of all cores together a few ticks would seem to be much.
const ENOUGH: Duration = Duration::from_secs(1);

impl Look {
    /// At these cores, on which this process works with those that it has started, and with a server that it has not.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn at(cores: &[usize], server: u32) -> Result<Look> {
        let own = with_descendants(std::process::id());
        let others_server = Some(server).filter(|server| !own.contains(server)).map(with_descendants);
        // One that ends meanwhile is in its parent's record of the ended ones.
        let used = own.into_iter().chain(others_server.into_iter().flatten()).filter_map(|pid| Used::of_one(pid).ok());
        let ours = used.map(|used| used.total).sum();
        let text = fs::read_to_string("/proc/stat").context("/proc/stat")?;
        let (busy, stolen) = ticks(&text, cores).context("/proc/stat does not tell of each core")?;
        let seconds =
            |ticks: u64| Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64);
        let (busy, stolen) = (seconds(busy), seconds(stolen));
        Ok(Look { at: Instant::now(), cores: cores.len() as u32, busy, stolen, ours })
    }

    /// What others had since `before`; `None` of a time too short for the kernel's ticks.
    pub fn since(&self, before: &Look) -> Option<Neighbours> {
        let all = (self.at - before.at) * self.cores;
        let share = |part: Duration| part.as_secs_f64() / all.as_secs_f64();
        let busy = self.busy.saturating_sub(before.busy);
        (all >= ENOUGH).then(|| Neighbours {
            processes: share(busy.saturating_sub(self.ours.saturating_sub(before.ours))),
            machines: share(self.stolen.saturating_sub(before.stolen)),
        })
    }
}

/// From lines `cpuN user nice system idle iowait irq softirq steal ...`: what these cores ran processes for, and what was
/// stolen from them. Interrupts are part of the processes' own time, or of nobody's.
fn ticks(stat: &str, cores: &[usize]) -> Option<(u64, u64)> {
    let mut sum = (0, 0);
    for core in cores {
        let name = format!("cpu{core}");
        let line = stat.lines().find_map(|line| line.strip_prefix(&name)?.strip_prefix(' '))?;
        let fields: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        sum.0 += fields.get(..3)?.iter().sum::<u64>();
        sum.1 += fields.get(7)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::super::{cpu, placement};
    use super::*;

    #[test]
    fn the_kernels_file_is_read() {
        let text = "cpu  1 1 1 1 1 1 1 1 0 0\ncpu1 10 20 30 99 99 5 6 7 1 1\ncpu10 100 0 0 0 0 0 0 9 0 0\nintr 5\n";
        assert_eq!(ticks(text, &[1]), Some((60, 7)));
        assert_eq!(ticks(text, &[1, 10]), Some((160, 16)));
        assert_eq!(ticks(text, &[0]), None);
    }

    #[test]
    fn others_are_told_from_ours() {
        let seconds = Duration::from_secs_f64;
        let before =
            Look { at: Instant::now(), cores: 2, busy: seconds(1.0), stolen: seconds(0.5), ours: seconds(3.0) };
        let after = |busy, stolen, ours, lasted: f64| Look {
            at: before.at + seconds(lasted),
            cores: 2,
            busy: seconds(busy),
            stolen: seconds(stolen),
            ours: seconds(ours),
        };
        let shares = |look: Look| look.since(&before).map(|shares| (shares.processes, shares.machines));
        assert_eq!(shares(after(4.0, 1.5, 5.0, 2.0)), Some((0.25, 0.25)));
        assert_eq!(shares(after(4.0, 0.5, 6.5, 2.0)), Some((0.0, 0.0)), "ticks are coarse");
        assert_eq!(shares(after(1.5, 0.5, 3.0, 0.25)), None);
    }

    #[test]
    fn what_this_process_has_started_is_no_neighbour() {
        let cores = placement::own_cores().expect("cores");
        let child = "while :; do :; done & echo $!; wait";
        let mut busy = std::process::Command::new("sh")
            .args(["-c", child])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("sh");
        let mut line = String::new();
        let stdout = busy.stdout.as_mut().expect("it is piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).expect("it tells");
        let grandchild: u32 = line.trim().parse().expect("a number");
        let before = Look::at(&cores, grandchild).expect("the kernel tells");
        let worked = cpu::of_process(grandchild).expect("it runs") + Duration::from_millis(300);
        while cpu::of_process(grandchild).expect("it runs") < worked {
            std::thread::sleep(Duration::from_millis(5));
        }
        let after = Look::at(&cores, grandchild).expect("the kernel tells");
        let pid = rustix::process::Pid::from_raw(grandchild.cast_signed()).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
        busy.wait().expect("it ends with it");
        // Of what other tests have started and ended, some ticks are lost.
        assert!(after.ours > before.ours + Duration::from_millis(100), "{before:?} {after:?}");
        assert!(after.busy > before.busy, "{before:?} {after:?}");
    }
}
