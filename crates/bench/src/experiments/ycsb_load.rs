//! `ycsb-load`: what the latency of YCSB's operations becomes as more of them are asked for, in an open loop.

use super::experiment::{
    CLIENT_BUSY, CLIENT_LATE, Experiment, Limit, MEAN, OPS, P95, P99, Plot, SERVER_CPU, Scale, Setting, UNSENT,
};
use super::plain::PROTOCOL;
use super::ycsb::{
    INSERT, READ, READ_MODIFY_WRITE, SCAN, Stored, UPDATE, WORKLOAD, applies, layout, of, of_each_study,
};
use crate::load::Pace;
use crate::results::Case;
use crate::session::{Contender, Named, Running, Session, Shape};
use crate::workloads::ycsb::Mix;
use anyhow::Result;

const TARGET: &str = "target op/s";

/// Requests that are waiting on one connection at most, as in `load`.
const PIPELINE: usize = 16;

/// Latency against target throughput.
pub static YCSB_LOAD: Experiment = Experiment {
    name: "ycsb-load",
    title: "YCSB: latency against target throughput",
    summary: "Operations of YCSB's workloads A, B and F on a number of records are due at a rate, whether or not earlier ones are \
              answered, and their latency counts from then. Rates rise until a server carries less than nine tenths of what is due, \
              which is the last that it is asked for.",
    study: "ULB",
    databases: true,
    depends_on: &[
        Setting::Seconds,
        Setting::Connections,
        Setting::ClientProcesses,
        Setting::Arrivals,
        Setting::Updates,
    ],
    axes: &[PROTOCOL, WORKLOAD, TARGET],
    figures: &[
        OPS,
        MEAN,
        READ,
        UPDATE,
        INSERT,
        SCAN,
        READ_MODIFY_WRITE,
        P95,
        P99,
        SERVER_CPU,
        UNSENT,
        CLIENT_LATE,
        CLIENT_BUSY,
    ],
    plots: &[
        Plot::Lines {
            title: "Mean latency against target throughput",
            x: TARGET,
            x_scale: Scale::Log,
            y: MEAN,
            y_scale: Scale::Log,
        },
        Plot::Lines {
            title: "Throughput against its target",
            x: TARGET,
            x_scale: Scale::Log,
            y: OPS,
            y_scale: Scale::Log,
        },
    ],
    published: &[],
    limits: &[Limit { title: "Highest target with p99 under 1 ms", axis: TARGET, figure: P99, below: 1_000.0 }],
    rivals: None,
    run,
};

/// The study's, and on until no server carries them.
const RATES: [u64; 10] = [500, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000];
const RATES_QUICK: [u64; 3] = [1_000, 5_000, 20_000];

/// The study's workloads.
const WORKLOADS: [&str; 3] = ["A", "B", "F"];

/// A server that carries less than this share of what is due is saturated.
const CARRIED: f64 = 0.9;

fn run(session: &mut Session) -> Result<()> {
    let asked = session.options.workloads.clone();
    let mixes = if asked.is_empty() { WORKLOADS.into_iter().filter_map(Mix::of).collect() } else { asked };
    let mut cases_before = 0;
    of_each_study(&mixes).into_iter().try_for_each(|mixes| {
        cases_before += run_on_one_form(session, &mixes, cases_before)?;
        Ok(())
    })
}

/// Loads records, and offers the workloads of one study on them; tells how many cases that were.
fn run_on_one_form(session: &mut Session, mixes: &[&'static Mix], cases_before: u64) -> Result<u64> {
    let usual = session.scaled(&RATES_QUICK[..], &RATES[..]);
    let mut rates = if session.options.rates.is_empty() { usual.to_vec() } else { session.options.rates.clone() };
    rates.sort_unstable();
    let records = session.options.keys.unwrap_or(session.scaled(10_000, 100_000));
    let stored = Stored { layout: layout(session, mixes), records, cases_before };
    stored.tell(session);
    let mut cases = Vec::new();
    for protocol in session.all_protocols() {
        for mix in mixes {
            let case = Case::new().word(PROTOCOL, protocol.name()).word(WORKLOAD, mix.name);
            cases.extend(rates.iter().map(|rate| case.clone().number(TARGET, *rate as f64)));
        }
    }
    let carries = |session: &Session, contender: &Contender, case: &Case| carries(session, contender, case, &cases);
    for protocol in session.all_protocols() {
        let own = of(protocol, &cases);
        let fill = |session: &Session, server: &Running| stored.load(session, server, protocol);
        let servers = session.start_all(&own, carries, Session::settings, fill)?;
        // One by one: what has come of a rate decides who is asked for the next.
        for case in &own {
            offer(session, &servers, &stored, (case, &cases))?;
        }
    }
    Ok(cases.len() as u64)
}

/// Offers one rate to those that have carried all lower ones.
fn offer(session: &mut Session, servers: &[Running], stored: &Stored, (case, cases): (&Case, &[Case])) -> Result<()> {
    let carries = |session: &Session, server: &Running, case: &Case| carries(session, server, case, cases);
    session.grid(servers, std::slice::from_ref(case), carries, |session, server, case, round| {
        let rate = case.quantity(TARGET).unwrap_or(1.0);
        let pace = Pace::Open { rate, arrivals: session.options.arrivals };
        let shape = Shape { pace, ..session.usual_shape(PIPELINE) };
        stored.measure(session, server, (case, cases), &shape, round)
    })
}

/// Whether a server is to be asked: it knows the workload, and carried all lower rates.
fn carries(session: &Session, server: &impl Named, case: &Case, cases: &[Case]) -> bool {
    applies(session, server, case) && !is_saturated(session, server, case, cases)
}

/// Whether a server did not carry a lower rate of the same workload.
fn is_saturated(session: &Session, server: &impl Named, case: &Case, cases: &[Case]) -> bool {
    let rate = |case: &Case| case.quantity(TARGET).unwrap_or(0.0);
    let is_lower = |other: &&Case| other.without(TARGET) == case.without(TARGET) && rate(other) < rate(case);
    cases.iter().filter(is_lower).any(|lower| {
        let median = |figure: &str| session.median(server, lower, figure);
        // How much is due at a rate is random.
        let due = median("operations").zip(median("unanswered")).map(|(done, unanswered)| done + unanswered);
        let due_s = due.map(|due| due / session.measured_for().as_secs_f64());
        median(OPS.name).zip(due_s).is_some_and(|(carried, due)| carried < CARRIED * due)
    })
}
