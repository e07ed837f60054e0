//! Runs a load: one thread for each workload. Knows nothing of one thread's work.

use super::drive::{self, Driven};
use super::outcome::Outcome;
use super::plan::{Observer, Plan};
use super::workload::Workload;
use anyhow::{Context, Result, anyhow, bail};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs a load to its end, a thread for each workload, and gives the workloads back with what came of it.
///
/// # Errors
/// A wrong reply, a lost connection, a server that is silent for long, or an early stop.
pub fn run<W: Workload>(plan: &Plan<'_>, workloads: Vec<W>, observer: &mut dyn Observer) -> Result<(Outcome, Vec<W>)> {
    let threads = workloads.len();
    assert!(threads > 0 && plan.connections > 0 && plan.pipeline > 0, "a load has work to do");
    // A thread without a connection would have nothing to do.
    let threads = threads.min(plan.connections);
    let (ready, go) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    let failed = AtomicBool::new(false);
    let (observed, driven) = std::thread::scope(|scope| {
        let thread = |(index, workload)| {
            let (ready, go, failed) = (&ready, &go, &failed);
            scope.spawn(move || {
                let prepared = drive::prepare(plan, workload, index, threads);
                // Whether or not it is prepared, the others must not wait for this thread for ever.
                ready.wait();
                if prepared.is_err() {
                    failed.store(true, Ordering::Relaxed);
                }
                go.wait();
                let driven = prepared.and_then(|thread| thread.drive(failed));
                if driven.is_err() {
                    failed.store(true, Ordering::Relaxed);
                }
                driven
            })
        };
        let handles: Vec<_> = workloads.into_iter().take(threads).enumerate().map(thread).collect();
        ready.wait();
        let observed = observer.begins();
        if observed.is_err() {
            failed.store(true, Ordering::Relaxed);
        }
        go.wait();
        let join = |handle: std::thread::ScopedJoinHandle<'_, Result<Driven<W>>>| {
            handle.join().unwrap_or_else(|_| Err(anyhow!("a client thread panicked")))
        };
        let driven: Vec<Result<Driven<W>>> = handles.into_iter().map(join).collect();
        (observed, driven)
    });
    observed?;
    if plan.stop.load(Ordering::Relaxed) {
        bail!("stopped");
    }
    // A thread that gave up because another failed has nothing to say of its own.
    let mut whole = Vec::new();
    let mut gave_up = false;
    for thread in driven {
        match thread? {
            Driven::Whole { outcome, workload, connections } => whole.push((outcome, workload, connections)),
            Driven::GaveUp => gave_up = true,
        }
    }
    if gave_up {
        bail!("the load was given up");
    }
    observer.ended()?;
    let mut threads = whole.into_iter();
    let (mut sum, first, _connections) = threads.next().context("a load has a thread")?;
    let mut workloads = vec![first];
    for (outcome, workload, _connections) in threads {
        sum.add(&outcome);
        workloads.push(workload);
    }
    Ok((*sum, workloads))
}
