//! What the commands need of the process's allocator, and when its threads give up what is free. Knows no allocator.

use crate::engine::Engine;
use crate::snapshot::yield_to_workers;
use crate::worker::Worker;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tenon_ds::memory;

/// Bytes by which what is used must have fallen.
const FALL_MIN: usize = 16 << 20;
/// The part of what was used by which it must have fallen.
const FALL_PART: usize = 4;
/// The part of what is used that may go from one look to the next, in a fall that has ended.
const STILL_PART: usize = 64;
/// Milliseconds within which each thread has a tick, but for one that has a long call.
const TICKS_MS: u64 = 1_500;
/// Milliseconds from one fall to the next.
const BETWEEN_MS: u64 = 5_000;

/// The process's general allocator.
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    /// As INFO's `mem_allocator` names it.
    pub name: &'static str,
    /// Gives up what is free of the calling thread's, so that others can have it or it can be given back.
    pub collect: fn(),
    /// Does so, and gives back to the kernel all that no thread has; it takes a quarter of a millisecond a megabyte.
    pub release: fn(),
}

/// How often threads were asked to give up what is free, and what that is judged by. Its times are the monotonic clock's.
///
/// Each thread has blocks of its own in the allocator, and what others have freed of them is found only when the thread
/// looks: it does while it allocates, but behind a flush nobody allocates what would have it look everywhere. So each is
/// asked; then a thread of its own gives all of it back, as that takes long.
#[derive(Debug, Default)]
pub(crate) struct Releases {
    number: AtomicU64,
    /// When it is to be given back: 0 when there is nothing.
    due_ms: AtomicU64,
    /// Bytes that were used at most since the last fall.
    most: AtomicUsize,
    /// Bytes that were used when it was looked at last.
    last: AtomicUsize,
    /// When the next fall may be noticed.
    next_ms: AtomicU64,
}

impl Releases {
    /// Asks every thread.
    fn ask(&self, now_ms: u64) {
        self.number.fetch_add(1, Ordering::Relaxed);
        self.due_ms.store(now_ms + TICKS_MS, Ordering::Relaxed);
    }

    /// Whether all have had their time since they were asked; once.
    fn is_due(&self, now_ms: u64) -> bool {
        let due_ms = self.due_ms.load(Ordering::Relaxed);
        let is_due = due_ms != 0 && now_ms >= due_ms;
        is_due && self.due_ms.compare_exchange(due_ms, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Notes how much is used, and asks every thread if that has fallen much and has come to its end. One thread calls it.
    fn note(&self, used: usize, now_ms: u64) {
        let last = self.last.swap(used, Ordering::Relaxed);
        let most = self.most.load(Ordering::Relaxed).max(used);
        let fallen = most - used;
        let is_still = used + used / STILL_PART >= last;
        let is_fall =
            fallen >= FALL_MIN.max(most / FALL_PART) && is_still && now_ms >= self.next_ms.load(Ordering::Relaxed);
        self.most.store(if is_fall { used } else { most }, Ordering::Relaxed);
        if is_fall {
            self.next_ms.store(now_ms + BETWEEN_MS, Ordering::Relaxed);
            self.ask(now_ms);
        }
    }
}

impl Engine {
    /// Gives up what is free of this thread's, if all were asked to since it did last.
    pub(crate) fn collect_if_asked(&self, worker: &mut Worker) {
        let number = self.releases.number.load(Ordering::Relaxed);
        if worker.collected != number {
            worker.collected = number;
            if let Some(allocator) = self.allocator.get() {
                (allocator.collect)();
            }
        }
    }

    /// Gives back to the kernel what is free: of this thread's now, of the others' when each had a tick.
    pub fn release_memory(&self, worker: &Worker) {
        self.releases.ask(worker.clock.monotonic_ms());
        if let Some(allocator) = self.allocator.get() {
            (allocator.release)();
        }
    }

    /// Looks whether much has been freed, and has that given back; one worker does.
    pub(crate) fn release_behind_falls(&self, now_ms: u64) {
        self.releases.note(memory::used(), now_ms);
        if self.releases.is_due(now_ms)
            && let Some(allocator) = self.allocator.get()
        {
            let release = allocator.release;
            let run = move || {
                yield_to_workers();
                release();
            };
            // It may take seconds, and nobody waits for it. Where no thread can be had it comes with the next fall.
            if let Err(error) = std::thread::Builder::new().name("release".to_owned()).spawn(run) {
                tracing::debug!(%error, "no thread can be had for giving memory back");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_fall_that_has_ended_asks_once() {
        let releases = Releases::default();
        let asked = |used: usize, now_ms: u64| {
            let before = releases.number.load(Ordering::Relaxed);
            releases.note(used * MIB, now_ms);
            releases.number.load(Ordering::Relaxed) > before
        };
        // While it grows, and while it falls, nothing is asked.
        assert!(!asked(100, 0) && !asked(400, 100) && !asked(300, 200) && !asked(200, 300));
        assert!(asked(200, 400));
        assert!(!asked(200, 500));
        // The next one is counted from there, and does not come at once.
        assert!(!asked(100, 600) && !asked(100, 700) && asked(100, 400 + BETWEEN_MS));
        // Less than a quarter, or than 16 MiB.
        assert!(!asked(80, 20_000) && !asked(80, 20_100));
        assert!(!asked(10, 30_000) && asked(10, 30_100));
        assert!(!asked(0, 40_000) && !asked(0, 40_100));
    }

    #[test]
    fn what_is_asked_for_is_due_once() {
        let releases = Releases::default();
        assert!(!releases.is_due(1_000_000));
        releases.ask(5_000);
        assert!(!releases.is_due(5_000 + TICKS_MS - 1) && releases.is_due(5_000 + TICKS_MS));
        assert!(!releases.is_due(1_000_000));
    }
}
