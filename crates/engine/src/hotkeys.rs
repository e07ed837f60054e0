//! HOTKEYS: the keys that cost most time and most traffic, counted while somebody has asked for it. Each worker counts for
//! itself; whoever reads adds up. Knows no command.

use crate::args::Args;
use crate::clock::monotonic_ns;
use crate::command::Command;
use crate::engine::Engine;
use crate::info::CpuTimes;
use crate::onlookers::Onlooker;
use crate::worker::Worker;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tenon_ds::heavy_hitters::HeavyHitters;

/// Keys that a worker knows of at a time: one that has a thousandth of all costs is surely among them.
const KEYS_KNOWN: usize = 1_024;
/// A longer key is not counted, as many of such would take much memory.
const KEY_LEN_MAX: usize = 16 * 1024;
/// It goes on until it is stopped.
const ENDLESS: u64 = u64::MAX;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotKeysRequest {
    /// Whether time is counted.
    pub cpu: bool,
    /// Whether bytes received and sent are counted.
    pub net: bool,
    /// How many keys are shown.
    pub count: usize,
    /// When it ends by itself, in milliseconds from its start.
    pub duration_ms: Option<u64>,
    /// One command of so many is counted.
    pub sample_ratio: u32,
}

/// What one worker has counted.
#[derive(Debug)]
struct Counts {
    /// Nanoseconds by key.
    time: HeavyHitters,
    /// Bytes by key.
    bytes: HeavyHitters,
    /// Of all commands with keys, whether they were sampled or not.
    all_time_ns: u64,
    all_bytes: u64,
}

impl Counts {
    fn new() -> Counts {
        let (time, bytes) = (HeavyHitters::new(KEYS_KNOWN), HeavyHitters::new(KEYS_KNOWN));
        Counts { time, bytes, all_time_ns: 0, all_bytes: 0 }
    }
}

/// One search, running or over.
#[derive(Debug)]
struct Search {
    request: HotKeysRequest,
    started_ms: u64,
    /// When it ended or is to end, in milliseconds since the UNIX epoch.
    ends_ms: AtomicU64,
    cpu_at_start: CpuTimes,
    counts: Box<[Mutex<Counts>]>,
}

/// The search for busy keys.
#[derive(Debug, Default)]
pub struct HotKeys {
    search: RwLock<Option<Arc<Search>>>,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct HotKeysReport {
    /// What was asked for.
    pub request: HotKeysRequest,
    /// Whether the search goes on.
    pub is_active: bool,
    /// When it began, in milliseconds since the UNIX epoch.
    pub started_ms: u64,
    /// How long it took, or has taken so far.
    pub duration_ms: u64,
    /// Of all commands with keys.
    pub all_time_us: u64,
    /// Received and sent for them.
    pub all_bytes: u64,
    /// What the process has used since the start, in milliseconds.
    pub cpu_user_ms: u64,
    /// In the kernel on its behalf.
    pub cpu_system_ms: u64,
    /// Bytes of the commands that were sampled.
    pub sampled_bytes: u64,
    /// The keys that took most time, each with its microseconds.
    pub by_time_us: Vec<(Arc<[u8]>, u64)>,
    /// The keys with most traffic, each with its bytes.
    pub by_bytes: Vec<(Arc<[u8]>, u64)>,
}

/// A command that is being measured.
#[derive(Debug)]
pub struct Measured {
    search: Arc<Search>,
    started_ns: u64,
    output_before: usize,
    is_sampled: bool,
}

impl HotKeys {
    /// Whether a search goes on at that time.
    pub fn is_active(&self, now_ms: u64) -> bool {
        self.search.read().as_ref().is_some_and(|search| search.is_active(now_ms))
    }

    /// Whether there has been a search that is not forgotten.
    pub fn is_known(&self) -> bool {
        self.search.read().is_some()
    }

    /// Forgets what the last search has found; `false`: it goes on.
    pub fn forget(&self, now_ms: u64) -> bool {
        let mut search = self.search.write();
        let is_over = !search.as_ref().is_some_and(|search| search.is_active(now_ms));
        if is_over {
            *search = None;
        }
        is_over
    }

    /// What the last search has found so far, if there was one.
    pub fn report(&self, now_ms: u64) -> Option<HotKeysReport> {
        let search = self.search.read().clone()?;
        Some(search.report(now_ms))
    }
}

impl Search {
    fn is_active(&self, now_ms: u64) -> bool {
        now_ms < self.ends_ms.load(Ordering::Relaxed)
    }

    fn report(&self, now_ms: u64) -> HotKeysReport {
        let is_active = self.is_active(now_ms);
        let until_ms = if is_active { now_ms } else { self.ends_ms.load(Ordering::Relaxed) };
        let (mut time_ns, mut bytes) = (HashMap::new(), HashMap::new());
        let (mut all_time_ns, mut all_bytes, mut sampled_bytes) = (0, 0, 0);
        for counts in &self.counts {
            let counts = counts.lock();
            add_up(&mut time_ns, &counts.time);
            add_up(&mut bytes, &counts.bytes);
            all_time_ns += counts.all_time_ns;
            all_bytes += counts.all_bytes;
            sampled_bytes += counts.bytes.total();
        }
        let cpu = CpuTimes::of_process();
        let ms = |now: f64, before: f64| ((now - before).max(0.0) * 1_000.0) as u64;
        HotKeysReport {
            request: self.request,
            is_active,
            started_ms: self.started_ms,
            duration_ms: until_ms.saturating_sub(self.started_ms),
            all_time_us: all_time_ns / 1_000,
            all_bytes,
            cpu_user_ms: ms(cpu.user, self.cpu_at_start.user),
            cpu_system_ms: ms(cpu.system, self.cpu_at_start.system),
            sampled_bytes,
            by_time_us: heaviest(time_ns, 1_000, self.request.count),
            by_bytes: heaviest(bytes, 1, self.request.count),
        }
    }
}

/// Adds what a worker knows of each key for sure: of a key that it has known for a part of the time, what it has counted
/// then.
fn add_up(sums: &mut HashMap<Arc<[u8]>, u64>, known: &HeavyHitters) {
    for hitter in known.hitters() {
        *sums.entry(hitter.name).or_default() += hitter.count - hitter.surplus;
    }
}

/// The heaviest of them in a larger unit: what has not come to one counts as one, or keys of quick commands would not be
/// shown when few are sampled.
fn heaviest(sums: HashMap<Arc<[u8]>, u64>, unit: u64, count: usize) -> Vec<(Arc<[u8]>, u64)> {
    let mut all: Vec<(Arc<[u8]>, u64)> = sums.into_iter().filter(|&(_, sum)| sum > 0).collect();
    all.sort_unstable_by(|(key, sum), (other, other_sum)| other_sum.cmp(sum).then_with(|| key.cmp(other)));
    all.truncate(count);
    all.iter_mut().for_each(|(_, sum)| *sum = sum.div_ceil(unit));
    all
}

/// Bytes of a command as RESP writes it.
fn request_bytes(args: &Args<'_>) -> u64 {
    let head = |number: usize| 3 + number.max(1).ilog10() as usize + 1;
    let bytes: usize = (0..args.len()).map(|index| args.len_of(index)).map(|len| head(len) + len + 2).sum();
    (head(args.len()) + bytes) as u64
}

impl Engine {
    /// Begins a search; `false`: one goes on.
    pub fn start_hot_keys(&self, request: HotKeysRequest, now_ms: u64) -> bool {
        let mut search = self.hotkeys.search.write();
        if search.as_ref().is_some_and(|search| search.is_active(now_ms)) {
            return false;
        }
        *search = Some(Arc::new(Search {
            request,
            started_ms: now_ms,
            ends_ms: AtomicU64::new(request.duration_ms.map_or(ENDLESS, |ms| now_ms.saturating_add(ms))),
            cpu_at_start: CpuTimes::of_process(),
            counts: (0..=self.workers()).map(|_| Mutex::new(Counts::new())).collect(),
        }));
        self.onlookers.set(Onlooker::HotKeys, true);
        true
    }

    /// Ends the search; `false`: none goes on.
    pub fn stop_hot_keys(&self, now_ms: u64) -> bool {
        let search = self.hotkeys.search.write();
        let Some(search) = search.as_ref().filter(|search| search.is_active(now_ms)) else { return false };
        search.ends_ms.store(now_ms, Ordering::Relaxed);
        self.onlookers.set(Onlooker::HotKeys, false);
        true
    }

    /// Ends a search whose time is over, so that commands take the short way again.
    pub(crate) fn end_hot_keys_if_due(&self, now_ms: u64) {
        if !self.onlookers.are_there() {
            return;
        }
        let search = self.hotkeys.search.write();
        if search.as_ref().is_some_and(|search| !search.is_active(now_ms)) {
            self.onlookers.set(Onlooker::HotKeys, false);
        }
    }

    /// Begins to measure a command, if there is a search. `output` is how much of output there is.
    #[inline]
    pub fn measure(&self, worker: &mut Worker, output: usize) -> Option<Measured> {
        if self.onlookers.are_there() { self.measure_now(worker, output) } else { None }
    }

    #[cold]
    fn measure_now(&self, worker: &mut Worker, output: usize) -> Option<Measured> {
        let search = Arc::clone(self.hotkeys.search.read().as_ref()?);
        if !search.is_active(worker.clock.now_ms) {
            return None;
        }
        let ratio = search.request.sample_ratio;
        let is_sampled = (u64::from(worker.random()) * u64::from(ratio)) >> 32 == 0;
        Some(Measured { search, started_ns: monotonic_ns(), output_before: output, is_sampled })
    }

    /// Notes what a command on these keys has cost. `received` are the bytes that asked for it.
    pub fn note_cost<'k>(
        &self,
        worker: &Worker,
        measured: &Measured,
        keys: impl ExactSizeIterator<Item = &'k [u8]>,
        received: u64,
        output: usize,
    ) {
        let Measured { search, started_ns, output_before, is_sampled } = measured;
        let key_count = keys.len() as u64;
        if key_count == 0 {
            return;
        }
        let time_ns = monotonic_ns().saturating_sub(*started_ns);
        let bytes = received + output.saturating_sub(*output_before) as u64;
        let mut counts = search.counts[worker.index].lock();
        counts.all_time_ns += time_ns;
        counts.all_bytes += bytes;
        if !is_sampled {
            return;
        }
        for (index, key) in keys.enumerate().filter(|(_, key)| key.len() <= KEY_LEN_MAX) {
            // The shares of all keys come to the whole.
            let share = |whole: u64| whole / key_count + u64::from((index as u64) < whole % key_count);
            if search.request.cpu {
                counts.time.add(key, share(time_ns));
            }
            if search.request.net {
                counts.bytes.add(key, share(bytes));
            }
        }
    }

    /// Notes what a command has cost, its keys being where its declaration says.
    pub(crate) fn note_command_cost(
        &self,
        worker: &Worker,
        measured: &Measured,
        command: &Command,
        args: &Args<'_>,
        output: usize,
    ) {
        let keys: Vec<&[u8]> = command.keys.indexes(args).map(|at| args.get(at)).collect();
        self.note_cost(worker, measured, keys.into_iter(), request_bytes(args), output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::OwnedArgs;
    use crate::config::{Config, Machine};

    const BOTH: HotKeysRequest = HotKeysRequest { cpu: true, net: true, count: 2, duration_ms: None, sample_ratio: 1 };

    fn engine() -> Engine {
        Engine::new(Config::new(Machine::detect()), &[], 1)
    }

    #[test]
    fn requests_are_counted_as_they_are_sent() {
        let words = [&b"SET"[..], b"", &[b'x'; 10]];
        let sent = b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$10\r\nxxxxxxxxxx\r\n";
        assert_eq!(request_bytes(&OwnedArgs::new(words).view()), sent.len() as u64);
    }

    #[test]
    fn keys_share_the_cost_and_the_heaviest_come_first() {
        let engine = engine();
        let mut workers = [engine.worker(0), engine.worker(1)];
        let now_ms = workers[0].clock.now_ms;
        assert!(!engine.onlookers.are_there() && engine.start_hot_keys(BOTH, now_ms));
        assert!(engine.onlookers.are_there() && !engine.start_hot_keys(BOTH, now_ms));
        let mut spend = |worker: usize, keys: &[&[u8]], received: u64| {
            let worker = &mut workers[worker];
            let measured = engine.measure(worker, 5).expect("a search goes on");
            engine.note_cost(worker, &measured, keys.iter().copied(), received, 8);
        };
        // Each with three bytes of output.
        spend(0, &[b"a", b"b"], 100);
        spend(1, &[b"a"], 7);
        spend(1, &[b"c"], 1);
        spend(1, &[], 1_000);
        spend(0, &[&[b'k'; KEY_LEN_MAX + 1]], 10);
        let report = engine.hotkeys.report(now_ms).expect("there was a search");
        let shown: Vec<(&[u8], u64)> = report.by_bytes.iter().map(|(key, bytes)| (&**key, *bytes)).collect();
        assert_eq!(shown, [(&b"a"[..], 62), (b"b", 51)]);
        assert_eq!((report.all_bytes, report.sampled_bytes), (103 + 10 + 4 + 13, 103 + 10 + 4));
        assert!(!engine.hotkeys.forget(now_ms) && engine.stop_hot_keys(now_ms) && !engine.stop_hot_keys(now_ms));
        assert!(!engine.onlookers.are_there() && engine.measure(&mut workers[0], 0).is_none());
        assert!(engine.hotkeys.report(now_ms).is_some_and(|report| !report.is_active));
        assert!(engine.hotkeys.forget(now_ms) && engine.hotkeys.report(now_ms).is_none());
    }

    #[test]
    fn a_search_ends_in_time() {
        let engine = engine();
        let mut worker = engine.worker(0);
        let now_ms = worker.clock.now_ms;
        assert!(engine.start_hot_keys(HotKeysRequest { duration_ms: Some(1_000), ..BOTH }, now_ms));
        engine.end_hot_keys_if_due(now_ms + 999);
        assert!(engine.hotkeys.is_active(now_ms + 999) && engine.onlookers.are_there());
        engine.end_hot_keys_if_due(now_ms + 1_000);
        assert!(!engine.hotkeys.is_active(now_ms + 1_000) && !engine.onlookers.are_there());
        worker.clock.now_ms = now_ms + 5_000;
        assert!(engine.measure(&mut worker, 0).is_none());
        assert_eq!(engine.hotkeys.report(now_ms + 5_000).map(|report| report.duration_ms), Some(1_000));
    }

    #[test]
    fn one_of_so_many_is_sampled() {
        let engine = engine();
        let mut worker = engine.worker(0);
        let now_ms = worker.clock.now_ms;
        assert!(engine.start_hot_keys(HotKeysRequest { sample_ratio: 10, ..BOTH }, now_ms));
        for _ in 0..2_000 {
            let measured = engine.measure(&mut worker, 0).expect("a search goes on");
            engine.note_cost(&worker, &measured, std::iter::once(&b"k"[..]), 1, 0);
        }
        let report = engine.hotkeys.report(now_ms).expect("there was a search");
        assert_eq!(report.all_bytes, 2_000);
        assert!((100..400).contains(&report.sampled_bytes), "{} of 2000", report.sampled_bytes);
    }
}
