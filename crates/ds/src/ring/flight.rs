//! Who is just appending what to a ring in a region, noted there for who finds it when all of them were killed: what they have
//! reserved and not filled is told from what others have filled behind it. Knows no bytes.
//!
//! A thread notes what it is about to reserve, then that it has it, then that it has filled it, and strikes it out when that is
//! counted. So, of a thread that was stopped anywhere, the note says what of the ring is missing:
//!
//! ```text
//!  none --> intended --> reserved --> filled --> none
//!              |   \          ^
//!              |    unknown --+   another one has reserved meanwhile
//! ```

use super::sync::{AtomicU64, Ordering};
use crate::apart::Apart;
use std::sync::{Mutex, PoisonError};

/// Threads that have a note at a time; further ones have none, and what they leave unfilled ends what is found.
pub(super) const NOTES: usize = 255;

/// Numbers of notes: of threads that have ended, and the least that none has had.
static FREE: Mutex<(Vec<usize>, usize)> = Mutex::new((Vec::new(), 0));

/// The number of a thread's note, as long as the thread is there.
struct Own(Option<usize>);

impl Own {
    fn new() -> Own {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let index = free.0.pop().or_else(|| {
            let next = free.1;
            (next < NOTES).then(|| {
                free.1 += 1;
                next
            })
        });
        Own(index)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(index) = self.0 {
            FREE.lock().unwrap_or_else(PoisonError::into_inner).0.push(index);
        }
    }
}

thread_local! {
    static OWN: Own = Own::new();
}

const INTENDED: u64 = 1;
const RESERVED: u64 = 2;
const FILLED: u64 = 3;
/// The kind has so many bits, behind the position.
const KIND_BITS: u32 = 2;
/// Somewhere so many bytes were reserved.
const UNKNOWN: u64 = u64::MAX;

/// What one thread is just appending.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Note {
    /// The position and how far it is, or 0 for nothing.
    state: AtomicU64,
    len: AtomicU64,
}

/// The notes of a ring.
pub(super) type Notes = [Apart<Note>];

/// What stands in a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flight {
    /// It may have been reserved.
    Intended { start: u64, len: u64 },
    /// It was, and is not known to be filled.
    Reserved { start: u64, len: u64 },
    /// It is filled, and may have been counted.
    Filled { start: u64, len: u64 },
    /// So many bytes may have been reserved, wherever.
    Unknown,
}

/// The number of this thread's note, if it has one.
#[inline]
pub(super) fn own() -> Option<usize> {
    // While a thread is torn down it has none.
    OWN.try_with(|own| own.0).ok().flatten()
}

impl Note {
    /// Reserves `len` bytes, with each step noted before it is taken; gives where.
    #[inline]
    pub(super) fn reserve(&self, head: &AtomicU64, len: u64) -> u64 {
        // It is written next: the line is to come once.
        #[cfg(not(all(test, loom)))]
        crate::hash_table::prefetch_to_write(std::ptr::from_ref(head).cast());
        let expected = head.load(Ordering::Relaxed);
        self.intend(expected, len);
        let reserved = head.compare_exchange(expected, expected + len, Ordering::SeqCst, Ordering::Relaxed);
        let start = reserved.unwrap_or_else(|_| self.reserve_anywhere(head, len));
        self.set_reserved(start);
        start
    }

    #[inline]
    pub(super) fn intend(&self, start: u64, len: u64) {
        self.len.store(len, Ordering::Release);
        self.state.store(start << KIND_BITS | INTENDED, Ordering::Release);
    }

    /// Where many reserve at once nobody is to try again and again.
    #[cold]
    pub(super) fn reserve_anywhere(&self, head: &AtomicU64, len: u64) -> u64 {
        self.state.store(UNKNOWN, Ordering::Release);
        head.fetch_add(len, Ordering::SeqCst)
    }

    #[inline]
    pub(super) fn set_reserved(&self, start: u64) {
        self.state.store(start << KIND_BITS | RESERVED, Ordering::Release);
    }

    /// What was reserved last is filled, and will be counted.
    #[inline]
    pub(super) fn set_filled(&self, start: u64) {
        self.state.store(start << KIND_BITS | FILLED, Ordering::Release);
    }

    /// It is counted.
    #[inline]
    pub(super) fn strike(&self) {
        self.state.store(0, Ordering::Release);
    }

    /// Likewise, by who may be another thread than the note's, which may have come to something else.
    pub(super) fn set_filled_if_of(&self, start: u64) {
        let (before, after) = (start << KIND_BITS | RESERVED, start << KIND_BITS | FILLED);
        let _ = self.state.compare_exchange(before, after, Ordering::SeqCst, Ordering::Relaxed);
    }

    /// Likewise.
    pub(super) fn strike_if_of(&self, start: u64) {
        let before = start << KIND_BITS | FILLED;
        let _ = self.state.compare_exchange(before, 0, Ordering::SeqCst, Ordering::Relaxed);
    }

    /// What it says.
    pub(super) fn flight(&self) -> Option<Flight> {
        let (state, len) = (self.state.load(Ordering::Acquire), self.len.load(Ordering::Acquire));
        let start = state >> KIND_BITS;
        match state & ((1 << KIND_BITS) - 1) {
            _ if state == 0 => None,
            _ if state == UNKNOWN => Some(Flight::Unknown),
            INTENDED => Some(Flight::Intended { start, len }),
            RESERVED => Some(Flight::Reserved { start, len }),
            FILLED => Some(Flight::Filled { start, len }),
            _ => Some(Flight::Unknown),
        }
    }
}
