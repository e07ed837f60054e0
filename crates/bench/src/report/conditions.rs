//! Under which conditions an experiment's figures were taken, for who reads them. Knows no figure.

use crate::results::Record;
use std::collections::BTreeMap;

/// How it was measured, and how each server was started; what differs between rows is told with all its values.
pub fn conditions(records: &[Record]) -> Vec<String> {
    let mut setup: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut rounds: Vec<u64> = Vec::new();
    let mut servers: Vec<(&str, Vec<String>)> = Vec::new();
    let measured = records.iter().filter(|record| record.failure.is_none() && !record.figures.is_empty());
    for record in measured {
        record.setup.iter().for_each(|(name, value)| add(setup.entry(name).or_default(), value));
        add(&mut rounds, record.rounds.max(1));
        if record.command.is_empty() {
            continue;
        }
        let place = servers.iter().position(|(server, _)| *server == record.server).unwrap_or_else(|| {
            servers.push((&record.server, Vec::new()));
            servers.len() - 1
        });
        add(&mut servers[place].1, without_ports(&record.command));
    }
    if rounds.is_empty() {
        return Vec::new();
    }
    let mut told: Vec<String> = setup.iter().map(|(name, values)| format!("{name} {}", values.join(" or "))).collect();
    let rounds: Vec<String> = rounds.iter().map(u64::to_string).collect();
    told.push(format!("rounds {}", rounds.join(" or ")));
    let mut lines = vec![format!("Measured with {}", told.join(", "))];
    lines.extend(servers.into_iter().map(|(server, commands)| {
        let others = match commands.len() - 1 {
            0 => String::new(),
            others => format!(", and in {others} other ways, which the results have"),
        };
        format!("{server} was started as: {}{others}", commands[0])
    }));
    lines
}

fn add<T: PartialEq>(list: &mut Vec<T>, value: T) {
    if !list.contains(&value) {
        list.push(value);
    }
}

/// A command with its program's name alone, and without the ports, which are others each time.
fn without_ports(command: &str) -> String {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    let mut shown = vec![program.rsplit('/').next().unwrap_or(program)];
    let mut is_port = false;
    for word in words {
        shown.push(if is_port && word.bytes().all(|byte| byte.is_ascii_digit()) { "PORT" } else { word });
        is_port = word == "-p" || word.ends_with("port");
    }
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::tables::tests::record;
    use super::*;

    #[test]
    fn what_all_rows_share_and_what_they_do_not_is_told() {
        let mut records =
            vec![record("tenon", "get", 0, 1.0), record("tenon", "set", 0, 1.0), record("memcached", "get", 0, 1.0)];
        assert_eq!(conditions(&records), ["Measured with rounds 1"]);
        for record in &mut records {
            record.rounds = 3;
            record.setup.insert("connections".into(), "50".into());
        }
        records[0].setup.insert("keys".into(), "1000".into());
        records[1].setup.insert("keys".into(), "4000".into());
        records[0].command = "/a/tenon --port 40000 --memcached-port 40001 --workers 1".into();
        records[1].command = "/a/tenon --port 40002 --memcached-port 40003 --workers 2".into();
        records[2].command = "/b/memcached-new -p 40004 -m 64".into();
        let told = [
            "Measured with connections 50, keys 1000 or 4000, rounds 3",
            "tenon was started as: tenon --port PORT --memcached-port PORT --workers 1, and in 1 other ways, which the results have",
            "memcached was started as: memcached-new -p PORT -m 64",
        ];
        assert_eq!(conditions(&records), told);
        records.iter_mut().for_each(|record| record.failure = Some("it failed".into()));
        assert!(conditions(&records).is_empty());
    }
}
