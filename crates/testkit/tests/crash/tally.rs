//! How far each kind of write has come: sent, and confirmed when. Knows no protocol.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The writes of one kind by one client, numbered from 1 without a gap.
#[derive(Debug, Default)]
pub struct Tally {
    sent: AtomicU64,
    /// The last number that was confirmed, and when; the newest last.
    confirmed: Mutex<Vec<(Instant, u64)>>,
}

impl Tally {
    /// The number of the next write, which is about to be sent.
    pub fn send(&self) -> u64 {
        self.sent.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Notes that the write of this number, and so all before it, is confirmed.
    pub fn confirm(&self, number: u64) {
        self.confirmed.lock().unwrap().push((Instant::now(), number));
    }

    /// The last number that was sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    /// The last number that was confirmed at `time` or before.
    pub fn confirmed_until(&self, time: Instant) -> u64 {
        let confirmed = self.confirmed.lock().unwrap();
        confirmed.iter().rev().find(|(at, _)| *at <= time).map_or(0, |(_, number)| *number)
    }

    /// When the last write was confirmed.
    pub fn last_confirmed(&self) -> Option<Instant> {
        self.confirmed.lock().unwrap().last().map(|(at, _)| *at)
    }

    /// Begins anew from what was found after a restart.
    pub fn found(&self, number: u64, at: Instant) {
        self.sent.store(number, Ordering::SeqCst);
        *self.confirmed.lock().unwrap() = vec![(at, number)];
    }
}
