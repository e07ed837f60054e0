//! When the waits of one worker's clients end by themselves. Knows no clock.

use super::waiter::Waiter;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Waits by their ends and tickets. Whoever ends a wait takes it out, so nothing lies here for longer than it is waited.
#[derive(Debug)]
pub(crate) struct Timers {
    /// The first end, in nanoseconds of the monotonic clock; `u64::MAX` for none. What the worker looks at.
    first_ns: AtomicU64,
    waits: Mutex<BTreeMap<(u64, u64), Arc<Waiter>>>,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers { first_ns: AtomicU64::new(u64::MAX), waits: Mutex::default() }
    }
}

impl Timers {
    /// The first end; it may be that of a wait that is over already.
    #[inline]
    pub(crate) fn first_ns(&self) -> u64 {
        self.first_ns.load(Ordering::Relaxed)
    }

    /// How many waits will end by themselves.
    pub(crate) fn len(&self) -> usize {
        self.waits.lock().len()
    }

    pub(super) fn add(&self, end_ns: u64, ticket: u64, waiter: &Arc<Waiter>) {
        let mut waits = self.waits.lock();
        waits.insert((end_ns, ticket), Arc::clone(waiter));
        self.note_first(&waits);
    }

    pub(super) fn remove(&self, end_ns: u64, ticket: u64) {
        let mut waits = self.waits.lock();
        waits.remove(&(end_ns, ticket));
        self.note_first(&waits);
    }

    /// Takes out what ends before or at `now_ns`.
    pub(super) fn take_due(&self, now_ns: u64) -> Vec<Arc<Waiter>> {
        if self.first_ns() > now_ns {
            return Vec::new();
        }
        let mut waits = self.waits.lock();
        let later = waits.split_off(&(now_ns + 1, 0));
        let due = std::mem::replace(&mut *waits, later);
        self.note_first(&waits);
        due.into_values().collect()
    }

    fn note_first(&self, waits: &BTreeMap<(u64, u64), Arc<Waiter>>) {
        let first_ns = waits.first_key_value().map_or(u64::MAX, |((end_ns, _), _)| *end_ns);
        self.first_ns.store(first_ns, Ordering::Relaxed);
    }
}
