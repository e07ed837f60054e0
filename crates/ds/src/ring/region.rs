//! Rings in a region, and what a process that was killed has left in one. Knows no record's meaning.
//!
//! ```text
//!  words | ends of what is reserved and released | notes | blocks | to the next page | bytes
//! ```

use super::bytes::Bytes;
use super::flight::{NOTES, Note, Notes};
use super::placed::Placed;
use super::{Block, Consumer, Ends, NONE, Ring, check};
use crate::apart::Apart;
use crate::region::{Lease, Region, WORDS_LEN};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const PAGE: usize = 4096;
const NOTES_AT: usize = WORDS_LEN + size_of::<Ends>();
const BLOCKS_AT: usize = NOTES_AT + NOTES * size_of::<Apart<Note>>();

const _: () = assert!(BLOCKS_AT.is_multiple_of(align_of::<Block>()));
const _: () =
    assert!(WORDS_LEN.is_multiple_of(align_of::<Ends>()) && NOTES_AT.is_multiple_of(align_of::<Apart<Note>>()));

fn bytes_at(blocks: usize) -> usize {
    (BLOCKS_AT + blocks * size_of::<Block>()).next_multiple_of(PAGE)
}

/// Bytes of a region for a ring of so many blocks of this length.
pub fn region_len(block_len: usize, blocks: usize) -> usize {
    bytes_at(blocks) + block_len * blocks
}

/// Position behind all that was reserved of the ring in a region; nothing when the region is too short for one.
pub fn head_in(region: &Arc<Region>) -> Option<u64> {
    if region.len() < BLOCKS_AT {
        return None;
    }
    // SAFETY: any bits are atomics, and nothing else is done to them.
    let ends: Placed<Ends> = unsafe { Placed::in_region(region, WORDS_LEN) };
    Some(ends.head.load(Ordering::Relaxed))
}

pub(super) fn lay_out(region: &Arc<Region>, block_len: usize, blocks: usize, lease: Lease) -> Arc<Ring> {
    // SAFETY: the parts are atomics and bytes, for which any bits are good, and do not overlap. This ring alone has what lies
    // behind the words, as it has the lease.
    let (ends, notes, blocks, bytes): (_, Placed<Notes>, _, _) = unsafe {
        (
            Placed::in_region(region, WORDS_LEN),
            Placed::slice_in_region(region, NOTES_AT, NOTES),
            Placed::slice_in_region(region, BLOCKS_AT, blocks),
            Bytes::in_region(region, bytes_at(blocks), block_len * blocks),
        )
    };
    Ring::new(block_len, ends, blocks, bytes, Some(notes), Some(lease))
}

/// A ring of `blocks` blocks of `block_len` bytes, each a power of two, whose positions begin at `start`. It lies in a region: who
/// has that after this process was killed finds what was in the ring.
///
/// # Panics
/// When one is no power of two, there is but one block, a block has 4 GiB and more, or `start` is no block's start; when the
/// region is too short, and when a ring has it.
pub fn ring_in(region: &Arc<Region>, block_len: usize, blocks: usize, start: u64) -> (Arc<Ring>, Consumer) {
    check(block_len, blocks, start);
    let ring = lay_out(region, block_len, blocks, region.lend().expect("one ring has it at a time"));
    ring.ends.head.store(start, Ordering::Relaxed);
    ring.ends.released.store(start, Ordering::Relaxed);
    ring.notes.iter().flat_map(|notes| notes.iter()).for_each(|note| note.strike());
    for block in &*ring.blocks {
        block.filled.store(0, Ordering::Relaxed);
        block.straddler.store(NONE, Ordering::Relaxed);
    }
    let consumer = Consumer::new(Arc::clone(&ring), start);
    (ring, consumer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::{Found, Remains};
    use proptest::prelude::*;
    use std::sync::atomic::AtomicU64;

    const BLOCK_LEN: usize = 16;
    const BLOCKS: usize = 8;

    fn region() -> Arc<Region> {
        Arc::new(Region::zeroed(region_len(BLOCK_LEN, BLOCKS)))
    }

    fn remains(region: &Arc<Region>, from: u64) -> Option<Remains> {
        Remains::of(region, BLOCK_LEN, BLOCKS, from)
    }

    #[test]
    fn what_was_not_taken_is_found() {
        let region = region();
        let (ring, mut consumer) = ring_in(&region, BLOCK_LEN, BLOCKS, 32);
        assert!(remains(&region, 32).is_none(), "the ring has it");
        for record in [&b"first record"[..], b"second record", b"third"] {
            let Err(mut claim) = ring.append(record) else { continue };
            ring.fill(&mut claim, record);
        }
        consumer.look();
        consumer.take(32 + 18);
        drop((ring, consumer));
        let left = remains(&region, 32 + 18).expect("the consumer came so far");
        assert_eq!(left.before(8, 0), b"rdsecond"[..].to_vec().split_off(0));
        assert_eq!(left.before(100, 40).len(), 10);
        assert_eq!(left.records(u64::MAX), Found { start: 50, end: 62, is_all: true, bytes: b" recordthird".to_vec() });
        assert_eq!((left.records(57).bytes, left.head()), (b" record".to_vec(), 62));
    }

    #[test]
    fn where_nobody_says_what_is_not_filled_nothing_is_known_of_its_block() {
        let region = region();
        let (ring, consumer) = ring_in(&region, BLOCK_LEN, BLOCKS, 0);
        assert_eq!(ring.append(b"0123456789").ok(), Some(10));
        let mut across = ring.append(b"abcdefghij").expect_err("it lies in two blocks");
        ring.fill(&mut across, b"abcdefghij");
        let unfilled = ring.reserve(5);
        // This thread has one note.
        assert_eq!(ring.append(b"xyz").ok(), Some(28));
        drop((ring, consumer));
        assert_eq!(unfilled.at(), 20);
        let left = remains(&region, 0).expect("nothing was taken");
        let found = Found { start: 0, end: 10, is_all: false, bytes: b"0123456789".to_vec() };
        assert_eq!(left.records(u64::MAX), found, "of the last block nothing is known");
    }

    #[test]
    fn where_the_ring_was_full_what_is_found_ends_with_a_record() {
        let region = region();
        let (ring, consumer) = ring_in(&region, BLOCK_LEN, BLOCKS, 0);
        for _ in 0..10 {
            let Err(mut claim) = ring.append(b"0123456789") else { continue };
            ring.fill(&mut claim, b"0123456789");
        }
        let mut longer = ring.reserve(40);
        assert_eq!(ring.fill(&mut longer, &[b'x'; 40]), 28);
        // Which has the note.
        let last = ring.reserve(3);
        drop((ring, consumer));
        assert_eq!(last.end(), 143);
        let found = remains(&region, 0).expect("nothing was taken").records(u64::MAX);
        assert_eq!((found.end, found.bytes.len(), found.is_all), (100, 100, true));
    }

    #[test]
    fn positions_that_no_consumer_can_have_reached_have_no_remains() {
        let region = region();
        let (ring, mut consumer) = ring_in(&region, BLOCK_LEN, BLOCKS, 0);
        assert_eq!(ring.append(&[1; 16]).ok(), Some(16));
        assert_eq!(ring.append(&[2; 16]).ok(), Some(32));
        consumer.look();
        consumer.take(20);
        drop((ring, consumer));
        assert!(remains(&region, 15).is_none() && remains(&region, 33).is_none());
        assert!(remains(&region, 16).is_some() && remains(&region, 32).is_some());
        assert!(Remains::of(&region, 4 * BLOCK_LEN, BLOCKS, 16).is_none(), "it is too short for that");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

        /// Whatever stands there, nothing is read that is not there.
        #[test]
        fn any_numbers_do_no_harm(
            numbers in prop::collection::vec(prop_oneof![0u64..200, any::<u64>()], (BLOCKS + 5) * 2),
            from in 0u64..200,
        ) {
            let region = region();
            let words = |at: usize, len: usize| region.place(at, len).cast::<AtomicU64>();
            let ends = [WORDS_LEN, WORDS_LEN + 128];
            let notes = (0..8).map(|word| NOTES_AT + word / 2 * size_of::<Apart<Note>>() + word % 2 * 8);
            let places = ends.into_iter().chain(notes).chain((0..BLOCKS * 2).map(|word| BLOCKS_AT + word * 8));
            for (place, number) in places.zip(numbers) {
                // SAFETY: any bits are good there, and nobody else has the region.
                unsafe { words(place, 8).as_ref() }.store(number, Ordering::Relaxed);
            }
            if let Some(left) = remains(&region, from) {
                let found = left.records(u64::MAX);
                prop_assert!(found.start <= from && found.end >= from && found.bytes.len() as u64 <= found.end - from);
                left.before(50, 0);
            }
        }
    }
}
