//! `weblog`: the log of a web server as records in a key-value store.

use super::experiment::{
    CLIENT_BUSY, Experiment, Figure, MEAN, OPS, P95, P99, Plot, Published, SERVER_CPU, Scale, Setting,
};
use super::plain::{PROTOCOL, protocol, speaks};
use crate::dialects::postgres::TABLE;
use crate::dialects::{Binary, Dialect, Meta, Postgres, Resp, Text};
use crate::load::Until;
use crate::load::opening::query;
use crate::machine::cpu::Used;
use crate::packed::contents;
use crate::peers::postgres;
use crate::results::Case;
use crate::session::{Contender, Reading, Running, Session, Shape, in_turn};
use crate::target::Protocol;
use crate::workloads::{Log, Step, WebLog};
use anyhow::{Context, Result, bail};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenon_client::Value;

const RECORDS: &str = "records";
const STEP: &str = "step";
const TOOK: Figure = Figure { name: "took_s", heading: "all records in s" };

/// Insert, read, update, query, delete.
pub static WEBLOG: Experiment = Experiment {
    name: "weblog",
    title: "A web server's log",
    summary: "Each line of the log that --weblog names is one value: all are stored, read, changed (bytes + 1,000), searched \
              for status = 200 and bytes > 5,000, and deleted. The search reads everything and looks at it in the client, as \
              the study had it; and it is made inside the server, where that can be: by a script over RESP, in SQL. Then an \
              operation is a record looked at.",
    study: "ULB",
    databases: true,
    depends_on: &[Setting::Connections, Setting::WebLog],
    axes: &[PROTOCOL, RECORDS, STEP],
    figures: &[
        TOOK,
        OPS,
        MEAN,
        P95,
        P99,
        SERVER_CPU,
        Figure { name: "matches", heading: "records found" },
        CLIENT_BUSY,
    ],
    plots: &[Plot::Lines {
        title: "Time for all records",
        x: RECORDS,
        x_scale: Scale::Log,
        y: TOOK,
        y_scale: Scale::Log,
    }],
    published: &[Published {
        what: "1 k, 10 k and 100 k records",
        figure: "times grow in proportion to the records",
        ours: None,
    }],
    limits: &[],
    rivals: None,
    run,
};

/// What is done; without a step of the client's, the server searches.
static STEPS: [(&str, Option<Step>); 6] = [
    ("insert", Some(Step::Insert)),
    ("read", Some(Step::Read)),
    ("update", Some(Step::Update)),
    ("query in the client", Some(Step::Query)),
    ("query in the server", None),
    ("delete", Some(Step::Delete)),
];

const SCRIPT: &str = include_str!("weblog.lua");

/// The same search over the table of plain values.
const SQL: &str = "WITH records AS (
  SELECT regexp_match(convert_from(value, 'UTF8'), E'\\t(\\\\d+)\\t(\\\\d+)$') AS words FROM tenon_bench
) SELECT count(*) FROM records WHERE words[1] = '200' AND words[2]::bigint > 5000";

fn run(session: &mut Session) -> Result<()> {
    let Some(path) = session.options.weblog.clone() else {
        session.lacks("name a log with --weblog (a head, then lines of words parted by tabs)");
        return Ok(());
    };
    session.measured_on_file("log", &path)?;
    let text = String::from_utf8(contents(&path)?.1).with_context(|| path.display().to_string())?;
    let started = session.started();
    for records in session.scaled(&[1_000, 10_000][..], &[1_000, 10_000, 100_000][..]) {
        let log = Arc::new(Log::read(&text, *records).with_context(|| path.display().to_string())?);
        for protocol in session.all_protocols() {
            for round in 0..session.rounds() {
                for contender in in_turn(&started, round) {
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
    let searches = matches!(protocol, Protocol::Resp | Protocol::Postgres);
    let steps = STEPS.iter().filter(|(_, step)| step.is_some() || searches);
    let cases: Vec<(Case, Option<Step>)> = steps.map(|(name, step)| (case.clone().word(STEP, name), *step)).collect();
    if !speaks(session, contender, &case) {
        return Ok(());
    }
    let (cases, steps): (Vec<Case>, Vec<Option<Step>>) = cases.into_iter().unzip();
    let mut stored = Arc::clone(log);
    session.phases(contender, &cases, round, Session::settings, |session, server, case, index| {
        session.vacuum(server, protocol, TABLE)?;
        let Some(step) = steps[index] else { return searched(server, protocol, &stored) };
        let reading = measured(session, server, case, &stored, step)?;
        if step == Step::Update {
            stored = Arc::new(stored.updated());
        }
        Ok(reading)
    })
}

/// Searches inside the server.
fn searched(server: &Running, protocol: Protocol, log: &Log) -> Result<Reading> {
    let target = server.target(protocol).context("the server speaks the case's language")?;
    // The connection is there before the clock starts, as those of the other steps are.
    let mut ask: Box<dyn FnMut() -> Result<u64>> = if protocol == Protocol::Postgres {
        let mut connection = postgres::connect(&target)?;
        Box::new(move || {
            let rows = query(&mut connection, SQL)?;
            rows.first().and_then(|count| count.parse().ok()).context("the query gives no count")
        })
    } else {
        let mut resp = tenon_client::Resp::over(target.connect(Some(Duration::from_secs(600)))?);
        let records = log.records().to_string();
        Box::new(move || match resp.call(&[b"EVAL", SCRIPT.as_bytes(), b"0", records.as_bytes()])? {
            Value::Int(found) => Ok(u64::try_from(found).unwrap_or(u64::MAX)),
            other => bail!("the script was answered by {other:?}"),
        })
    };
    let used = || server.pid().map(Used::of).transpose();
    let (used_before, begin) = (used()?, Instant::now());
    let found = ask()?;
    let took = begin.elapsed();
    let cpu = used()?.zip(used_before).map(|(now, before)| now.since(before).total);
    expect(found, log)?;
    let each_us = |all: Duration| all.as_secs_f64() * 1e6 / log.records() as f64;
    let reading = Reading::default().figure("took_s", took.as_secs_f64()).figure("matches", found as f64);
    Ok(reading.known(SERVER_CPU.name, cpu.map(each_us)))
}

fn expect(found: u64, log: &Log) -> Result<()> {
    if found != log.matches() {
        bail!("the query found {found} records, not {}", log.matches());
    }
    Ok(())
}

fn measured(session: &Session, server: &Running, case: &Case, log: &Arc<Log>, step: Step) -> Result<Reading> {
    let protocol = protocol(case)?;
    match protocol {
        Protocol::Resp | Protocol::RespTls => measured_in(Resp, session, server, protocol, log, step),
        Protocol::Text => measured_in(Text, session, server, protocol, log, step),
        Protocol::Meta => measured_in(Meta, session, server, protocol, log, step),
        Protocol::Binary => measured_in(Binary, session, server, protocol, log, step),
        Protocol::Postgres => measured_in(Postgres, session, server, protocol, log, step),
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
    let crew = shape.crew();
    let part = |thread| crew.share_of(log.records(), thread);
    let workloads = (0..crew.threads).map(|thread| WebLog::new(dialect, Arc::clone(log), step, part(thread))).collect();
    let (measured, workloads) = session.load(server, &target, &shape, workloads)?;
    let mut reading = measured.reading().figure("took_s", measured.outcome.elapsed.as_secs_f64());
    if step == Step::Query {
        let found: u64 = workloads.iter().map(WebLog::matches).sum();
        expect(found, log)?;
        reading = reading.figure("matches", found as f64);
    }
    Ok(reading)
}
