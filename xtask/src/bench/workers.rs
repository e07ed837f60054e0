//! Two workers against one, under two client threads. Knows which side was the limit, not why.

use super::case::{Case, GET, PIPELINES, SET};
use super::context::{CONNECTIONS, Context};
use super::load::{self, Load, Outcome, Plan, Until};
use super::measure;
use super::placement::Placement;
use super::report::{Table, figure, median};
use super::servers::{Program, Server, Start};
use super::throughput::{CLIENT_BUSY_LIMIT, fill};
use anyhow::{Context as _, Result};

const CLIENT_THREADS: usize = 2;
const WORKERS_MAX: usize = 2;

/// What stood in the way of more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Neither of the others.
    Server,
    /// A client thread used its core up.
    Client,
    /// Server and client used up all cores together.
    Machine,
}

/// One run.
#[derive(Clone, Copy, Debug)]
struct Run {
    throughput: f64,
    /// Cores' worth of CPU time.
    server_cores: f64,
    client_cores: f64,
    client_busy: f64,
}

/// A server's medians in one case.
#[derive(Debug)]
pub struct Row {
    /// The case.
    pub case: Case,
    /// The server's name.
    pub server: &'static str,
    /// Operations a second with one worker.
    pub one: f64,
    /// Operations a second with two.
    pub two: f64,
    /// Cores' worth of CPU time of the server with two workers.
    pub server_cores: f64,
    /// Cores' worth of CPU time of the client against two workers.
    pub client_cores: f64,
    /// What limited the run with two workers.
    pub limit: Limit,
}

/// Measures both on every server that speaks the case's protocol.
pub fn run(context: &mut Context) -> Result<Vec<Row>> {
    let placement = Placement::for_threads(WORKERS_MAX, CLIENT_THREADS)?;
    let mut rows = Vec::new();
    for program in context.programs.clone() {
        let cases: Vec<Case> = cases(&program).into_iter().filter(|case| context.wants(&name(case))).collect();
        if cases.is_empty() {
            continue;
        }
        let start = |threads| -> Result<Server> {
            let start = Start::new(threads, &placement.server, &context.scratch);
            let server = program.start(&start).with_context(|| program.name)?;
            fill(&server, context.scale.keys, &placement)?;
            Ok(server)
        };
        let servers = match start(1).and_then(|one| Ok([one, start(WORKERS_MAX)?])) {
            Ok(servers) => servers,
            Err(error) => {
                context.failed("workers", program.name, &error);
                continue;
            }
        };
        for case in cases {
            let name = name(&case);
            eprintln!("{name}, {}", program.name);
            let mut taken: [Vec<Run>; 2] = [Vec::new(), Vec::new()];
            for round in 0..context.scale.rounds {
                for (server, taken) in servers.iter().zip(&mut taken) {
                    match measured(context, server, &case, &placement, round) {
                        Ok(run) => taken.push(run),
                        Err(error) => context.failed(&name, program.name, &error),
                    }
                }
            }
            rows.extend(row(case, program.name, &taken, &placement));
        }
    }
    Ok(rows)
}

fn name(case: &Case) -> String {
    format!("workers/{}", case.name())
}

fn cases(program: &Program) -> Vec<Case> {
    let mut cases = Vec::new();
    for &protocol in program.family.protocols() {
        for operation in [GET, SET] {
            cases.extend(PIPELINES.map(|pipeline| Case { protocol, operation, pipeline }));
        }
    }
    cases
}

fn measured(context: &Context, server: &Server, case: &Case, placement: &Placement, round: u64) -> Result<Run> {
    let address = server.address(case.protocol).context("the case's protocol is spoken")?;
    let load = |until, seed| Load {
        address,
        protocol: case.protocol,
        operation: case.operation,
        plan: Plan::AtRandom { keys: context.scale.keys, seed, until: Until::Elapsed(until) },
        connections: CONNECTIONS,
        threads: CLIENT_THREADS,
        pipeline: case.pipeline,
        cores: &placement.client,
    };
    // The same load ran a moment ago, but for the other server's turn.
    if round == 0 {
        load::run(&load(context.scale.warm_up, 2 * round))?;
    }
    let cpu_before = measure::cpu_time(server.pid())?;
    let outcome: Outcome = load::run(&load(context.scale.measured_workers, 2 * round + 1))?;
    let cpu = measure::cpu_time(server.pid())?.saturating_sub(cpu_before);
    let seconds = outcome.elapsed.as_secs_f64();
    Ok(Run {
        throughput: outcome.operations as f64 / seconds,
        server_cores: cpu.as_secs_f64() / seconds,
        client_cores: outcome.client_cpu.as_secs_f64() / seconds,
        client_busy: outcome.client_busy,
    })
}

fn row(case: Case, server: &'static str, [one, two]: &[Vec<Run>; 2], placement: &Placement) -> Option<Row> {
    let of_two = |field: fn(&Run) -> f64| median(two.iter().map(field));
    let (server_cores, client_cores) = (of_two(|run| run.server_cores)?, of_two(|run| run.client_cores)?);
    let limit = if of_two(|run| run.client_busy)? > CLIENT_BUSY_LIMIT {
        Limit::Client
    } else if placement.shared() && server_cores + client_cores > CLIENT_BUSY_LIMIT * placement.cores() as f64 {
        Limit::Machine
    } else {
        Limit::Server
    };
    let throughput = |runs: &[Run]| median(runs.iter().map(|run| run.throughput));
    Some(Row { case, server, one: throughput(one)?, two: throughput(two)?, server_cores, client_cores, limit })
}

/// The rows as a table.
pub fn table(rows: &[Row]) -> Table {
    let columns =
        ["case", "server", "1 worker op/s", "2 workers op/s", "ratio", "server cores", "client cores", "limit"];
    let mut table = Table::new(&columns);
    for row in rows {
        table.row([
            row.case.name(),
            row.server.to_owned(),
            figure(row.one),
            figure(row.two),
            figure(row.two / row.one),
            figure(row.server_cores),
            figure(row.client_cores),
            match row.limit {
                Limit::Server => "server",
                Limit::Client => "client",
                Limit::Machine => "machine: both share its cores",
            }
            .to_owned(),
        ]);
    }
    table
}
