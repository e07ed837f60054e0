//! `skew`: what a few popular keys do.

use super::experiment::{CLIENT_BUSY, Experiment, OPS, P99, Plot, SERVER_CPU, Scale};
use super::plain::{MIXED, OPERATION, PROTOCOL, Stock, case, speaks};
use crate::generators::Distribution;
use crate::session::Session;
use anyhow::Result;

const EXPONENT: &str = "zipf exponent";

/// Zipf's law with exponents from 0 to 1.4.
pub static SKEW: Experiment = Experiment {
    name: "skew",
    title: "Popular keys",
    summary: "Ten gets to a set; how often keys are named follows Zipf's law with exponents from 0 (all alike) to 1.4.",
    study: "the memtier studies",
    databases: false,
    axes: &[PROTOCOL, OPERATION, EXPONENT],
    figures: &[OPS, P99, SERVER_CPU, CLIENT_BUSY],
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
    run,
};

fn run(session: &mut Session) -> Result<()> {
    let exponents = session.scaled(&[0.0, 0.6, 0.99, 1.4][..], &[0.0, 0.2, 0.4, 0.6, 0.8, 0.99, 1.2, 1.4][..]);
    let stock = Stock::short(session.keys());
    let mut cases = Vec::new();
    for protocol in session.all_protocols() {
        cases.extend(exponents.iter().map(|exponent| case(protocol, MIXED).number(EXPONENT, *exponent)));
    }
    let servers = session.start_all(Session::settings, |session, server| stock.fill(session, server).map(drop))?;
    session.grid(&servers, &cases, speaks, |session, server, case, round| {
        let distribution = Distribution::Ranked(case.quantity(EXPONENT).unwrap_or(0.0));
        let stock = Stock { distribution, ..stock.clone() };
        Ok(stock.measure(session, server, case, &session.usual_shape(1), round)?.reading())
    })
}
