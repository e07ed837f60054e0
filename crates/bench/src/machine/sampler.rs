//! A process's CPU time beside a count, interval by interval while both grow. Knows nothing of what is counted.

use super::{cpu, placement};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// What one interval has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// By how much the count has grown.
    pub counted: u64,
    /// What all threads of the process have used.
    pub cpu: Duration,
}

/// Looks at both in a thread of its own until it is told to end.
#[derive(Debug)]
pub struct Sampler {
    /// Dropped to end it.
    end: Sender<()>,
    thread: JoinHandle<Vec<Interval>>,
}

impl Sampler {
    /// Begins with a process and a count, on these cores; `None` where the process's CPU time cannot be read.
    pub fn start(pid: u32, count: Arc<AtomicU64>, every: Duration, cores: &[usize]) -> Option<Sampler> {
        let mut used = cpu::of_process(pid).ok()?;
        let (end, ended) = channel::<()>();
        let cores = cores.to_vec();
        // Of one that has ended it is what it was.
        let mut look = move || {
            used = cpu::of_process(pid).unwrap_or(used);
            (count.load(Ordering::Relaxed), used)
        };
        let mut before = look();
        let thread = std::thread::spawn(move || {
            // Where it cannot be kept off the process's cores it is still nearly no load.
            let _ = placement::pin_this_thread(&cores);
            let mut intervals = Vec::new();
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let now = look();
                intervals.push(Interval { counted: now.0 - before.0, cpu: now.1.saturating_sub(before.1) });
                before = now;
            }
            intervals
        });
        Some(Sampler { end, thread })
    }

    /// All whole intervals.
    pub fn finish(self) -> Vec<Interval> {
        drop(self.end);
        // It cannot panic; if it did, nothing is known.
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits until it holds.
    fn wait_until(mut holds: impl FnMut() -> bool) {
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while !holds() {
            assert!(std::time::Instant::now() < deadline, "waited in vain");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_a_process_uses_stands_beside_what_is_counted() {
        let count = Arc::new(AtomicU64::new(7));
        let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
        let every = Duration::from_millis(10);
        let sampler = Sampler::start(busy.id(), Arc::clone(&count), every, &[]).expect("it runs");
        let used = || cpu::of_process(busy.id()).expect("it runs");
        let before = used();
        wait_until(|| {
            count.fetch_add(100, Ordering::Relaxed);
            used() >= before + Duration::from_millis(200)
        });
        busy.kill().expect("it runs");
        busy.wait().expect("it ends");
        let intervals = sampler.finish();
        // All but what the last one, which is not whole, has.
        assert!(intervals.iter().any(|interval| !interval.cpu.is_zero()), "{intervals:?}");
        let counted = intervals.iter().map(|interval| interval.counted).sum::<u64>();
        assert!((1..=count.load(Ordering::Relaxed) - 7).contains(&counted), "{intervals:?}");
    }
}
