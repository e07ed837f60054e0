//! `skew`: what a few popular keys do.

use super::experiment::{CLIENT_BUSY, Experiment, OPS, P95, P99, Plot, SERVER_CPU, Scale, Setting};
use super::plain::{MIXED, OPERATION, PROTOCOL, Stock, case, speaks};
use crate::generators::Distribution;
use crate::session::{Running, Session};
use anyhow::Result;

const EXPONENT: &str = "zipf exponent";
const DISTRIBUTION: &str = "distribution";

/// What else YCSB can name keys by.
const OTHERS: [&str; 3] = ["sequential", "hotspot", "exponential"];

/// Zipf's law with exponents from 0 to 1.4, and YCSB's other distributions.
pub static SKEW: Experiment = Experiment {
    name: "skew",
    title: "Popular keys",
    summary: "Ten gets to a set; how often keys are named follows Zipf's law with exponents from 0 (all alike) to 1.4. Beside it \
              YCSB's other distributions: one key after another, four fifths of the operations on a fifth of the keys, and the \
              newest keys exponentially more often.",
    study: "the memtier studies",
    databases: false,
    depends_on: &[Setting::Keys, Setting::Seconds, Setting::Connections],
    axes: &[PROTOCOL, OPERATION, EXPONENT, DISTRIBUTION],
    figures: &[OPS, P95, P99, SERVER_CPU, CLIENT_BUSY],
    plots: &[
        Plot::Lines { title: "Throughput", x: EXPONENT, x_scale: Scale::Linear, y: OPS, y_scale: Scale::Linear },
        Plot::Lines {
            title: "99th percentile of the latency",
            x: EXPONENT,
            x_scale: Scale::Linear,
            y: P99,
            y_scale: Scale::Linear,
        },
    ],
    published: &[],
    limits: &[],
    rivals: None,
    run,
};

fn run(session: &mut Session) -> Result<()> {
    let exponents = session.scaled(&[0.0, 0.6, 0.99, 1.4][..], &[0.0, 0.2, 0.4, 0.6, 0.8, 0.99, 1.2, 1.4][..]);
    let stock = Stock::short(session.keys());
    let mut cases = Vec::new();
    for protocol in session.all_protocols() {
        cases.extend(exponents.iter().map(|exponent| case(protocol, MIXED).number(EXPONENT, *exponent)));
        cases.extend(OTHERS.map(|name| case(protocol, MIXED).word(DISTRIBUTION, name)));
    }
    let fill = |session: &Session, server: &Running| stock.fill(session, server).map(drop);
    let servers = session.start_all(&cases, speaks, Session::settings, fill)?;
    session.grid(&servers, &cases, speaks, |session, server, case, round| {
        let distribution = match case.at(DISTRIBUTION) {
            Some(name) => name.to_string().parse().map_err(anyhow::Error::msg)?,
            None => Distribution::Ranked(case.quantity(EXPONENT).unwrap_or(0.0)),
        };
        let stock = Stock { distribution, ..stock.clone() };
        Ok(stock.measure(session, server, case, &session.usual_shape(1), round)?.reading())
    })
}
