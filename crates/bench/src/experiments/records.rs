//! `records`: how loading and using more and more records goes.

use super::experiment::{CLIENT_BUSY, Experiment, Figure, OPS, Plot, Published, SERVER_CPU, Scale, Setting};
use super::on_spark::on_spark;
use super::plain::{PROTOCOL, protocol, speaks};
use super::ycsb::{load, tell_layout, transact};
use crate::peers::Spark;
use crate::results::Case;
use crate::session::{Contender, Reading, Session};
use crate::workloads::ycsb::{Layout, Mix, Work};
use anyhow::{Context, Result};

const RECORDS: &str = "records";
const RDD: &str = "RDD";
const RDD_BY_KEY: &str = "RDD, by key";
const LOAD: Figure = Figure { name: "load_s", heading: "loaded in s" };
const INSERT_CPU: Figure = Figure { name: "insert_server_cpu_us", heading: "server CPU µs/insert" };
const READ: Figure = Figure { name: "read_mean_us", heading: "read mean µs" };

/// Load time and latency against the number of records.
pub static RECORDS_EXPERIMENT: Experiment = Experiment {
    name: "records",
    title: "More and more records",
    summary: "YCSB's records are loaded into a fresh server, then workload A runs on them. Beside it, where pyspark is installed, \
              objects of that length in an RDD, one looked for at a time: among all, and where they lie by key.",
    study: "ULB; in-memory data management (one object of an RDD)",
    databases: true,
    depends_on: &[Setting::Seconds, Setting::Connections, Setting::ClientProcesses, Setting::Updates],
    axes: &[PROTOCOL, RECORDS],
    figures: &[
        LOAD,
        Figure { name: "insert_mean_us", heading: "insert mean µs" },
        INSERT_CPU,
        OPS,
        READ,
        Figure { name: "update_mean_us", heading: "update mean µs" },
        SERVER_CPU,
        Figure { name: "server_memory_mb", heading: "server MB" },
        CLIENT_BUSY,
    ],
    plots: &[
        Plot::Lines { title: "Time to load", x: RECORDS, x_scale: Scale::Log, y: LOAD, y_scale: Scale::Log },
        Plot::Lines {
            title: "Mean latency of a read",
            x: RECORDS,
            x_scale: Scale::Log,
            y: READ,
            y_scale: Scale::Linear,
        },
    ],
    published: &[Published {
        what: "1 k to 500 k records",
        figure: "load time grows in proportion, latency stays flat",
        ours: None,
    }],
    limits: &[],
    rivals: None,
    run,
};

fn run(session: &mut Session) -> Result<()> {
    tell_layout(session, &layout(session));
    let counts = session.scaled(&[1e3, 1e4][..], &[1e3, 1e4, 1e5, 5e5][..]);
    let mut cases = Vec::new();
    for protocol in session.all_protocols() {
        let case = Case::new().word(PROTOCOL, protocol.name());
        cases.extend(counts.iter().map(|records| case.clone().number(RECORDS, *records)));
    }
    // Somebody else's server is not fresh.
    let started = session.started();
    session.grid(&started, &cases, speaks, measured)?;
    for by_key in [false, true] {
        for records in counts {
            let case = Case::new().word(PROTOCOL, if by_key { RDD_BY_KEY } else { RDD }).number(RECORDS, *records);
            on_spark(session, &case, |session, spark| looked_up(session, spark, *records as u64, by_key))?;
        }
    }
    Ok(())
}

/// The form of the records.
fn layout(session: &Session) -> Layout {
    Layout::new(session.options.record_fields.unwrap_or(10), session.options.field_bytes.unwrap_or(100))
}

/// One object at a time out of an RDD.
fn looked_up(session: &Session, spark: &Spark, records: u64, by_key: bool) -> Result<Reading> {
    let bytes = layout(session).record_len();
    let threads = session.server_threads() + session.client_threads();
    let lasts = session.measured_for();
    let looked = spark.lookups((records, bytes), by_key, lasts, threads, session.scratch(), &session.interrupt)?;
    let mean_s = looked.took_s.iter().sum::<f64>() / looked.took_s.len().max(1) as f64;
    let cpu_us = looked.used.total.as_secs_f64() * 1e6 / looked.looks.max(1) as f64;
    let reading = Reading::default().figure("load_s", looked.load_s).figure(READ.name, mean_s * 1e6);
    let reading = reading.figure(SERVER_CPU.name, cpu_us);
    Ok(reading.figure(OPS.name, 1.0 / mean_s.max(f64::MIN_POSITIVE)))
}

fn measured(session: &Session, contender: &Contender, case: &Case, round: u64) -> Result<Reading> {
    let layout = layout(session);
    let (protocol, records) = (protocol(case)?, case.quantity(RECORDS).context("the case has its records")? as u64);
    let server = session.start(contender, &session.settings())?;
    let loaded = load(session, &server, protocol, &layout, records)?;
    let mix = Mix::of("A").context("workload A is known")?;
    let work = Work::Run { mix, records, first_new: records, expected_new: 0, seed: round };
    let used = transact(session, &server, protocol, &layout, &session.usual_shape(1), work)?;
    let inserts = loaded.outcome.latency().summary();
    Ok(used
        .reading()
        .known(INSERT_CPU.name, loaded.reading().figures.get(SERVER_CPU.name).copied())
        .figure("load_s", loaded.outcome.elapsed.as_secs_f64())
        .figure("load_ops_s", loaded.outcome.throughput())
        .figure("insert_mean_us", inserts.mean_us))
}
