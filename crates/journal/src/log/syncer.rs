//! The thread that syncs while the writer goes on writing. Knows what it is given: a file and a position.

use super::shared::{Job, Shared, SyncJob};
use std::sync::atomic::Ordering;

/// Does what it is given until the writer has ended.
pub(super) fn run(shared: &Shared) {
    while let Some(job) = shared.wait_for_job() {
        match job {
            Job::Sync(job) => sync(shared, &job),
            Job::Forget(job) => job.file.forget(job.file_len),
        }
    }
}

fn sync(shared: &Shared, job: &SyncJob) {
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
