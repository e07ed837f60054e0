//! What a run was to measure, kept among its results, so that whoever reads them sees what is missing. Knows no experiment.

use super::Record;
use serde::{Deserialize, Serialize};

/// A line among the results that is none of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// This is to be measured now.
    Planned(Plan),
    /// Everything has been come to.
    Ended {},
}

/// What is to be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// How many measurements.
    pub measurements: usize,
    /// How many of them are among the results before it, and are not made again.
    pub there: usize,
    /// Who takes part.
    pub servers: Vec<String>,
}

/// How much of what was planned has been measured. Of results without a plan nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    planned: usize,
    made: usize,
    servers: Vec<String>,
    is_ended: bool,
}

impl Coverage {
    /// With the next line, if it is a mark.
    pub fn mark(&mut self, mark: &Mark) {
        match mark {
            Mark::Planned(Plan { measurements, there, servers }) => {
                self.planned += measurements;
                self.made += there;
                self.servers.clone_from(servers);
            }
            Mark::Ended {} => self.is_ended = true,
        }
    }

    /// With the next line, if it is a result. What stands before the first plan is told by its `there`.
    pub fn record(&mut self, record: &Record) {
        if self.planned > 0 && record.failure.is_none() {
            self.made += 1;
        }
    }

    /// What is missing, if anything is. A run that was ended early may not have planned everything yet.
    pub fn shortfall(&self) -> Option<String> {
        let Coverage { planned, made, servers, is_ended } = self;
        if *planned == 0 || (made >= planned && *is_ended) {
            return None;
        }
        let told = format!("{made} of {planned} measurements were made");
        let servers = servers.join(", ");
        Some(if *is_ended {
            format!("{told} (with {servers})")
        } else {
            format!("{told} (with {servers}), then the run was ended early, and more may have been to come")
        })
    }
}
