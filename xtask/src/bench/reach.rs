//! What Tenon is to reach in a run, beside what it reached. Knows the aims of the foundation, not how figures are taken.

use super::case::{Case, GET, SET};
use super::growth::DIP;
use super::load::{Operation, Protocol};
use super::report::{Table, figure};
use super::workers::Limit;
use super::{callgrind, collections, growth, memcached, memory, persistence, throughput, workers};

/// Everything that was measured.
#[derive(Debug, Default)]
pub struct Results {
    /// Throughput and cost.
    pub throughput: Vec<throughput::Row>,
    /// Instructions under valgrind.
    pub callgrind: Vec<callgrind::Row>,
    /// Memory a key.
    pub memory: Vec<memory::Row>,
    /// Two workers against one.
    pub workers: Vec<workers::Row>,
    /// Growth of the keyspace.
    pub growth: Vec<growth::Row>,
    /// Cost of memcached's requests.
    pub memcached: Vec<memcached::Row>,
    /// Cost of the commands on collections.
    pub collections: Vec<collections::Row>,
    /// Memory of collections.
    pub collections_memory: Vec<collections::MemoryRow>,
    /// Cost of the log.
    pub log: Vec<persistence::Row>,
    /// Cost of a snapshot.
    pub snapshot: Vec<persistence::SnapshotRow>,
}

const TENON: &str = "tenon";
const REDIS: &str = "redis-server";
const MEMCACHED: &str = "memcached";
const CPU: &str = "server CPU an operation";

/// An aim with the figures it is judged by.
struct Judged {
    aim: String,
    figure: f64,
    limit: f64,
    at_most: bool,
    note: &'static str,
}

/// One row for each aim that something was measured for.
pub fn table(results: &Results) -> Table {
    let mut judged = Vec::new();
    judged.extend(instructions(results));
    judged.extend(cpu(results));
    judged.extend(results.memory.iter().filter(|row| row.server == TENON).map(|row| Judged {
        aim: format!(
            "bytes a key over key + value, values of {} bytes{}",
            row.value_len,
            if row.expire { ", with an expiry" } else { "" }
        ),
        figure: row.grown,
        limit: if row.expire { 32.0 } else { 24.0 },
        at_most: true,
        note: "",
    }));
    judged.extend(results.workers.iter().filter(|row| row.server == TENON).map(|row| Judged {
        aim: format!("two workers over one, {}", row.case.name()),
        figure: row.two / row.one,
        limit: 1.4,
        at_most: false,
        note: match row.limit {
            Limit::Server => "",
            Limit::Client => "the client was the limit",
            Limit::Machine => "client and server used up all cores together",
        },
    }));
    judged.extend(results.growth.iter().filter(|row| row.server == TENON && row.grows).map(|row| Judged {
        aim: format!("slowest 100 ms over the median, growing to {} keys", figure(row.keys as f64)),
        figure: row.slowest,
        limit: DIP,
        at_most: false,
        note: if row.client_busy > throughput::CLIENT_BUSY_LIMIT { "the client was the limit" } else { "" },
    }));

    judged.extend(memcached(results));
    judged.extend(collections(results));
    judged.extend(log(results));
    judged.extend(snapshots(results));

    let mut table = Table::new(&["aim", "figure", "wanted", "reached", "note"]);
    for judged in judged {
        let reached = if judged.at_most { judged.figure <= judged.limit } else { judged.figure >= judged.limit };
        table.row([
            judged.aim,
            figure(judged.figure),
            format!("{} {}", if judged.at_most { "≤" } else { "≥" }, figure(judged.limit)),
            (if reached { "yes" } else { "NO" }).to_owned(),
            judged.note.to_owned(),
        ]);
    }
    table
}

/// Tenon's figures over those of another server for the same thing; `of` gives a row's server, thing and figure.
fn over<Row>(
    rows: &[Row],
    server: &str,
    what: &str,
    limit: f64,
    of: impl Fn(&Row) -> (&str, &str, f64),
) -> Vec<Judged> {
    let figure_of =
        |server: &str, thing: &str| rows.iter().map(&of).find(|row| (row.0, row.1) == (server, thing)).map(|row| row.2);
    let mut judged = Vec::new();
    for (_, thing, ours) in rows.iter().map(&of).filter(|row| row.0 == TENON) {
        judged.extend(figure_of(server, thing).map(|theirs| Judged {
            aim: format!("{what} over {server}'s, {thing}"),
            figure: ours / theirs,
            limit,
            at_most: true,
            note: "",
        }));
    }
    judged
}

/// memcached's requests against memcached as installed.
fn memcached(results: &Results) -> Vec<Judged> {
    over(&results.memcached, MEMCACHED, CPU, 1.0, |row| (row.server, &row.case, row.server_cpu_us))
}

/// Collections against redis-server as installed.
fn collections(results: &Results) -> Vec<Judged> {
    let mut judged = over(&results.collections, REDIS, CPU, 0.6, |row| (row.server, row.case, row.server_cpu_us));
    let memory = &results.collections_memory;
    judged.extend(over(memory, REDIS, "memory", 0.75, |row| (row.server, row.shape, row.bytes_an_element)));
    judged
}

/// CPU an operation under each policy over that of the others.
fn log(results: &Results) -> Vec<Judged> {
    let mut judged = Vec::new();
    let ours: Vec<&persistence::Row> =
        results.log.iter().filter(|row| row.server == TENON && row.medium == persistence::Medium::Disk).collect();
    for row in ours.iter().filter(|row| row.policy != "none") {
        let none = ours.iter().find(|none| none.pipeline == row.pipeline && none.policy == "none");
        judged.extend(none.map(|none| Judged {
            aim: format!("CPU an operation, appendfsync {} over no log, pipeline {}", row.policy, row.pipeline),
            figure: row.figures.server_cpu_us / none.figures.server_cpu_us,
            limit: 1.1,
            at_most: true,
            note: "",
        }));
    }
    judged
}

fn snapshots(results: &Results) -> Vec<Judged> {
    let mut judged = Vec::new();
    for ours in results.snapshot.iter().filter(|row| row.server == TENON) {
        let pipeline = ours.pipeline;
        let mut judge =
            |aim: String, figure, limit, at_most| judged.push(Judged { aim, figure, limit, at_most, note: "" });
        judge(format!("throughput during a save over without, pipeline {pipeline}"), ours.throughput, 0.85, false);
        judge(format!("p99.9 during a save over without, pipeline {pipeline}"), ours.p999, 2.0, true);
        judge(format!("memory during a save over before, pipeline {pipeline}"), ours.memory, 1.1, true);
        let theirs = results.snapshot.iter().find(|row| row.server == REDIS && row.pipeline == pipeline);
        if let Some(theirs) = theirs {
            let faster = theirs.load_seconds / ours.load_seconds;
            judge(format!("load rate over redis-server's, {} keys", figure(ours.keys as f64)), faster, 2.0, false);
        }
    }
    judged
}

fn is_get_or_set(case: &Case) -> bool {
    matches!(case.operation, Operation::Get { .. } | Operation::Set { .. })
}

/// User instructions an operation, from perf where it may count, else from valgrind.
fn instructions(results: &Results) -> Vec<Judged> {
    let perf = results.throughput.iter().filter(|row| row.server == TENON);
    let perf = perf.filter_map(|row| Some((row.case, row.figures.user_instructions?, "")));
    let valgrind = results.callgrind.iter().filter(|row| row.server == TENON);
    let valgrind = valgrind.map(|row| (row.case, row.user_instructions, "counted by callgrind"));
    let mut counted: Vec<(Case, f64, &'static str)> = perf.collect();
    for row in valgrind {
        if !counted.iter().any(|(case, ..)| *case == row.0) {
            counted.push(row);
        }
    }
    let judged = counted.into_iter().filter(|(case, ..)| is_get_or_set(case)).map(|(case, figure, note)| Judged {
        aim: format!("user instructions an operation, {}", case.name()),
        figure,
        limit: if case.pipeline == 1 { 1500.0 } else { 800.0 },
        at_most: true,
        note,
    });
    judged.collect()
}

/// Server CPU an operation against redis-server and memcached as installed.
fn cpu(results: &Results) -> Vec<Judged> {
    let cost = |server: &str, protocol, operation, pipeline| {
        let case = Case { protocol, operation, pipeline };
        let row = results.throughput.iter().find(|row| row.server == server && row.case == case)?;
        Some(row.figures.server_cpu_us)
    };
    let mut judged = Vec::new();
    for (verb, operation) in [("GET", GET), ("SET", SET)] {
        for pipeline in [16, 64] {
            let ours = cost(TENON, Protocol::Resp, operation, pipeline);
            if let (Some(ours), Some(redis)) = (ours, cost(REDIS, Protocol::Resp, operation, pipeline)) {
                let aim = format!("server CPU an operation over redis-server's, resp {verb}, pipeline {pipeline}");
                judged.push(Judged { aim, figure: ours / redis, limit: 0.6, at_most: true, note: "" });
            }
        }
        for (peer, protocol) in [(REDIS, Protocol::Resp), (MEMCACHED, Protocol::Memcache)] {
            if let (Some(ours), Some(peers)) = (cost(TENON, protocol, operation, 1), cost(peer, protocol, operation, 1))
            {
                let aim = format!("server CPU an operation over {peer}'s, {} {verb}, pipeline 1", protocol.name());
                judged.push(Judged { aim, figure: ours / peers, limit: 1.0, at_most: true, note: "" });
            }
        }
    }
    judged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(server: &'static str, pipeline: usize, server_cpu_us: f64, user: Option<f64>) -> throughput::Row {
        let figures = throughput::Figures {
            throughput: 1.0,
            p50_us: 1.0,
            p99_us: 1.0,
            server_cpu_us,
            client_busy: 0.1,
            user_instructions: user,
            kernel_instructions: None,
        };
        throughput::Row { case: Case { protocol: Protocol::Resp, operation: GET, pipeline }, server, figures }
    }

    #[test]
    fn aims_are_judged_against_the_peer() {
        let throughput = vec![row(TENON, 16, 0.7, Some(700.0)), row(REDIS, 16, 1.0, None), row(TENON, 1, 8.0, None)];
        let shown = table(&Results { throughput, ..Results::default() }).markdown();
        let lines: Vec<&str> = shown.lines().skip(2).collect();
        assert_eq!(lines.len(), 2, "{shown}");
        assert!(lines[0].contains("user instructions") && lines[0].contains("| yes "), "{shown}");
        assert!(
            lines[1].contains("redis-server's") && lines[1].contains("0.700") && lines[1].contains("| NO "),
            "{shown}"
        );
    }

    #[test]
    fn nothing_is_judged_that_was_not_measured() {
        assert!(table(&Results::default()).is_empty());
    }
}
