//! An experiment's results as Markdown. Knows no drawing.

use super::conditions::conditions;
use super::limits::limits;
use super::published::{Beside, beside};
use super::rivals::rivals;
use super::tables::table;
use crate::experiments::Experiment;
use crate::results::{Coverage, Record};
use std::fmt::Write;

/// Heading, sentence, what is missing, table, how far each server goes, published figures and failures.
pub fn section(experiment: &Experiment, records: &[Record], coverage: &Coverage) -> String {
    let mut text = format!("## {}\n\n{} (After {}.)\n", experiment.title, experiment.summary, experiment.study);
    if let Some(missing) = coverage.shortfall() {
        text += &format!("\n**{missing}.**\n");
    }
    let table = table(experiment, records);
    if !table.is_empty() {
        text += &format!("\n{}", table.markdown());
    }
    if let Some((title, table)) = rivals(experiment, records) {
        text += &format!("\n{title}:\n\n{}", table.markdown());
    }
    for (title, table) in limits(experiment, records) {
        text += &format!("\n{title}:\n\n{}", table.markdown());
    }
    let conditions = conditions(records);
    if !conditions.is_empty() {
        text += "\n";
        conditions.iter().for_each(|line| text += &format!("- {line}\n"));
    }
    if !experiment.published.is_empty() {
        text += "\nPublished, on other machines:\n\n";
        for Beside { what, figure, here } in beside(experiment, records) {
            let here = if here.is_empty() { here } else { format!(" (here: {here})") };
            text += &format!("- {what}: {figure}{here}\n");
        }
    }
    let failed: Vec<&Record> = records.iter().filter(|record| record.failure.is_some()).collect();
    if !failed.is_empty() {
        text += "\nFailed, so that no figure was taken:\n\n";
        for record in failed {
            let failure = record.failure.as_deref().unwrap_or_default();
            // Writing to a text does not fail.
            let _ = writeln!(text, "- {}: {failure}", record.shown(experiment.axes));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tables::tests::record;
    use super::*;
    use crate::experiments::ALL;
    use crate::results::{Mark, Plan};

    #[test]
    fn a_section_says_how_far_servers_go() {
        let load = ALL.iter().find(|experiment| experiment.name == "load").expect("it is there");
        let mut one = record("tenon", "get", 0, 10.0);
        one.case = one.case.number("offered op/s", 5_000.0);
        let text = section(load, &[one], &Coverage::default());
        let part = "\n\nHighest offered load with p99 under 1 ms:\n\n| protocol | operation | server | offered op/s | p99 µs |";
        assert!(text.contains(part), "{text}");
    }

    #[test]
    fn a_section_says_what_failed_and_what_was_published() {
        let mut records = vec![record("tenon", "get", 0, 10.0), record("redis-server", "set", 0, 1.0)];
        records[1].failure = Some("the server has lost 'key:000000000001'".into());
        let mut coverage = Coverage::default();
        coverage.mark(&Mark::Planned(Plan { measurements: 9, there: 2, servers: vec!["tenon".into()] }));
        let text = section(ALL[0], &records, &coverage);
        assert!(text.contains("\n\n**2 of 9 measurements were made (with tenon), then"), "{text}");
        assert!(text.starts_with("## Latency of one client\n\nOne connection gets"), "{text}");
        assert!(text.contains("| resp     | get       | tenon  |    10.0 |"), "{text}");
        assert!(text.contains("- GET, one connection, 32 bytes: Redis 6 % slower"), "{text}");
        assert!(text.ends_with("- resp, set, redis-server: the server has lost 'key:000000000001'\n"), "{text}");
    }
}
