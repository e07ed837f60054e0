//! One measurement as it is kept. Knows not what its figures mean.

use super::Case;
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
    /// What was measured.
    pub case: Case,
    /// Which repetition it was, from 0.
    pub round: u64,
    /// Whether sizes were small and times short, so that the figures are not to be compared.
    pub quick: bool,
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

impl Record {
    /// Whether both are the same measurement.
    pub fn repeats(&self, other: &Record) -> bool {
        self.server == other.server
            && self.version == other.version
            && self.case == other.case
            && self.round == other.round
            && self.quick == other.quick
    }
}
