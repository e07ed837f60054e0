//! A process's CPU time beside a count, interval by interval while both grow. Knows nothing of what is counted.

use super::cpu::scheduled;
use super::placement;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
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

/// CPU time of all threads of a process. Their files stay open, so that a look costs a read for each.
#[derive(Debug)]
struct Threads {
    tasks: String,
    /// Each thread's file, and what it said last: an ended thread's time is not lost.
    files: BTreeMap<u32, (File, Duration)>,
}

impl Threads {
    /// `None` where the kernel does not say to the nanosecond what threads use.
    fn of(pid: u32) -> Option<Threads> {
        let mut threads = Threads { tasks: format!("/proc/{pid}/task"), files: BTreeMap::new() };
        (!threads.used().is_zero()).then_some(threads)
    }

    fn used(&mut self) -> Duration {
        let entries = fs::read_dir(&self.tasks).into_iter().flatten().flatten();
        for thread in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
            // A thread may end between the listing and the opening; it has done next to nothing then.
            if !self.files.contains_key(&thread)
                && let Ok(file) = File::open(format!("{}/{thread}/schedstat", self.tasks))
            {
                self.files.insert(thread, (file, Duration::ZERO));
            }
        }
        for (file, used) in self.files.values_mut() {
            let mut text = [0; 64];
            let said = file.read_at(&mut text, 0).ok().and_then(|len| std::str::from_utf8(&text[..len]).ok());
            *used = said.and_then(scheduled).unwrap_or(*used);
        }
        self.files.values().map(|(_, used)| *used).sum()
    }
}

/// Looks at both in a thread of its own until it is told to end.
#[derive(Debug)]
pub struct Sampler {
    /// Dropped to end it.
    end: Sender<()>,
    thread: JoinHandle<Vec<Interval>>,
}

impl Sampler {
    /// Begins with a process and a count, on these cores; `None` where the process's CPU time cannot be read so often.
    pub fn start(pid: u32, count: Arc<AtomicU64>, every: Duration, cores: &[usize]) -> Option<Sampler> {
        let mut threads = Threads::of(pid)?;
        let (end, ended) = channel::<()>();
        let cores = cores.to_vec();
        let mut look = move || (count.load(Ordering::Relaxed), threads.used());
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
    use super::super::cpu::own_thread;
    use super::*;

    /// Waits until it holds; a test that waits for ever is ended by whoever runs it.
    fn wait_until(mut holds: impl FnMut() -> bool) {
        while !holds() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_a_process_uses_stands_beside_what_is_counted() {
        let count = Arc::new(AtomicU64::new(7));
        let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
        // It can be sampled once it has used something.
        wait_until(|| Threads::of(busy.id()).is_some());
        let every = Duration::from_millis(10);
        let sampler = Sampler::start(busy.id(), Arc::clone(&count), every, &[]).expect("it has used something");
        let mut threads = Threads::of(busy.id()).expect("it has used something");
        let before = threads.used();
        wait_until(|| {
            count.fetch_add(100, Ordering::Relaxed);
            threads.used() >= before + Duration::from_millis(200)
        });
        busy.kill().expect("it runs");
        busy.wait().expect("it ends");
        let intervals = sampler.finish();
        // All but what the last one, which is not whole, has.
        assert!(intervals.iter().any(|interval| !interval.cpu.is_zero()), "{intervals:?}");
        let counted = intervals.iter().map(|interval| interval.counted).sum::<u64>();
        assert!((1..=count.load(Ordering::Relaxed) - 7).contains(&counted), "{intervals:?}");
    }

    #[test]
    fn threads_that_come_later_and_end_are_counted() {
        let own = std::process::id();
        let mut threads = Threads::of(own).expect("this thread has used something");
        let before = threads.used();
        let work = || {
            let begin = own_thread();
            while own_thread() - begin < Duration::from_millis(30) {}
        };
        let (seen, may_end) = channel::<()>();
        let other = std::thread::spawn(move || {
            work();
            // Its sender is gone when it may.
            let _ = may_end.recv();
        });
        // Less a tick of the kernel's clock, which is when it writes down what a thread at work has used.
        wait_until(|| threads.used() >= before + Duration::from_millis(20));
        drop(seen);
        other.join().expect("it ends");
        assert!(threads.used() >= before + Duration::from_millis(20), "what an ended thread has used stays");
    }
}
