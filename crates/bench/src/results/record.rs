//! One measurement as it is kept. Knows not what its figures mean.

use super::{Build, Case};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run of one server in one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The experiment's name.
    pub experiment: String,
    /// The server's name.
    pub server: String,
    /// Its version.
    pub version: String,
    /// Which build of it.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub build: Build,
    /// What the running server said of its build, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub said: BTreeMap<String, String>,
    /// When its measurement began.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
    /// What was measured.
    pub case: Case,
    /// Which repetition it was, from 0.
    pub round: u64,
    /// How many repetitions there were to be; 0 where that was not kept.
    #[serde(default)]
    pub rounds: u64,
    /// Whether sizes were small and times short, so that the figures are not to be compared.
    pub quick: bool,
    /// How it was measured: sizes, times, threads, cores and whatever else was asked for, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub setup: BTreeMap<String, String>,
    /// How the server was started, if the bench did: its program and what it was told. Ports are other ones each time, so
    /// that it is no part of how it was measured.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Where: processor, memory and kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine: Vec<String>,
    /// What came out, by name; units last.
    pub figures: BTreeMap<String, f64>,
    /// What came out over time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Vec<f64>>,
    /// What must be known to read the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why the run failed; then there are no figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

fn is_unknown(build: &Build) -> bool {
    !build.is_known()
}

impl Record {
    /// The case's place on these axes, if it has any there, and the server.
    pub fn shown(&self, axes: &[&str]) -> String {
        match self.case.shown(axes) {
            nothing if nothing.is_empty() => self.server.clone(),
            case => format!("{case}, {}", self.server),
        }
    }

    /// Whether both are the same measurement.
    pub fn repeats(&self, other: &Record) -> bool {
        self.round == other.round && self.is_like(other)
    }

    /// Whether both are rounds of one measurement: the same server in the same case, measured in the same way in the same
    /// place.
    pub fn is_like(&self, other: &Record) -> bool {
        self.case == other.case && self.is_measured_like(other)
    }

    /// Whether both are of the same server, measured in the same way in the same place, whatever the case.
    pub fn is_measured_like(&self, other: &Record) -> bool {
        self.is_of_the_same_build(other)
            && self.quick == other.quick
            && self.setup == other.setup
            && self.machine == other.machine
    }

    /// Whether both are of the same server, and that the same build.
    pub fn is_of_the_same_build(&self, other: &Record) -> bool {
        self.server == other.server && self.version == other.version && self.build.is(&other.build)
    }
}
