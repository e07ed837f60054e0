//! Puts a report of all results on disk. Knows not what was measured.

use super::{html, markdown};
use crate::experiments::{ALL, Experiment};
use crate::machine::facts;
use crate::results::{Record, Store};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// Writes `report.html` and `report.md` beside the results, and says where.
pub fn write(directory: &Path) -> Result<[PathBuf; 2]> {
    let records = Store::read_all(directory)?;
    let sections: Vec<(&Experiment, Vec<&Record>)> = ALL
        .iter()
        .map(|experiment| {
            let own = records.iter().filter(|record| record.experiment == experiment.name).collect();
            (*experiment, own)
        })
        .filter(|(_, own): &(_, Vec<&Record>)| !own.is_empty())
        .collect();
    if sections.is_empty() {
        bail!("there are no results in {}", directory.display());
    }
    let facts = lines(&records);
    let mut text = String::from("# tenon-bench\n\n");
    facts.iter().for_each(|fact| text += &format!("- {fact}\n"));
    for (experiment, own) in &sections {
        let own: Vec<Record> = own.iter().map(|record| (*record).clone()).collect();
        text += &format!("\n{}", markdown::section(experiment, &own));
    }
    let [page, summary] = ["report.html", "report.md"].map(|name| directory.join(name));
    std::fs::write(&page, html::page(&sections, &facts)).with_context(|| page.display().to_string())?;
    std::fs::write(&summary, text).with_context(|| summary.display().to_string())?;
    Ok([page, summary])
}

/// What must be known of the machine and the servers.
fn lines(records: &[Record]) -> Vec<String> {
    let mut lines = facts::lines();
    let mut versions: Vec<String> = Vec::new();
    for record in records {
        let version = format!("{} {}", record.server, record.version);
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    lines.push(format!("Servers: {}", versions.join(", ")));
    if records.iter().any(|record| record.quick) {
        lines.push("Quick runs: they show that the measurements work; their figures are not to be compared".to_owned());
    }
    lines
}
