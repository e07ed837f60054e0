//! The moment of a snapshot: all shards locked, their epochs flipped. Knows neither file nor thread.

use super::scanner::{Report, Scanner};
use super::shared::Snapshot;
use crate::engine::Engine;
use crate::scripting::Shelf;
use crate::shards::Locked;
use crate::worker::Worker;
use parking_lot::RwLock;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tenon_persist::rdb::file::{FileOptions, Form};

/// How a snapshot is written.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotOptions {
    /// The form of the file.
    pub file: FileOptions,
    /// Whether the file is the beginning of a log (`aof-base`).
    pub is_log_base: bool,
}

/// The snapshot that is under way, if one is.
#[derive(Default)]
pub struct Snapshots {
    is_active: AtomicBool,
    /// How many there have been. It changes while all shards are locked.
    number: AtomicU64,
    current: RwLock<Option<Arc<Snapshot>>>,
}

/// What a worker knows of the snapshot that is under way: whoever hands keys over by the million writes to nothing that
/// others read for finding it.
#[derive(Default)]
pub(crate) struct KnownSnapshot {
    number: u64,
    snapshot: Option<Arc<Snapshot>>,
}

impl Snapshots {
    /// Whether a snapshot is under way. Whoever holds a shard that is not completely written finds that it is.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// The snapshot that is under way.
    pub(crate) fn current(&self) -> Option<Arc<Snapshot>> {
        if self.is_active() { self.current.read().clone() } else { None }
    }

    /// The snapshot that is under way, for a worker that holds a shard which is not completely written.
    #[inline]
    pub(super) fn known_to<'k>(&self, known: &'k mut KnownSnapshot) -> Option<&'k Arc<Snapshot>> {
        if !self.is_active() {
            return None;
        }
        let number = self.number.load(Ordering::Relaxed);
        if known.number != number {
            *known = KnownSnapshot { number, snapshot: self.current.read().clone() };
        }
        known.snapshot.as_ref()
    }

    /// Bytes that are freed without any eviction, when they are written.
    pub(crate) fn freed_soon(&self) -> usize {
        self.bytes_of_current(Snapshot::freed_soon)
    }

    /// Those among them that were data.
    pub(crate) fn gone(&self) -> usize {
        self.bytes_of_current(Snapshot::gone)
    }

    fn bytes_of_current(&self, bytes: impl FnOnce(&Snapshot) -> usize) -> usize {
        if self.is_active() { self.current.read().as_deref().map_or(0, bytes) } else { 0 }
    }

    /// In this order: who finds that none is under way may begin the next one, and that would be what is forgotten.
    pub(super) fn end(&self) {
        *self.current.write() = None;
        self.is_active.store(false, Ordering::Release);
    }
}

/// A snapshot whose moment was; it waits to be written.
#[must_use = "as long as it is neither written nor given up no other can begin"]
pub struct Begun {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) options: SnapshotOptions,
    pub(super) libraries: Arc<Shelf>,
    /// For each database that has any, how many keys there are, and how many of them expire.
    pub(super) sizes: Vec<(usize, u64, u64)>,
    pub(super) memory: usize,
    /// How long all shards were locked.
    pub moment: Duration,
    /// Changes of keys before the moment.
    pub changes: u64,
}

impl Engine {
    /// Begins a snapshot: it is of the data as it is while `at_moment` runs, which sees all shards locked. `None` when one is
    /// under way, or the data is loaded anew: what is there is only a part of it then. The caller holds no shard.
    pub fn begin_snapshot(
        &self,
        worker: &mut Worker,
        options: SnapshotOptions,
        at_moment: impl FnOnce(&mut dyn Locked),
    ) -> Option<Begun> {
        if self.snapshots.is_active.swap(true, Ordering::AcqRel) {
            return None;
        }
        let memory = tenon_ds::memory::used();
        let mut held = self.lock_everything(worker);
        // It may have begun since it was last looked.
        if self.loading.is_partial() {
            drop(held);
            self.snapshots.end();
            return None;
        }
        let started = Instant::now();
        let databases = self.config.databases() as usize;
        let snapshot = Snapshot::new(options.file, self.policy(), worker.clock.access, databases, memory);
        let mut sizes = vec![(0, 0); 1];
        held.each(&mut |_, state| {
            for (database, keyspace) in state.shard.databases() {
                if sizes.len() <= database {
                    sizes.resize(database + 1, (0, 0));
                }
                sizes[database].0 += keyspace.len() as u64;
                sizes[database].1 += keyspace.expiring() as u64;
            }
            state.shard.begin_snapshot();
            true
        });
        snapshot.keys_total.store(sizes.iter().map(|(keys, _)| keys).sum(), Ordering::Relaxed);
        let snapshot = Arc::new(snapshot);
        *self.snapshots.current.write() = Some(Arc::clone(&snapshot));
        self.snapshots.number.fetch_add(1, Ordering::Relaxed);
        // No shard keeps a library from changing: what is not in the snapshot must be in the log behind its moment.
        let order = self.scripts.libraries.keep_order();
        let libraries = self.scripts.libraries.shelf();
        let changes = self.changes();
        at_moment(&mut held);
        drop((order, held));
        let moment = started.elapsed();
        let sizes = sizes.into_iter().enumerate().map(|(database, (keys, expiring))| (database, keys, expiring));
        let sizes = sizes.filter(|(_, keys, _)| *keys > 0).collect();
        Some(Begun { snapshot, options, libraries, sizes, memory, moment, changes })
    }
}

impl Begun {
    /// The snapshot, to look at or to cancel.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// What its file is made of.
    pub fn form(&self) -> Form {
        self.options.file.form
    }

    /// Writes it, on whichever thread; gives back what it was written to. Clients go on meanwhile. What was written when
    /// it fails or is cancelled is of no use.
    ///
    /// # Errors
    /// Those of writing; `Interrupted` when it was cancelled.
    pub fn write_to<W: Write>(self, engine: &Engine, out: W) -> io::Result<(W, Report)> {
        Scanner::new(engine, self, out).run()
    }

    /// Gives it up.
    pub fn give_up(self, engine: &Engine) {
        self.snapshot.cancel();
        // Every entry must be looked at all the same: their bits are to be equal again.
        let _ = self.write_to(engine, io::sink());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_one_cannot_begin_before_the_last_is_forgotten() {
        let snapshots = Snapshots::default();
        snapshots.is_active.store(true, Ordering::Relaxed);
        let forgotten_later = snapshots.current.read();
        std::thread::scope(|scope| {
            let end = scope.spawn(|| snapshots.end());
            for _ in 0..200 {
                assert!(snapshots.is_active());
                std::thread::sleep(Duration::from_micros(100));
            }
            drop(forgotten_later);
            end.join().expect("it ends");
        });
        assert!(!snapshots.is_active());
    }
}
