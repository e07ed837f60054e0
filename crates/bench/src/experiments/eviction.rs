//! `eviction`: recorded requests of real caches, with too little memory for all they name.

use super::experiment::{CLIENT_BUSY, Experiment, Figure, OPS, Plot, REFUSED_FILLS, SERVER_CPU, Setting};
use super::plain::{PROTOCOL, protocol, speaks};
use crate::dialects::{Binary, Dialect, Meta, Postgres, Resp, Text};
use crate::load::Until;
use crate::machine::process::resident_bytes;
use crate::packed::names;
use crate::peers::{Family, Settings};
use crate::results::Case;
use crate::session::{Contender, Reading, Running, Session, Shape};
use crate::target::Protocol;
use crate::traces::{FORMS, Trace, best, read};
use crate::values::Values;
use crate::workloads::Replay;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const TRACE: &str = "trace";
const POLICY: &str = "policy";
const LIMIT: &str = "limit % of footprint";
const HITS: Figure = Figure { name: "hit_ratio", heading: "hit ratio" };
const BYTE_HITS: Figure = Figure { name: "byte_hit_ratio", heading: "of bytes" };

/// Hit ratios on traces.
pub static EVICTION: Experiment = Experiment {
    name: "eviction",
    title: "What a cache keeps",
    summary: "Recorded requests are replayed, a get each, and after a miss a set, against servers whose memory is limited to \
              a share of what the trace names (in whole MiB, and the same for all; memcached's protocols are served with a limit \
              for items alone, as memcached's is). A set that is refused for want of memory is counted, and the request stays a miss. Beside them, Belady's rule, which knows \
              the future and needs no memory but the objects' own.",
    study: "what the studies wished for",
    databases: false,
    depends_on: &[Setting::ConnectionsOf(CONNECTIONS), Setting::OneThread],
    axes: &[PROTOCOL, TRACE, LIMIT, POLICY],
    figures: &[
        HITS,
        Figure { name: "belady_hit_ratio", heading: "Belady" },
        BYTE_HITS,
        Figure { name: "belady_byte_hit_ratio", heading: "Belady of bytes" },
        Figure { name: "memory_over_limit", heading: "memory / limit" },
        REFUSED_FILLS,
        OPS,
        SERVER_CPU,
        CLIENT_BUSY,
    ],
    plots: &[Plot::Bars { title: "Hit ratio", each: Some(TRACE), y: HITS }],
    published: &[],
    limits: &[],
    rivals: None,
    run,
};

/// What each kind of server can evict by.
fn policies(family: Family) -> &'static [&'static str] {
    match family {
        Family::Memcached => &["lru"],
        Family::Postgres => &[],
        Family::Redis => &["allkeys-lru", "allkeys-lfu"],
        Family::Tenon => &["allkeys-lru", "allkeys-lfu", "allkeys-tenon"],
    }
}

/// Requests in flight together: one after another would measure latency, many would lose the trace's order.
const CONNECTIONS: usize = 8;

/// So many requests of each trace are replayed in a quick run.
const REQUESTS_QUICK: usize = 50_000;

fn run(session: &mut Session) -> Result<()> {
    let paths = paths(session)?;
    if paths.is_empty() {
        session.lacks("name a trace, or a directory of traces, with --traces");
        return Ok(());
    }
    let started = session.started();
    let shares = session.scaled(&[30.0][..], &[1.0, 10.0, 30.0][..]);
    let names = names(&paths, &FORMS)?;
    for (path, name) in paths.into_iter().zip(names) {
        let trace = read(&path)?;
        session.measured_on_file("trace", &path)?;
        let trace = if session.options.quick { trace.beginning(REQUESTS_QUICK) } else { trace };
        let trace = Arc::new(trace);
        let largest = trace.sizes.iter().copied().max().unwrap_or(0) as usize;
        let values = Values::new(largest);
        let mut cases = Vec::new();
        let mut bounds = BTreeMap::new();
        for share in shares {
            let limit = limit(&trace, *share);
            bounds.insert(limit, best(&trace, limit));
            for protocol in session.all_protocols() {
                for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-tenon", "lru"] {
                    let case = Case::new().word(PROTOCOL, protocol.name()).word(TRACE, &name).number(LIMIT, *share);
                    cases.push(case.word(POLICY, policy));
                }
            }
        }
        session.grid(&started, &cases, applies, |session, contender, case, _| {
            let limit = limit(&trace, case.quantity(LIMIT).context("the case has its limit")?);
            let policy = case.at(POLICY).map(ToString::to_string).unwrap_or_default();
            let eviction = (policy != "lru").then_some(policy.as_str());
            let settings = Settings {
                memory_bytes: Some(limit),
                // As the peers that speak it do, and `tenon memcached`.
                memory_for_items: protocol(case)?.is_memcache(),
                eviction,
                value_len_max: largest,
                ..session.settings()
            };
            let server = session.start(contender, &settings)?;
            let reading = replay(session, &server, protocol(case)?, &trace, &values, limit)?;
            let bound = bounds.get(&limit).copied().unwrap_or_default();
            Ok(reading.figure("belady_hit_ratio", bound.requests).figure("belady_byte_hit_ratio", bound.bytes))
        })?;
    }
    Ok(())
}

fn applies(session: &Session, contender: &Contender, case: &Case) -> bool {
    let policy = case.at(POLICY).map(ToString::to_string).unwrap_or_default();
    let Contender::Program(program) = contender else { return false };
    speaks(session, contender, case) && policies(program.family).contains(&policy.as_str())
}

/// A share of the footprint, in whole MiB, which is what memcached can be told.
fn limit(trace: &Trace, per_cent: f64) -> u64 {
    let bytes = trace.footprint() as f64 * per_cent / 100.0;
    ((bytes / f64::from(1 << 20)).ceil().max(1.0) as u64) << 20
}

fn replay(
    session: &Session,
    server: &Running,
    protocol: Protocol,
    trace: &Arc<Trace>,
    values: &Values,
    limit: u64,
) -> Result<Reading> {
    match protocol {
        Protocol::Resp | Protocol::RespTls => replay_in(Resp, session, server, protocol, trace, values, limit),
        Protocol::Text => replay_in(Text, session, server, protocol, trace, values, limit),
        Protocol::Meta => replay_in(Meta, session, server, protocol, trace, values, limit),
        Protocol::Binary => replay_in(Binary, session, server, protocol, trace, values, limit),
        Protocol::Postgres => replay_in(Postgres, session, server, protocol, trace, values, limit),
    }
}

fn replay_in<D: Dialect>(
    dialect: D,
    session: &Session,
    server: &Running,
    protocol: Protocol,
    trace: &Arc<Trace>,
    values: &Values,
    limit: u64,
) -> Result<Reading> {
    let target = server.target(protocol).context("the server speaks the case's language")?;
    // One thread, so that the requests keep their order.
    let shape = Shape { connections: CONNECTIONS, threads: 1, until: Until::Exhausted, ..session.usual_shape(1) };
    let workload = Replay::new(dialect, Arc::clone(trace), values.clone());
    let (measured, workloads) = session.load(server, &target, &shape, vec![workload])?;
    let replayed = workloads.first().context("the workload comes back")?;
    let hits = replayed.hits();
    if replayed.left() > 0 {
        bail!("{} requests of the trace were not sent", replayed.left());
    }
    let resident = resident_bytes(server.pid().context("a started server has a process")?)?;
    Ok(measured
        .reading()
        .figure("hit_ratio", hits.requests)
        .figure("byte_hit_ratio", hits.bytes)
        .figure(REFUSED_FILLS.name, replayed.refused_fills() as f64)
        .figure("memory_over_limit", resident as f64 / limit as f64))
}

/// The traces that were asked for, those of a directory by their names.
fn paths(session: &Session) -> Result<Vec<PathBuf>> {
    let is_trace = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        FORMS.iter().any(|form| name.ends_with(form) || name.contains(&format!("{form}.")))
    };
    let mut paths = Vec::new();
    for asked in &session.options.traces {
        if asked.is_dir() {
            let entries = std::fs::read_dir(asked).with_context(|| asked.display().to_string())?;
            paths.extend(entries.flatten().map(|entry| entry.path()).filter(|path| is_trace(path)));
        } else if asked.exists() {
            paths.push(asked.clone());
        } else {
            bail!("there is no {}", asked.display());
        }
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}
