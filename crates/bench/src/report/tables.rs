//! An experiment's results as a table: medians of the rounds, with the least and the greatest. Knows no format but text.

use crate::experiments::{Experiment, Figure};
use crate::results::{Case, Record, Spread, Table, figure, spread};

/// The rounds of one server in one case.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// The server's name.
    pub server: &'a str,
    /// The case.
    pub case: &'a Case,
    /// The rounds.
    pub records: Vec<&'a Record>,
}

impl Group<'_> {
    /// The median of a figure, and how far it reaches.
    pub fn spread(&self, figure: &str) -> Option<Spread> {
        spread(self.records.iter().filter_map(|record| record.figures.get(figure).copied()))
    }

    /// What must be known to read its figures, each once.
    pub fn notes(&self) -> Vec<&str> {
        let mut notes: Vec<&str> = self.records.iter().flat_map(|record| &record.notes).map(String::as_str).collect();
        notes.sort_unstable();
        notes.dedup();
        notes
    }
}

/// The successful runs, by case and server, in the order in which they were first made.
pub fn groups<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for record in records.into_iter().filter(|record| record.failure.is_none()) {
        match groups.iter_mut().find(|group| group.server == record.server && *group.case == record.case) {
            Some(group) => group.records.push(record),
            None => groups.push(Group { server: &record.server, case: &record.case, records: vec![record] }),
        }
    }
    groups
}

/// The table of an experiment.
pub fn table(experiment: &Experiment, records: &[Record]) -> Table {
    let groups = groups(records);
    // Columns that nothing was measured for are left out.
    let measured = |figure: &&Figure| groups.iter().any(|group| group.spread(figure.name).is_some());
    let figures: Vec<&Figure> = experiment.figures.iter().filter(measured).collect();
    let has_notes = groups.iter().any(|group| !group.notes().is_empty());
    let mut columns: Vec<String> = experiment.axes.iter().map(|axis| (*axis).to_owned()).collect();
    columns.push("server".to_owned());
    columns.extend(figures.iter().map(|figure| figure.heading.to_owned()));
    if has_notes {
        columns.push("note".to_owned());
    }
    let mut table = Table::new(columns);
    for group in &groups {
        let axes = experiment.axes.iter();
        let mut cells: Vec<String> =
            axes.map(|axis| group.case.at(axis).map_or_else(dash, |point| point.to_string())).collect();
        cells.push(group.server.to_owned());
        cells.extend(figures.iter().map(|figure| group.spread(figure.name).map_or_else(dash, shown)));
        if has_notes {
            cells.push(group.notes().join("; "));
        }
        table.row(cells);
    }
    table
}

fn dash() -> String {
    "–".to_owned()
}

/// The median, and in brackets the least and the greatest where they differ from it.
fn shown(spread: Spread) -> String {
    let (median, min, max) = (figure(spread.median), figure(spread.min), figure(spread.max));
    if min == median && max == median { median } else { format!("{median} ({min} … {max})") }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::experiments::ALL;
    use std::collections::BTreeMap;

    /// A run of `latency`.
    pub fn record(server: &str, operation: &str, round: u64, mean_us: f64) -> Record {
        Record {
            experiment: "latency".into(),
            server: server.into(),
            version: "1.0".into(),
            case: Case::new().word("protocol", "resp").word("operation", operation),
            round,
            quick: false,
            figures: BTreeMap::from([("mean_us".to_owned(), mean_us), ("p99_us".to_owned(), 2.0 * mean_us)]),
            series: BTreeMap::new(),
            notes: Vec::new(),
            failure: None,
        }
    }

    #[test]
    fn rounds_become_medians_and_failures_nothing() {
        let mut records = vec![
            record("tenon", "get", 0, 10.0),
            record("redis-server", "get", 0, 30.0),
            record("tenon", "get", 1, 12.0),
            record("tenon", "get", 2, 11.0),
            record("tenon", "set", 0, 99.0),
        ];
        records[4].failure = Some("it broke".into());
        records[1].notes = vec!["the client was the limit".into()];
        let latency = ALL.iter().find(|experiment| experiment.name == "latency").expect("it is there");
        let table = table(latency, &records);
        let rows: Vec<String> = table.rows().iter().map(|row| row.join("|")).collect();
        assert_eq!(
            rows,
            [
                "protocol|operation|server|mean µs|p99 µs|note",
                "resp|get|tenon|11.0 (10.0 … 12.0)|22.0 (20.0 … 24.0)|",
                "resp|get|redis-server|30.0|60.0|the client was the limit",
            ]
        );
    }
}
