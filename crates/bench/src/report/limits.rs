//! How far each server goes along an axis before a figure is too great. Knows no format but text.

use super::tables::{Group, dash, groups};
use crate::experiments::{Experiment, Limit};
use crate::results::{Case, Record, Table, figure};

/// What was measured of one server on one axis, all else being alike.
struct Line<'a> {
    /// The case without the axis.
    rest: Case,
    first: &'a Record,
    name: String,
    points: Vec<Point<'a>>,
}

/// A place on the axis.
struct Point<'a> {
    place: f64,
    /// The figure's median there.
    median: f64,
    /// What must be known to read it: where it is too great, the server need not be the cause.
    notes: Vec<&'a str>,
}

/// A table for each of the experiment's limits that something was measured for, under its title.
pub fn limits(experiment: &Experiment, records: &[Record]) -> Vec<(&'static str, Table)> {
    let groups = groups(records);
    let tables = experiment.limits.iter().map(|limit| (limit.title, table(experiment, limit, &groups)));
    tables.filter(|(_, table)| !table.is_empty()).collect()
}

fn table(experiment: &Experiment, limit: &Limit, groups: &[Group<'_>]) -> Table {
    let axes: Vec<&str> = experiment.axes.iter().copied().filter(|axis| *axis != limit.axis).collect();
    let (axis, heading) = (limit.axis, limit.figure.heading);
    let mut columns: Vec<String> = axes.iter().map(|axis| (*axis).to_owned()).collect();
    columns.extend(["server", axis, heading].map(str::to_owned));
    columns.extend([format!("next {axis}"), format!("{heading} there")]);
    let lines = lines(limit, groups);
    let has_notes = lines.iter().any(|line| line.note(limit.below).is_some());
    if has_notes {
        columns.push("note".to_owned());
    }
    let mut table = Table::new(columns);
    for line in lines {
        let mut cells: Vec<String> =
            axes.iter().map(|axis| line.rest.at(axis).map_or_else(dash, |point| point.to_string())).collect();
        cells.push(line.name.clone());
        let (best, next) = line.around(limit.below);
        for point in [best, next] {
            cells.extend(point.map_or([dash(), dash()], |point| [figure(point.place), figure(point.median)]));
        }
        if has_notes {
            cells.push(line.note(limit.below).unwrap_or_default());
        }
        table.row(cells);
    }
    table
}

fn lines<'a>(limit: &Limit, groups: &'a [Group<'a>]) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    for group in groups {
        let Some(place) = group.case.quantity(limit.axis) else { continue };
        let Some(spread) = group.spread(limit.figure.name) else { continue };
        let (rest, first) = (group.case.without(limit.axis), group.records[0]);
        let point = Point { place, median: spread.median, notes: group.notes() };
        match lines.iter_mut().find(|line| line.rest == rest && line.first.is_measured_like(first)) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { rest, first, name: group.name(), points: vec![point] }),
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_by(|one, other| one.place.total_cmp(&other.place)));
    lines
}

impl Line<'_> {
    /// The farthest place where the figure is small enough, and the one that was measured behind it.
    fn around(&self, below: f64) -> (Option<&Point<'_>>, Option<&Point<'_>>) {
        let best = self.points.iter().rposition(|point| point.median < below);
        let next = best.map_or(0, |best| best + 1);
        (best.map(|best| &self.points[best]), self.points.get(next))
    }

    /// What must be known to believe it.
    fn note(&self, below: f64) -> Option<String> {
        let (best, next) = self.around(below);
        let mut notes: Vec<String> = Vec::new();
        match best {
            None => notes.push("nowhere".to_owned()),
            Some(best) => {
                let over = self.points.iter().filter(|point| point.place < best.place && point.median >= below);
                let over: Vec<String> = over.map(|point| figure(point.place)).collect();
                if !over.is_empty() {
                    notes.push(format!("not at {}", over.join("; ")));
                }
            }
        }
        match next {
            None => notes.push("no more was measured".to_owned()),
            Some(next) if !next.notes.is_empty() => {
                notes.push(format!("at {}: {}", figure(next.place), next.notes.join(", ")));
            }
            Some(_) => {}
        }
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables::tests::record;
    use super::*;
    use crate::experiments::ALL;

    #[test]
    fn the_farthest_place_is_told_by_medians() {
        let load = ALL.iter().find(|experiment| experiment.name == "load").expect("it is there");
        let mut records = Vec::new();
        let mut add = |server: &str, rate: f64, p99_us: &[f64]| {
            for (round, p99_us) in (0..).zip(p99_us) {
                let mut record = record(server, "get", round, *p99_us / 2.0);
                record.case = record.case.number("offered op/s", rate);
                records.push(record);
            }
        };
        // In no order, and one round of three was disturbed.
        add("tenon", 20_000.0, &[900.0, 800.0, 7_000.0]);
        add("tenon", 5_000.0, &[100.0]);
        add("tenon", 40_000.0, &[500.0, 1_500.0, 1_000.0]);
        add("steady", 5_000.0, &[100.0]);
        add("steady", 20_000.0, &[200.0]);
        add("uneven", 5_000.0, &[1_200.0]);
        add("uneven", 20_000.0, &[200.0]);
        add("uneven", 40_000.0, &[2_000.0]);
        add("slow", 5_000.0, &[3_000.0]);
        records.last_mut().expect("it was added").notes = vec!["the client was the limit".to_owned()];
        let mut otherwise = record("tenon", "get", 0, 50.0);
        (otherwise.quick, otherwise.case) = (true, otherwise.case.number("offered op/s", 80_000.0));
        records.push(otherwise);
        let all = limits(load, &records);
        let [(title, table)] = &all[..] else { panic!("one limit is declared: {all:?}") };
        assert_eq!(*title, "Highest offered load with p99 under 1 ms");
        let rows: Vec<String> = table.rows().iter().map(|row| row.join("|")).collect();
        assert_eq!(
            rows,
            [
                "protocol|operation|server|offered op/s|p99 µs|next offered op/s|p99 µs there|note",
                "resp|get|tenon|20,000|900|40,000|1,000|",
                "resp|get|steady|20,000|200|–|–|no more was measured",
                "resp|get|uneven|20,000|200|40,000|2,000|not at 5,000",
                "resp|get|slow|–|–|5,000|3,000|nowhere; at 5,000: the client was the limit",
                "resp|get|tenon|80,000|100|–|–|no more was measured",
            ]
        );
        assert!(limits(ALL[0], &records).is_empty());
    }
}
