//! Puts a report of all results on disk. Knows not what was measured.

use super::tables::machine;
use super::{html, markdown};
use crate::experiments::{ALL, Experiment};
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
    let mut lines: Vec<String> = Vec::new();
    // Where the figures were taken, which need not be where the report is written.
    for machine in records.iter().map(machine) {
        if !machine.iter().all(|line| lines.contains(line)) {
            lines.extend(machine);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::super::tables::tests::record;
    use super::*;

    #[test]
    fn the_machine_is_that_of_the_figures() {
        let mut records = vec![record("tenon", "get", 0, 10.0), record("tenon", "get", 1, 10.0)];
        assert_eq!(lines(&records), ["Machine: unknown", "Servers: tenon 1.0"]);
        for record in &mut records {
            record.machine = vec!["Machine: 3 cores".to_owned(), "Linux 9".to_owned()];
        }
        assert_eq!(lines(&records), ["Machine: 3 cores", "Linux 9", "Servers: tenon 1.0"]);
    }
}
