//! Who is told of changes, and how each of them wants it. Knows no key.

use super::broadcast::Prefixes;
use super::table::KeyTable;
use crate::clients::Client;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Of which keys a client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Of those that it has read.
    Default,
    /// Of those that it has read with CLIENT CACHING YES just before.
    OptIn,
    /// Of those that it has read without CLIENT CACHING NO just before.
    OptOut,
    /// Of all that begin with one of its prefixes.
    Broadcast,
}

/// Whether a client is told of changes that it has made itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// It is.
    Wanted,
    /// It is not (NOLOOP).
    Unwanted,
}

/// A client that is told of changes.
#[derive(Debug)]
pub struct Tracker {
    /// The client.
    pub client: Arc<Client>,
    /// Of which keys.
    pub mode: Mode,
    /// Whether of its own changes, too.
    pub echo: Echo,
    /// The number of the client that gets the messages in its place.
    pub redirect: Option<u64>,
    /// Whether that client was gone when there was a message for it.
    pub(super) redirect_broken: AtomicBool,
}

impl Tracker {
    /// A client that is told of changes in this way.
    pub fn new(client: Arc<Client>, mode: Mode, echo: Echo, redirect: Option<u64>) -> Tracker {
        Tracker { client, mode, echo, redirect, redirect_broken: AtomicBool::new(false) }
    }

    /// Whether the client that gets the messages was gone when there was one.
    pub fn is_redirect_broken(&self) -> bool {
        self.redirect_broken.load(Ordering::Relaxed)
    }

    /// Whether it is told of a change that the client of this number has made.
    pub(super) fn hears(&self, writer: u64) -> bool {
        self.echo == Echo::Wanted || self.client.id != writer
    }
}

/// Everything about tracking that is not one session's own.
///
/// The locks are taken whatever shards are held, and one after another: nobody who holds one of them waits for anything
/// but a client's outbox.
#[derive(Default)]
pub struct Tracking {
    /// How many clients are told of changes: what every write looks at.
    count: AtomicUsize,
    trackers: RwLock<HashMap<u64, Arc<Tracker>>>,
    pub(super) table: KeyTable,
    pub(super) prefixes: Prefixes,
}

impl Tracking {
    /// Whether changes are to be noted: somebody is told of them, or something is known to be read by somebody who may
    /// want to be told again.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0 || self.table.keys() > 0
    }

    /// How many clients are told of changes.
    pub fn clients(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many keys somebody has read and is to be told of.
    pub fn keys(&self) -> usize {
        self.table.keys()
    }

    /// The same, each key counted once for each of its readers.
    pub fn items(&self) -> usize {
        self.table.items()
    }

    /// How many different prefixes are broadcast.
    pub fn prefix_count(&self) -> usize {
        self.prefixes.count()
    }

    /// How the client of this number is told, if it is.
    pub fn of(&self, client: u64) -> Option<Arc<Tracker>> {
        if !self.is_active() {
            return None;
        }
        self.trackers.read().get(&client).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<Tracker>> {
        self.trackers.read().values().cloned().collect()
    }

    pub(super) fn set(&self, tracker: &Arc<Tracker>) {
        let mut trackers = self.trackers.write();
        trackers.insert(tracker.client.id, Arc::clone(tracker));
        self.count.store(trackers.len(), Ordering::Relaxed);
    }

    pub(super) fn remove(&self, client: u64) {
        let mut trackers = self.trackers.write();
        trackers.remove(&client);
        self.count.store(trackers.len(), Ordering::Relaxed);
    }
}
