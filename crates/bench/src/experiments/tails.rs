//! `tails`: what one client's doings are to another client's slowest requests.

use super::experiment::{
    CLIENT_BUSY, CLIENT_LATE, Experiment, Figure, MAX, P50, P95, P99, P999, Plot, SERVER_CPU, Setting,
};
use super::plain::{MIXED, PROTOCOL, Stock, mix, speaks};
use crate::generators::{Inserted, KeyChooser};
use crate::load::{Pace, Until};
use crate::machine::placement;
use crate::peers::Settings;
use crate::results::Case;
use crate::session::{Measured, Reading, Running, Session, Shape};
use crate::target::Protocol;
use crate::workloads::{Disturbance, Keys, Misses, Scale, Spec, Tally};
use anyhow::{Context, Result, anyhow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

const BESIDE: &str = "beside";
const QUIET: Figure = Figure { name: "quiet_p999_us", heading: "quiet p99.9 µs" };
/// Without the disturbance, whose cost is in the other figure.
const QUIET_CPU: Figure = Figure { name: "quiet_server_cpu_us", heading: "quiet server CPU µs/op" };
/// Of the gets: where keys are evicted, a load of misses is another one.
const HITS: Figure = Figure { name: "hits", heading: "hits" };
const QUIET_HITS: Figure = Figure { name: "quiet_hits", heading: "quiet hits" };
const RATIO: Figure = Figure { name: "p999_ratio", heading: "p99.9 / quiet" };

/// Operations a second that are offered beside the disturbance, if no rates are asked for. The client must have pauses in
/// which the disturbing one has its core.
const OFFERED: u64 = 20_000;

/// Requests that are waiting on one connection at most.
const PIPELINE: usize = 16;

/// The niceness of the disturbing client: where it shares a core with the load, it is to disturb the server and not that.
const NICENESS: i32 = 19;

/// One client's doings and another's tail.
pub static TAILS: Experiment = Experiment {
    name: "tails",
    title: "What others do, and the slowest requests",
    summary: "Ten gets to a set are due at a rate (--rates, else 20,000 a second), and their latency counts from then; first \
              alone, then while another client has many keys expire, be evicted or be new, deletes a set of ten million, asks \
              for all keys, runs scripts of a tenth of a second, asks for, unites or sorts sets of a million, holds 10,000 \
              connections, or reads slowly. The server's CPU time an operation is all that it used, for the other client too. With --quick all of that is smaller. RESP only.",
    study: "what the studies wished for",
    databases: false,
    depends_on: &[Setting::Keys, Setting::Seconds, Setting::Connections, Setting::Arrivals],
    axes: &[PROTOCOL, BESIDE],
    figures: &[
        P50,
        P95,
        P99,
        P999,
        MAX,
        QUIET,
        RATIO,
        SERVER_CPU,
        QUIET_CPU,
        HITS,
        QUIET_HITS,
        CLIENT_LATE,
        CLIENT_BUSY,
        Figure { name: "times", heading: "done" },
    ],
    plots: &[Plot::Bars { title: "99.9th percentile over the quiet one", each: None, y: RATIO }],
    published: &[],
    limits: &[],
    rivals: None,
    run,
};

fn run(session: &mut Session) -> Result<()> {
    session.measured_on("offered op/s", offered(session));
    let cases: Vec<Case> = Disturbance::ALL
        .iter()
        .map(|disturbance| Case::new().word(PROTOCOL, Protocol::Resp.name()).word(BESIDE, disturbance.name()))
        .collect();
    // Somebody else's server is not to be disturbed.
    let started = session.started();
    session.grid(&started, &cases, speaks, |session, contender, case, round| {
        let scale = scale(session);
        let name = case.at(BESIDE).map(ToString::to_string).unwrap_or_default();
        let disturbance = Disturbance::ALL.into_iter().find(|disturbance| disturbance.name() == name);
        let disturbance = disturbance.context("the case names a disturbance")?;
        let mut settings = session.settings();
        if disturbance == Disturbance::Evicting {
            settings = Settings { memory_bytes: Some(scale.limit_bytes()), eviction: Some("allkeys-lru"), ..settings };
        }
        let server = session.start(contender, &settings)?;
        measure(session, &server, disturbance, &scale, round)
    })
}

/// Operations a second.
fn offered(session: &Session) -> u64 {
    session.options.rates.first().copied().unwrap_or(OFFERED)
}

fn scale(session: &Session) -> Scale {
    Scale {
        keys: session.keys(),
        members: session.scaled(200_000, 10_000_000),
        elements: session.scaled(50_000, 1_000_000),
        turns: session.scaled(1_000_000, 10_000_000),
        idle: session.scaled(500, 10_000),
        lasts: session.measured_for(),
    }
}

fn measure(
    session: &Session,
    server: &Running,
    disturbance: Disturbance,
    scale: &Scale,
    round: u64,
) -> Result<Reading> {
    let target = server.target(Protocol::Resp).context("the server speaks RESP")?;
    let stock = Stock::short(scale.keys);
    stock.fill(session, server)?;
    disturbance.prepare(&target, scale, session.interrupt.flag()).context("preparing")?;
    // Only where keys are evicted may one be missing.
    let misses = if disturbance == Disturbance::Evicting { Misses::Count } else { Misses::Fail };
    let bystanders = |lasts, seed| bystanders(session, server, &stock, misses, lasts, seed);
    bystanders(session.warm_up(), 3 * round)?;
    let (quiet, quiet_tally) = bystanders(scale.lasts, 3 * round + 1)?;

    let stop = AtomicBool::new(false);
    let (measured, times) = std::thread::scope(|scope| {
        let (begun, has_begun) = channel();
        let (target, stop) = (&target, &stop);
        let disturbing = scope.spawn(move || {
            placement::pin_this_thread(&session.placement.client)?;
            let thread = rustix::thread::gettid();
            rustix::process::setpriority_process(Some(thread), NICENESS).context("niceness")?;
            disturbance.go_on(target, scale, move || _ = begun.send(()), stop)
        });
        // Nothing comes where the disturbing client has failed: then there is nothing to measure.
        let measured = match has_begun.recv() {
            Ok(()) => bystanders(scale.lasts, 3 * round + 2).map(Some),
            Err(_) => Ok(None),
        };
        stop.store(true, Ordering::Relaxed);
        let times = disturbing.join().unwrap_or_else(|_| Err(anyhow!("the disturbing client panicked")));
        times.context("the disturbing client").and_then(|times| Ok((measured?, times)))
    })?;
    let (measured, tally) = measured.context("the disturbing client had nothing to do")?;
    let quiet = quiet.reading();
    let disturbed = measured.reading();
    let p999_us = |reading: &Reading| reading.figures.get(P999.name).copied();
    let (quiet_us, disturbed_us) = (p999_us(&quiet), p999_us(&disturbed));
    let ratio = disturbed_us.zip(quiet_us).map(|(disturbed_us, quiet_us)| disturbed_us / quiet_us);
    Ok(disturbed
        .known(QUIET_CPU.name, quiet.figures.get(SERVER_CPU.name).copied())
        .known(QUIET.name, quiet_us)
        .known(RATIO.name, ratio)
        .figure(HITS.name, hits(tally))
        .figure(QUIET_HITS.name, hits(quiet_tally))
        .figure("times", times as f64))
}

/// The share of the gets that found a value; no number where there were none.
fn hits(tally: Tally) -> f64 {
    tally.hits as f64 / (tally.hits + tally.misses) as f64
}

/// The load that is measured.
fn bystanders(
    session: &Session,
    server: &Running,
    stock: &Stock,
    misses: Misses,
    lasts: Duration,
    seed: u64,
) -> Result<(Measured, Tally)> {
    let rate = offered(session) as f64;
    let pace = Pace::Open { rate, arrivals: session.options.arrivals };
    let shape = Shape { pace, until: Until::Elapsed(lasts), seed, ..session.usual_shape(PIPELINE) };
    let keys = KeyChooser::new(stock.distribution, &Arc::new(Inserted::new(stock.keys)), 0);
    let case = Case::new().word(super::plain::OPERATION, MIXED);
    let spec = |thread: usize| Spec {
        mix: mix(&case),
        keys: Keys::Chosen(keys.clone()),
        first: 0,
        values: stock.values.clone(),
        lengths: stock.lengths,
        expire_s: 0,
        keys_a_get: 1,
        misses,
        seed: seed << 32 | thread as u64,
    };
    session.key_value(server, Protocol::Resp, &shape, spec)
}
