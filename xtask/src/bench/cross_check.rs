//! The RESP cases once more with redis-benchmark, to see that our own client tells the truth. Knows redis-benchmark's
//! command line and its CSV.

use super::context::{CONNECTIONS, Context};
use super::load::Protocol;
use super::measure;
use super::placement::{self, Placement};
use super::report::{Table, figure};
use super::servers::{Server, Start};
use super::{case, throughput};
use crate::process;
use anyhow::{Context as _, Result, bail};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What redis-benchmark measured.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    throughput: f64,
    p50_us: f64,
    p99_us: f64,
}

/// Requests of one run: about a second at a pipelined server's rate.
const REQUESTS_PER_PIPELINED: u64 = 1_000_000;

/// Runs GET and SET at each depth on every RESP server.
pub fn run(context: &mut Context) -> Result<Table> {
    let mut table = Table::new(&["case", "server", "op/s", "p50 us", "p99 us", "server CPU us/op"]);
    let Some(benchmark) = process::find("redis-benchmark") else {
        bail!("--cross-check needs redis-benchmark: install the package `redis-tools`");
    };
    let placement = Placement::for_threads(1, 1)?;
    for program in context.programs.clone() {
        if !program.family.protocols().contains(&Protocol::Resp) {
            continue;
        }
        let patience = Duration::from_secs(10);
        let start = Start { threads: 1, cores: &placement.server, under: &[], patience, scratch: &context.scratch };
        let server = program.start(&start)?;
        throughput::fill(&server, context.scale.keys, &placement)?;
        for test in ["get", "set"] {
            for pipeline in case::PIPELINES {
                let name = format!("cross-check/resp/{test}/p{pipeline}");
                if !context.wants(&name) {
                    continue;
                }
                eprintln!("{name}, {}", server.name);
                let requests = if context.options.quick { REQUESTS_PER_PIPELINED / 10 } else { REQUESTS_PER_PIPELINED };
                let requests = if pipeline == 1 { requests / 4 } else { requests };
                let mut command = Command::new("taskset");
                command.args(["-c", &placement::list(&placement.client)]).arg(&benchmark);
                command.args(arguments(&server, test, pipeline, requests, context.scale.keys)?);
                let cpu_before = measure::cpu_time(server.pid())?;
                let said = process::output(command.stdin(Stdio::null()));
                let cpu = measure::cpu_time(server.pid())?.saturating_sub(cpu_before);
                match said.and_then(|said| measured(&said).with_context(|| format!("redis-benchmark said {said:?}"))) {
                    Ok(measured) => table.row([
                        format!("resp/{test}/p{pipeline}"),
                        server.name.to_owned(),
                        figure(measured.throughput),
                        figure(measured.p50_us),
                        figure(measured.p99_us),
                        figure(cpu.as_secs_f64() * 1e6 / requests as f64),
                    ]),
                    Err(error) => context.failed(&name, server.name, &error),
                }
            }
        }
    }
    Ok(table)
}

fn arguments(server: &Server, test: &str, pipeline: usize, requests: u64, keys: u64) -> Result<Vec<String>> {
    let port = server.address(Protocol::Resp).context("a RESP server has an address")?.port();
    let value_len = case::VALUE_LEN;
    // `key:__rand_int__` makes keys of 16 bytes, the same as ours.
    let line = format!(
        "-h 127.0.0.1 -p {port} -t {test} -n {requests} -r {keys} -P {pipeline} -c {CONNECTIONS} -d {value_len} --csv"
    );
    Ok(line.split(' ').map(str::to_owned).collect())
}

/// A header of column names in quotes, then a line for the test.
fn measured(csv: &str) -> Option<Measured> {
    let cells = |line: &str| line.split(',').map(|cell| cell.trim_matches('"').to_owned()).collect::<Vec<_>>();
    let mut lines = csv.lines().skip_while(|line| !line.starts_with("\"test\""));
    let (columns, row) = (cells(lines.next()?), cells(lines.next()?));
    let figure = |name: &str| row.get(columns.iter().position(|column| column == name)?)?.parse::<f64>().ok();
    Some(Measured {
        throughput: figure("rps")?,
        p50_us: figure("p50_latency_ms")? * 1e3,
        p99_us: figure("p99_latency_ms")? * 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_csv_is_read_by_its_columns() {
        let csv = "WARNING: x\n\"test\",\"rps\",\"avg_latency_ms\",\"p50_latency_ms\",\"p99_latency_ms\"\n\
                   \"GET\",\"100000.5\",\"0.3\",\"0.25\",\"0.5\"\n";
        let expected = Measured { throughput: 100_000.5, p50_us: 250.0, p99_us: 500.0 };
        assert_eq!(measured(csv), Some(expected));
        assert_eq!(measured("Could not connect"), None);
    }
}
