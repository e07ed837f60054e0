//! The rate of inserts while the keyspace grows from nothing: dips show a table's expansion. Knows nothing of tables.

use super::case::SET;
use super::context::{CONNECTIONS, Context};
use super::load::{self, Load, Plan};
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
    client_busy: f64,
}

/// A server's runs, summed up.
#[derive(Debug)]
pub struct Row {
    /// The server's name.
    pub server: &'static str,
    /// Keys at the end.
    pub keys: u64,
    /// Keys a second in the median interval, median of the runs.
    pub rate: f64,
    /// The slowest interval's part of that rate in the median run.
    pub slowest: f64,
    /// In each run: the slowest interval in percent, keys then there, dips and intervals.
    pub runs: Vec<String>,
    /// The client's share of its core.
    pub client_busy: f64,
}

/// Grows every server, in turn.
pub fn run(context: &mut Context) -> Result<Vec<Row>> {
    const NAME: &str = "growth";
    if !context.wants(NAME) {
        return Ok(Vec::new());
    }
    eprintln!("{NAME}");
    let placement = Placement::for_threads(1, 1)?;
    let programs = context.programs.clone();
    let mut taken: Vec<Vec<Run>> = vec![Vec::new(); programs.len()];
    for _ in 0..context.scale.rounds {
        for (program, taken) in programs.iter().zip(&mut taken) {
            match measured(context, program, &placement) {
                Ok(run) => taken.push(run),
                Err(error) => context.failed(NAME, program.name, &error),
            }
        }
    }
    let keys = context.scale.keys_growth;
    let row = |(program, runs): (&Program, Vec<Run>)| {
        Some(Row {
            server: program.name,
            keys,
            rate: median(runs.iter().map(|run| run.rate))?,
            slowest: median(runs.iter().map(|run| run.slowest))?,
            client_busy: median(runs.iter().map(|run| run.client_busy))?,
            runs: runs.iter().map(Run::shown).collect(),
        })
    };
    Ok(programs.iter().zip(taken).filter_map(row).collect())
}

fn measured(context: &Context, program: &Program, placement: &Placement) -> Result<Run> {
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
    };
    let outcome = load::run(&load)?;
    Run::of(&outcome.intervals, outcome.client_busy).context("it was over before two intervals had passed")
}

impl Run {
    /// `None` without a whole interval. The last interval is not whole.
    fn of(intervals: &[u64], client_busy: f64) -> Option<Run> {
        let whole = &intervals[..intervals.len().checked_sub(1)?];
        let middle = median(whole.iter().map(|keys| *keys as f64))?;
        let (index, slowest) = whole.iter().enumerate().min_by_key(|(_, keys)| **keys)?;
        Some(Run {
            rate: middle / load::INTERVAL.as_secs_f64(),
            slowest: *slowest as f64 / middle,
            slowest_at: whole[..index].iter().sum(),
            dips: whole.iter().filter(|keys| (**keys as f64) < DIP * middle).count(),
            intervals: whole.len(),
            client_busy,
        })
    }

    fn shown(&self) -> String {
        let at = figure(self.slowest_at as f64);
        format!("{:.0} % at {at} keys; {} of {} dip", self.slowest * 100.0, self.dips, self.intervals)
    }
}

/// The rows as a table.
pub fn table(rows: &[Row]) -> Table {
    let columns =
        ["server", "keys", "median keys/s", "slowest 100 ms", "each run: slowest; intervals under 85 %", "client busy"];
    let mut table = Table::new(&columns);
    for row in rows {
        table.row([
            row.server.to_owned(),
            figure(row.keys as f64),
            figure(row.rate),
            format!("{:.0} %", row.slowest * 100.0),
            row.runs.join(" / "),
            format!("{:.0} %", row.client_busy * 100.0),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dips_are_counted_without_the_last_part() {
        let run = Run::of(&[100, 100, 80, 90, 100, 3], 0.5).unwrap();
        assert_eq!((run.dips, run.intervals, run.slowest_at), (1, 5, 200));
        assert_eq!((run.rate, run.slowest), (1000.0, 0.8));
        assert!(Run::of(&[3], 0.5).is_none() && Run::of(&[], 0.5).is_none());
    }
}
