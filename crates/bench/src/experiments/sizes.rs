//! `sizes`: what the length of the values does.

use super::experiment::{
    CLIENT_BUSY, Experiment, Figure, Limit, MEAN, OPS, P95, P99, Plot, Published, SERVER_CPU, Scale, Setting,
};
use super::plain::{OPERATION, PROTOCOL, Stock, case, speaks};
use crate::peers::Settings;
use crate::session::{Session, Shape};
use anyhow::Result;

const VALUE: &str = "value bytes";

/// Values from 10 bytes to 4 MiB.
pub static SIZES: Experiment = Experiment {
    name: "sizes",
    title: "Values from 10 bytes to 4 MiB",
    summary: "Ten connections get and set values of one length; the key space shrinks in proportion. Below the table stands \
              the longest value with a 99th percentile under a millisecond.",
    study: "the memtier studies; in-memory data management",
    databases: false,
    depends_on: &[Setting::Keys, Setting::Seconds, Setting::ConnectionsOf(CONNECTIONS)],
    axes: &[PROTOCOL, OPERATION, VALUE],
    figures: &[OPS, Figure { name: "mb_s", heading: "MB/s" }, MEAN, P95, P99, SERVER_CPU, CLIENT_BUSY],
    plots: &[
        Plot::Lines { title: "Throughput", x: VALUE, x_scale: Scale::Log, y: OPS, y_scale: Scale::Log },
        Plot::Lines {
            title: "99th percentile of the latency",
            x: VALUE,
            x_scale: Scale::Log,
            y: P99,
            y_scale: Scale::Log,
        },
    ],
    published: &[
        Published { what: "Largest value with p99 under 1 ms", figure: "Memcached 256 KB, Redis 128 KB", ours: None },
        Published { what: "GET and SET from 10 B to 1 KB", figure: "nearly flat; then a dip to 10 KB", ours: None },
    ],
    limits: &[Limit { title: "Longest value with p99 under 1 ms", axis: VALUE, figure: P99, below: 1_000.0 }],
    rivals: None,
    run,
};

const LENGTHS: [usize; 10] = [10, 64, 256, 1 << 10, 4 << 10, 10 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
const LENGTHS_QUICK: [usize; 5] = [10, 1 << 10, 10 << 10, 256 << 10, 1 << 20];

/// Connections of each load: with many, large values would only wait for each other.
const CONNECTIONS: usize = 10;

fn run(session: &mut Session) -> Result<()> {
    let lengths = session.scaled(&LENGTHS_QUICK[..], &LENGTHS[..]);
    let bytes_all = session.scaled(16 << 20, 128 << 20);
    let mut cases = Vec::new();
    for protocol in session.all_protocols() {
        for verb in ["get", "set"] {
            cases.extend(lengths.iter().map(|len| case(protocol, verb).number(VALUE, *len as f64)));
        }
    }
    let servers = session.start_all(&cases, speaks, roomy, |_, _| Ok(()))?;
    session.grid(&servers, &cases, speaks, |session, server, case, round| {
        let len = case.quantity(VALUE).unwrap_or(1.0) as usize;
        let stock = Stock::of((bytes_all / len as u64).max(16).min(session.keys()), len);
        stock.fill(session, server)?;
        let shape = Shape { connections: CONNECTIONS, ..session.usual_shape(1) };
        let measured = stock.measure(session, server, case, &shape, round)?;
        let megabytes = measured.outcome.throughput() * len as f64 / 1e6;
        Ok(measured.reading().figure("mb_s", megabytes))
    })
}

/// Servers must be told of such values before.
fn roomy(session: &Session) -> Settings<'_> {
    Settings { value_len_max: LENGTHS[LENGTHS.len() - 1], ..session.settings() }
}
