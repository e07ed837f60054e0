//! The rate of inserts while the keyspace grows from nothing: dips show a table's expansion. Knows nothing of tables.

use super::case::SET;
use super::context::{CONNECTIONS, Context};
use super::load::{self, Load, Outcome, Plan};
use super::placement::Placement;
use super::report::{Table, figure, median};
use super::servers::{Program, Start};
use anyhow::{Context as _, Result};

/// An interval under this part of the median rate is a dip.
pub const DIP: f64 = 0.85;

/// Requests in flight on each connection: enough for the server to be what limits the rate.
const PIPELINE: usize = 64;

/// One run's 100 ms intervals.
#[derive(Clone, Debug)]
struct Run {
    /// Keys a second in the median interval.
    rate: f64,
    /// The slowest interval's part of it.
    slowest: f64,
    /// Keys there when it began.
    slowest_at: u64,
    dips: usize,
    intervals: usize,
    /// The same by the server's CPU time: what a key cost in the median interval, over what it cost in the dearest.
    dearest: f64,
    client_busy: f64,
}

/// A server's runs, summed up.
#[derive(Debug)]
pub struct Row {
    /// The server's name.
    pub server: &'static str,
    /// Keys at the end.
    pub keys: u64,
    /// Growing, or writing the same keys once more.
    pub grows: bool,
    /// Keys a second in the median interval, median of the runs.
    pub rate: f64,
    /// The slowest interval's part of that rate in the median run.
    pub slowest: f64,
    /// A key's CPU time in the median interval over that in the dearest one, in the median run.
    pub dearest: f64,
    /// In each run: the slowest interval in percent, keys then there, dips and intervals.
    pub runs: Vec<String>,
    /// The client's share of its core.
    pub client_busy: f64,
}

/// Grows every server, in turn. Each then writes the same keys once more, which no table grows by: the dips of that are
/// the machine's.
pub fn run(context: &mut Context) -> Result<Vec<Row>> {
    const NAME: &str = "growth";
    if !context.wants(NAME) {
        return Ok(Vec::new());
    }
    eprintln!("{NAME}");
    let placement = Placement::for_threads(1, 1)?;
    let programs = context.programs.clone();
    let mut taken: Vec<[Vec<Run>; 2]> = vec![Default::default(); programs.len()];
    for _ in 0..context.scale.rounds {
        for (program, taken) in programs.iter().zip(&mut taken) {
            match measured(context, program, &placement) {
                Ok(runs) => taken.iter_mut().zip(runs).for_each(|(taken, run)| taken.push(run)),
                Err(error) => context.failed(NAME, program.name, &error),
            }
        }
    }
    let keys = context.scale.keys_growth;
    let row = |program: &Program, grows, runs: Vec<Run>| {
        Some(Row {
            server: program.name,
            keys,
            grows,
            rate: median(runs.iter().map(|run| run.rate))?,
            slowest: median(runs.iter().map(|run| run.slowest))?,
            dearest: median(runs.iter().map(|run| run.dearest))?,
            client_busy: median(runs.iter().map(|run| run.client_busy))?,
            runs: runs.iter().map(Run::shown).collect(),
        })
    };
    let rows = |(program, [growing, again]): (&Program, [Vec<Run>; 2])| {
        [row(program, true, growing), row(program, false, again)].into_iter().flatten()
    };
    Ok(programs.iter().zip(taken).flat_map(rows).collect())
}

/// How a server grows, and how it writes all keys once more.
fn measured(context: &Context, program: &Program, placement: &Placement) -> Result<[Run; 2]> {
    let start = Start::new(1, &placement.server, &context.scratch);
    let server = program.start(&start)?;
    let protocol = server.first_protocol();
    let load = Load {
        address: server.address(protocol).context("a server speaks its first protocol")?,
        protocol,
        operation: SET,
        plan: Plan::EachOnce { keys: context.scale.keys_growth },
        connections: CONNECTIONS,
        threads: 1,
        pipeline: PIPELINE,
        cores: &placement.client,
        watched: Some(server.pid()),
    };
    let run = || Run::of(&load::run(&load)?).context("it was over before two intervals had passed");
    Ok([run()?, run()?])
}

impl Run {
    /// `None` without a whole interval. The last interval is not whole.
    fn of(outcome: &Outcome) -> Option<Run> {
        let whole = &outcome.intervals[..outcome.intervals.len().checked_sub(1)?];
        let middle = median(whole.iter().map(|keys| *keys as f64))?;
        let (index, slowest) = whole.iter().enumerate().min_by_key(|(_, keys)| **keys)?;
        let costs = || whole.iter().zip(&outcome.server_cpu).map(|(keys, cpu)| cpu.as_secs_f64() / *keys as f64);
        Some(Run {
            rate: middle / load::INTERVAL.as_secs_f64(),
            slowest: *slowest as f64 / middle,
            slowest_at: whole[..index].iter().sum(),
            dips: whole.iter().filter(|keys| (**keys as f64) < DIP * middle).count(),
            intervals: whole.len(),
            dearest: median(costs())? / costs().reduce(f64::max)?,
            client_busy: outcome.client_busy,
        })
    }

    fn shown(&self) -> String {
        let at = figure(self.slowest_at as f64);
        format!("{:.0} % at {at} keys; {} of {} dip", self.slowest * 100.0, self.dips, self.intervals)
    }
}

/// The rows as a table.
pub fn table(rows: &[Row]) -> Table {
    let columns = [
        "server",
        "keys",
        "load",
        "median keys/s",
        "slowest 100 ms",
        "the same by CPU time",
        "each run: slowest; intervals under 85 %",
        "client busy",
    ];
    let mut table = Table::new(&columns);
    for row in rows {
        table.row([
            row.server.to_owned(),
            figure(row.keys as f64),
            (if row.grows { "growing" } else { "overwriting" }).to_owned(),
            figure(row.rate),
            format!("{:.0} %", row.slowest * 100.0),
            format!("{:.0} %", row.dearest * 100.0),
            row.runs.join(" / "),
            format!("{:.0} %", row.client_busy * 100.0),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn outcome(intervals: &[u64], server_cpu_ms: &[u64]) -> Outcome {
        let server_cpu = server_cpu_ms.iter().map(|&ms| Duration::from_millis(ms)).collect();
        Outcome { intervals: intervals.to_vec(), server_cpu, client_busy: 0.5, ..Outcome::none().unwrap() }
    }

    #[test]
    fn dips_are_counted_without_the_last_part() {
        let run = Run::of(&outcome(&[100, 100, 80, 90, 100, 3], &[50, 50, 40, 90, 50])).unwrap();
        assert_eq!((run.dips, run.intervals, run.slowest_at), (1, 5, 200));
        assert_eq!((run.rate, run.slowest, run.dearest), (1000.0, 0.8, 0.5));
        assert!(Run::of(&outcome(&[3], &[])).is_none() && Run::of(&outcome(&[], &[])).is_none());
    }
}
