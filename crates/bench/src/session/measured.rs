//! A load's outcome with the server's cost beside it, as figures by name. Knows no experiment.

use crate::load::{INTERVAL, Observer, Outcome, least_over_median};
use crate::machine::counters::{Counter, Counts};
use crate::machine::cpu::Used;
use crate::machine::neighbours::{Look, Neighbours};
use crate::machine::placement::cores_of;
use crate::machine::process;
use crate::machine::sampler::{Interval, Sampler};
use crate::machine::topology::Topology;
use crate::results::{Record, median};
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// A client that had something to do for more than this share of the time is taken to be the limit.
pub const CLIENT_BUSY_LIMIT: f64 = 0.95;

/// A client that was ready and had no core for more than this share of the time is said to have waited.
const CLIENT_QUEUED_LIMIT: f64 = 0.05;

/// A client whose own lateness is more than this share of the latency, at the 99th percentiles, is said to be late.
const CLIENT_LATE_LIMIT: f64 = 0.5;

/// Of how little CPU time it is told what was the user's part and what the kernel's: both are known to a tick of ten
/// milliseconds only.
const PARTS_LEAST: Duration = Duration::from_millis(100);

/// Other processes that had more than this share of the cores, and other machines that did, are told of. What processes had
/// is known to some ticks only.
const PROCESSES_LIMIT: f64 = 0.1;
const MACHINES_LIMIT: f64 = 0.05;

/// What a load and the server it ran on have shown.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The load's side.
    pub outcome: Outcome,
    /// The server's CPU time while it ran, if its process may be looked at.
    pub used: Option<Used>,
    /// The server's memory after it.
    pub resident_bytes: Option<u64>,
    /// The server's system calls and the like, if they were counted.
    pub counts: Option<Counts>,
    /// Operations and the server's CPU time in each [`INTERVAL`], if they were sampled.
    pub samples: Vec<Interval>,
    /// What could not be seen of the server, and why.
    pub notes: Vec<String>,
    /// How many cores the client had.
    pub client_cores: usize,
    /// Whether the server might run on them, too.
    pub shared_cores: bool,
    /// Whether it might on other threads of their physical cores.
    pub shared_physical_cores: bool,
    /// What others had of both sides' cores, if it is known.
    pub neighbours: Option<Neighbours>,
}

/// What is kept of a measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Figures by name; units last.
    pub figures: BTreeMap<String, f64>,
    /// Figures over time, by name.
    pub series: BTreeMap<String, Vec<f64>>,
    /// What must be known to read them.
    pub notes: Vec<String>,
}

impl Reading {
    /// With one figure more. One that is no finite number says nothing, and no file of results can hold it.
    pub fn figure(mut self, name: &str, figure: f64) -> Reading {
        if figure.is_finite() {
            self.figures.insert(name.to_owned(), figure);
        }
        self
    }

    /// With one figure more, if it is known.
    pub fn known(self, name: &str, figure: Option<f64>) -> Reading {
        match figure {
            Some(figure) => self.figure(name, figure),
            None => self,
        }
    }

    /// With one series more.
    pub fn series(mut self, name: &str, series: Vec<f64>) -> Reading {
        self.series.insert(name.to_owned(), series);
        self
    }

    /// With one note more.
    pub fn note(mut self, note: impl Into<String>) -> Reading {
        self.notes.push(note.into());
        self
    }

    /// Into a record that has none yet.
    pub fn fill(self, record: &mut Record) {
        (record.figures, record.series, record.notes) = (self.figures, self.series, self.notes);
    }
}

/// Looks at the server just before and just after a load.
#[derive(Debug)]
pub struct Watch {
    pid: Option<u32>,
    client_cores: Vec<usize>,
    shared_cores: bool,
    shared_physical_cores: bool,
    look: Option<(Vec<usize>, Look)>,
    neighbours: Option<Neighbours>,
    before: Option<Used>,
    used: Option<Used>,
    resident_bytes: Option<u64>,
    /// Where a counter of system calls may write, if there is to be one.
    counting: Option<PathBuf>,
    counter: Option<Counter>,
    counts: Option<Counts>,
    /// What counts the operations, if the server's CPU time is to be sampled beside them.
    sampling: Option<Arc<AtomicU64>>,
    sampler: Option<Sampler>,
    samples: Vec<Interval>,
    notes: Vec<String>,
}

impl Watch {
    /// On this process, if there is one to look at, loaded from these cores.
    pub fn on(pid: Option<u32>, client_cores: &[usize]) -> Watch {
        Watch {
            pid,
            client_cores: client_cores.to_vec(),
            shared_cores: false,
            shared_physical_cores: false,
            look: None,
            neighbours: None,
            before: None,
            used: None,
            resident_bytes: None,
            counting: None,
            counter: None,
            counts: None,
            sampling: None,
            sampler: None,
            samples: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Saying this beside what it sees.
    pub fn noting(mut self, note: Option<&str>) -> Watch {
        self.notes.extend(note.map(str::to_owned));
        self
    }

    /// Counting system calls, too.
    pub fn counting(self, scratch: &Path) -> Watch {
        Watch { counting: Some(scratch.to_owned()), ..self }
    }

    /// Sampling the server's CPU time while these operations are counted, too.
    pub fn sampling(self, operations: &Arc<AtomicU64>) -> Watch {
        Watch { sampling: Some(Arc::clone(operations)), ..self }
    }

    /// With the load's side.
    pub fn measured(self, outcome: Outcome) -> Measured {
        Measured {
            outcome,
            used: self.used,
            resident_bytes: self.resident_bytes,
            counts: self.counts,
            samples: self.samples,
            notes: self.notes,
            client_cores: self.client_cores.len(),
            shared_cores: self.shared_cores,
            shared_physical_cores: self.shared_physical_cores,
            neighbours: self.neighbours,
        }
    }
}

impl Observer for Watch {
    fn begins(&mut self) -> Result<()> {
        if let Some(pid) = self.pid {
            let server_cores = cores_of(rustix::process::Pid::from_raw(pid.cast_signed())).unwrap_or_default();
            self.shared_cores = self.client_cores.iter().any(|core| server_cores.contains(core));
            let mut cores = [&self.client_cores[..], &server_cores].concat();
            cores.sort_unstable();
            cores.dedup();
            let topology = Topology::of(&cores);
            self.shared_physical_cores = !self.shared_cores && topology.share(&self.client_cores, &server_cores);
            // Where the kernel does not tell of cores, nothing is known.
            self.look = Look::at(&cores, pid).ok().map(|look| (cores, look));
        }
        if let (Some(pid), Some(scratch)) = (self.pid, &self.counting) {
            match Counter::start(pid, scratch) {
                Ok(counter) => self.counter = Some(counter),
                Err(why) => self.counts = Some(Counts::none(&why)),
            }
        }
        self.before = self.pid.map(Used::of).transpose()?;
        if let (Some(pid), Some(operations)) = (self.pid, &self.sampling) {
            self.sampler = Sampler::start(pid, Arc::clone(operations), INTERVAL, &self.client_cores);
        }
        Ok(())
    }

    fn ended(&mut self) -> Result<()> {
        self.samples = self.sampler.take().map(Sampler::finish).unwrap_or_default();
        if let (Some(pid), Some(before)) = (self.pid, self.before) {
            self.used = Some(Used::of(pid)?.since(before));
            match process::resident_bytes(pid) {
                Ok(bytes) => self.resident_bytes = Some(bytes),
                // What it did can be told without it.
                Err(_) => self.notes.push("the server's memory may not be looked at".to_owned()),
            }
        }
        if let Some(counter) = self.counter.take() {
            self.counts = Some(counter.finish()?);
        }
        if let (Some(pid), Some((cores, before))) = (self.pid, &self.look) {
            self.neighbours = Look::at(cores, pid).ok().and_then(|now| now.since(before));
        }
        Ok(())
    }
}

impl Measured {
    /// Adds another server's, loaded at the same time.
    pub fn add(&mut self, other: &Measured) {
        self.outcome.add(&other.outcome);
        self.used = self.used.zip(other.used).map(|(sum, more)| sum.with(more));
        self.resident_bytes = self.resident_bytes.zip(other.resident_bytes).map(|(sum, more)| sum + more);
        self.shared_cores |= other.shared_cores;
        self.shared_physical_cores |= other.shared_physical_cores;
        let more_of = |one: Neighbours, other: Neighbours| Neighbours {
            processes: one.processes.max(other.processes),
            machines: one.machines.max(other.machines),
        };
        self.neighbours = self.neighbours.zip(other.neighbours).map(|(one, other)| more_of(one, other));
        let more = other.notes.iter().filter(|note| !self.notes.contains(note)).cloned().collect::<Vec<_>>();
        self.notes.extend(more);
    }

    /// Its figures by name.
    pub fn reading(&self) -> Reading {
        let outcome = &self.outcome;
        let mut reading = Reading::default();
        let mut set = |name: &str, figure: f64| {
            reading.figures.insert(name.to_owned(), figure);
        };
        let operations = outcome.operations.max(1) as f64;
        let seconds = outcome.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        set("operations", outcome.operations as f64);
        set("ops_s", outcome.throughput());
        let all = outcome.latency().summary();
        let latencies = [
            ("mean_us", all.mean_us),
            ("p50_us", all.p50_us),
            ("p95_us", all.p95_us),
            ("p99_us", all.p99_us),
            ("p999_us", all.p999_us),
            ("max_us", all.max_us),
        ];
        // Of nothing that was answered there is none.
        if all.count > 0 {
            latencies.into_iter().for_each(|(name, figure)| set(name, figure));
        }
        for (kind, latency) in outcome.kinds.iter().filter(|(_, latency)| latency.count() > 0) {
            let summary = latency.summary();
            set(&format!("{kind}_mean_us"), summary.mean_us);
            set(&format!("{kind}_p99_us"), summary.p99_us);
            set(&format!("{kind}_count"), summary.count as f64);
        }
        set("client_cpu_us", outcome.client_cpu.as_secs_f64() * 1e6 / operations);
        if let Some(system) = outcome.client_system.filter(|_| outcome.client_cpu >= PARTS_LEAST) {
            set("client_system_us", system.as_secs_f64() * 1e6 / operations);
        }
        if let Some(calls) = outcome.client_calls {
            set("client_syscalls_op", calls as f64 / operations);
        }
        set("client_busy", outcome.client_busy);
        set("client_queued", outcome.client_queued);
        set("client_cores", self.client_cores_used());
        if let Some(used) = self.used {
            set("server_cpu_us", used.total.as_secs_f64() * 1e6 / operations);
            if used.user + used.system >= PARTS_LEAST {
                set("server_user_us", used.user.as_secs_f64() * 1e6 / operations);
                set("server_system_us", used.system.as_secs_f64() * 1e6 / operations);
            }
            set("server_cores", used.total.as_secs_f64() / seconds);
            set("voluntary_switches_op", used.voluntary as f64 / operations);
            set("involuntary_switches_op", used.involuntary as f64 / operations);
        }
        if let Some(bytes) = self.resident_bytes {
            set("server_memory_mb", bytes as f64 / 1e6);
        }
        if let Some(Neighbours { processes, machines }) = self.neighbours {
            set("other_processes_share", processes);
            set("stolen_share", machines);
        }
        if outcome.late.count() > 0 {
            set("client_late_p99_us", outcome.late.summary().p99_us);
            set("unsent", outcome.unsent as f64);
            set("unanswered", outcome.unanswered.count() as f64);
        }
        for note in self.notes_on_the_cores() {
            reading = reading.note(note);
        }
        for (name, count) in self.counts.iter().flat_map(|counts| &counts.by_name) {
            reading = reading.figure(&format!("{name}_op"), *count as f64 / operations);
        }
        for note in self.counts.iter().flat_map(|counts| &counts.notes).chain(&self.notes) {
            reading = reading.note(note.clone());
        }
        if outcome.unsent > 0 {
            reading = reading.note("not all that was due was sent");
        }
        if outcome.unanswered.count() > outcome.unsent {
            reading = reading.note("not all that was sent was answered");
        }
        reading
    }

    /// What of the figures may be the client's doing, or that of others.
    fn notes_on_the_cores(&self) -> Vec<&'static str> {
        let outcome = &self.outcome;
        let had = |much: fn(Neighbours) -> bool| self.neighbours.is_some_and(much);
        // Of several threads on one core, none may be busy all the time that the core is.
        let is_limit = outcome.client_busy > CLIENT_BUSY_LIMIT
            || self.client_cores_used() > CLIENT_BUSY_LIMIT * self.client_cores.max(1) as f64;
        let is_late = outcome.late.count() > 0
            && outcome.late.summary().p99_us > CLIENT_LATE_LIMIT * outcome.latency().summary().p99_us;
        let notes = [
            (self.shared_cores, "server and client shared cores"),
            (self.shared_physical_cores, "server and client shared physical cores"),
            (is_limit, "the client was the limit"),
            (outcome.client_queued > CLIENT_QUEUED_LIMIT, "the client waited for a core"),
            (is_late, "most of the p99 is the client's own lateness"),
            (had(|had| had.processes > PROCESSES_LIMIT), "other processes ran on the cores"),
            (had(|had| had.machines > MACHINES_LIMIT), "the host gave the cores to other machines"),
        ];
        notes.into_iter().filter(|(holds, _)| *holds).map(|(_, note)| note).collect()
    }

    /// How many cores' worth of CPU time the client's threads took together.
    fn client_cores_used(&self) -> f64 {
        self.outcome.client_cpu.as_secs_f64() / self.outcome.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// The operations of each interval, a second.
    pub fn throughput_series(&self) -> Vec<f64> {
        let whole = self.outcome.intervals.split_last().map_or(&[][..], |(_, whole)| whole);
        whole.iter().map(|operations| *operations as f64 / INTERVAL.as_secs_f64()).collect()
    }

    /// The operations of each interval for a second of the server's CPU time; none where it was not sampled. Intervals in
    /// which the server worked less than half as long as it mostly did, because there was nothing to do or it had no core, say
    /// nothing of its own work, and what the kernel tells of them is coarse: they have no figure. Nor has any where the server
    /// mostly had less than a fifth of a core.
    fn operations_a_cpu_second(&self) -> Vec<f64> {
        const LITTLE: f64 = 0.5;
        let enough = 0.2 * INTERVAL.as_secs_f64();
        let seconds: Vec<f64> = self.samples.iter().map(|interval| interval.cpu.as_secs_f64()).collect();
        let Some(usual) = median(seconds.iter().copied()).filter(|usual| *usual >= enough) else { return Vec::new() };
        let worked = self.samples.iter().zip(seconds).filter(|(_, seconds)| *seconds >= LITTLE * usual);
        worked.map(|(interval, seconds)| interval.counted as f64 / seconds).collect()
    }

    /// The median's share of operations for a second of the server's CPU time that the worst interval had: a stall of
    /// which the server's own work is the cause, and no neighbour on the machine.
    pub fn slowest_by_cpu(&self) -> Option<f64> {
        least_over_median(self.operations_a_cpu_second())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a load on one core.
    fn measured(change: impl FnOnce(&mut Outcome)) -> Measured {
        let mut outcome = Outcome::new(&["get"]);
        outcome.answered(0, 100, 100_000, 100_000);
        outcome.elapsed = Duration::from_secs(1);
        change(&mut outcome);
        Watch::on(None, &[0]).measured(outcome)
    }

    fn notes(change: impl FnOnce(&mut Outcome)) -> Vec<String> {
        measured(change).reading().notes
    }

    #[test]
    fn the_servers_own_stall_is_told_from_a_wait() {
        let sample = |counted, cpu_ms| Interval { counted, cpu: Duration::from_millis(cpu_ms) };
        let of = |samples: &[Interval]| Measured { samples: samples.to_vec(), ..measured(|_| {}) }.slowest_by_cpu();
        let usual = [sample(1_000, 100); 5];
        assert_eq!(of(&usual), Some(1.0));
        // A part of the core was a neighbour's: each operation cost the same.
        assert_eq!(of(&[&usual[..], &[sample(500, 50)]].concat()), Some(1.0));
        // The server had something else to do.
        assert_eq!(of(&[&usual[..], &[sample(400, 100)]].concat()), Some(0.4));
        // Most of it was.
        assert_eq!(of(&[&usual[..], &[sample(0, 40)]].concat()), Some(1.0));
        assert_eq!(of(&usual[..4]), None);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[sample(1_000, 0); 6]), None, "the kernel does not tell");
        assert_eq!(of(&[sample(1_000, 10); 6]), None, "it does not tell well enough");
    }

    #[test]
    fn a_server_is_sampled_while_it_is_loaded() {
        // This process stands for a server.
        let operations = Arc::new(AtomicU64::new(0));
        let samples_within = |load: Duration| {
            let mut watch = Watch::on(Some(std::process::id()), &cores_of(None).expect("cores")).sampling(&operations);
            watch.begins().expect("it may be looked at");
            assert!(watch.sampler.is_some());
            std::thread::sleep(load);
            watch.ended().expect("it may be looked at");
            watch.measured(Outcome::new(&["get"])).samples
        };
        // The sampler's thread need not have had its turn on a busy machine.
        assert!((0..10).any(|doublings| !samples_within(2 * INTERVAL * (1 << doublings)).is_empty()));
    }

    #[test]
    fn several_threads_on_one_core_are_the_limit_together() {
        let third =
            |outcome: &mut Outcome| (outcome.client_cpu, outcome.client_busy) = (Duration::from_millis(320), 0.5);
        let mut sum = measured(third);
        assert_eq!(sum.reading().notes, [""; 0]);
        for _ in 0..2 {
            sum.add(&measured(third));
        }
        assert_eq!(sum.reading().notes, ["the client was the limit"]);
        sum.client_cores = 2;
        sum.add(&Measured { shared_cores: true, ..measured(|_| {}) });
        assert_eq!(sum.reading().notes, ["server and client shared cores"]);
    }

    #[test]
    fn a_server_whose_memory_cannot_be_read_is_measured_all_the_same() {
        // A process that has ended and not been waited for has times, but no memory.
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let ended = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("it was not waited for");
            stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
        };
        while !ended() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut watch = Watch::on(Some(child.id()), &[]).noting(Some("it is far away"));
        watch.begins().expect("it has times");
        watch.ended().expect("what it has can be told");
        child.wait().expect("it has ended");
        let reading = watch.measured(Outcome::new(&["get"])).reading();
        assert!(reading.figures.contains_key("server_cpu_us") && !reading.figures.contains_key("server_memory_mb"));
        assert_eq!(reading.notes, ["it is far away", "the server's memory may not be looked at"]);
    }

    #[test]
    fn cores_that_a_server_may_use_too_are_seen() {
        // This process stands for a server.
        let own = cores_of(None).expect("cores");
        let shared = |cores: &[usize]| {
            let mut watch = Watch::on(Some(std::process::id()), cores);
            watch.begins().expect("it may be looked at");
            watch.measured(Outcome::new(&["get"])).shared_cores
        };
        assert!(shared(&own[..1]));
        assert!(!shared(&[own[own.len() - 1] + 1]));
    }

    #[test]
    fn the_client_is_named_where_it_was_the_limit() {
        assert_eq!(notes(|_| {}), [""; 0]);
        assert_eq!(notes(|outcome| outcome.client_busy = 0.96), ["the client was the limit"]);
        // In an open loop no less.
        let open = |outcome: &mut Outcome| {
            outcome.late.record(10_000, 100);
            outcome.unsent = 5;
            outcome.client_busy = 0.96;
        };
        assert_eq!(notes(open), ["the client was the limit", "not all that was due was sent"]);
        assert_eq!(notes(|outcome| outcome.client_queued = 0.06), ["the client waited for a core"]);
        assert_eq!(notes(|outcome| outcome.late.record(40_000, 100)), [""; 0]);
        let late = notes(|outcome| outcome.late.record(60_000, 100));
        assert_eq!(late, ["most of the p99 is the client's own lateness"]);
    }

    #[test]
    fn a_tick_or_two_are_not_told_as_parts() {
        let with = |user, system| {
            let (user, system) = (Duration::from_millis(user), Duration::from_millis(system));
            let used = Some(Used { total: Duration::from_millis(19), user, system, ..Used::default() });
            Measured { used, ..measured(|_| {}) }.reading().figures
        };
        let few = with(0, 20);
        assert!(few.contains_key("server_cpu_us") && !few.contains_key("server_system_us"), "{few:?}");
        assert_eq!(with(40, 60)["server_system_us"], 600.0);
    }

    #[test]
    fn others_on_the_cores_are_told_of() {
        let with = |processes, machines| {
            let neighbours = Some(Neighbours { processes, machines });
            Measured { neighbours, ..measured(|_| {}) }
        };
        assert_eq!(with(0.09, 0.04).reading().notes, [""; 0]);
        assert_eq!(with(0.2, 0.0).reading().notes, ["other processes ran on the cores"]);
        let mut sum = with(0.0, 0.0);
        sum.add(&with(0.0, 0.1));
        assert_eq!(sum.reading().notes, ["the host gave the cores to other machines"]);
        assert_eq!(sum.reading().figures["stolen_share"], 0.1);
    }

    #[test]
    fn what_no_file_of_results_can_hold_is_left_out() {
        let reading = Reading::default().figure("ratio", f64::INFINITY).figure("share", f64::NAN).figure("times", 2.0);
        assert_eq!(reading.figures.into_iter().collect::<Vec<_>>(), [("times".to_owned(), 2.0)]);
        // Nothing was due: it did not take no time at all.
        let nothing = measured(|outcome| *outcome = Outcome::new(&["get"])).reading();
        assert!(!nothing.figures.contains_key("p99_us") && nothing.figures["operations"] == 0.0, "{nothing:?}");
    }

    #[test]
    fn what_was_not_sent_is_nobodys_fault_by_itself() {
        assert_eq!(notes(|outcome| outcome.unsent = 5), ["not all that was due was sent"]);
    }

    #[test]
    fn what_was_given_up_is_no_kinds_and_told() {
        let given_up = |outcome: &mut Outcome| {
            outcome.unsent = 5;
            outcome.late.record(1_000, 100);
            outcome.unanswered.record(900_000_000, 7);
        };
        let reading = measured(given_up).reading();
        assert_eq!(reading.notes, ["not all that was due was sent", "not all that was sent was answered"]);
        assert_eq!((reading.figures["unanswered"], reading.figures["get_count"]), (7.0, 100.0));
        assert!(reading.figures["max_us"] > 800_000.0 && reading.figures["get_p99_us"] < 200.0);
    }
}
