//! An experiment's results as a table: medians of the rounds, with the least and the greatest. Knows no format but text.

use super::rivals;
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
    /// In what else it differs from others of the same case.
    pub differences: Vec<String>,
    /// How many of the rounds are there, where some are missing.
    pub missing: Option<String>,
}

impl Group<'_> {
    /// The median of a figure, and how far it reaches. Where it is unknown of half the rounds or more, so is that.
    pub fn spread(&self, figure: &str) -> Option<Spread> {
        let (known, rounds) = self.rounds_of(figure);
        let figures = self.records.iter().filter_map(|record| record.figures.get(figure).copied());
        spread(figures).filter(|_| 2 * known > rounds)
    }

    /// In how many rounds a figure is known, of all that have figures.
    fn rounds_of(&self, figure: &str) -> (usize, usize) {
        let known = self.records.iter().filter(|record| record.figures.contains_key(figure)).count();
        (known, self.records.iter().filter(|record| !record.figures.is_empty()).count())
    }

    /// Of which of these figures it is not known in some rounds what they were.
    fn unknown(&self, figures: &[Figure]) -> Vec<String> {
        let told = figures.iter().filter_map(|figure| match self.rounds_of(figure.name) {
            (known, rounds) if (1..rounds).contains(&known) => {
                Some(format!("{} known of {known} of {rounds} rounds", figure.heading))
            }
            _ => None,
        });
        told.collect()
    }

    /// What must be known to read its figures, each once; what they stand on comes first.
    pub fn notes(&self) -> Vec<&str> {
        let mut notes: Vec<&str> = self.records.iter().flat_map(|record| &record.notes).map(String::as_str).collect();
        notes.sort_unstable();
        notes.dedup();
        self.differences.iter().chain(&self.missing).map(String::as_str).chain(notes).collect()
    }

    /// The server's name, and in what else it differs from others of the same case.
    pub fn name(&self) -> String {
        std::iter::once(self.server).chain(self.differences.iter().map(String::as_str)).collect::<Vec<_>>().join(", ")
    }
}

/// The successful runs, by case, server and how they were measured, in the order in which they were first made.
pub fn groups<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut failed: Vec<&Record> = Vec::new();
    for record in records {
        if record.failure.is_some() {
            failed.push(record);
            continue;
        }
        match groups.iter_mut().find(|group| group.records[0].is_like(record)) {
            Some(group) => group.records.push(record),
            None => {
                let (server, case) = (&record.server[..], &record.case);
                groups.push(Group { server, case, records: vec![record], differences: Vec::new(), missing: None });
            }
        }
    }
    let told: Vec<Vec<String>> = groups.iter().map(|group| differences(group, &groups)).collect();
    for (group, differences) in groups.iter_mut().zip(told) {
        group.differences = differences;
        group.missing = missing(group, &failed);
    }
    groups
}

/// "2 of 3 rounds" where a round failed or was not come to. What has no figures needs no more than one.
fn missing(group: &Group<'_>, failed: &[&Record]) -> Option<String> {
    let there = group.records.iter().filter(|record| !record.figures.is_empty()).count() as u64;
    let asked = group.records.iter().map(|record| record.rounds).max().unwrap_or(0);
    let failed = failed.iter().filter(|record| record.is_like(group.records[0])).count() as u64;
    let all = asked.max(there + failed);
    (there > 0 && there < all).then(|| format!("{there} of {all} rounds"))
}

/// What was another for others of the same case: such rows must not be taken for rounds or rivals of one another.
fn differences(group: &Group<'_>, groups: &[Group<'_>]) -> Vec<String> {
    let own = group.records[0];
    let others: Vec<&Record> =
        groups.iter().filter(|other| other.case == group.case).map(|group| group.records[0]).collect();
    let differs = |value: fn(&Record) -> String| others.iter().any(|other| value(other) != value(own));
    let mut told = Vec::new();
    // Each server has a version of its own.
    if others.iter().any(|other| other.server == own.server && other.version != own.version) {
        told.push(format!("version {}", own.version));
    }
    // So has each build; of some of another version, that says enough.
    let is_other = |other: &&Record| other.server == own.server && other.version == own.version;
    if others.iter().filter(|other| is_other(other)).any(|other| !other.build.is(&own.build)) {
        told.push(own.build.short());
    }
    if differs(|record| record.quick.to_string()) {
        told.push(if own.quick { "quick" } else { "not quick" }.to_owned());
    }
    let another = |name: &String, value: &String| {
        others.iter().any(|other| other.setup.get(name).is_some_and(|other| other != value))
    };
    let of_setup = own.setup.iter().filter(|(name, value)| another(name, value));
    told.extend(of_setup.map(|(name, value)| format!("{name} {value}")));
    if differs(|record| record.machine.join(", ")) {
        told.push(machine(own).join(", "));
    }
    told
}

/// Where it was measured.
pub fn machine(record: &Record) -> Vec<String> {
    if record.machine.is_empty() { vec!["Machine: unknown".to_owned()] } else { record.machine.clone() }
}

/// The table of an experiment.
pub fn table(experiment: &Experiment, records: &[Record]) -> Table {
    let groups = groups(records);
    // Columns that nothing was measured for are left out.
    let measured = |figure: &&Figure| groups.iter().any(|group| group.spread(figure.name).is_some());
    let figures: Vec<&Figure> = experiment.figures.iter().filter(measured).collect();
    let notes = |group: &Group<'_>| {
        let notes = group.notes().into_iter().map(str::to_owned);
        notes.chain(group.unknown(experiment.figures)).collect::<Vec<_>>()
    };
    let has_notes = groups.iter().any(|group| !notes(group).is_empty());
    let mut columns: Vec<String> = experiment.axes.iter().map(|axis| (*axis).to_owned()).collect();
    columns.push("server".to_owned());
    columns.extend(figures.iter().map(|figure| figure.heading.to_owned()));
    columns.extend(experiment.rivals.iter().map(rivals::heading));
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
        cells.extend(experiment.rivals.iter().map(|measure| {
            rivals::over_least_of_others(group, &groups, measure).map_or_else(dash, crate::results::figure)
        }));
        if has_notes {
            cells.push(notes(group).join("; "));
        }
        table.row(cells);
    }
    table
}

/// In place of what there is not.
pub fn dash() -> String {
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
    use crate::results::Build;
    use std::collections::BTreeMap;

    /// A run of `latency`.
    pub fn record(server: &str, operation: &str, round: u64, mean_us: f64) -> Record {
        Record {
            experiment: "latency".into(),
            server: server.into(),
            version: "1.0".into(),
            build: Build::default(),
            said: BTreeMap::new(),
            at: String::new(),
            case: Case::new().word("protocol", "resp").word("operation", operation),
            round,
            rounds: 0,
            quick: false,
            setup: BTreeMap::new(),
            command: String::new(),
            machine: Vec::new(),
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
        records[2].figures.remove("p99_us");
        records.push(record("tenon", "mixed", 0, 1.0));
        records.push(record("tenon", "mixed", 1, 3.0));
        records[6].figures.remove("p99_us");
        records[1].notes = vec!["the client was the limit".into()];
        let latency = ALL.iter().find(|experiment| experiment.name == "latency").expect("it is there");
        let table = table(latency, &records);
        let rows: Vec<String> = table.rows().iter().map(|row| row.join("|")).collect();
        assert_eq!(
            rows,
            [
                "protocol|operation|server|mean µs|p99 µs|note",
                "resp|get|tenon|11.0 (10.0 … 12.0)|21.0 (20.0 … 22.0)|p99 µs known of 2 of 3 rounds",
                "resp|get|redis-server|30.0|60.0|the client was the limit",
                "resp|mixed|tenon|2.00 (1.00 … 3.00)|–|p99 µs known of 1 of 2 rounds",
            ]
        );
    }

    #[test]
    fn what_was_measured_otherwise_stands_in_a_row_of_its_own() {
        let with = |server: &str, round, keys: &str| {
            let mut record = record(server, "get", round, 10.0);
            record.setup.insert("keys".to_owned(), keys.to_owned());
            record
        };
        let alike = [with("tenon", 0, "100"), with("tenon", 1, "100"), with("redis-server", 0, "100")];
        let groups_of = |records: &[Record]| groups(records).iter().map(|group| group.name()).collect::<Vec<_>>();
        assert_eq!(groups_of(&alike), ["tenon", "redis-server"]);

        let mut records = vec![with("tenon", 0, "100"), with("tenon", 0, "200"), with("redis-server", 0, "200")];
        assert_eq!(groups_of(&records), ["tenon, keys 100", "tenon, keys 200", "redis-server, keys 200"]);
        let latency = ALL.iter().find(|experiment| experiment.name == "latency").expect("it is there");
        let table = table(latency, &records);
        let notes: Vec<&str> = table.rows().iter().filter_map(|row| row.last()).map(String::as_str).collect();
        assert_eq!(notes, ["note", "keys 100", "keys 200", "keys 200"]);

        // Two builds of one version.
        records = vec![record("tenon", "get", 0, 1.0), record("tenon", "get", 0, 1.0), record("tenon", "get", 1, 1.0)];
        records[0].build.sha256 = "0123456789abcdef".to_owned();
        assert_eq!(groups_of(&records), ["tenon, build 0123456789ab", "tenon, unknown build"]);

        // What is known of one only is no difference; versions differ from one server to another.
        records = vec![with("tenon", 0, "100"), record("redis-server", "get", 0, 10.0)];
        records[1].version = "7.0".to_owned();
        assert_eq!(groups_of(&records), ["tenon", "redis-server"]);
        records = vec![record("tenon", "get", 0, 1.0), record("tenon", "get", 0, 1.0), record("tenon", "get", 0, 1.0)];
        records[0].version = "0.9".to_owned();
        records[1].quick = true;
        records[1].machine = vec!["Machine: 2 cores".to_owned(), "Linux 6".to_owned()];
        assert_eq!(
            groups_of(&records),
            [
                "tenon, version 0.9, not quick, Machine: unknown",
                "tenon, version 1.0, quick, Machine: 2 cores, Linux 6",
                "tenon, version 1.0, not quick, Machine: unknown"
            ]
        );
    }

    #[test]
    fn rounds_that_are_missing_are_told() {
        let mut records: Vec<Record> = (0..3).map(|round| record("tenon", "get", round, 10.0)).collect();
        let missing = |records: &[Record]| groups(records)[0].missing.clone();
        assert_eq!(missing(&records), None);
        records[1].failure = Some("it broke".to_owned());
        assert_eq!(missing(&records).as_deref(), Some("2 of 3 rounds"));
        // Another's failure is none of its own.
        records[1].server = "redis-server".to_owned();
        assert_eq!(missing(&records), None);
        // A run that was ended early.
        records[0].rounds = 5;
        assert_eq!(missing(&records).as_deref(), Some("2 of 5 rounds"));
        assert_eq!(groups(&records)[0].notes(), ["2 of 5 rounds"]);
        let nothing = Record { figures: BTreeMap::new(), rounds: 3, ..record("spark", "get", 0, 1.0) };
        assert_eq!(missing(&[nothing]), None);
    }
}
