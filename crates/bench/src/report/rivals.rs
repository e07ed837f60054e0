//! What each server's figure is beside the least of the others' in the same case. Knows no format but text.

use super::published::were_measured_alike;
use super::tables::{Group, groups};
use crate::experiments::{Experiment, Figure};
use crate::results::{Record, Table, figure, median};

/// Above the least of the others' by so much, a server is told to be behind.
const BEHIND: f64 = 1.1;

/// The heading of the ratio's column.
pub fn heading(figure: &Figure) -> String {
    format!("{} / least of others", figure.heading)
}

/// A group's median over the least of those of other servers in the same case, measured alike.
pub fn over_least_of_others(group: &Group<'_>, groups: &[Group<'_>], figure: &Figure) -> Option<f64> {
    let median = |group: &Group<'_>| group.spread(figure.name).map(|spread| spread.median);
    let is_rival = |other: &&Group<'_>| {
        other.case == group.case
            && other.server != group.server
            && were_measured_alike(group.records[0], other.records[0])
    };
    let least = groups.iter().filter(is_rival).filter_map(median).min_by(f64::total_cmp)?;
    median(group).map(|own| own / least).filter(|ratio| ratio.is_finite())
}

/// In how many cases each server was before all others, and behind; nothing where none had a rival.
pub fn rivals(experiment: &Experiment, records: &[Record]) -> Option<(String, Table)> {
    let measure = experiment.rivals?;
    let groups = groups(records);
    let columns = ["server", "cases", "median ratio", "least of all in", "10 % and more behind in", "most in"];
    let mut table = Table::new(columns.map(str::to_owned).to_vec());
    for name in names(&groups) {
        let own = groups.iter().filter(|group| group.name() == name);
        let known = own.filter_map(|group| Some((group, over_least_of_others(group, &groups, &measure)?)));
        let ratios: Vec<(&Group<'_>, f64)> = known.collect();
        let worst = ratios.iter().reduce(|worst, other| if other.1 > worst.1 { other } else { worst });
        let Some((most, ratio)) = worst else { continue };
        let count = |holds: fn(f64) -> bool| ratios.iter().filter(|(_, ratio)| holds(*ratio)).count().to_string();
        table.row(vec![
            name,
            ratios.len().to_string(),
            median(ratios.iter().map(|(_, ratio)| *ratio)).map(figure).unwrap_or_default(),
            count(|ratio| ratio < 1.0),
            count(|ratio| ratio >= BEHIND),
            format!("{} ({})", most.case.shown(experiment.axes), figure(*ratio)),
        ]);
    }
    (!table.is_empty()).then(|| (format!("{}, in cases that others were measured in, too", heading(&measure)), table))
}

/// The servers' names, in the order in which they were first measured.
fn names(groups: &[Group<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in groups.iter().map(Group::name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::tables::tests::record;
    use super::*;
    use crate::experiments::ALL;

    const MEAN: Figure = Figure { name: "mean_us", heading: "mean µs" };

    #[test]
    fn each_server_is_held_against_the_best_of_the_others() {
        let latency = ALL.iter().find(|experiment| experiment.name == "latency").expect("it is there");
        let experiment = Experiment { rivals: Some(MEAN), ..**latency };
        let mut records = Vec::new();
        for (operation, own, one, other) in [("get", 1.0, 2.0, 4.0), ("set", 3.0, 2.0, 1.5), ("mixed", 1.0, 2.0, 1.0)] {
            records.push(record("tenon", operation, 0, own));
            records.push(record("redis-server", operation, 0, one));
            records.push(record("valkey-server", operation, 0, other));
        }
        // Nobody else does this, and this was measured otherwise.
        records.push(record("tenon", "alone", 0, 1.0));
        records.push(Record { quick: true, ..record("redis-server", "alone", 0, 0.1) });
        let (title, table) = rivals(&experiment, &records).expect("there are rivals");
        assert!(title.starts_with("mean µs / least of others"), "{title}");
        let rows: Vec<String> = table.rows().iter().map(|row| row.join("|")).collect();
        assert_eq!(
            rows,
            [
                "server|cases|median ratio|least of all in|10 % and more behind in|most in",
                "tenon|3|1.00|1|1|resp, set (2.00)",
                "redis-server|3|2.00|0|3|resp, get (2.00)",
                "valkey-server|3|1.00|1|1|resp, get (4.00)",
            ]
        );
        assert!(rivals(latency, &records).is_none());
        assert!(rivals(&experiment, &records[..1]).is_none());
    }
}
