//! One rewrite, as those see it who may want it stopped. Knows no file.

use crate::snapshot::Snapshot;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a rewrite is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It makes the log shorter, or a file of data where there is no log.
    #[default]
    Shorten,
    /// The log begins with it.
    Begin,
}

/// One rewrite. Whoever stops it need not wait for it: its thread finds out by itself.
#[derive(Default)]
pub(super) struct RewriteTask {
    pub(super) purpose: Purpose,
    is_stopped: AtomicBool,
    /// What it writes, once it does.
    snapshot: Mutex<Option<Arc<Snapshot>>>,
}

impl std::fmt::Debug for RewriteTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RewriteTask").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

impl RewriteTask {
    pub(super) fn new(purpose: Purpose) -> RewriteTask {
        RewriteTask { purpose, ..RewriteTask::default() }
    }

    /// Has it end without a result, as soon as it can.
    pub(super) fn stop(&self) {
        let snapshot = self.snapshot.lock();
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(snapshot) = &*snapshot {
            snapshot.cancel();
        }
    }

    /// Whether somebody wants it to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Notes what it writes.
    pub(super) fn writes(&self, snapshot: &Arc<Snapshot>) {
        let mut current = self.snapshot.lock();
        // It may have been stopped since it was begun.
        if self.is_stopped() {
            snapshot.cancel();
        }
        *current = Some(Arc::clone(snapshot));
    }
}
