//! `scalability`: more clients, and more threads to serve them.

use super::experiment::{CLIENT_BUSY, Experiment, MEAN, OPS, P99, Plot, Published, SERVER_CPU, Scale};
use super::plain::{MIXED, OPERATION, PROTOCOL, Stock, case, speaks};
use crate::machine::placement::own_cores;
use crate::peers::Settings;
use crate::session::{Session, Shape};
use anyhow::Result;

const THREADS: &str = "server threads";
const CONNECTIONS: &str = "connections";

/// Connections and server threads.
pub static SCALABILITY: Experiment = Experiment {
    name: "scalability",
    title: "More clients, more threads",
    summary: "Ten gets to a set, values of 32 bytes, from more and more connections, on servers of one thread and of more.",
    study: "the memtier studies; Waterloo",
    databases: false,
    axes: &[PROTOCOL, OPERATION, THREADS, CONNECTIONS],
    figures: &[OPS, MEAN, P99, SERVER_CPU, CLIENT_BUSY],
    plots: &[
        Plot::Lines { title: "Throughput", x: CONNECTIONS, x_scale: Scale::Log, y: OPS, y_scale: Scale::Linear },
        Plot::Lines { title: "Mean latency", x: CONNECTIONS, x_scale: Scale::Log, y: MEAN, y_scale: Scale::Log },
    ],
    published: &[Published {
        what: "Average latency, 1 to 8 client threads of 50 connections",
        figure: "Redis 48.3 % above Memcached",
    }],
    run,
};

fn run(session: &mut Session) -> Result<()> {
    let stock = Stock::short(session.keys());
    let cores = own_cores()?.len();
    let all_threads: Vec<usize> = (0..).map(|power| 1 << power).take_while(|threads| *threads <= cores).collect();
    let connections = session.scaled(&[1.0, 10.0, 100.0][..], &[1.0, 10.0, 50.0, 100.0, 200.0, 400.0, 1_000.0][..]);
    for threads in all_threads {
        let mut cases = Vec::new();
        for protocol in session.all_protocols() {
            let case = case(protocol, MIXED).number(THREADS, threads as f64);
            cases.extend(connections.iter().map(|connections| case.clone().number(CONNECTIONS, *connections)));
        }
        session.place(threads)?;
        let servers = session.start_all(
            |session| Settings { threads, ..session.settings() },
            |session, server| stock.fill(session, server).map(drop),
        )?;
        session.grid(&servers, &cases, speaks, |session, server, case, round| {
            let connections = case.quantity(CONNECTIONS).unwrap_or(1.0) as usize;
            let shape = Shape { connections, ..session.usual_shape(1) };
            Ok(stock.measure(session, server, case, &shape, round)?.reading())
        })?;
    }
    Ok(())
}
