//! The one thread that empties the ring. Knows not what becomes of the bytes.

use super::sync::{Arc, Ordering, after_write};
use super::{AWAKE, NONE, Ring};
use std::time::Duration;

/// The consumer's side. It sees bytes when all before them are there too.
#[derive(Debug)]
pub struct Consumer {
    ring: Arc<Ring>,
    /// Everything before it was taken.
    consumed: u64,
    /// Everything before it is filled.
    complete: u64,
}

impl Consumer {
    pub(super) fn new(ring: Arc<Ring>, start: u64) -> Consumer {
        Consumer { ring, consumed: start, complete: start }
    }

    /// The ring.
    pub fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// Position of the first byte that was not taken.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Looks how far all bytes are filled.
    pub fn look(&mut self) -> u64 {
        let ring = &*self.ring;
        // A ring that is full to the last byte ends where it begins.
        let limit = ring.ends.released.load(Ordering::Relaxed) + ring.capacity;
        while self.complete < limit {
            let base = self.complete & !(ring.block_len - 1);
            let filled = u64::from(ring.block(self.complete).filled.load(Ordering::SeqCst));
            if filled == ring.block_len {
                self.complete = base + ring.block_len;
                continue;
            }
            // Read behind the count, which so can be of reservations before `head` only: when it is the sum of all of
            // them in this block, all are filled.
            let head = ring.ends.head.load(Ordering::SeqCst);
            if filled == head - base {
                self.complete = head;
            }
            break;
        }
        self.complete
    }

    /// The last end of a record up to which all is filled, as far as was looked; nothing when that is no more than what
    /// was taken already.
    pub fn whole_records(&self) -> Option<u64> {
        let ring = &*self.ring;
        let at_block_end = self.complete.is_multiple_of(ring.block_len) && self.complete > self.consumed;
        let end = if at_block_end {
            // A head within the next block means that records go on there; the last one may have begun here.
            match ring.block(self.complete - 1).straddler.load(Ordering::Relaxed) {
                NONE => self.complete,
                start => start,
            }
        } else {
            self.complete
        };
        (end > self.consumed).then_some(end)
    }

    /// The bytes from what was taken to `end`, in two parts where the ring's memory ends between.
    ///
    /// # Panics
    /// When not all of them are known to be filled.
    pub fn bytes(&self, end: u64) -> (&[u8], &[u8]) {
        assert!((self.consumed..=self.complete).contains(&end));
        // SAFETY: everything before `complete` is filled, which `look` has seen in the blocks' counts; and nothing of it
        // is filled anew before it is released, which needs `&mut self` while the borrow lasts.
        let [first, second] = unsafe { self.ring.bytes_between(self.consumed, end) };
        (first, second)
    }

    /// Takes everything before `end`: its room may be filled anew, block by block.
    ///
    /// # Panics
    /// When not all of it is known to be filled, or it was taken before.
    pub fn take(&mut self, end: u64) {
        assert!((self.consumed..=self.complete).contains(&end));
        self.consumed = end;
        let ring = &*self.ring;
        let released = ring.ends.released.load(Ordering::Relaxed);
        let releasable = end & !(ring.block_len - 1);
        if releasable == released {
            return;
        }
        for position in (released..releasable).step_by(ring.block_len as usize) {
            let block = ring.block(position);
            block.straddler.store(NONE, Ordering::Relaxed);
            block.filled.store(0, Ordering::Relaxed);
        }
        // Producers read it before they touch the blocks.
        ring.ends.released.store(releasable, Ordering::SeqCst);
        ring.room.raise_if_waiting();
    }

    /// Sleeps until bytes behind `position` were filled, for a while, or until [`Ring::nudge_consumer`]. With the
    /// position that [`Consumer::look`] gave last, nothing that is filled is overslept; with a later one, bytes that
    /// were filled out of order may be, until the time is over.
    pub fn wait(&mut self, position: u64, at_most: Duration) {
        let ring = Arc::clone(&self.ring);
        // Read and written at once, as producers do it: so all of these stand in one order also for loom.
        ring.wake_from.swap(position, Ordering::SeqCst);
        after_write();
        let is_nudged = ring.nudged.swap(0, Ordering::SeqCst) != 0;
        if !is_nudged && self.look() <= position {
            ring.filled.wait(at_most, || ring.wake_from.load(Ordering::SeqCst) == AWAKE);
        }
        ring.wake_from.swap(AWAKE, Ordering::SeqCst);
        // What ended this sleep shall not end the next one, too. What it was about is looked at behind this.
        ring.nudged.swap(0, Ordering::SeqCst);
    }
}
