//! The thread that syncs while the writer goes on writing. Knows what it is given: a file and a position.

use super::shared::{Shared, SyncJob};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Syncs what it is given until the writer has ended.
pub(super) fn run(shared: &Shared) {
    while let Some(job) = next(shared) {
        let synced = job.file.sync();
        shared.counts.syncs.fetch_add(1, Ordering::Relaxed);
        // What the job found out is known before the job is gone: whoever waits for the latter relies on it.
        match synced {
            Ok(()) => shared.synced(job.generation, job.position),
            Err(error) => shared.sync_failed(job.generation, &error),
        }
        shared.control().sync = None;
        shared.made_progress();
        shared.ring.nudge_consumer();
    }
}

fn next(shared: &Shared) -> Option<SyncJob> {
    let mut control = shared.control();
    loop {
        if control.sync.is_some() {
            return control.sync.clone();
        }
        if control.ended {
            return None;
        }
        control = shared.wait_for_progress(control, Duration::from_secs(3600));
    }
}
