//! memcached's requests beside memcached: the server's cost of an operation, from values of 32 bytes to such of 64 MiB. Knows
//! which requests are measured, not how a load or a server works.

use super::context::{CONNECTIONS, Context};
use super::load::{self, Load, Operation, Plan, Protocol, Until};
use super::measure;
use super::placement::Placement;
use super::report::{Table, figure, median};
use super::servers::{Family, Server, Start};
use anyhow::{Context as _, Result};
use std::time::Duration;

/// Bytes of all values together, where there are not enough keys for that.
const VALUES_BYTES: usize = 256 << 20;
/// Keys of a multiget.
const KEYS_AT_ONCE: usize = 50;

/// What values of one length are asked for and stored with.
#[derive(Clone, Copy, Debug)]
struct Size {
    name: &'static str,
    value_len: usize,
    connections: usize,
    /// Depths, where the values are small enough for several to be under way.
    pipelines: &'static [usize],
    protocols: &'static [Protocol],
    has_multiget: bool,
}

const SIZES: [Size; 4] = [
    Size {
        name: "32",
        value_len: 32,
        connections: CONNECTIONS,
        pipelines: &[1, 16],
        protocols: &[Protocol::Memcache, Protocol::Meta],
        has_multiget: true,
    },
    Size {
        name: "1KiB",
        value_len: 1 << 10,
        connections: CONNECTIONS,
        pipelines: &[1, 16],
        protocols: &[Protocol::Memcache, Protocol::Meta],
        has_multiget: true,
    },
    Size {
        name: "1MiB",
        value_len: 1 << 20,
        connections: 4,
        pipelines: &[1],
        protocols: &[Protocol::Memcache],
        has_multiget: false,
    },
    Size {
        name: "64MiB",
        value_len: 64 << 20,
        connections: 2,
        pipelines: &[1],
        protocols: &[Protocol::Memcache],
        has_multiget: false,
    },
];

/// One kind of request at one depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    protocol: Protocol,
    operation: Operation,
    pipeline: usize,
}

impl Size {
    fn cases(&self) -> Vec<Case> {
        let value_len = self.value_len;
        let mut cases = Vec::new();
        for &protocol in self.protocols {
            for operation in [Operation::Get { value_len }, Operation::Set { value_len, expire: false }] {
                cases.extend(self.pipelines.iter().map(|&pipeline| Case { protocol, operation, pipeline }));
            }
        }
        if self.has_multiget {
            let operation = Operation::MultiGet { keys: KEYS_AT_ONCE, value_len };
            cases.push(Case { protocol: Protocol::Memcache, operation, pipeline: 1 });
        }
        cases
    }

    /// What the filter is matched against.
    fn name(&self, case: &Case) -> String {
        let verb = match (case.protocol, case.operation) {
            (Protocol::Meta, Operation::Set { .. }) => "ms".to_owned(),
            (Protocol::Meta, _) => "mg".to_owned(),
            (_, Operation::Get { .. }) => "get".to_owned(),
            (_, Operation::Set { .. }) => "set".to_owned(),
            (_, Operation::MultiGet { keys, .. }) => format!("get-{keys}"),
            (_, Operation::Command { .. }) => unreachable!("memcached's cases name no command of RESP"),
        };
        format!("memcached/{}/{verb}/p{}", self.name, case.pipeline)
    }

    fn keys(&self, context: &Context) -> u64 {
        context.scale.keys.min((VALUES_BYTES / self.value_len) as u64)
    }
}

/// What was measured of a server.
#[derive(Debug)]
pub struct Row {
    /// The measurement.
    pub case: String,
    /// The server's name.
    pub server: &'static str,
    /// Operations a second.
    pub throughput: f64,
    /// CPU microseconds of the server an operation.
    pub server_cpu_us: f64,
}

/// Measures every case on Tenon and on each memcached, in turn.
pub fn run(context: &mut Context) -> Result<Vec<Row>> {
    let placement = Placement::for_threads(1, 1)?;
    let mut rows = Vec::new();
    for size in SIZES {
        let cases: Vec<Case> = size.cases().into_iter().filter(|case| context.wants(&size.name(case))).collect();
        if cases.is_empty() {
            continue;
        }
        let servers = start_loaded(context, &size, &placement)?;
        for case in cases {
            let name = size.name(&case);
            eprintln!("{name}");
            let mut taken: Vec<Vec<(f64, f64)>> = vec![Vec::new(); servers.len()];
            for round in 0..context.scale.rounds {
                for (server, taken) in servers.iter().zip(&mut taken) {
                    match measured(context, server, &size, &case, &placement, round) {
                        Ok(figures) => taken.push(figures),
                        Err(error) => context.failed(&name, server.name, &error),
                    }
                }
            }
            for (server, taken) in servers.iter().zip(taken) {
                let figures = (median(taken.iter().map(|it| it.0)), median(taken.iter().map(|it| it.1)));
                if let (Some(throughput), Some(server_cpu_us)) = figures {
                    rows.push(Row { case: name.clone(), server: server.name, throughput, server_cpu_us });
                }
            }
        }
    }
    Ok(rows)
}

/// The servers with all keys in them.
fn start_loaded(context: &mut Context, size: &Size, placement: &Placement) -> Result<Vec<Server>> {
    let mut servers = Vec::new();
    for program in &context.programs {
        let settings: &[&str] = match program.family {
            Family::Redis => continue,
            Family::Tenon => &[],
            // Its own limit is a megabyte.
            Family::Memcached => &["-I", "128m"],
        };
        let start = Start { settings, ..Start::new(1, &placement.server, &context.scratch) };
        let server = program.start(&start).with_context(|| program.name)?;
        eprintln!("loading {} values of {} into {}", size.keys(context), size.name, server.name);
        match fill(context, &server, size, placement) {
            Ok(()) => servers.push(server),
            Err(error) => context.failures.push(format!("{} could not be loaded: {error:#}", server.name)),
        }
    }
    Ok(servers)
}

fn fill(context: &Context, server: &Server, size: &Size, placement: &Placement) -> Result<()> {
    let address = server.address(Protocol::Memcache).context("it speaks memcached")?;
    let operation = Operation::Set { value_len: size.value_len, expire: false };
    if size.pipelines.len() > 1 {
        return load::fill(address, Protocol::Memcache, operation, size.keys(context), &placement.client);
    }
    let plan = Plan::EachOnce { keys: size.keys(context) };
    load::run(&load_of(server, size, &Case { protocol: Protocol::Memcache, operation, pipeline: 1 }, plan, placement)?)
        .map(drop)
}

fn load_of<'a>(server: &Server, size: &Size, case: &Case, plan: Plan, placement: &'a Placement) -> Result<Load<'a>> {
    Ok(Load {
        address: server.address(case.protocol).context("the case's protocol is spoken")?,
        protocol: case.protocol,
        operation: case.operation,
        plan,
        connections: size.connections,
        threads: 1,
        pipeline: case.pipeline,
        cores: &placement.client,
    })
}

/// Operations a second, and CPU microseconds of the server an operation.
fn measured(
    context: &Context,
    server: &Server,
    size: &Size,
    case: &Case,
    placement: &Placement,
    round: u64,
) -> Result<(f64, f64)> {
    let keys = size.keys(context);
    let run = |until: Duration, seed| {
        let plan = Plan::AtRandom { keys, seed, until: Until::Elapsed(until) };
        load::run(&load_of(server, size, case, plan, placement)?)
    };
    run(context.scale.warm_up, 2 * round)?;
    let before = measure::cpu_time(server.pid())?;
    let outcome = run(context.scale.measured_workers, 2 * round + 1)?;
    let cpu = measure::cpu_time(server.pid())?.saturating_sub(before);
    let operations = outcome.operations as f64;
    Ok((operations / outcome.elapsed.as_secs_f64(), cpu.as_secs_f64() * 1e6 / operations))
}

/// The rows as a table.
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&["case", "server", "op/s", "server CPU us/op"]);
    for row in rows {
        let figures = [row.throughput, row.server_cpu_us].map(figure);
        let [throughput, cpu] = figures;
        table.row([row.case.clone(), row.server.to_owned(), throughput, cpu]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<String> =
            SIZES.iter().flat_map(|size| size.cases().iter().map(|case| size.name(case)).collect::<Vec<_>>()).collect();
        assert!(names.contains(&"memcached/1KiB/ms/p16".to_owned()));
        assert!(names.contains(&"memcached/32/get-50/p1".to_owned()));
        assert_eq!(names.len(), 22);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 22);
    }
}
