//! One rewrite, as those see it who may want it stopped. Knows no file.

use crate::snapshot::Snapshot;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenon_persist::aof::AppendOnly;

/// One rewrite. Whoever stops it need not wait for it: its thread finds out by itself.
#[derive(Default)]
pub(super) struct RewriteTask {
    is_stopped: AtomicBool,
    /// What it writes, once it does.
    snapshot: Mutex<Option<Arc<Snapshot>>>,
    /// Whose files it writes, once it does.
    files: Mutex<Option<Arc<AppendOnly>>>,
}

impl std::fmt::Debug for RewriteTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RewriteTask").field("is_stopped", &self.is_stopped).finish_non_exhaustive()
    }
}

impl RewriteTask {
    /// Has it end without a result, as soon as it can.
    pub(super) fn stop(&self) {
        let snapshot = self.snapshot.lock();
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(snapshot) = &*snapshot {
            snapshot.cancel();
        }
    }

    /// Has it end, and never change the list of files again: somebody else begins a log with it.
    pub(super) fn make_way(&self) {
        let files = self.files.lock();
        self.stop();
        if let Some(files) = &*files {
            files.retire();
        }
    }

    /// Whether somebody wants it to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Notes whose files it writes.
    pub(super) fn writes_files_of(&self, append_only: &Arc<AppendOnly>) {
        let mut files = self.files.lock();
        // It may have had to make way before it came to that.
        if self.is_stopped() {
            append_only.retire();
        }
        *files = Some(Arc::clone(append_only));
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
