//! `fragmentation`: a cache that is full, and values that change their length.

use super::experiment::{CLIENT_BUSY, Experiment, Figure, OPS, P95, P99, Plot, REFUSED_FILLS, SERVER_CPU, Setting};
use super::plain::{OPERATION, PROTOCOL, case, protocol, speaks};
use crate::generators::{Distribution, Inserted, KeyChooser};
use crate::machine::process::resident_bytes;
use crate::peers::{Family, Settings, own_figures};
use crate::results::Case;
use crate::session::{Contender, Reading, Running, Session, Shape, in_turn};
use crate::values::{Lengths, Values};
use crate::workloads::{Keys, Misses, Mix, Spec};
use anyhow::{Context, Result};
use std::sync::Arc;

const PHASE: &str = OPERATION;
const OVER: Figure = Figure { name: "memory_over_limit", heading: "memory / limit" };
const HITS: Figure = Figure { name: "hit_ratio", heading: "hit ratio" };

/// What the server itself has counted, from the phase's first request on; and while it was measured.
const EVICTED: Figure = Figure { name: "evicted_keys", heading: "evicted keys" };
const EVICTIONS: Figure = Figure { name: "evictions_op", heading: "evictions/op" };

/// The value sizes of each phase. The keys are others in each, so that the old ones must make room.
static PHASES: [(&str, Lengths); 4] = [
    ("100 to 300 bytes", Lengths { min: 100, max: 300 }),
    ("then 1 to 3 KB", Lengths { min: 1_000, max: 3_000 }),
    ("then 60 to 180 bytes", Lengths { min: 60, max: 180 }),
    ("then 300 to 900 bytes", Lengths { min: 300, max: 900 }),
];

/// A full cache whose values change.
pub static FRAGMENTATION: Experiment = Experiment {
    name: "fragmentation",
    title: "A full cache whose values change their length",
    summary: "A server with a memory limit serves gets by Zipf's law and is given what it misses; then the values become \
              longer, shorter, longer. The keys of each phase would fill it twice. Over memcached's protocols the limit is for items \
              alone, as memcached's is.",
    study: "what the studies wished for",
    databases: false,
    depends_on: &[Setting::Seconds, Setting::Connections],
    axes: &[PROTOCOL, PHASE],
    figures: &[HITS, OVER, EVICTED, EVICTIONS, REFUSED_FILLS, OPS, P95, P99, SERVER_CPU, CLIENT_BUSY],
    plots: &[
        Plot::Bars { title: "Hit ratio", each: Some(PROTOCOL), y: HITS },
        Plot::Bars { title: "Resident memory over the limit", each: Some(PROTOCOL), y: OVER },
    ],
    published: &[],
    limits: &[],
    rivals: None,
    run,
};

fn run(session: &mut Session) -> Result<()> {
    let started = session.started();
    let limit: u64 = session.scaled(16 << 20, 128 << 20);
    for protocol in session.all_protocols() {
        let cases: Vec<Case> = PHASES.iter().map(|(name, _)| case(protocol, name)).collect();
        for round in 0..session.rounds() {
            for contender in in_turn(&started, round) {
                if !speaks(session, contender, &case(protocol, "")) {
                    continue;
                }
                session.phases(
                    contender,
                    &cases,
                    round,
                    |session| Settings {
                        memory_bytes: Some(limit),
                        // As in `eviction`.
                        memory_for_items: protocol.is_memcache(),
                        eviction: eviction(contender),
                        ..session.settings()
                    },
                    |session, server, case, index| {
                        phase(session, server, case, PHASES[index].1, limit, index as u64, round)
                    },
                )?;
            }
        }
    }
    Ok(())
}

/// What each evicts by: all are asked for their own best general policy.
fn eviction(contender: &Contender) -> Option<&'static str> {
    match contender {
        Contender::Program(program) if program.family == Family::Memcached => None,
        _ => Some("allkeys-lru"),
    }
}

fn phase(
    session: &Session,
    server: &Running,
    case: &Case,
    lengths: Lengths,
    limit: u64,
    index: u64,
    round: u64,
) -> Result<Reading> {
    let mean = (lengths.min + lengths.max) as u64 / 2;
    let keys = 2 * limit / mean;
    let chooser = KeyChooser::new(Distribution::Zipfian(0.99), &Arc::new(Inserted::new(keys)), 0);
    let values = Values::new(lengths.max);
    let shape = session.usual_shape(16);
    let spec = |seed: u64| {
        let (chooser, values) = (chooser.clone(), values.clone());
        move |thread: usize| Spec {
            mix: Mix::GET,
            keys: Keys::Chosen(chooser.clone()),
            // No key is one of the phases before: their values must make room.
            first: index << 32,
            values: values.clone(),
            lengths,
            expire_s: 0,
            keys_a_get: 1,
            misses: Misses::Fill,
            seed: seed << 32 | thread as u64,
        }
    };
    let before = evicted(server, case)?;
    // It is filled first: as many requests as keys.
    let fill = Shape { until: crate::load::Until::Operations(keys), ..shape };
    session.key_value(server, protocol(case)?, &fill, spec(8 * round + 2 * index))?;
    let filled = evicted(server, case)?;
    let (measured, tally) = session.key_value(server, protocol(case)?, &shape, spec(8 * round + 2 * index + 1))?;
    let resident = resident_bytes(server.pid().context("a started server has a process")?)?;
    let after = evicted(server, case)?;
    let gets = (tally.hits + tally.misses).max(1) as f64;
    Ok(measured
        .reading()
        .figure(EVICTED.name, after.saturating_sub(before) as f64)
        .figure(EVICTIONS.name, after.saturating_sub(filled) as f64 / measured.outcome.operations.max(1) as f64)
        .figure(REFUSED_FILLS.name, tally.refused_fills as f64)
        .figure("hit_ratio", tally.hits as f64 / gets)
        .figure("memory_over_limit", resident as f64 / limit as f64))
}

/// How many keys a server says that it has evicted since its start.
fn evicted(server: &Running, case: &Case) -> Result<u64> {
    let target = server.target(protocol(case)?).context("the server speaks the case's language")?;
    let figures = own_figures(&target)?;
    // The last is what memcached throws away where it moves pages to another size.
    const NAMES: [&str; 3] = ["evicted_keys", "evictions", "slab_reassign_evictions_nomem"];
    let said: Vec<&String> =
        figures.iter().filter(|(name, _)| NAMES.contains(&name.as_str())).map(|(_, number)| number).collect();
    anyhow::ensure!(!said.is_empty(), "the server does not say what it has evicted");
    said.iter().map(|number| number.parse::<u64>().with_context(|| format!("'{number}' evicted keys"))).sum()
}
