//! What every experiment needs: options, sizes, the servers to measure. Knows no experiment.

use super::case::Case;
use super::servers::Program;
use std::path::PathBuf;
use std::time::Duration;

/// What was asked for on the command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// Small sizes and one round.
    pub quick: bool,
    /// Count user instructions under valgrind.
    pub callgrind: bool,
    /// Measure RESP servers with redis-benchmark too.
    pub cross_check: bool,
    /// Part of the names of the measurements to make; empty for all.
    pub filter: String,
}

/// How much work an experiment does.
#[derive(Debug)]
pub struct Scale {
    /// How often each figure is taken; the median is shown.
    pub rounds: u64,
    /// Keys in the servers while throughput is measured.
    pub keys: u64,
    /// Keys whose memory is measured.
    pub keys_memory: u64,
    /// Keys at the end of the growth experiment.
    pub keys_growth: u64,
    /// Keys that a snapshot is taken of.
    pub keys_snapshot: u64,
    /// How long one throughput figure is taken.
    pub measured: Duration,
    /// How long one figure of several workers is taken: there are many, and ratios are what they are for.
    pub measured_workers: Duration,
    /// How long the same load runs before.
    pub warm_up: Duration,
    /// Operations of the shorter of a pair of runs under valgrind; the longer has three times as many.
    pub operations_callgrind: u64,
    /// How long a server may tidy up after loading before its memory is read (Redis finishes its rehash in it).
    pub settle: Duration,
}

impl Scale {
    /// The sizes the published figures have.
    pub const FULL: Scale = Scale {
        rounds: 3,
        keys: 1_000_000,
        keys_memory: 1_000_000,
        keys_growth: 8_000_000,
        keys_snapshot: 5_000_000,
        measured: Duration::from_secs(3),
        measured_workers: Duration::from_secs(1),
        warm_up: Duration::from_millis(500),
        operations_callgrind: 40_000,
        settle: Duration::from_millis(1500),
    };

    /// Sizes that show that everything works.
    pub const QUICK: Scale = Scale {
        rounds: 1,
        keys: 100_000,
        keys_memory: 100_000,
        keys_growth: 1_000_000,
        keys_snapshot: 500_000,
        measured: Duration::from_millis(300),
        measured_workers: Duration::from_millis(200),
        warm_up: Duration::from_millis(100),
        operations_callgrind: 5_000,
        settle: Duration::from_millis(500),
    };
}

/// Connections of every load: what redis-benchmark takes when not told.
pub const CONNECTIONS: usize = 50;

/// What every experiment is given.
#[derive(Debug)]
pub struct Context {
    /// What was asked for.
    pub options: Options,
    /// How much work to do.
    pub scale: Scale,
    /// The servers found, in the order of the tables' rows.
    pub programs: Vec<Program>,
    /// Whether perf may count instructions here.
    pub perf: bool,
    /// Where servers' logs and valgrind's counts go.
    pub scratch: PathBuf,
    /// Runs that failed their own check: no figure was taken from them.
    pub failures: Vec<String>,
}

impl Context {
    /// Whether the measurement of this name was asked for.
    pub fn wants(&self, name: &str) -> bool {
        name.contains(&self.options.filter)
    }

    /// The same for an experiment that goes beside throughput: who asks for a case there wants it here too.
    pub fn wants_beside(&self, experiment: &str, case: &Case) -> bool {
        [experiment, "throughput"].iter().any(|experiment| self.wants(&format!("{experiment}/{}", case.name())))
    }

    /// Remembers and shows a failed run.
    pub fn failed(&mut self, name: &str, server: &str, error: &anyhow::Error) {
        let failure = format!("{name}, {server}: {error:#}");
        eprintln!("  failed: {failure}");
        self.failures.push(failure);
    }
}
