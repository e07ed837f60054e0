//! `weblog`: the log of a web server as records in a key-value store.

use super::experiment::{Experiment, Figure, MEAN, OPS, P99, Plot, Published, Scale};
use super::plain::{PROTOCOL, protocol, speaks};
use crate::dialects::{Binary, Dialect, Meta, Resp, Text};
use crate::load::Until;
use crate::packed::contents;
use crate::results::Case;
use crate::session::{Contender, Named, Reading, Running, Session, Shape};
use crate::target::Protocol;
use crate::workloads::{Log, Step, WebLog};
use anyhow::{Context, Result, bail};
use std::sync::Arc;

const RECORDS: &str = "records";
const STEP: &str = "step";
const TOOK: Figure = Figure { name: "took_s", heading: "all records in s" };

/// Insert, read, update, query, delete.
pub static WEBLOG: Experiment = Experiment {
    name: "weblog",
    title: "A web server's log",
    summary: "Each line of the log that --weblog names is one value: all are stored, read, changed (bytes + 1,000), searched \
              for status = 200 and bytes > 5,000 by reading everything and looking at it in the client, and deleted.",
    study: "ULB",
    axes: &[PROTOCOL, RECORDS, STEP],
    figures: &[TOOK, OPS, MEAN, P99, Figure { name: "matches", heading: "records found" }],
    plots: &[Plot::Lines {
        title: "Time for all records",
        x: RECORDS,
        x_scale: Scale::Log,
        y: TOOK,
        y_scale: Scale::Log,
    }],
    published: &[Published { what: "1 k, 10 k and 100 k records", figure: "times grow in proportion to the records" }],
    run,
};

static STEPS: [(&str, Step); 5] = [
    ("insert", Step::Insert),
    ("read", Step::Read),
    ("update", Step::Update),
    ("query in the client", Step::Query),
    ("delete", Step::Delete),
];

fn run(session: &mut Session) -> Result<()> {
    let Some(path) = session.options.weblog.clone() else {
        session.progress.say("weblog: left out: name a log with --weblog (a head, then lines of words parted by tabs)");
        return Ok(());
    };
    let text = String::from_utf8(contents(&path)?.1).with_context(|| path.display().to_string())?;
    let started: Vec<Contender> =
        session.contenders.iter().filter(|contender| matches!(contender, Contender::Program(_))).cloned().collect();
    for records in session.scaled(&[1_000, 10_000][..], &[1_000, 10_000, 100_000][..]) {
        let log = Arc::new(Log::read(&text, *records).with_context(|| path.display().to_string())?);
        for protocol in session.all_protocols() {
            for round in 0..session.rounds() {
                for contender in &started {
                    log_through(session, contender, protocol, &log, round)?;
                }
            }
        }
    }
    Ok(())
}

/// All steps on one server, each kept as a case of its own.
fn log_through(
    session: &mut Session,
    contender: &Contender,
    protocol: Protocol,
    log: &Arc<Log>,
    round: u64,
) -> Result<()> {
    let case = Case::new().word(PROTOCOL, protocol.name()).number(RECORDS, log.records() as f64);
    let cases: Vec<(Case, Step)> = STEPS.iter().map(|(name, step)| (case.clone().word(STEP, name), *step)).collect();
    if !speaks(session, contender, &case) || cases.iter().all(|(case, _)| !session.wants(case)) {
        return Ok(());
    }
    session.progress.add_steps(cases.len());
    let server = session.start(contender, &session.settings()).with_context(|| contender.name())?;
    // A step that fails leaves records that the next ones fail over, too, and each says so.
    let mut stored = Arc::clone(log);
    for (case, step) in &cases {
        session.one(contender, case, round, |session| measured(session, &server, case, &stored, *step))?;
        if *step == Step::Update {
            stored = Arc::new(stored.updated());
        }
    }
    Ok(())
}

fn measured(session: &Session, server: &Running, case: &Case, log: &Arc<Log>, step: Step) -> Result<Reading> {
    let protocol = protocol(case)?;
    match protocol {
        Protocol::Resp => measured_in(Resp, session, server, protocol, log, step),
        Protocol::Text => measured_in(Text, session, server, protocol, log, step),
        Protocol::Meta => measured_in(Meta, session, server, protocol, log, step),
        Protocol::Binary => measured_in(Binary, session, server, protocol, log, step),
    }
}

fn measured_in<D: Dialect>(
    dialect: D,
    session: &Session,
    server: &Running,
    protocol: Protocol,
    log: &Arc<Log>,
    step: Step,
) -> Result<Reading> {
    let target = server.target(protocol).context("the server speaks the case's language")?;
    let shape = Shape { until: Until::Exhausted, ..session.usual_shape(1) };
    let threads = shape.threads.min(shape.connections) as u64;
    let part = |thread: u64| log.records() * thread / threads..log.records() * (thread + 1) / threads;
    let workloads = (0..threads).map(|thread| WebLog::new(dialect, Arc::clone(log), step, part(thread))).collect();
    let (measured, workloads) = session.load(server, &target, &shape, workloads)?;
    let mut reading = measured.reading().figure("took_s", measured.outcome.elapsed.as_secs_f64());
    if step == Step::Query {
        let found: u64 = workloads.iter().map(WebLog::matches).sum();
        if found != log.matches() {
            bail!("the query found {found} records, not {}", log.matches());
        }
        reading = reading.figure("matches", found as f64);
    }
    Ok(reading)
}
