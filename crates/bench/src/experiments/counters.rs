//! `counters`: system calls, and where the machine counts them instructions and cache misses, for each operation.

use super::experiment::{CLIENT_BUSY, CLIENT_CPU, Experiment, Figure, OPS, Plot, SERVER_CPU, SERVER_SYSTEM, Setting};
use super::plain::{PIPELINE, Stock, VALUE_LEN, case, pipeline, speaks};
use crate::peers::Settings;
use crate::results::Case;
use crate::session::{Running, Session};
use anyhow::Result;

const VALUE: &str = "value bytes";
const SYSCALLS: Figure = Figure { name: "syscalls_op", heading: "system calls/op" };

/// What an operation asks of kernel and processor.
pub static COUNTERS: Experiment = Experiment {
    name: "counters",
    title: "What an operation asks of the machine",
    summary: "While many connections get and set values of 32 bytes to 1 MiB, perf counts what the server does; where \
              perf counts no system calls, strace does, which slows the server down. What the machine does not count is left \
              out and named. The client counts its own system calls, as it makes them.",
    study: "Waterloo; in-memory data management",
    databases: true,
    depends_on: &[Setting::Keys, Setting::Seconds, Setting::Connections],
    axes: &["protocol", "operation", VALUE, PIPELINE],
    figures: &[
        SYSCALLS,
        Figure { name: "futexes_op", heading: "futexes/op" },
        Figure { name: "instructions_op", heading: "instructions/op" },
        Figure { name: "cycles_op", heading: "cycles/op" },
        Figure { name: "l1i_misses_op", heading: "L1I misses/op" },
        Figure { name: "l1d_misses_op", heading: "L1D misses/op" },
        Figure { name: "llc_misses_op", heading: "LLC misses/op" },
        OPS,
        SERVER_CPU,
        SERVER_SYSTEM,
        Figure { name: "client_syscalls_op", heading: "client system calls/op" },
        CLIENT_CPU,
        Figure { name: "client_system_us", heading: "of it system µs/op" },
        CLIENT_BUSY,
    ],
    plots: &[Plot::Bars { title: "System calls an operation", each: Some(PIPELINE), y: SYSCALLS }],
    published: &[],
    limits: &[],
    rivals: None,
    run,
};

/// Requests in flight on each connection, by the length of the values.
static DEPTHS: [(usize, &[f64]); 4] =
    [(VALUE_LEN, &[1.0, 16.0]), (1 << 10, &[1.0]), (16 << 10, &[1.0]), (1 << 20, &[1.0])];

/// Bytes of all values of one length, at most.
const BYTES_ALL: u64 = 128 << 20;

fn run(session: &mut Session) -> Result<()> {
    for (len, depths) in session.scaled(&DEPTHS[..2], &DEPTHS[..]) {
        let mut cases: Vec<Case> = Vec::new();
        for protocol in session.all_protocols() {
            for verb in ["get", "set"] {
                let case = case(protocol, verb).number(VALUE, *len as f64);
                cases.extend(depths.iter().map(|depth| case.clone().number(PIPELINE, *depth)));
            }
        }
        let keys = (session.keys() / 10).min(BYTES_ALL / *len as u64).max(1);
        session.measured_on("keys", keys);
        let stock = Stock::of(keys, *len);
        // What it takes to fill them is nobody's question.
        session.counting = false;
        let fill = |session: &Session, server: &Running| stock.fill(session, server).map(drop);
        let servers = session.start_all(&cases, speaks, |session| roomy(session, *len), fill)?;
        session.counting = true;
        session.grid(&servers, &cases, speaks, |session, server, case, round| {
            Ok(stock.measure(session, server, case, &session.usual_shape(pipeline(case)), round)?.reading())
        })?;
    }
    Ok(())
}

/// Servers that are told of values of this length.
fn roomy(session: &Session, len: usize) -> Settings<'_> {
    let settings = session.settings();
    Settings { value_len_max: settings.value_len_max.max(len), ..settings }
}
