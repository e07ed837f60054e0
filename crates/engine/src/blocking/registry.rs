//! What is to be known of all waiters together. Knows no session.

use super::serve::Leaving;
use super::timers::Timers;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// What is to be known of all waiters together.
#[derive(Debug)]
pub struct Blocking {
    /// The ticket that the last waiter got: lower ones have waited longer.
    pub(super) tickets: AtomicU64,
    /// Clients that wait.
    pub clients: AtomicUsize,
    /// Keys that clients wait for.
    pub keys: AtomicUsize,
    /// Keys that clients wait for who want to know when the key goes.
    pub keys_watched_for_end: AtomicUsize,
    /// When waits end by themselves, for each worker.
    pub(super) timers: Box<[Timers]>,
    /// Places in queues that a busy script's shards hold, to be given up when it ends.
    pub(super) leaving: Mutex<Vec<Leaving>>,
}

impl Blocking {
    /// Nobody waits yet. One timer for each worker, and one for whoever is none.
    pub(crate) fn new(workers: usize) -> Blocking {
        Blocking {
            tickets: AtomicU64::new(0),
            clients: AtomicUsize::new(0),
            keys: AtomicUsize::new(0),
            keys_watched_for_end: AtomicUsize::new(0),
            timers: (0..=workers).map(|_| Timers::default()).collect(),
            leaving: Mutex::default(),
        }
    }
}
