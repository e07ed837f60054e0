//! The thread that syncs while the writer goes on writing. Knows what it is given: a file and a position.

use super::shared::Shared;
use std::sync::atomic::Ordering;

/// Syncs what it is given until the writer has ended.
pub(super) fn run(shared: &Shared) {
    while let Some(job) = shared.wait_for_job() {
        let synced = job.file.sync();
        shared.counts.syncs.fetch_add(1, Ordering::Relaxed);
        // What the job found out is known before the job is gone: whoever waits for the latter relies on it.
        match synced {
            Ok(()) => {
                shared.synced(job.generation, job.position);
                job.file.forget(job.file_len);
            }
            Err(error) => shared.sync_failed(job.generation, &error),
        }
        shared.control().sync = None;
        shared.made_progress();
        shared.ring.nudge_consumer();
    }
}
