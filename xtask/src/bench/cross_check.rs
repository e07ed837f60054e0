//! The RESP cases once more with redis-benchmark, to see that our own client tells the truth. Knows redis-benchmark's
//! command line and its CSV.

use super::case::Case;
use super::context::{CONNECTIONS, Context};
use super::load::{Operation, Protocol};
use super::measure;
use super::placement::{self, Placement};
use super::report::{Table, figure};
use super::servers::{Server, Start};
use super::{case, throughput};
use crate::process;
use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::process::Command;

/// What redis-benchmark measured.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    throughput: f64,
    p50_us: f64,
    p99_us: f64,
    server_cpu_us: f64,
}

/// Requests of one pipelined run: a second or two; a quarter of it without a pipeline.
const REQUESTS_PIPELINED: u64 = 1_000_000;

/// Runs GET and SET at each depth on every RESP server.
pub fn run(context: &mut Context) -> Result<Table> {
    let mut table = Table::new(&["case", "server", "op/s", "p50 us", "p99 us", "server CPU us/op"]);
    let Some(benchmark) = process::find("redis-benchmark") else {
        bail!("--cross-check needs redis-benchmark: install the package `redis-tools`");
    };
    let placement = Placement::for_threads(1, 1)?;
    let cases: Vec<Case> = case::all().into_iter().filter(|case| test(case).is_some()).collect();
    let cases: Vec<Case> = cases.into_iter().filter(|case| context.wants_beside("cross-check", case)).collect();
    for program in context.programs.clone() {
        if cases.is_empty() || !program.family.protocols().contains(&Protocol::Resp) {
            continue;
        }
        let start = Start::new(1, &placement.server, &context.scratch);
        let server = program.start(&start)?;
        throughput::fill(&server, context.scale.keys, &placement)?;
        for case in &cases {
            eprintln!("cross-check/{}, {}", case.name(), server.name);
            match measured(context, &server, case, &placement, &benchmark) {
                Ok(Measured { throughput, p50_us, p99_us, server_cpu_us }) => {
                    let figures = [throughput, p50_us, p99_us, server_cpu_us].map(figure);
                    let [throughput, p50_us, p99_us, server_cpu_us] = figures;
                    table.row([case.name(), server.name.to_owned(), throughput, p50_us, p99_us, server_cpu_us]);
                }
                Err(error) => context.failed(&format!("cross-check/{}", case.name()), server.name, &error),
            }
        }
    }
    Ok(table)
}

/// What redis-benchmark calls the case; `None` where it has no such test.
fn test(case: &Case) -> Option<&'static str> {
    match (case.protocol, case.operation) {
        (Protocol::Resp, Operation::Get { .. }) => Some("get"),
        (Protocol::Resp, Operation::Set { .. }) => Some("set"),
        _ => None,
    }
}

fn measured(
    context: &Context,
    server: &Server,
    case: &Case,
    placement: &Placement,
    benchmark: &Path,
) -> Result<Measured> {
    let requests = if context.options.quick { REQUESTS_PIPELINED / 10 } else { REQUESTS_PIPELINED };
    let requests = if case.pipeline == 1 { requests / 4 } else { requests };
    let mut command = Command::new("taskset");
    command.args(["-c", &placement::list(&placement.client)]).arg(benchmark);
    command.args(arguments(server, case, requests, context.scale.keys)?);
    let cpu_before = measure::cpu_time(server.pid())?;
    let said = process::output(&mut command)?;
    let cpu = measure::cpu_time(server.pid())?.saturating_sub(cpu_before);
    let [throughput, p50_us, p99_us] = csv(&said).with_context(|| format!("redis-benchmark said {said:?}"))?;
    Ok(Measured { throughput, p50_us, p99_us, server_cpu_us: cpu.as_secs_f64() * 1e6 / requests as f64 })
}

fn arguments(server: &Server, case: &Case, requests: u64, keys: u64) -> Result<Vec<String>> {
    let port = server.address(Protocol::Resp).context("a RESP server has an address")?.port();
    let test = test(case).context("redis-benchmark has a test for the case")?;
    let (pipeline, value_len) = (case.pipeline, case::VALUE_LEN);
    // `key:__rand_int__` makes keys of 16 bytes, the same as ours.
    let line = format!(
        "-h 127.0.0.1 -p {port} -t {test} -n {requests} -r {keys} -P {pipeline} -c {CONNECTIONS} -d {value_len} --csv"
    );
    Ok(line.split(' ').map(str::to_owned).collect())
}

/// Operations a second, p50 and p99 in microseconds. A header of column names in quotes, then a line for the test.
fn csv(text: &str) -> Option<[f64; 3]> {
    let cells = |line: &str| line.split(',').map(|cell| cell.trim_matches('"').to_owned()).collect::<Vec<_>>();
    let mut lines = text.lines().skip_while(|line| !line.starts_with("\"test\""));
    let (columns, row) = (cells(lines.next()?), cells(lines.next()?));
    let figure = |name: &str| row.get(columns.iter().position(|column| column == name)?)?.parse::<f64>().ok();
    Some([figure("rps")?, figure("p50_latency_ms")? * 1e3, figure("p99_latency_ms")? * 1e3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_csv_is_read_by_its_columns() {
        let text = "WARNING: x\n\"test\",\"rps\",\"avg_latency_ms\",\"p50_latency_ms\",\"p99_latency_ms\"\n\
                   \"GET\",\"100000.5\",\"0.3\",\"0.25\",\"0.5\"\n";
        assert_eq!(csv(text), Some([100_000.5, 250.0, 500.0]));
        assert_eq!(csv("Could not connect"), None);
    }
}
