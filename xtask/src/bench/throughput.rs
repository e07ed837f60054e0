//! Throughput, latency and the server's cost of an operation, server on its own core. Knows which figures are taken, not
//! how a load or a server works.

use super::case::{self, Case, SET};
use super::context::{CONNECTIONS, Context};
use super::load::{self, Load, Plan, Until};
use super::measure::{self, Perf};
use super::placement::Placement;
use super::report::{Table, figure, figure_or_dash, median};
use super::servers::{Server, Start};
use anyhow::{Context as _, Result};

/// One run's figures, or the medians of several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Operations a second.
    pub throughput: f64,
    /// Microseconds.
    pub p50_us: f64,
    /// Microseconds.
    pub p99_us: f64,
    /// CPU microseconds of the server an operation.
    pub server_cpu_us: f64,
    /// The busiest client thread's share of its core.
    pub client_busy: f64,
    /// User instructions of the server an operation.
    pub user_instructions: Option<f64>,
    /// Kernel instructions of the server an operation.
    pub kernel_instructions: Option<f64>,
}

/// A server's medians in one case.
#[derive(Debug)]
pub struct Row {
    /// The case.
    pub case: Case,
    /// The server's name.
    pub server: &'static str,
    /// Medians.
    pub figures: Figures,
}

/// Above this share of its core, a client is taken to be the limit.
pub const CLIENT_BUSY_LIMIT: f64 = 0.95;

/// Measures every case on every server, the servers in turn.
pub fn run(context: &mut Context) -> Result<Vec<Row>> {
    let cases: Vec<Case> = case::all().into_iter().filter(|case| context.wants(&name(case))).collect();
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let placement = Placement::for_threads(1, 1)?;
    let servers = start_loaded(context, &placement)?;
    let mut rows = Vec::new();
    for case in cases {
        let name = name(&case);
        eprintln!("{name}");
        let mut taken: Vec<(&Server, Vec<Figures>)> = Vec::new();
        taken.extend(
            servers.iter().filter(|server| server.address(case.protocol).is_some()).map(|server| (server, vec![])),
        );
        for round in 0..context.scale.rounds {
            for (server, figures) in &mut taken {
                match measured(context, server, &case, &placement, round) {
                    Ok(taken) => figures.push(taken),
                    Err(error) => context.failed(&name, server.name, &error),
                }
            }
        }
        let row = |(server, figures): (&Server, Vec<Figures>)| {
            Some(Row { case, server: server.name, figures: Figures::median(&figures)? })
        };
        rows.extend(taken.into_iter().filter_map(row));
    }
    Ok(rows)
}

fn name(case: &Case) -> String {
    format!("throughput/{}", case.name())
}

/// Every server, started and holding all keys.
fn start_loaded(context: &mut Context, placement: &Placement) -> Result<Vec<Server>> {
    let mut servers = Vec::new();
    for program in &context.programs {
        let start = Start::new(1, &placement.server, &context.scratch);
        let server = program.start(&start).with_context(|| program.name)?;
        eprintln!("loading {} keys into {}", context.scale.keys, server.name);
        let loaded = fill(&server, context.scale.keys, placement);
        match loaded.with_context(|| format!("{} could not be loaded", server.name)) {
            Ok(()) => servers.push(server),
            Err(error) => context.failures.push(format!("{error:#}")),
        }
    }
    Ok(servers)
}

/// Stores each key once.
pub fn fill(server: &Server, keys: u64, placement: &Placement) -> Result<()> {
    let protocol = server.first_protocol();
    let address = server.address(protocol).context("a server speaks its first protocol")?;
    load::fill(address, protocol, SET, keys, &placement.client)
}

fn measured(context: &Context, server: &Server, case: &Case, placement: &Placement, round: u64) -> Result<Figures> {
    let address = server.address(case.protocol).context("the case's protocol is spoken")?;
    let load = |until, seed| Load {
        address,
        protocol: case.protocol,
        operation: case.operation,
        plan: Plan::AtRandom { keys: context.scale.keys, seed, until: Until::Elapsed(until) },
        connections: CONNECTIONS,
        threads: 1,
        pipeline: case.pipeline,
        cores: &placement.client,
    };
    load::run(&load(context.scale.warm_up, 2 * round))?;
    let perf = if context.perf { Some(Perf::attach(server.pid())?) } else { None };
    let cpu_before = measure::cpu_time(server.pid())?;
    let outcome = load::run(&load(context.scale.measured, 2 * round + 1))?;
    let cpu = measure::cpu_time(server.pid())?.saturating_sub(cpu_before);
    let instructions = perf.map(Perf::stop).transpose()?;
    let operations = outcome.operations as f64;
    Ok(Figures {
        throughput: operations / outcome.elapsed.as_secs_f64(),
        p50_us: outcome.latency.value_at_quantile(0.50) as f64 / 1e3,
        p99_us: outcome.latency.value_at_quantile(0.99) as f64 / 1e3,
        server_cpu_us: cpu.as_secs_f64() * 1e6 / operations,
        client_busy: outcome.client_busy,
        user_instructions: instructions.map(|counted| counted.user as f64 / operations),
        kernel_instructions: instructions.map(|counted| counted.kernel as f64 / operations),
    })
}

impl Figures {
    /// Of each figure its own median; `None` of no run.
    fn median(runs: &[Figures]) -> Option<Figures> {
        let of = |field: fn(&Figures) -> f64| median(runs.iter().map(field));
        let of_some = |field: fn(&Figures) -> Option<f64>| median(runs.iter().filter_map(field));
        Some(Figures {
            throughput: of(|run| run.throughput)?,
            p50_us: of(|run| run.p50_us)?,
            p99_us: of(|run| run.p99_us)?,
            server_cpu_us: of(|run| run.server_cpu_us)?,
            client_busy: of(|run| run.client_busy)?,
            user_instructions: of_some(|run| run.user_instructions),
            kernel_instructions: of_some(|run| run.kernel_instructions),
        })
    }
}

/// The rows as a table.
pub fn table(rows: &[Row]) -> Table {
    let columns =
        ["case", "server", "op/s", "p50 us", "p99 us", "server CPU us/op", "user instr/op", "kernel instr/op"];
    let mut table = Table::new(&[&columns[..], &["client busy", "limit"]].concat());
    for Row { case, server, figures } in rows {
        table.row([
            case.name(),
            (*server).to_owned(),
            figure(figures.throughput),
            figure(figures.p50_us),
            figure(figures.p99_us),
            figure(figures.server_cpu_us),
            figure_or_dash(figures.user_instructions),
            figure_or_dash(figures.kernel_instructions),
            format!("{:.0} %", figures.client_busy * 100.0),
            (if figures.client_busy > CLIENT_BUSY_LIMIT { "client" } else { "" }).to_owned(),
        ]);
    }
    table
}
