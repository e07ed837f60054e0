//! `counters`: system calls, and where the machine counts them instructions and cache misses, for each operation.

use super::experiment::{Experiment, Figure, OPS, Plot};
use super::plain::{Stock, case, speaks};
use crate::results::Case;
use crate::session::Session;
use anyhow::Result;

const PIPELINE: &str = "pipeline";
const SYSCALLS: Figure = Figure { name: "syscalls_op", heading: "system calls/op" };

/// What an operation asks of kernel and processor.
pub static COUNTERS: Experiment = Experiment {
    name: "counters",
    title: "What an operation asks of the machine",
    summary: "While fifty connections get and set values of 32 bytes, perf counts what the server does; where perf counts \
              no system calls, strace does, which slows the server down. What the machine does not count is left out and \
              named.",
    study: "Waterloo; in-memory data management",
    databases: true,
    axes: &["protocol", "operation", PIPELINE],
    figures: &[
        SYSCALLS,
        Figure { name: "futexes_op", heading: "futexes/op" },
        Figure { name: "instructions_op", heading: "instructions/op" },
        Figure { name: "cycles_op", heading: "cycles/op" },
        Figure { name: "l1i_misses_op", heading: "L1I misses/op" },
        Figure { name: "l1d_misses_op", heading: "L1D misses/op" },
        Figure { name: "llc_misses_op", heading: "LLC misses/op" },
        OPS,
    ],
    plots: &[Plot::Bars { title: "System calls an operation", each: Some(PIPELINE), y: SYSCALLS }],
    published: &[],
    run,
};

fn run(session: &mut Session) -> Result<()> {
    let stock = Stock::short(session.keys() / 10);
    let mut cases: Vec<Case> = Vec::new();
    for protocol in session.all_protocols() {
        for verb in ["get", "set"] {
            cases.extend([1.0, 16.0].map(|depth| case(protocol, verb).number(PIPELINE, depth)));
        }
    }
    let servers = session.start_all(Session::settings, |session, server| stock.fill(session, server).map(drop))?;
    session.counting = true;
    session.grid(&servers, &cases, speaks, |session, server, case, round| {
        let pipeline = case.quantity(PIPELINE).unwrap_or(1.0) as usize;
        Ok(stock.measure(session, server, case, &session.usual_shape(pipeline), round)?.reading())
    })
}
