//! Puts a report of all results on disk. Knows not what was measured.

use super::tables::machine;
use super::{html, markdown};
use crate::experiments::{ALL, Experiment};
use crate::results::{Coverage, Record, Store};
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
    let coverages = Store::coverages(directory)?;
    let facts = lines(&records);
    let mut text = String::from("# tenon-bench\n\n");
    facts.iter().for_each(|fact| text += &format!("- {fact}\n"));
    for (experiment, own) in &sections {
        let own: Vec<Record> = own.iter().map(|record| (*record).clone()).collect();
        text += &format!(
            "\n{}",
            markdown::section(experiment, &own, coverages.get(experiment.name).unwrap_or(&Coverage::default()))
        );
    }
    let [page, summary] = ["report.html", "report.md"].map(|name| directory.join(name));
    std::fs::write(&page, html::page(&sections, &coverages, &facts)).with_context(|| page.display().to_string())?;
    std::fs::write(&summary, text).with_context(|| summary.display().to_string())?;
    Ok([page, summary])
}

/// Which build was measured: of its file, and of what it said when it ran.
fn build(record: &Record) -> String {
    let said: Vec<String> = record.said.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let whole = record.build.whole();
    if said.is_empty() || record.build.says.contains(&said.join(", ")) {
        whole
    } else {
        format!("{whole}; {}", said.join(", "))
    }
}

/// What must be known of the machine, the servers and the time.
pub fn lines(records: &[Record]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    // Where the figures were taken, which need not be where the report is written.
    for machine in records.iter().map(machine) {
        if !machine.iter().all(|line| lines.contains(line)) {
            lines.extend(machine);
        }
    }
    let times = records.iter().map(|record| record.at.as_str()).filter(|at| !at.is_empty());
    if let Some((first, last)) = times.clone().min().zip(times.max()) {
        lines.push(if first == last {
            format!("Measured at {first}")
        } else {
            format!("Measured from {first} to {last}")
        });
    }
    let mut versions: Vec<String> = Vec::new();
    for record in records {
        let line = format!("{} {}: {}", record.server, record.version, build(record));
        if !versions.contains(&line) {
            versions.push(line);
        }
    }
    lines.extend(versions);
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
        assert_eq!(lines(&records), ["Machine: unknown", "tenon 1.0: unknown build"]);
        for record in &mut records {
            record.machine = vec!["Machine: 3 cores".to_owned(), "Linux 9".to_owned()];
            record.build.sha256 = "a1b2".to_owned();
            record.build.changed = "2026-01-01T00:00:00Z".to_owned();
            record.said.insert("redis_build_id".to_owned(), "c3".to_owned());
            record.at = format!("2026-01-02T03:04:0{}Z", record.round);
        }
        let known = "tenon 1.0: 0 bytes changed at 2026-01-01T00:00:00Z, SHA-256 a1b2; redis_build_id c3";
        let measured = "Measured from 2026-01-02T03:04:00Z to 2026-01-02T03:04:01Z";
        assert_eq!(lines(&records), ["Machine: 3 cores", "Linux 9", measured, known]);
    }
}
