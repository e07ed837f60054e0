//! Facts about the process and the data that INFO and MEMORY report. Knows neither of them, nor any text they write.

use crate::context::ServerCx;
use crate::engine::Engine;
use std::sync::atomic::Ordering;
use std::{fs, iter};

/// /proc counts processor time in hundredths of a second, whatever the kernel's own tick is (`USER_HZ`, proc(5)).
const TICKS_A_SECOND: f64 = 100.0;
/// Keys with a deadline that are looked at in one shard to estimate the average time to live.
const TTL_SAMPLES: usize = 16;
/// Up to so many keys a shard is looked at as a whole for that.
const TTL_WHOLE: usize = 64;

/// Bytes of the process that are in RAM; `None` where /proc does not tell.
pub fn resident_bytes() -> Option<u64> {
    // `status` has it in KiB; `statm` would have it in pages, whose size differs between machines.
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
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
        CpuTimes::read("/proc/self/stat")
    }

    /// Of the thread that the process began with.
    pub fn of_main_thread() -> CpuTimes {
        CpuTimes::read(&format!("/proc/self/task/{}/stat", std::process::id()))
    }

    fn read(path: &str) -> CpuTimes {
        fs::read_to_string(path).ok().and_then(|stat| CpuTimes::parse(&stat)).unwrap_or_default()
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
pub fn operating_system() -> String {
    let read = |name| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    let (kind, release) = (read("ostype"), read("osrelease"));
    let words = [kind.trim(), release.trim(), std::env::consts::ARCH];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
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
pub fn databases(cx: &mut ServerCx<'_>) -> Vec<DatabaseFacts> {
    let mut facts: Vec<DatabaseFacts> = Vec::new();
    let mut ttl_sums: Vec<u128> = Vec::new();
    let now_ms = cx.worker.clock.now_ms;
    cx.each_shard(|_, worker, _, state| {
        for (database, keyspace) in state.shard.databases() {
            if facts.len() <= database {
                facts.resize(database + 1, DatabaseFacts::default());
                ttl_sums.resize(database + 1, 0);
            }
            let (facts, ttl_sum) = (&mut facts[database], &mut ttl_sums[database]);
            facts.keys += keyspace.len() as u64;
            facts.expiring += keyspace.expiring() as u64;
            facts.with_deadlines += keyspace.with_deadlines() as u64;
            facts.table_bytes += (keyspace.overhead() - keyspace.expiry_overhead()) as u64;
            facts.expiry_bytes += keyspace.expiry_overhead() as u64;
            if keyspace.expiring() == 0 {
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
                *ttl_sum += sum * keyspace.expiring() as u128 / left.len() as u128;
            }
        }
        true
    });
    for (facts, ttl_sum) in iter::zip(&mut facts, ttl_sums) {
        facts.ttl_ms_mean = ttl_sum.checked_div(u128::from(facts.expiring)).unwrap_or(0) as u64;
    }
    facts
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
    /// Looks.
    pub fn gather(engine: &Engine, databases: &[DatabaseFacts]) -> MemoryFacts {
        let used = tenon_ds::memory::used() as u64;
        let peak = engine.peak_memory.fetch_max(used, Ordering::Relaxed).max(used);
        let clients = engine.clients.list().iter().map(|client| client.memory()).sum();
        let tables: u64 = databases.iter().map(|facts| facts.table_bytes + facts.expiry_bytes).sum();
        MemoryFacts {
            used,
            peak,
            resident: resident_bytes().unwrap_or(0),
            startup: engine.startup_memory,
            clients,
            overhead: engine.startup_memory + clients + tables,
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

    #[test]
    fn processor_times_stand_behind_the_name() {
        let stat = "42 (a b) c) S 1 42 42 0 -1 4194560 500 0 0 0 150 25 7 3 20 0 1 0 99 1 1";
        let times = CpuTimes { user: 1.5, system: 0.25, children_user: 0.07, children_system: 0.03 };
        assert_eq!(CpuTimes::parse(stat), Some(times));
        assert_eq!(CpuTimes::parse("42 (a) S 1"), None);
    }

    #[test]
    fn this_process_is_there() {
        assert!(resident_bytes().unwrap() > 0);
        assert!(operating_system().contains(std::env::consts::ARCH));
        // A test's main thread may have had no time yet, but its file is there and fits.
        assert!(CpuTimes::of_main_thread().user <= CpuTimes::of_process().user + 1.0);
    }
}
