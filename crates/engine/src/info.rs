//! Facts about the process and the data that INFO and MEMORY report. Knows neither of them, nor any text they write.

use crate::context::ServerCx;
use crate::engine::Engine;
use crate::shards::ShardState;
use crate::worker::Worker;
use parking_lot::Mutex;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};
use std::{fs, iter, str};

/// /proc counts processor time in hundredths of a second, whatever the kernel's own tick is (`USER_HZ`, proc(5)).
const TICKS_A_SECOND: f64 = 100.0;
/// Keys with a deadline that are looked at in one shard to estimate the average time to live.
const TTL_SAMPLES: usize = 16;
/// Up to so many keys a shard is looked at as a whole for that.
const TTL_WHOLE: usize = 64;
/// So many keys with a deadline are enough, of whichever shards: keys are spread over them at random.
const TTL_SAMPLES_ALL: usize = 512;
/// So many shards are looked at for what is estimated of all, where the rest is counted.
const SHARDS_LOOKED_AT: usize = 256;
/// For so long that is taken for what is, if as many keys have deadlines.
const SEEN_FOR_MS: u64 = 100;
/// So many shards' indexes of deadlines are measured: those of others are as large on average, and there are many lists in
/// each.
const INDEXES_MEASURED: u64 = 256;

/// For so long what a file of /proc has said is taken for what it says: the kernel's counts of processor time go on in such
/// steps, and whoever asks for INFO again and again pays for the reading alone.
const PROC_READ_FOR: Duration = Duration::from_millis(10);

/// A file of /proc that is read again and again: it is opened once, and is not what the path leads to meanwhile.
struct ProcFile<T> {
    path: fn() -> String,
    find: fn(&str) -> Option<T>,
    file: OnceLock<Option<File>>,
    last: Mutex<Option<(Instant, Option<T>)>>,
}

impl<T: Copy> ProcFile<T> {
    const fn new(path: fn() -> String, find: fn(&str) -> Option<T>) -> ProcFile<T> {
        ProcFile { path, find, file: OnceLock::new(), last: Mutex::new(None) }
    }

    /// What `find` makes of the text; `None` where there is no such file, and where it is longer than any is.
    fn read(&self) -> Option<T> {
        let mut last = self.last.lock();
        match *last {
            Some((at, said)) if at.elapsed() < PROC_READ_FOR => said,
            _ => {
                let said = self.read_anew();
                *last = Some((Instant::now(), said));
                said
            }
        }
    }

    fn read_anew(&self) -> Option<T> {
        let file = self.file.get_or_init(|| File::open((self.path)()).ok()).as_ref()?;
        let mut text = [0; 1_024];
        let len = file.read_at(&mut text, 0).ok().filter(|len| *len < text.len())?;
        (self.find)(str::from_utf8(&text[..len]).ok()?)
    }
}

static RESIDENT_PAGES: ProcFile<u64> =
    ProcFile::new(|| "/proc/self/statm".into(), |statm| statm.split_ascii_whitespace().nth(1)?.parse().ok());
static PROCESS: ProcFile<CpuTimes> = ProcFile::new(|| "/proc/self/stat".into(), CpuTimes::parse);
static MAIN_THREAD: ProcFile<CpuTimes> =
    ProcFile::new(|| format!("/proc/self/task/{}/stat", std::process::id()), CpuTimes::parse);

/// Bytes of the process that are in RAM; `None` where /proc does not tell.
pub fn resident_bytes() -> Option<u64> {
    RESIDENT_PAGES.read()?.checked_mul(rustix::param::page_size() as u64)
}

/// Seconds of processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTimes {
    /// In the process.
    pub user: f64,
    /// In the kernel on the process's behalf.
    pub system: f64,
    /// In the process's ended children.
    pub children_user: f64,
    /// In the kernel on their behalf.
    pub children_system: f64,
}

impl CpuTimes {
    /// Of the whole process, in steps of 10 ms; zeros where /proc does not tell.
    pub fn of_process() -> CpuTimes {
        PROCESS.read().unwrap_or_default()
    }

    /// Of the thread that the process began with.
    pub fn of_main_thread() -> CpuTimes {
        MAIN_THREAD.read().unwrap_or_default()
    }

    /// Fields 14 to 17 of proc(5)'s `stat`; the second one, in parentheses, may hold blanks.
    fn parse(stat: &str) -> Option<CpuTimes> {
        let (_, behind) = stat.rsplit_once(')')?;
        let mut seconds = behind.split_whitespace().skip(11).map(|ticks| ticks.parse::<f64>().ok());
        let mut next = || Some(seconds.next()?? / TICKS_A_SECOND);
        Some(CpuTimes { user: next()?, system: next()?, children_user: next()?, children_system: next()? })
    }
}

/// The kernel's name and release and the machine's architecture: `Linux 6.1.0 x86_64`.
pub fn operating_system() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let read = |name| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        let (kind, release) = (read("ostype"), read("osrelease"));
        let words = [kind.trim(), release.trim(), std::env::consts::ARCH];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    });
    &NAME
}

/// What there is in one database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseFacts {
    /// Keys.
    pub keys: u64,
    /// Keys with a deadline.
    pub expiring: u64,
    /// Keys with members that have one.
    pub with_deadlines: u64,
    /// Milliseconds that those have left on average, estimated from some of them.
    pub ttl_ms_mean: u64,
    /// Bytes of tables, entries not counted.
    pub table_bytes: u64,
    /// Bytes of the indexes of deadlines.
    pub expiry_bytes: u64,
}

/// What there is in each database, as far as databases were ever used. Looks at every shard once.
fn databases(cx: &mut ServerCx<'_>) -> Vec<DatabaseFacts> {
    let mut survey = Survey::default();
    cx.each_shard(|_, worker, _, state| {
        survey.look_at(worker, state);
        true
    });
    survey.end()
}

/// What was last seen of the keys with deadlines of each database.
#[derive(Debug, Default)]
pub(crate) struct DeadlinesSeen {
    at_ms: u64,
    /// How many of them there were, and how many with members that have deadlines.
    counts: Vec<[u64; 2]>,
    seen: Vec<DeadlinesOf>,
}

#[derive(Clone, Copy, Debug, Default)]
struct DeadlinesOf {
    ttl_ms_mean: u64,
    expiry_bytes: u64,
}

/// The same without the bytes of tables, which are the sum of all databases'. Where all databases' keys are counted anyway, it
/// looks at some shards in which something has a deadline, unless that was done just before.
pub fn databases_at_a_glance(cx: &mut ServerCx<'_>) -> (Vec<DatabaseFacts>, u64) {
    let Some(mut facts) = counted(cx.engine) else {
        let facts = databases(cx);
        let bytes = table_bytes(&facts);
        return (facts, bytes);
    };
    let mut bytes = tenon_ds::memory::slots() as u64;
    if facts.iter().any(|facts| facts.expiring + facts.with_deadlines > 0) {
        let seen = deadlines_of_late(cx, &facts);
        for (facts, seen) in iter::zip(&mut facts, seen) {
            (facts.ttl_ms_mean, facts.expiry_bytes) = (seen.ttl_ms_mean, seen.expiry_bytes);
            bytes += seen.expiry_bytes;
        }
    }
    (facts, bytes)
}

/// What threads have counted of each database, up to the last that has keys; `None` where that is not all there is.
fn counted(engine: &Engine) -> Option<Vec<DatabaseFacts>> {
    let count = |(database, keys)| {
        let [expiring, with_deadlines] = engine.deadline_counts(database)?.map(|count| count.min(keys));
        Some(DatabaseFacts { keys, expiring, with_deadlines, ..DatabaseFacts::default() })
    };
    let mut facts = engine.key_counts()?.into_iter().enumerate().map(count).collect::<Option<Vec<_>>>()?;
    facts.truncate(facts.iter().rposition(|facts| facts.keys > 0).map_or(0, |last| last + 1));
    Some(facts)
}

/// How much time keys have left and what their index takes, of each database, as seen now or a moment ago.
fn deadlines_of_late(cx: &mut ServerCx<'_>, facts: &[DatabaseFacts]) -> Vec<DeadlinesOf> {
    let (engine, now_ms) = (cx.engine, cx.worker.clock.now_ms);
    let counts: Vec<_> = facts.iter().map(|facts| [facts.expiring, facts.with_deadlines]).collect();
    {
        let last = engine.deadlines_seen.lock();
        let passed_ms = now_ms.checked_sub(last.at_ms).filter(|passed_ms| *passed_ms < SEEN_FOR_MS);
        if let Some(passed_ms) = passed_ms
            && last.counts == counts
        {
            let later = |it: &DeadlinesOf| DeadlinesOf { ttl_ms_mean: it.ttl_ms_mean.saturating_sub(passed_ms), ..*it };
            return last.seen.iter().map(later).collect();
        }
    }
    let due: Vec<usize> = (0..engine.shards.count()).filter(|index| engine.shards.due_ms(*index) < u64::MAX).collect();
    let looked_at = due.len().min(SHARDS_LOOKED_AT);
    let start = cx.worker.random() as usize % due.len().max(1);
    let mut survey = Survey::default();
    for index in due.iter().cycle().skip(start).take(looked_at) {
        cx.one_shard(*index, |worker, state| survey.look_at(worker, state));
    }
    let of = |facts: DatabaseFacts| DeadlinesOf {
        ttl_ms_mean: facts.ttl_ms_mean,
        expiry_bytes: facts.expiry_bytes * due.len() as u64 / looked_at as u64,
    };
    let seen: Vec<_> = survey.end().into_iter().map(of).collect();
    *engine.deadlines_seen.lock() = DeadlinesSeen { at_ms: now_ms, counts, seen: seen.clone() };
    seen
}

/// Says of these databases, which were looked at no further, how much of all the tables' bytes is each one's. Where only one
/// has keys it is all; else it takes a look at every shard.
pub fn each_databases_tables(cx: &mut ServerCx<'_>, facts: &mut Vec<DatabaseFacts>, table_bytes: u64) {
    let mut with_keys = facts.iter_mut().filter(|facts| facts.keys > 0);
    match (with_keys.next(), with_keys.next()) {
        (None, _) => {}
        (Some(only), None) => only.table_bytes = table_bytes.saturating_sub(only.expiry_bytes),
        (Some(_), Some(_)) => *facts = databases(cx),
    }
}

/// Bytes of all databases' tables and indexes of deadlines.
fn table_bytes(databases: &[DatabaseFacts]) -> u64 {
    databases.iter().map(|facts| facts.table_bytes + facts.expiry_bytes).sum()
}

/// What has been seen of one database.
#[derive(Clone, Default)]
struct Seen {
    facts: DatabaseFacts,
    /// The milliseconds that its keys have left together, as those looked at let expect.
    ttl_sum: u128,
    /// Of so many keys with a deadline `ttl_sum` tells.
    ttl_keys: u64,
    /// Keys that were looked at for that.
    samples: usize,
    /// Shards' indexes of deadlines, and how many of them were measured.
    indexes: u64,
    measured: u64,
}

/// What has been seen of the databases.
#[derive(Default)]
struct Survey(Vec<Seen>);

impl Survey {
    fn look_at(&mut self, worker: &mut Worker, state: &ShardState) {
        let now_ms = worker.clock.now_ms;
        for (database, keyspace) in state.shard.databases() {
            if self.0.len() <= database {
                self.0.resize(database + 1, Seen::default());
            }
            let seen = &mut self.0[database];
            seen.facts.keys += keyspace.len() as u64;
            seen.facts.expiring += keyspace.expiring() as u64;
            seen.facts.with_deadlines += keyspace.with_deadlines() as u64;
            seen.facts.table_bytes += keyspace.table_bytes() as u64;
            if keyspace.has_deadlines() {
                seen.indexes += 1;
                if seen.measured < INDEXES_MEASURED {
                    seen.measured += 1;
                    seen.facts.expiry_bytes += keyspace.expiry_overhead() as u64;
                }
            }
            if keyspace.expiring() == 0 || seen.samples >= TTL_SAMPLES_ALL {
                continue;
            }
            let slots = if keyspace.len() <= TTL_WHOLE {
                keyspace.volatile_slots()
            } else {
                (0..TTL_SAMPLES).filter_map(|_| keyspace.sample(worker.random())).collect()
            };
            let left: Vec<u64> = slots
                .into_iter()
                .filter_map(|slot| keyspace.entry(slot).deadline_ms())
                .map(|deadline_ms| deadline_ms.saturating_sub(now_ms))
                .collect();
            if !left.is_empty() {
                // The shard counts with all its keys, of which these are the sample.
                let sum = left.iter().map(|&ms| u128::from(ms)).sum::<u128>();
                seen.ttl_sum += sum * keyspace.expiring() as u128 / left.len() as u128;
                seen.ttl_keys += keyspace.expiring() as u64;
                seen.samples += left.len();
            }
        }
    }

    fn end(self) -> Vec<DatabaseFacts> {
        let facts_of = |seen: Seen| {
            let ttl_ms_mean = seen.ttl_sum.checked_div(u128::from(seen.ttl_keys)).unwrap_or(0) as u64;
            let expiry_bytes = (seen.facts.expiry_bytes * seen.indexes).checked_div(seen.measured).unwrap_or(0);
            DatabaseFacts { ttl_ms_mean, expiry_bytes, ..seen.facts }
        };
        self.0.into_iter().map(facts_of).collect()
    }
}

/// Where the memory is, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryFacts {
    /// Allocated now.
    pub used: u64,
    /// The most that was allocated, as far as anyone looked.
    pub peak: u64,
    /// In RAM, the program itself included.
    pub resident: u64,
    /// Allocated before there was data or a client.
    pub startup: u64,
    /// Of clients: themselves, what they sent and is not run yet, and what was answered and is not sent yet.
    pub clients: u64,
    /// All that is no key and no value: startup, clients, tables and expiry indexes.
    pub overhead: u64,
}

impl MemoryFacts {
    /// Looks; tables and indexes of deadlines take this many bytes.
    pub fn gather(engine: &Engine, table_bytes: u64) -> MemoryFacts {
        let used = tenon_ds::memory::used() as u64;
        let peak = engine.peak_memory.fetch_max(used, Ordering::Relaxed).max(used);
        let clients = engine.clients.list().iter().map(|client| client.memory()).sum();
        MemoryFacts {
            used,
            peak,
            resident: resident_bytes().unwrap_or(0),
            startup: engine.startup_memory,
            clients,
            overhead: engine.startup_memory + clients + table_bytes,
        }
    }

    /// Bytes of keys and values.
    pub fn dataset(&self) -> u64 {
        self.used.saturating_sub(self.overhead)
    }

    /// How much of what has been allocated since the start are keys and values, in percent.
    pub fn dataset_percent(&self) -> f64 {
        let since_start = self.used.saturating_sub(self.startup);
        if since_start == 0 { 0.0 } else { (self.dataset() as f64 / since_start as f64 * 100.0).min(100.0) }
    }

    /// How much of the peak is allocated now, in percent.
    pub fn peak_percent(&self) -> f64 {
        if self.peak == 0 { 0.0 } else { self.used as f64 / self.peak as f64 * 100.0 }
    }

    /// Bytes in RAM for each allocated one.
    pub fn fragmentation_ratio(&self) -> f64 {
        if self.used == 0 { 0.0 } else { self.resident as f64 / self.used as f64 }
    }

    /// Bytes in RAM beyond the allocated ones; negative if some of these are in no page yet, or swapped out.
    pub fn fragmentation_bytes(&self) -> i64 {
        self.resident as i64 - self.used as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Machine};

    #[test]
    fn processor_times_stand_behind_the_name() {
        let stat = "42 (a b) c) S 1 42 42 0 -1 4194560 500 0 0 0 150 25 7 3 20 0 1 0 99 1 1";
        let times = CpuTimes { user: 1.5, system: 0.25, children_user: 0.07, children_system: 0.03 };
        assert_eq!(CpuTimes::parse(stat), Some(times));
        assert_eq!(CpuTimes::parse("42 (a) S 1"), None);
    }

    #[test]
    fn the_peak_of_memory_is_that_since_the_start() {
        const PEAK: u64 = u64::MAX / 2;
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        engine.peak_memory.store(PEAK, Ordering::Relaxed);
        engine.reset_stats();
        assert_eq!(MemoryFacts::gather(&engine, 0).peak, PEAK);
    }

    #[test]
    fn this_process_is_there() {
        assert!(resident_bytes().unwrap() > 0);
        assert!(operating_system().contains(std::env::consts::ARCH));
        // A test's main thread may have had no time yet, but its file is there and fits.
        assert!(CpuTimes::of_main_thread().user <= CpuTimes::of_process().user + 1.0);
    }
}
