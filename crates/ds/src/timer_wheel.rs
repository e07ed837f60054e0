//! A hierarchical timer wheel that keeps two bytes an item: a tag, from which its owner finds the item again. Knows
//! neither the items nor the time of day.
//!
//! Time is counted in ticks. Level `n` has sixteen buckets of `16^n` ticks each; an item lies at the level of the
//! highest hexadecimal digit in which its tick differs from the present one:
//!
//! ```text
//! now  = 0x3_7_4_a          due 0x3_7_4_c  -> level 0, bucket c
//!                           due 0x3_9_0_0  -> level 2, bucket 9
//! ```
//!
//! When the present reaches a bucket of a higher level, its items are spread over the lower ones. For that the owner
//! is asked when the items of a tag are due; a tag of which nothing is due in the bucket's time any more is dropped,
//! so removing an item early needs no search.

use crate::slab;
use std::ptr::NonNull;

const DIGIT_BITS: u32 = 4;
const BUCKETS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = (u64::BITS / DIGIT_BITS) as usize;

/// The wheel.
#[derive(Default)]
pub struct TimerWheel {
    now: u64,
    /// Tags in all buckets, stale ones included.
    len: usize,
    levels: [Option<Box<Level>>; LEVELS],
}

#[derive(Default)]
struct Level {
    /// Bit `n`: bucket `n` holds something.
    occupied: u16,
    buckets: [Tags; BUCKETS],
}

impl TimerWheel {
    /// An empty wheel whose present is `now`.
    pub fn new(now: u64) -> TimerWheel {
        TimerWheel { now, ..TimerWheel::default() }
    }

    /// Tags kept, those of items that were removed or moved meanwhile included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no tag is kept.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory beside the wheel itself.
    pub fn memory(&self) -> usize {
        let level = |level: &Level| size_of::<Level>() + level.buckets.iter().map(Tags::memory).sum::<usize>();
        self.levels.iter().flatten().map(|l| level(l)).sum()
    }

    /// The level and bucket of what is due at `tick`; what is overdue goes where it comes out next.
    fn place(&self, tick: u64) -> (usize, usize) {
        let tick = tick.max(self.now);
        let level = ((tick ^ self.now) | 1).ilog2() / DIGIT_BITS;
        (level as usize, (tick >> (level * DIGIT_BITS)) as usize % BUCKETS)
    }

    /// Adds an item of `tag`, due at `tick`.
    pub fn insert(&mut self, tick: u64, tag: u16) {
        let (level, bucket) = self.place(tick);
        let level = self.levels[level].get_or_insert_default();
        level.occupied |= 1 << bucket;
        level.buckets[bucket].push(tag);
        self.len += 1;
    }

    /// Whether items due at the two ticks share a bucket, so that moving one to the other's place needs no insertion.
    pub fn same_bucket(&self, tick: u64, other: u64) -> bool {
        self.place(tick) == self.place(other)
    }

    /// Moves the buckets out of memory that is to be given back (`slab::start_draining`).
    pub fn relocate(&mut self) {
        for level in self.levels.iter_mut().flatten() {
            level.buckets.iter_mut().for_each(Tags::relocate);
        }
    }

    /// A tick before which nothing is due; `None` when the wheel is empty.
    pub fn next_tick(&self) -> Option<u64> {
        self.next_bucket().map(|(_, _, start)| start)
    }

    fn next_bucket(&self) -> Option<(usize, usize, u64)> {
        // Everything at a level is due before everything at the next: the first occupied bucket is the earliest.
        self.levels.iter().enumerate().find_map(|(level, it)| {
            let occupied = it.as_ref()?.occupied;
            if occupied == 0 {
                return None;
            }
            let bucket = occupied.trailing_zeros() as usize;
            let shift = level as u32 * DIGIT_BITS;
            let above = self.now.checked_shr(shift + DIGIT_BITS).unwrap_or(0);
            let start = above.checked_shl(shift + DIGIT_BITS).unwrap_or(0) | (bucket as u64) << shift;
            Some((level, bucket, start))
        })
    }

    /// Moves the present to `to` and hands out tags that have something due at or before it, at most about `budget`.
    ///
    /// `ticks_of` tells the ticks at which the items of a tag are due. A tag handed out is no longer in the wheel; the
    /// owner removes what is due. Gives whether all is done; if not, call again.
    pub fn advance(
        &mut self,
        to: u64,
        budget: usize,
        mut ticks_of: impl FnMut(u16, &mut dyn FnMut(u64)),
        due: &mut Vec<u16>,
    ) -> bool {
        while let Some((level_index, bucket, start)) = self.next_bucket() {
            if start > to {
                break;
            }
            if due.len() >= budget {
                return false;
            }
            self.now = self.now.max(start);
            let level = self.levels[level_index].as_mut().expect("an occupied bucket's level is there");
            level.occupied &= !(1 << bucket);
            let mut tags = std::mem::take(&mut level.buckets[bucket]);
            if level.occupied == 0 {
                self.levels[level_index] = None;
            }
            self.len -= tags.as_slice().len();
            tags.as_mut_slice().sort_unstable();
            let end = start + ((1u64 << (level_index as u32 * DIGIT_BITS)) - 1);
            let mut last = None;
            for &tag in tags.as_slice() {
                // Several items of one tag in a bucket: the first spreads them all.
                if last.replace(tag) == Some(tag) {
                    continue;
                }
                if level_index == 0 {
                    due.push(tag);
                } else {
                    ticks_of(tag, &mut |tick| {
                        if (start..=end).contains(&tick) {
                            self.insert(tick, tag);
                        }
                    });
                }
            }
        }
        self.now = self.now.max(to);
        true
    }
}

/// A vector of tags in one word, as most of a wheel's buckets are empty.
#[derive(Default)]
struct Tags(Option<NonNull<u16>>);

// SAFETY: the block is owned by this value alone.
unsafe impl Send for Tags {}

/// The block starts with its length and capacity, counted in tags that follow.
const TAGS_HEADER: usize = 4;

impl Tags {
    fn len_and_capacity(&self) -> (usize, usize) {
        let Some(block) = self.0 else { return (0, 0) };
        // SAFETY: a block starts with its length and capacity as two `u32`s, aligned to eight by the slab.
        unsafe {
            let header = block.cast::<[u32; 2]>().read();
            (header[0] as usize, header[1] as usize)
        }
    }

    fn block_bytes(capacity: usize) -> usize {
        (TAGS_HEADER + capacity) * size_of::<u16>()
    }

    fn memory(&self) -> usize {
        let (_, capacity) = self.len_and_capacity();
        if capacity == 0 { 0 } else { slab::rounded(Tags::block_bytes(capacity)) }
    }

    fn push(&mut self, tag: u16) {
        let (len, mut capacity) = self.len_and_capacity();
        if len == capacity {
            // Whole slab blocks: eight bytes are four tags.
            capacity = (len + len / 8 + 4) & !3;
            self.move_to(capacity);
        }
        let block = self.0.expect("a block was just made sure of");
        // SAFETY: `len < capacity`, so the place is inside the block.
        unsafe {
            block.add(TAGS_HEADER + len).write(tag);
            block.cast::<u32>().write(len as u32 + 1);
        }
    }

    /// Moves the tags to a block with room for `capacity`, at least as many as there are.
    fn move_to(&mut self, capacity: usize) {
        let from = self.as_slice();
        let block: NonNull<u16> = slab::alloc(Tags::block_bytes(capacity)).cast();
        // SAFETY: the new block has room for the header and the tags there are.
        unsafe {
            block.cast::<[u32; 2]>().write([from.len() as u32, capacity as u32]);
            block.add(TAGS_HEADER).copy_from_nonoverlapping(NonNull::from_ref(from).cast(), from.len());
        }
        drop(std::mem::replace(self, Tags(Some(block))));
    }

    fn relocate(&mut self) {
        let (_, capacity) = self.len_and_capacity();
        let Some(block) = self.0 else { return };
        // SAFETY: the block was allocated with this size.
        let should_move = || unsafe { slab::is_draining(block.cast(), Tags::block_bytes(capacity)) };
        if slab::may_be_draining(block.cast()) && should_move() {
            self.move_to(capacity);
        }
    }

    fn as_slice(&self) -> &[u16] {
        let (len, _) = self.len_and_capacity();
        match self.0 {
            // SAFETY: the first `len` tags behind the header are written.
            Some(block) => unsafe { std::slice::from_raw_parts(block.add(TAGS_HEADER).as_ptr(), len) },
            None => &[],
        }
    }

    fn as_mut_slice(&mut self) -> &mut [u16] {
        let (len, _) = self.len_and_capacity();
        match self.0 {
            // SAFETY: the first `len` tags behind the header are written, and `self` is borrowed exclusively.
            Some(block) => unsafe { std::slice::from_raw_parts_mut(block.add(TAGS_HEADER).as_ptr(), len) },
            None => &mut [],
        }
    }
}

impl Drop for Tags {
    fn drop(&mut self) {
        let (_, capacity) = self.len_and_capacity();
        if let Some(block) = self.0 {
            // SAFETY: the block was allocated with this size and has no other owner.
            unsafe { slab::free(block.cast(), Tags::block_bytes(capacity)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Items by their number; the tag is the number's low bits, so that several items share one.
    fn run(span: u64, tags: u64, seed: u64) {
        let mut wheel = TimerWheel::new(1_000);
        let mut items: BTreeMap<u64, u64> = BTreeMap::new();
        let mut now = 1_000;
        let mut random = seed;
        let mut next = || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            random >> 33
        };
        let rounds = if cfg!(miri) { 60 } else { 20_000 };
        for number in 0..rounds {
            match next() % 5 {
                0..=2 => {
                    let tick = now + next() % span;
                    if let Some(old) = items.insert(number % 500, tick) {
                        if !wheel.same_bucket(old, tick) {
                            wheel.insert(tick, (number % 500 % tags) as u16);
                        }
                    } else {
                        wheel.insert(tick, (number % 500 % tags) as u16);
                    }
                }
                3 => drop(items.remove(&(next() % 500))),
                _ => {
                    now += next() % (span / 3 + 2);
                    let mut due = Vec::new();
                    while !wheel.advance(
                        now,
                        7,
                        |tag, each| {
                            items.iter().filter(|(n, _)| *n % tags == u64::from(tag)).for_each(|(_, t)| each(*t))
                        },
                        &mut due,
                    ) {
                        expire(&mut items, tags, now, &mut due);
                    }
                    expire(&mut items, tags, now, &mut due);
                    assert!(items.values().all(|&tick| tick > now), "all that was due was handed out");
                    if let Some(next) = wheel.next_tick() {
                        assert!(next > now);
                        assert!(items.values().all(|&tick| tick >= next));
                    } else {
                        assert!(items.is_empty());
                    }
                }
            }
        }
    }

    fn expire(items: &mut BTreeMap<u64, u64>, tags: u64, now: u64, due: &mut Vec<u16>) {
        for tag in due.drain(..) {
            items.retain(|n, tick| n % tags != u64::from(tag) || *tick > now);
        }
    }

    #[test]
    fn hands_out_all_that_is_due_and_nothing_is_lost() {
        for span in [3, 40, 5_000, 40_000_000] {
            run(span, 500, span);
            run(span, 3, span + 1);
        }
    }

    #[test]
    fn takes_the_farthest_ticks() {
        let mut wheel = TimerWheel::new(0);
        wheel.insert(u64::MAX, 1);
        wheel.insert(1 << 63, 2);
        let mut due = Vec::new();
        assert!(wheel.advance(1 << 40, 10, |_, _| (), &mut due));
        assert!(due.is_empty());
        assert!(wheel.advance(u64::MAX, 10, |tag, each| each(if tag == 1 { u64::MAX } else { 1 << 63 }), &mut due));
        due.sort_unstable();
        assert_eq!(due, [1, 2]);
        assert!(wheel.is_empty());
    }

    #[test]
    fn an_item_costs_few_bytes() {
        let mut wheel = TimerWheel::new(0);
        for tag in 0..1_000 {
            wheel.insert(200_000 + u64::from(tag), tag);
        }
        assert!(wheel.memory() < 3_600, "{} bytes for 1,000 items", wheel.memory());
    }
}
