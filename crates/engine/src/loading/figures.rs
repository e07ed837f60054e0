//! What is known of the data that is being loaded, or was loaded last. Knows no file.

use super::crew::Job;
use super::lanes::Lanes;
use crate::engine::Engine;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What INFO tells of loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// When it began, in milliseconds since the UNIX epoch.
    pub started_ms: u64,
    /// Bytes that there are to load, as far as that is known.
    pub total_bytes: u64,
    /// Bytes that were read.
    pub loaded_bytes: u64,
    /// Bytes of memory that the server had in use which wrote the file.
    pub writer_memory: u64,
}

impl Figures {
    /// How much of it was read, in hundredths.
    pub fn percent(&self) -> f64 {
        if self.total_bytes == 0 { 0.0 } else { self.loaded_bytes as f64 * 100.0 / self.total_bytes as f64 }
    }

    /// Seconds that it will go on, as things went so far.
    pub fn seconds_left(&self, now_ms: u64) -> u64 {
        let elapsed_ms = now_ms.saturating_sub(self.started_ms);
        let left = self.total_bytes.saturating_sub(self.loaded_bytes);
        if self.loaded_bytes == 0 {
            return 1;
        }
        (u128::from(elapsed_ms) * u128::from(left) / u128::from(self.loaded_bytes) / 1_000) as u64
    }
}

/// Data that comes from files.
#[derive(Default)]
pub struct Loading {
    started_ms: AtomicU64,
    total_bytes: AtomicU64,
    loaded_bytes: AtomicU64,
    writer_memory: AtomicU64,
    /// Keys that the last file had.
    pub keys_loaded: AtomicU64,
    /// Keys that it had beside these, past their deadlines.
    pub keys_expired: AtomicU64,
    /// Whether what is there is on its way out and in again.
    is_partial: AtomicBool,
    /// What workers take part in when they tick.
    pub(super) job: Mutex<Option<Arc<Job>>>,
    /// The same for the commands of a log.
    pub(super) lanes: Mutex<Option<Arc<Lanes>>>,
}

impl fmt::Debug for Loading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loading").finish_non_exhaustive()
    }
}

impl Loading {
    /// What was read so far.
    pub fn figures(&self) -> Figures {
        Figures {
            started_ms: self.started_ms.load(Ordering::Relaxed),
            total_bytes: self.total_bytes.load(Ordering::Relaxed),
            loaded_bytes: self.loaded_bytes.load(Ordering::Relaxed),
            writer_memory: self.writer_memory.load(Ordering::Relaxed),
        }
    }

    /// Notes how many bytes the server had in use that wrote the file.
    pub(super) fn set_writer_memory(&self, bytes: u64) {
        self.writer_memory.store(bytes, Ordering::Relaxed);
    }

    /// Whether what is there is on its way out and in again: no snapshot may begin. A start is not meant, whose log may begin with
    /// what it has just loaded. Who asks with all shards locked sees it as soon as a key is gone.
    pub(crate) fn is_partial(&self) -> bool {
        self.is_partial.load(Ordering::SeqCst)
    }

    /// Notes that so many more bytes were read.
    pub(crate) fn add_loaded_bytes(&self, bytes: u64) {
        self.loaded_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// While it lives the data of a server that runs is only a part of itself, and no snapshot begins: one for the log would put that
/// part in the place of all records.
#[must_use = "snapshots may begin when this goes"]
pub(super) struct Partial<'a>(&'a Loading);

impl Drop for Partial<'_> {
    fn drop(&mut self) {
        self.0.is_partial.store(false, Ordering::SeqCst);
    }
}

/// While it lives data is being loaded: commands that need data are refused, nothing expires and nothing is evicted.
#[must_use = "loading ends when this goes"]
pub struct LoadingGuard<'a> {
    engine: &'a Engine,
}

impl<'a> LoadingGuard<'a> {
    /// Says that what is there goes, to come again.
    pub(super) fn data_is_partial(&self) -> Partial<'a> {
        self.engine.loading.is_partial.store(true, Ordering::SeqCst);
        Partial(&self.engine.loading)
    }

    /// Ends loading, and has the log follow what was said of it meanwhile.
    ///
    /// # Errors
    /// When the log cannot begin: why.
    pub fn end(self) -> Result<(), String> {
        let engine = self.engine;
        drop(self);
        engine.follow_appendonly_of_loading()
    }
}

impl Engine {
    /// Begins to load so many bytes.
    ///
    /// # Panics
    /// When data is being loaded already.
    pub fn begin_loading(&self, total_bytes: u64) -> LoadingGuard<'_> {
        self.try_begin_loading(total_bytes).expect("data is loaded by one at a time")
    }

    /// Begins to load so many bytes, unless data is being loaded already.
    pub fn try_begin_loading(&self, total_bytes: u64) -> Option<LoadingGuard<'_>> {
        if !self.pause.begin_loading() {
            return None;
        }
        let loading = &self.loading;
        loading.started_ms.store(crate::clock::now_us() / 1_000, Ordering::Relaxed);
        loading.total_bytes.store(total_bytes, Ordering::Relaxed);
        for counter in [&loading.loaded_bytes, &loading.writer_memory, &loading.keys_loaded, &loading.keys_expired] {
            counter.store(0, Ordering::Relaxed);
        }
        Some(LoadingGuard { engine: self })
    }

    /// Whether data is being loaded.
    #[inline]
    pub fn is_loading(&self) -> bool {
        self.pause.is_loading()
    }
}

impl Drop for LoadingGuard<'_> {
    fn drop(&mut self) {
        self.engine.pause.end_loading();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_worked_out_from_what_was_done() {
        let figures = Figures { started_ms: 1_000, total_bytes: 400, loaded_bytes: 100, writer_memory: 0 };
        assert_eq!((figures.percent(), figures.seconds_left(5_000)), (25.0, 12));
        let nothing = Figures { loaded_bytes: 0, ..figures };
        assert_eq!((nothing.percent(), nothing.seconds_left(5_000)), (0.0, 1));
        let unknown = Figures { total_bytes: 0, ..figures };
        assert_eq!((unknown.percent(), unknown.seconds_left(5_000)), (0.0, 0));
    }
}
