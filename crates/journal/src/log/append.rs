//! Appending a record: the short way into the ring, and the longer one where there is no room. Knows no file.

use super::Log;
use super::shared::{Aside, CARE_COUNT, CARE_TIMESTAMPS, Shared, WANTS_NONE};
use std::io::Write;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tenon_ds::ring::Claim;

/// How long who waits for room sleeps before looking whether nothing can be written any more.
const LOOK_UP: Duration = Duration::from_millis(100);

impl Log {
    /// Appends one record and gives the position behind it. Waits while the ring is full, unless nothing can be written.
    ///
    /// Records that are appended one after another stand in that order.
    #[inline]
    pub fn append(&self, record: &[u8]) -> u64 {
        let shared = &*self.shared;
        if record.is_empty() {
            return shared.ring.head();
        }
        if shared.care.load(Ordering::Relaxed) != 0 {
            return shared.append_with_care(record);
        }
        shared.append(record)
    }

    /// What this thread has appended is all for the moment.
    #[inline]
    pub fn turn_ended(&self) {
        if self.shared.care.load(Ordering::Relaxed) & CARE_COUNT != 0 {
            self.shared.turn_ended();
        }
    }
}

impl Shared {
    #[inline]
    fn append(&self, record: &[u8]) -> u64 {
        self.ring.append(record).unwrap_or_else(|claim| self.append_in_parts(claim, record))
    }

    /// Fills a claim that does not lie within one block, or for which there was no room.
    #[inline(never)]
    fn append_in_parts(&self, mut claim: Claim, record: &[u8]) -> u64 {
        let end = claim.end();
        let done = self.ring.fill(&mut claim, record);
        self.has_appended();
        if done < record.len() {
            self.append_rest(claim, &record[done..]);
        }
        end
    }

    #[inline(never)]
    fn append_with_care(&self, record: &[u8]) -> u64 {
        let care = self.care.load(Ordering::Relaxed);
        let end = if care & CARE_TIMESTAMPS != 0 && self.is_new_second() {
            self.append(&with_timestamp(self.last_timestamp.load(Ordering::Relaxed), record))
        } else {
            self.append(record)
        };
        if care & CARE_COUNT != 0 {
            // Behind the filling: the writer that has read the count finds the bytes of all that are counted.
            self.records.fetch_add(1, Ordering::SeqCst);
            if !self.hears_of_turns {
                self.turn_ended();
            }
        }
        end
    }

    /// Wakes the writer if it sleeps and there are as many records as it waits for.
    pub(super) fn turn_ended(&self) {
        // Either the writer, which says what it waits for and then counts, sees the record, or its wish is seen here.
        let wanted = self.wants_records.load(Ordering::SeqCst);
        if wanted <= self.records.load(Ordering::SeqCst)
            && self.wants_records.swap(WANTS_NONE, Ordering::SeqCst) != WANTS_NONE
        {
            self.ring.nudge_consumer();
        }
    }

    /// Whether this is the first record of its second.
    fn is_new_second(&self) -> bool {
        let now = (self.clock)();
        let last = self.last_timestamp.load(Ordering::Relaxed);
        now > last && self.last_timestamp.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn append_rest(&self, mut claim: Claim, mut rest: &[u8]) {
        let since = Instant::now();
        let mut is_waiting = false;
        loop {
            let done = self.ring.fill(&mut claim, rest);
            rest = &rest[done..];
            if rest.is_empty() {
                break;
            }
            if self.failing.load(Ordering::Acquire) && self.trouble().holds_up_writer() {
                self.put_aside(claim, rest);
                break;
            }
            if self.control().ended {
                // Nobody reads the ring any more.
                break;
            }
            if !std::mem::replace(&mut is_waiting, true) {
                self.hooks.waits_for_room();
            }
            self.ring.wait_for_room(&claim, LOOK_UP);
        }
        let add = |count: &AtomicU64, n: u64| count.fetch_add(n, Ordering::Relaxed);
        add(&self.counts.stalls, 1);
        add(&self.counts.stalled_us, u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX));
    }

    fn put_aside(&self, claim: Claim, rest: &[u8]) {
        let aside = Aside { claim, bytes: rest.to_vec(), done: 0 };
        let mut all = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(aside.claim.at(), aside);
        self.has_aside.store(true, Ordering::Release);
        drop(all);
        self.ring.nudge_consumer();
    }

    /// Brings into the ring what was put aside, as far as there is room.
    pub(super) fn bring_back(&self) {
        if !self.has_aside.load(Ordering::Acquire) {
            return;
        }
        let mut all = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(mut first) = all.first_entry() {
            let aside = first.get_mut();
            aside.done += self.ring.fill(&mut aside.claim, &aside.bytes[aside.done..]);
            if aside.done < aside.bytes.len() {
                return;
            }
            first.remove();
        }
        self.has_aside.store(false, Ordering::Release);
    }
}

fn with_timestamp(seconds: u64, record: &[u8]) -> Vec<u8> {
    let mut both = Vec::with_capacity(record.len() + 32);
    write!(both, "#TS:{seconds}\r\n").expect("a vector takes whatever is written");
    both.extend_from_slice(record);
    both
}
