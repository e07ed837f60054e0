//! `load`: what latency becomes as more is asked of a server, in an open loop.

use super::experiment::{
    CLIENT_BUSY, CLIENT_LATE, Experiment, Figure, Limit, MEAN, OPS, P50, P95, P99, P999, Plot, Published, SERVER_CPU,
    Scale, Setting, UNSENT,
};
use super::plain::{MIXED, OPERATION, PROTOCOL, Stock, case, speaks};
use crate::load::Pace;
use crate::session::{Running, Session, Shape};
use anyhow::Result;

const OFFERED: &str = "offered op/s";
const CORES: Figure = Figure { name: "server_cores", heading: "server cores" };

/// Requests that are waiting on one connection at most. An open loop needs room for those that come while others wait.
const PIPELINE: usize = 16;

/// Latency against offered load.
pub static LOAD: Experiment = Experiment {
    name: "load",
    title: "Latency against offered load",
    summary: "Operations are due at a rate, whether or not earlier ones are answered; their latency counts from then. Below \
              the table stands the highest rate at which the 99th percentile is under a millisecond.",
    study: "the memtier studies; ULB",
    databases: true,
    depends_on: &[Setting::Keys, Setting::Seconds, Setting::Connections, Setting::Arrivals],
    axes: &[PROTOCOL, OPERATION, OFFERED],
    figures: &[OPS, MEAN, P50, P95, P99, P999, CORES, SERVER_CPU, UNSENT, CLIENT_LATE, CLIENT_BUSY],
    plots: &[
        Plot::Lines {
            title: "99th percentile of the latency against offered load",
            x: OFFERED,
            x_scale: Scale::Log,
            y: P99,
            y_scale: Scale::Log,
        },
        Plot::Lines {
            title: "The server's cores in use",
            x: OFFERED,
            x_scale: Scale::Log,
            y: CORES,
            y_scale: Scale::Linear,
        },
    ],
    published: &[
        Published {
            what: "Highest load with p99 under 1 ms, Memcached, 6 cores",
            figure: "550,000 op/s at 0.45 ms",
            ours: None,
        },
        Published {
            what: "Highest load with p99 under 1 ms, six Redis, 6 cores",
            figure: "500,000 op/s at 0.52 ms",
            ours: None,
        },
    ],
    limits: &[Limit { title: "Highest offered load with p99 under 1 ms", axis: OFFERED, figure: P99, below: 1_000.0 }],
    rivals: None,
    run,
};

const RATES: [u64; 7] = [5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000];
const RATES_QUICK: [u64; 3] = [5_000, 20_000, 80_000];

fn run(session: &mut Session) -> Result<()> {
    let stock = Stock::short(session.keys());
    let usual = session.scaled(&RATES_QUICK[..], &RATES[..]);
    let rates = if session.options.rates.is_empty() { usual.to_vec() } else { session.options.rates.clone() };
    let mut cases = Vec::new();
    for protocol in session.all_protocols() {
        cases.extend(rates.iter().map(|rate| case(protocol, MIXED).number(OFFERED, *rate as f64)));
    }
    let fill = |session: &Session, server: &Running| stock.fill(session, server).map(drop);
    let servers = session.start_all(&cases, speaks, Session::settings, fill)?;
    session.grid(&servers, &cases, speaks, |session, server, case, round| {
        let rate = case.quantity(OFFERED).unwrap_or(1.0);
        let pace = Pace::Open { rate, arrivals: session.options.arrivals };
        let shape = Shape { pace, ..session.usual_shape(PIPELINE) };
        Ok(stock.measure(session, server, case, &shape, round)?.reading())
    })
}
