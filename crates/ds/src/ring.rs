//! A ring of bytes that many threads append to without a lock and one thread empties, in the order in which room was
//! reserved. Knows no record's meaning and no file.
//!
//! Positions count all bytes that were ever reserved; the ring holds the last `capacity` of them, in blocks.
//!
//! ```text
//!      released        consumed      complete           head            released + capacity
//!         |                |             |                |                     |
//!  -------+----------------+-------------+----------------+---------------------+-------
//!   free  | taken, but its |  readable   | reserved, some | room                | not yet
//!  (older)| block is not   |             | not yet filled |                     |
//! ```
//!
//! - A producer reserves its bytes with one `fetch_add` of `head`, copies them in, and adds their number to the count of
//!   the block that they lie in. What finds no room is copied as room appears.
//! - A block is complete when its count is its length. The block that `head` lies in is complete as far as `head` when
//!   its count is what was reserved of it: the count is read first, so it holds nothing that was reserved later.
//! - Blocks are released whole, their counts are zero by then: no two rounds of a block meet in one count.
//! - The producer whose record continues beyond a block leaves word where the record began, so the consumer can stop at
//!   the end of a record.
//! - The consumer that sleeps says from which position on it wants to be woken; who has filled bytes looks there. Either
//!   the consumer sees the bytes or their producer sees the wish, as both are sequentially consistent.

mod bytes;
mod consumer;
mod flight;
#[cfg(all(test, loom))]
mod loom_tests;
mod placed;
#[cfg(not(all(test, loom)))]
mod region;
#[cfg(not(all(test, loom)))]
mod remains;
mod signal;
mod sync;
#[cfg(all(test, not(loom)))]
mod tests;

pub use consumer::Consumer;
#[cfg(not(all(test, loom)))]
pub use region::{head_in, region_len, ring_in};
#[cfg(not(all(test, loom)))]
pub use remains::{Found, Remains};

use crate::apart::Apart;
use crate::region::Lease;
use bytes::Bytes;
use flight::{Note, Notes};
use placed::Placed;
use signal::Signal;
use std::time::Duration;
use sync::{Arc, AtomicU32, AtomicU64, Ordering, after_write};

/// What a block's straddler is when no record continues beyond the block.
const NONE: u64 = u64::MAX;
/// What `wake_from` is while the consumer is awake.
const AWAKE: u64 = u64::MAX;
/// Bytes of a cache line.
const LINE_LEN: u64 = 64;
/// How far ahead lines are asked for: some short records.
const PREPARED_AHEAD: u64 = 512;
/// The longest record behind which lines are asked for.
const PREPARED_MAX: u64 = 512;

#[derive(Debug)]
#[repr(C)]
struct Block {
    /// Bytes of this round that were copied in.
    filled: AtomicU32,
    /// Where the record began that continues beyond the block's end.
    straddler: AtomicU64,
}

#[derive(Debug)]
#[repr(C)]
struct Ends {
    /// All bytes that were ever reserved. Producers write it, and the consumer the next.
    head: Apart<AtomicU64>,
    /// Everything before it was taken out; a multiple of the block length.
    released: Apart<AtomicU64>,
}

/// The producers' side.
#[derive(Debug)]
pub struct Ring {
    ends: Placed<Ends>,
    /// The consumer wants to be woken when bytes before this position, or behind it, were filled.
    wake_from: AtomicU64,
    /// The consumer is to look at something else before it sleeps.
    nudged: AtomicU32,
    filled: Signal,
    room: Signal,
    blocks: Placed<[Block]>,
    bytes: Bytes,
    /// Who is just appending what, where all of these lie in a region.
    notes: Option<Placed<Notes>>,
    /// Of that region.
    _lease: Option<Lease>,
    block_len: u64,
    /// The block length is two to this.
    block_shift: u32,
    capacity: u64,
    /// Tells rings apart: a claim is of use in its own ring only.
    id: u64,
}

/// Bytes that were reserved and are still to be filled. To drop it before it is filled stops the ring there for good.
#[derive(Debug)]
#[must_use = "the consumer waits for these bytes"]
pub struct Claim {
    ring: u64,
    start: u64,
    at: u64,
    end: u64,
    /// The note that says so, where there is one.
    note: Option<usize>,
}

impl Claim {
    /// Position of the next byte to be filled.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Position behind the last byte.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether all bytes are filled.
    pub fn is_filled(&self) -> bool {
        self.at == self.end
    }
}

/// A ring as [`ring_in`] makes it, in boxes of its own.
#[cfg(test)]
fn ring(block_len: usize, blocks: usize, start: u64) -> (Arc<Ring>, Consumer) {
    check(block_len, blocks, start);
    let ends = Ends { head: Apart(AtomicU64::new(start)), released: Apart(AtomicU64::new(start)) };
    let block = || Block { filled: AtomicU32::new(0), straddler: AtomicU64::new(NONE) };
    let blocks = (0..blocks).map(|_| block()).collect::<Box<[Block]>>();
    let bytes = Bytes::new(block_len * blocks.len());
    let ring = Ring::new(block_len, Placed::boxed(Box::new(ends)), Placed::boxed(blocks), bytes, None, None);
    let consumer = Consumer::new(Arc::clone(&ring), start);
    (ring, consumer)
}

fn check(block_len: usize, blocks: usize, start: u64) {
    assert!(block_len.is_power_of_two() && blocks.is_power_of_two() && blocks > 1);
    assert!(u32::try_from(block_len).is_ok() && start.is_multiple_of(block_len as u64));
}

impl Ring {
    fn new(
        block_len: usize,
        ends: Placed<Ends>,
        blocks: Placed<[Block]>,
        bytes: Bytes,
        notes: Option<Placed<Notes>>,
        lease: Option<Lease>,
    ) -> Arc<Ring> {
        let capacity = (block_len * blocks.len()) as u64;
        Arc::new(Ring {
            ends,
            wake_from: AtomicU64::new(AWAKE),
            nudged: AtomicU32::new(0),
            filled: Signal::new(),
            room: Signal::new(),
            blocks,
            bytes,
            notes,
            _lease: lease,
            block_len: block_len as u64,
            block_shift: block_len.trailing_zeros(),
            capacity,
            id: sync::next_id(),
        })
    }

    /// Bytes that the ring holds at most.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Position behind the last byte that was reserved.
    pub fn head(&self) -> u64 {
        self.ends.head.load(Ordering::SeqCst)
    }

    /// Bytes that are held for the consumer, rounded up to its block.
    pub fn len(&self) -> u64 {
        let released = self.ends.released.load(Ordering::SeqCst);
        self.head().saturating_sub(released)
    }

    /// Whether nothing was reserved since the last block was released.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reserves the next `len` bytes, which are one record; there need not be room for them yet.
    ///
    /// # Panics
    /// When `len` is 0.
    #[inline]
    pub fn reserve(&self, len: usize) -> Claim {
        assert!(len > 0, "a record has bytes");
        let (head, len) = (&self.ends.head.0, len as u64);
        let note = self.notes.as_ref().and_then(|_| flight::own());
        let start = match self.note(note) {
            Some(note) => note.reserve(head, len),
            None => head.fetch_add(len, Ordering::SeqCst),
        };
        Claim { ring: self.id, start, at: start, end: start + len, note }
    }

    #[inline]
    fn note(&self, index: Option<usize>) -> Option<&Note> {
        Some(&self.notes.as_ref()?[index?].0)
    }

    /// Appends a record in one go, if it lies within one block and there is room for it, and gives the position behind it.
    /// Otherwise its bytes are reserved, and are all still to be filled.
    ///
    /// # Errors
    /// The reservation.
    ///
    /// # Panics
    /// When the record is empty.
    #[inline]
    pub fn append(&self, record: &[u8]) -> Result<u64, Claim> {
        let claim = self.reserve(record.len());
        let limit = self.ends.released.load(Ordering::SeqCst) + self.capacity;
        if (claim.start ^ (claim.end - 1)) >> self.block_shift != 0 || claim.end > limit {
            return Err(claim);
        }
        let block = self.block(claim.start);
        // SAFETY: as in `fill`: nobody else has reserved these positions, this claim of them is not given away, and all of
        // them lie below the limit.
        unsafe { self.bytes.write((claim.start & (self.capacity - 1)) as usize, record) };
        // Before the count, which waits for what was written.
        self.prepare(&claim);
        let note = self.note(claim.note);
        if let Some(note) = note {
            note.set_filled(claim.start);
        }
        block.filled.fetch_add(record.len() as u32, Ordering::SeqCst);
        if let Some(note) = note {
            note.strike();
        }
        self.has_filled(claim.end);
        Ok(claim.end)
    }

    /// Asks for the lines that records as short as this one will be written to soon. The ring is larger than the caches, and
    /// whoever counts what is filled would wait, with all its writes, until its lines have come.
    #[inline(always)]
    fn prepare(&self, claim: &Claim) {
        if claim.end - claim.start > PREPARED_MAX {
            // The processor itself sees where that goes on.
            return;
        }
        let mut at = (claim.start + PREPARED_AHEAD).next_multiple_of(LINE_LEN);
        while at < claim.end + PREPARED_AHEAD {
            self.bytes.prepare((at & (self.capacity - 1)) as usize);
            at += LINE_LEN;
        }
    }

    /// Copies the claim's next bytes in, as many as there is room for, and tells how many they were.
    ///
    /// # Panics
    /// When the claim is another ring's, or has fewer bytes to fill.
    #[inline]
    pub fn fill(&self, claim: &mut Claim, bytes: &[u8]) -> usize {
        assert!(claim.ring == self.id && bytes.len() as u64 <= claim.end - claim.at);
        let limit = self.ends.released.load(Ordering::SeqCst) + self.capacity;
        let mut rest = bytes;
        while !rest.is_empty() && claim.at < limit {
            let block_end = (claim.at | (self.block_len - 1)) + 1;
            // Room comes in whole blocks, so only the block and the bytes bound the piece.
            let len = rest.len().min((block_end - claim.at) as usize);
            let (piece, after) = rest.split_at(len);
            // SAFETY: `claim` is the only one of these positions, and no position is filled twice, as `at` moves on. The
            // positions lie below `limit`, so the consumer has released what the ring held there a round ago, and it
            // reads them only when the block's count says that they are filled.
            unsafe { self.bytes.write((claim.at & (self.capacity - 1)) as usize, piece) };
            let block = self.block(claim.at);
            claim.at += len as u64;
            if claim.at == block_end && claim.end > block_end {
                block.straddler.store(claim.start, Ordering::Relaxed);
            }
            // Who fills it may be another thread than the one that has reserved it.
            let note = self.note(claim.note).filter(|_| claim.is_filled());
            if let Some(note) = note {
                note.set_filled_if_of(claim.start);
            }
            block.filled.fetch_add(len as u32, Ordering::SeqCst);
            if let Some(note) = note {
                note.strike_if_of(claim.start);
            }
            rest = after;
        }
        self.has_filled(claim.at);
        bytes.len() - rest.len()
    }

    /// Wakes the consumer if it sleeps until bytes before this position are filled, which some now are.
    #[inline(always)]
    fn has_filled(&self, position: u64) {
        after_write();
        if position > self.wake_from.load(Ordering::SeqCst) {
            self.wake_consumer();
        }
    }

    /// Waits until the claim's next byte has room, for a while, or until [`Ring::wake_producers`].
    #[cold]
    pub fn wait_for_room(&self, claim: &Claim, at_most: Duration) {
        self.room.wait(at_most, || claim.at < self.ends.released.load(Ordering::SeqCst) + self.capacity);
    }

    /// Has the consumer look at what else has changed: its sleep ends, or its next one does at once.
    pub fn nudge_consumer(&self) {
        self.nudged.store(1, Ordering::SeqCst);
        after_write();
        self.wake_consumer();
    }

    #[cold]
    fn wake_consumer(&self) {
        // One producer is enough.
        if self.wake_from.swap(AWAKE, Ordering::SeqCst) != AWAKE {
            self.filled.raise();
        }
    }

    /// Wakes all who wait for room, so that they look at what else has changed.
    pub fn wake_producers(&self) {
        self.room.raise();
    }

    /// The bytes from `start` to `end`, in two parts where the ring's memory ends between.
    ///
    /// # Safety
    /// Nobody may fill them as long as they are borrowed.
    unsafe fn bytes_between(&self, start: u64, end: u64) -> [&[u8]; 2] {
        let at = (start & (self.capacity - 1)) as usize;
        let len = (end - start) as usize;
        let first = len.min(self.capacity as usize - at);
        // SAFETY: as the caller promises.
        unsafe { [self.bytes.read(at, first), self.bytes.read(0, len - first)] }
    }

    fn block(&self, position: u64) -> &Block {
        let index = (position & (self.capacity - 1)) >> self.block_shift;
        &self.blocks[index as usize]
    }
}
