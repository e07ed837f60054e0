//! `throughput`: as fast as fifty clients go, at several depths, and while the keyspace grows.

use super::experiment::{
    CLIENT_BUSY, Experiment, Figure, Form, OPS, Ours, P50, P95, P99, Plot, Published, SERVER_CPU, SERVER_SYSTEM,
    Setting, Spot,
};
use super::plain::{MANY, OPERATION, PIPELINE, PROTOCOL, Stock, case, many, pipeline, protocol, speaks};
use crate::load::Until;
use crate::results::Case;
use crate::session::{Running, Session, Shape};
use crate::workloads::{Keys, Misses, Mix, Spec};
use anyhow::Result;

const GROW: &str = "set of new keys";
const SLOWEST: Figure = Figure { name: "slowest_interval", heading: "slowest 0.1 s / median" };

/// How deep the deepest dip of these servers' throughput is.
const fn dips(servers: &'static [&'static str]) -> Option<Ours> {
    let at: &[Spot] = &[(OPERATION, Some(GROW)), (PIPELINE, Some("1"))];
    Some(Ours { figure: SLOWEST, servers, at, over: None, form: Form::Above })
}

/// Many connections in a closed loop.
pub static THROUGHPUT: Experiment = Experiment {
    name: "throughput",
    title: "Throughput and cost of an operation",
    summary: "Many connections get and set values of 32 bytes, with 1, 16 and 64 requests in flight on each, and get 16 keys \
              at once, which counts as 16 operations, as each language's clients do (beside the figures stands how); then every key is new, and the throughput of each tenth of a \
              second shows how the table grows, with 1 and 16 requests in flight: by the clock, in which all that the machine does \
              shows, and by the server's CPU time, in which only its own work does.",
    study: "the memtier studies; in-memory data management (coalescing)",
    databases: false,
    depends_on: &[Setting::Keys, Setting::Seconds, Setting::Connections],
    axes: &[PROTOCOL, OPERATION, PIPELINE],
    figures: &[
        OPS,
        P50,
        P95,
        P99,
        SERVER_CPU,
        SERVER_SYSTEM,
        CLIENT_BUSY,
        SLOWEST,
        Figure { name: "slowest_interval_by_cpu", heading: "slowest 0.1 s / median, by CPU" },
    ],
    plots: &[
        Plot::Bars { title: "Throughput", each: Some(PIPELINE), y: OPS },
        Plot::Bars { title: "The server's CPU time an operation", each: Some(PIPELINE), y: SERVER_CPU },
        Plot::Series {
            title: "Throughput while the keyspace grows",
            y: Figure { name: "ops_s_over_time", heading: "op/s" },
            step_s: 0.1,
        },
    ],
    published: &[
        Published {
            what: "Throughput while the key space grows, Redis",
            figure: "two dips of 38 %",
            ours: dips(&["redis", "valkey", "tenon"]),
        },
        Published {
            what: "Throughput while the key space grows, Memcached",
            figure: "nearly no dip",
            ours: dips(&["memcached"]),
        },
    ],
    limits: &[],
    rivals: None,
    run,
};

fn run(session: &mut Session) -> Result<()> {
    let stock = Stock::short(session.keys());
    let mut cases = Vec::new();
    for protocol in session.all_protocols() {
        for verb in ["get", "set"] {
            cases.extend([1.0, 16.0, 64.0].map(|depth| case(protocol, verb).number(PIPELINE, depth)));
        }
        cases.push(case(protocol, MANY).number(PIPELINE, 1.0));
    }
    let fill = |session: &Session, server: &Running| stock.fill(session, server).map(drop);
    let servers = session.start_all(&cases, speaks, Session::settings, fill)?;
    session.grid(&servers, &cases, speaks, |session, server, case, round| {
        let measured = stock.measure(session, server, case, &session.usual_shape(pipeline(case)), round)?;
        let asked = case.at(OPERATION).is_some_and(|operation| operation.to_string() == MANY);
        Ok(if asked { measured.reading().note(many(protocol(case)?)) } else { measured.reading() })
    })?;
    drop(servers);

    let growing: Vec<Case> = session
        .all_protocols()
        .into_iter()
        .flat_map(|protocol| [1.0, 16.0].map(|depth| case(protocol, GROW).number(PIPELINE, depth)))
        .collect();
    // Somebody else's server has keys already.
    let started = session.started();
    session.sampling = true;
    session.measured_on("keys", grown(session));
    session.grid(&started, &growing, speaks, |session, contender, case, _| {
        let server = session.start(contender, &session.settings())?;
        grow(session, &server, case)
    })
}

/// How many keys a growing server is given.
fn grown(session: &Session) -> u64 {
    session.keys().saturating_mul(session.scaled(1, 4))
}

/// Every key is set once, on a server that has none.
fn grow(session: &Session, server: &Running, case: &Case) -> Result<crate::session::Reading> {
    let shape = Shape { until: Until::Exhausted, ..session.usual_shape(pipeline(case)) };
    let stock = Stock::short(grown(session));
    let keys = Keys::counted_out(stock.keys);
    let (measured, _) = session.key_value(server, protocol(case)?, &shape, |thread| Spec {
        mix: Mix::SET,
        keys: keys.clone(),
        first: 0,
        values: stock.values.clone(),
        lengths: stock.lengths,
        expire_s: 0,
        keys_a_get: 1,
        misses: Misses::Fail,
        seed: thread as u64,
    })?;
    // Each was stored once, and has been read by nobody.
    session.read_back(server, protocol(case)?, (stock.keys, stock.keys), &stock.values, stock.lengths)?;
    Ok(measured
        .reading()
        .series("ops_s_over_time", measured.throughput_series())
        .known("slowest_interval", measured.outcome.slowest_interval())
        .known("slowest_interval_by_cpu", measured.slowest_by_cpu()))
}
