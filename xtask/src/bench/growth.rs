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

/// Parts that the keys are divided into, to compare runs at the same number of keys.
const STRETCHES: u64 = 40;

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
    /// Seconds that each of [`STRETCHES`] equal parts of the keys took.
    stretches: Vec<f64>,
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
    /// The same of what comes again in each run: every stretch of keys at its median of the runs, the slowest of them over the
    /// median one. A table grows at the same number of keys each time; the machine's neighbours do not come back so.
    pub repeated: f64,
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
            repeated: repeated(&runs)?,
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
    };
    let run = || {
        Run::of(&load::run_watching(&load, Some(server.pid()))?).context("it was over before two intervals had passed")
    };
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
            stretches: stretches(&outcome.intervals),
        })
    }

    fn shown(&self) -> String {
        let at = figure(self.slowest_at as f64);
        format!("{:.0} % at {at} keys; {} of {} dip", self.slowest * 100.0, self.dips, self.intervals)
    }
}

/// How long each stretch of keys took, in seconds, when the keys of an interval came evenly. The last interval is not whole,
/// but what is missing of it is little.
fn stretches(intervals: &[u64]) -> Vec<f64> {
    let total: u64 = intervals.iter().sum();
    let mut ends = (1..=STRETCHES).map(|stretch| total as f64 * stretch as f64 / STRETCHES as f64).peekable();
    let (mut keys, mut last_end) = (0.0, 0.0);
    let mut taken = Vec::new();
    for (index, &of_interval) in intervals.iter().enumerate() {
        let of_interval = of_interval as f64;
        while let Some(end) = ends.next_if(|&end| of_interval > 0.0 && end <= keys + of_interval) {
            let at = (index as f64 + (end - keys) / of_interval) * load::INTERVAL.as_secs_f64();
            taken.push(at - last_end);
            last_end = at;
        }
        keys += of_interval;
    }
    taken
}

/// The median stretch's time over the longest one's, each stretch at the median of its runs.
fn repeated(runs: &[Run]) -> Option<f64> {
    let of_stretch = |stretch: usize| median(runs.iter().filter_map(|run| run.stretches.get(stretch).copied()));
    // Of the last one, part of an interval is missing.
    let times: Vec<f64> = (0..STRETCHES as usize - 1).map_while(of_stretch).collect();
    let longest = times.iter().copied().reduce(f64::max)?;
    Some(median(times)? / longest)
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
        "slowest 1/40 of the keys, each at its median of the runs",
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
            format!("{:.0} %", row.repeated * 100.0),
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

    #[test]
    fn only_what_comes_again_at_the_same_keys_counts_as_repeated() {
        let even = [400_u64; 10];
        let run = |slow: &[usize]| {
            // A slow interval brings half the keys; the rest comes in one more.
            let of_interval = |(index, &keys)| if slow.contains(&index) { vec![keys / 2; 2] } else { vec![keys] };
            let intervals: Vec<u64> = even.iter().enumerate().flat_map(of_interval).collect();
            Run::of(&outcome(&intervals, &[50; 12])).unwrap()
        };
        assert_eq!(run(&[]).stretches.len() as u64, STRETCHES);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(close(repeated(&[run(&[]), run(&[3]), run(&[7])]).unwrap(), 1.0));
        assert!(close(repeated(&[run(&[3]), run(&[3]), run(&[7])]).unwrap(), 0.5));
    }
}
