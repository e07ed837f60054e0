//! Published figures with what the results here make of them. Knows no format but text.

use super::tables::{Group, groups};
use crate::experiments::{Base, Experiment, Form, Ours, Published, Spot};
use crate::results::{Record, figure};

/// The axis of languages.
const PROTOCOL: &str = "protocol";

/// A published figure, and the same of each server here; empty where nothing was measured that it could be computed from.
pub struct Beside {
    /// What was measured.
    pub what: &'static str,
    /// What came out elsewhere.
    pub figure: &'static str,
    /// What comes out here.
    pub here: String,
}

/// All that were published of an experiment.
pub fn beside(experiment: &Experiment, records: &[Record]) -> Vec<Beside> {
    let groups = groups(records);
    let of = |&Published { what, figure, ours }: &Published| {
        let here = ours.map(|ours| here(&ours, &groups)).unwrap_or_default();
        Beside { what, figure, here }
    };
    experiment.published.iter().map(of).collect()
}

/// What comes of one server in one language.
struct Server {
    name: String,
    /// In each case.
    ratios: Vec<f64>,
    /// What it was compared with.
    over: Option<String>,
}

fn here(ours: &Ours, groups: &[Group<'_>]) -> String {
    let mut servers: Vec<Server> = Vec::new();
    for group in groups {
        let is_asked_for =
            ours.servers.is_empty() || ours.servers.iter().any(|prefix| group.server.starts_with(prefix));
        if !is_asked_for || !is_at(group, ours.at) {
            continue;
        }
        let Some(own) = group.spread(ours.figure.name).map(|spread| spread.median) else { continue };
        let (ratio, over) = match &ours.over {
            None => (own, None),
            Some(base) => {
                // Of its languages the one that this server spoke, too, if it has that.
                let bases = || groups.iter().filter(|other| is_base(base, ours.at, group, other));
                let speaks_it = |other: &&Group<'_>| other.case.at(PROTOCOL) == group.case.at(PROTOCOL);
                let Some(other) = bases().find(speaks_it).or_else(|| bases().next()) else { continue };
                let Some(median) = other.spread(ours.figure.name).map(|spread| spread.median) else { continue };
                let is_itself = matches!(base, Base::Itself { .. });
                (own / median, (!is_itself).then(|| name(other, groups)))
            }
        };
        // Where the base is nothing there is no ratio.
        if !ratio.is_finite() {
            continue;
        }
        let name = name(group, groups);
        match servers.iter_mut().find(|server| server.name == name) {
            Some(server) => server.ratios.push(ratio),
            None => servers.push(Server { name, ratios: vec![ratio], over }),
        }
    }
    let mut bases: Vec<&str> = servers.iter().filter_map(|server| server.over.as_deref()).collect();
    bases.dedup();
    let shown: Vec<String> = servers.iter().map(|server| server.shown(ours.form)).collect();
    let bases = if bases.is_empty() { String::new() } else { format!(", beside {}", bases.join(" or ")) };
    if shown.is_empty() { String::new() } else { shown.join(", ") + &bases }
}

fn is_at(group: &Group<'_>, places: &[Spot]) -> bool {
    let is = |(axis, place): &Spot| {
        group.case.at(axis).is_some_and(|point| place.is_none_or(|place| point.to_string() == place))
    };
    places.iter().all(is)
}

/// Whether a group is what another is compared with, which is at these places.
fn is_base(base: &Base, places: &[Spot], group: &Group<'_>, other: &Group<'_>) -> bool {
    let alike = match base {
        Base::Itself { at } => {
            let rest = |group: &Group<'_>| places.iter().fold(group.case.clone(), |case, (axis, _)| case.without(axis));
            other.server == group.server && is_at(other, at) && rest(other) == rest(group)
        }
        Base::Server { prefix, at, alike } => {
            let is_alike = |axis: &&str| other.case.at(axis) == group.case.at(axis);
            let is_it = |server: &str| server.starts_with(prefix);
            is_it(other.server) && !is_it(group.server) && is_at(other, at) && alike.iter().all(is_alike)
        }
    };
    alike && were_measured_alike(group.records[0], other.records[0])
}

/// Whether all was the same that figures depend on. What is known of one only may have been another for the other: of a
/// server that somebody else has started nobody knows its threads and cores.
pub fn were_measured_alike(one: &Record, other: &Record) -> bool {
    one.quick == other.quick && one.machine == other.machine && one.setup == other.setup
}

/// A server, and its language where it was measured in several.
fn name(group: &Group<'_>, groups: &[Group<'_>]) -> String {
    let own = group.case.at(PROTOCOL);
    let speaks_others = groups
        .iter()
        .any(|other| other.server == group.server && other.case.at(PROTOCOL).is_some_and(|at| Some(at) != own));
    match own {
        Some(own) if speaks_others => format!("{} ({own})", group.name()),
        _ => group.name(),
    }
}

impl Server {
    fn shown(&self, form: Form) -> String {
        let least = self.ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = self.ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let percent = |share: f64| format!("{:+.1}", share * 100.0).replace('-', "−");
        let one = |ratio: f64| match form {
            Form::Above => percent(ratio - 1.0),
            Form::Share => percent(ratio),
            Form::Times => figure(ratio),
        };
        let unit = if matches!(form, Form::Times) { "times" } else { "%" };
        let (least, greatest) = (one(least), one(greatest));
        let range = if least == greatest { least } else { format!("{least} to {greatest}") };
        format!("{} {range} {unit}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables::tests::record;
    use super::*;
    use crate::experiments::ALL;
    use crate::results::Case;

    fn here_of(experiment: &str, records: &[Record]) -> Vec<String> {
        let experiment = ALL.iter().find(|known| known.name == experiment).expect("it is there");
        beside(experiment, records).into_iter().map(|beside| beside.here).collect()
    }

    #[test]
    fn servers_are_compared_with_the_one_that_was_published() {
        let with = |server: &str, protocol: &str, mean_us: f64| {
            let mut record = record(server, "set", 0, mean_us);
            record.case = record.case.word("protocol", protocol);
            record
        };
        let mut records = vec![
            with("tenon", "resp", 9.0),
            with("tenon", "text", 8.0),
            with("redis-server", "resp", 11.0),
            with("memcached", "text", 10.0),
            with("memcached-new", "text", 5.0),
        ];
        let beside = "tenon (resp) −10.0 %, tenon (text) −20.0 %, redis-server +10.0 %, beside memcached";
        assert_eq!(here_of("latency", &records), [beside, ""]);
        // What was measured otherwise is nothing to compare with.
        records[3].setup.insert("keys".to_owned(), "5".to_owned());
        for record in &mut records[..3] {
            record.setup.insert("keys".to_owned(), "6".to_owned());
        }
        records.truncate(4);
        assert_eq!(here_of("latency", &records), ["", ""]);
    }

    #[test]
    fn a_server_that_ran_already_is_compared_with_none_that_was_started() {
        let with = |server: &str, protocol: &str, mean_us: f64| {
            let mut record = record(server, "set", 0, mean_us);
            record.case = record.case.word("protocol", protocol);
            record.setup.insert("keys".to_owned(), "5".to_owned());
            record
        };
        let mut records = [with("redis-server", "resp", 9.0), with("memcached", "text", 10.0)];
        assert_ne!(here_of("latency", &records), ["", ""]);
        for started in 0..2 {
            let mut records = records.clone();
            records[started].setup.insert("server cores".to_owned(), "0".to_owned());
            assert_eq!(here_of("latency", &records), ["", ""], "known of one only");
        }
        for record in &mut records {
            record.setup.insert("server cores".to_owned(), "0".to_owned());
        }
        assert_ne!(here_of("latency", &records), ["", ""]);
    }

    #[test]
    fn a_range_is_told_of_several_cases() {
        let with = |server: &str, graph: &str, method: &str, seconds: f64| {
            let mut record = record(server, "", 0, 1.0);
            record.case = Case::new().word("graph", graph).word("method", method);
            record.figures.insert("iteration_s".to_owned(), seconds);
            record
        };
        let records = [
            with("memcached", "a", "client, text", 3.0),
            with("memcached", "b", "client, text", 8.0),
            with("redis-server", "b", "Lua inside", 40.0),
            with("spark", "a", "RDD", 1.0),
            with("spark", "b", "RDD", 0.5),
        ];
        let here = here_of("pagerank", &records);
        assert_eq!(here, ["memcached 3.00 to 16.0 times, beside spark", "", "redis-server 80.0 times, beside spark"]);
    }

    #[test]
    fn a_server_is_compared_with_itself() {
        let with = |mode: &str, ops_s: f64| {
            let mut record = record("redis-server", "set", 0, 1.0);
            record.case = record.case.word("persistence", mode);
            record.figures.insert("ops_s".to_owned(), ops_s);
            record
        };
        let here = here_of("persistence", &[with("none", 200.0), with("rdb", 180.0), with("aof always", 30.0)]);
        assert_eq!(here, ["", "", "redis-server −85.0 %"], "snapshots without a pause are not the study's");
    }
}
