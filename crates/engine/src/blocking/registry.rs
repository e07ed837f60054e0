//! What is to be known of all waiters together. Knows no session.

use super::timers::Timers;
use super::waiter::Waiter;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use tenon_ds::apart::Apart;

/// A waiter that is still in a key's queue.
#[derive(Debug)]
pub(super) struct Leaving {
    /// The index of the key's shard.
    pub(super) shard: usize,
    pub(super) key: Box<[u8]>,
    pub(super) waiter: Arc<Waiter>,
}

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
    /// Waiters that are still in a key's queue though they wait no more.
    pub(super) leaving: Mutex<Vec<Leaving>>,
    /// When waits end by themselves, for each worker.
    pub(super) timers: Box<[Apart<Timers>]>,
    /// When waits are looked at again although nothing has changed, likewise.
    pub(super) looks: Box<[Apart<Timers>]>,
    /// Clients whose writes are to get on disk, how many they are, and who.
    pub(super) for_disk_len: AtomicUsize,
    pub(super) for_disk: Mutex<Vec<Arc<Waiter>>>,
}

impl Blocking {
    /// Nobody waits yet. One timer for each worker, and one for whoever is none.
    pub(crate) fn new(workers: usize) -> Blocking {
        Blocking {
            tickets: AtomicU64::new(0),
            clients: AtomicUsize::new(0),
            keys: AtomicUsize::new(0),
            keys_watched_for_end: AtomicUsize::new(0),
            leaving: Mutex::default(),
            timers: (0..=workers).map(|_| Apart::default()).collect(),
            looks: (0..=workers).map(|_| Apart::default()).collect(),
            for_disk_len: AtomicUsize::new(0),
            for_disk: Mutex::default(),
        }
    }
}
