//! A hierarchical timer wheel that keeps two bytes for an item that is due soon and nothing for others. Knows neither
//! the items nor the time of day.
//!
//! Time is counted in ticks. Level `n` has sixteen buckets of `16^n` ticks each; an item lies at the level of the
//! highest hexadecimal digit in which its tick differs from the present one:
//!
//! ```text
//! now  = 0x3_7_4_a_2        due 0x3_7_4_c_0  -> level 1, bucket c      near: the bucket holds the item's tag
//!                           due 0x4_9_0_0_1  -> level 4, bucket 4      far: the bucket holds one bit for all of them
//! ```
//!
//! When the present reaches a bucket of a higher level, its items are spread over the lower ones. For that the owner
//! is asked: at a near level when the items of a tag are due, at a far one when any item is due, which it finds by
//! looking at all of them. That is once in `16^4` ticks at most, and each wheel has a phase of its own, so that several
//! do not do it together. What is not due in the bucket's time any more is dropped, so removing an item early needs no
//! search.

use crate::slab;
use std::ops::RangeInclusive;
use std::ptr::NonNull;

const DIGIT_BITS: u32 = 4;
const BUCKETS: usize = 1 << DIGIT_BITS;
/// Levels whose buckets hold tags.
const NEAR: usize = 4;
/// Levels whose buckets are a bit each.
const FAR: usize = (u64::BITS / DIGIT_BITS) as usize - NEAR;

/// The wheel.
#[derive(Default)]
pub struct TimerWheel {
    now: u64,
    /// Tags in all buckets, stale ones included.
    len: u32,
    /// Added to every tick of the owner's.
    phase: u16,
    /// Bit `n`: something is or was in bucket `n`.
    far: [u16; FAR],
    near: [Option<Box<Level>>; NEAR],
}

const _: () = assert!(size_of::<TimerWheel>() == 72, "each shard has a wheel");

#[derive(Default)]
struct Level {
    /// Bit `n`: bucket `n` holds something.
    occupied: u16,
    buckets: [Tags; BUCKETS],
}

/// Who has the items, and knows when they are due.
pub trait Items {
    /// Calls `visit` with the ticks at which the items of a tag are due.
    fn ticks_of(&self, tag: u16, visit: &mut dyn FnMut(u64));

    /// Calls `visit` with the tag and the tick of every item.
    fn each(&self, visit: &mut dyn FnMut(u16, u64));
}

impl TimerWheel {
    /// An empty wheel whose present is `now`. Wheels with different phases look at all of their items at different times.
    pub fn new(now: u64, phase: u16) -> TimerWheel {
        TimerWheel { now: now.saturating_add(phase.into()), phase, ..TimerWheel::default() }
    }

    /// What it was made with.
    pub fn phase(&self) -> u16 {
        self.phase
    }

    /// Tags kept, those of items that were removed or moved meanwhile included.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.next_bucket().is_none()
    }

    /// Bytes of memory beside the wheel itself.
    pub fn memory(&self) -> usize {
        let level = |level: &Level| size_of::<Level>() + level.buckets.iter().map(Tags::memory).sum::<usize>();
        self.near.iter().flatten().map(|l| level(l)).sum()
    }

    /// How many ticks the present is behind that of the wheel: whoever counts them has set them back.
    pub fn ticks_ahead_of(&self, tick: u64) -> u64 {
        self.now.saturating_sub(self.phased(tick))
    }

    fn phased(&self, tick: u64) -> u64 {
        tick.saturating_add(self.phase.into())
    }

    /// The level and bucket of what is due at `tick`, phase included; what is overdue goes where it comes out next.
    fn place(&self, tick: u64) -> (usize, usize) {
        let tick = tick.max(self.now);
        let level = ((tick ^ self.now) | 1).ilog2() / DIGIT_BITS;
        (level as usize, (tick >> (level * DIGIT_BITS)) as usize % BUCKETS)
    }

    /// Adds an item of `tag`, due at `tick`.
    pub fn insert(&mut self, tick: u64, tag: u16) {
        self.insert_phased(self.phased(tick), tag);
    }

    fn insert_phased(&mut self, tick: u64, tag: u16) {
        let (level, bucket) = self.place(tick);
        if let Some(far) = level.checked_sub(NEAR) {
            self.far[far] |= 1 << bucket;
            return;
        }
        let level = self.near[level].get_or_insert_default();
        level.occupied |= 1 << bucket;
        level.buckets[bucket].push(tag);
        self.len += 1;
    }

    /// Whether items due at the two ticks share a bucket, so that moving one to the other's place needs no insertion.
    pub fn same_bucket(&self, tick: u64, other: u64) -> bool {
        self.place(self.phased(tick)) == self.place(self.phased(other))
    }

    /// Moves the buckets out of memory that is to be given back (`slab::start_draining`).
    pub fn relocate(&mut self) {
        for level in self.near.iter_mut().flatten() {
            level.buckets.iter_mut().for_each(Tags::relocate);
        }
    }

    /// A tick before which nothing is due; `None` when the wheel is empty.
    pub fn next_tick(&self) -> Option<u64> {
        self.next_bucket().map(|(_, _, start)| start - u64::from(self.phase))
    }

    fn next_bucket(&self) -> Option<(usize, usize, u64)> {
        let near = self.near.iter().map(|level| level.as_ref().map_or(0, |level| level.occupied));
        // Everything at a level is due before everything at the next: the first occupied bucket is the earliest.
        let (level, occupied) = near.chain(self.far).enumerate().find(|(_, occupied)| *occupied != 0)?;
        let bucket = occupied.trailing_zeros() as usize;
        let shift = level as u32 * DIGIT_BITS;
        let above = self.now.checked_shr(shift + DIGIT_BITS).unwrap_or(0);
        let start = above.checked_shl(shift + DIGIT_BITS).unwrap_or(0) | (bucket as u64) << shift;
        Some((level, bucket, start))
    }

    /// Moves the present to `to` and hands out tags that have something due at or before it, at most about `budget`.
    ///
    /// A tag handed out is no longer in the wheel; the owner removes what is due. Gives whether all is done; if not, call
    /// again.
    pub fn advance(&mut self, to: u64, budget: usize, items: &impl Items, due: &mut Vec<u16>) -> bool {
        let to = self.phased(to);
        while let Some((level, bucket, start)) = self.next_bucket() {
            if start > to {
                break;
            }
            if due.len() >= budget {
                return false;
            }
            self.now = self.now.max(start);
            let end = start + ((1u64 << (level as u32 * DIGIT_BITS)) - 1);
            match level.checked_sub(NEAR) {
                None => self.empty_near(level, bucket, start..=end, items, due),
                Some(far) => {
                    self.far[far] &= !(1 << bucket);
                    items.each(&mut |tag, tick| self.insert_within(tick, tag, &(start..=end)));
                }
            }
        }
        self.now = self.now.max(to);
        true
    }

    /// Hands out the tags of a bucket, or spreads their items over the lower levels.
    fn empty_near(
        &mut self,
        level_index: usize,
        bucket: usize,
        time: RangeInclusive<u64>,
        items: &impl Items,
        due: &mut Vec<u16>,
    ) {
        let level = self.near[level_index].as_mut().expect("an occupied bucket's level is there");
        level.occupied &= !(1 << bucket);
        let mut tags = std::mem::take(&mut level.buckets[bucket]);
        if level.occupied == 0 {
            self.near[level_index] = None;
        }
        self.len -= tags.as_slice().len() as u32;
        tags.as_mut_slice().sort_unstable();
        let mut last = None;
        for &tag in tags.as_slice() {
            // Several items of one tag in a bucket: the first spreads them all.
            if last.replace(tag) == Some(tag) {
                continue;
            }
            if level_index == 0 {
                due.push(tag);
            } else {
                items.ticks_of(tag, &mut |tick| self.insert_within(tick, tag, &time));
            }
        }
    }

    /// Adds an item if it is due in this time, phase included.
    fn insert_within(&mut self, tick: u64, tag: u16, time: &RangeInclusive<u64>) {
        let tick = self.phased(tick);
        if time.contains(&tick) {
            self.insert_phased(tick, tag);
        }
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

    #[test]
    fn a_present_that_is_set_back_shows() {
        let mut wheel = TimerWheel::new(1_000, 7);
        let items = Numbered { ticks: BTreeMap::new(), tags: 1 };
        assert_eq!((wheel.ticks_ahead_of(999), wheel.ticks_ahead_of(1_000), wheel.ticks_ahead_of(1_001)), (1, 0, 0));
        assert!(wheel.advance(5_000, usize::MAX, &items, &mut Vec::new()));
        assert_eq!((wheel.ticks_ahead_of(1_000), wheel.ticks_ahead_of(5_000)), (4_000, 0));
    }

    /// Items by their number, with their ticks; the tag is the number modulo `tags`, so that several items share one.
    struct Numbered {
        ticks: BTreeMap<u64, u64>,
        tags: u64,
    }

    impl Items for Numbered {
        fn ticks_of(&self, tag: u16, visit: &mut dyn FnMut(u64)) {
            let same = self.ticks.iter().filter(|(number, _)| *number % self.tags == u64::from(tag));
            same.for_each(|(_, tick)| visit(*tick));
        }

        fn each(&self, visit: &mut dyn FnMut(u16, u64)) {
            self.ticks.iter().for_each(|(number, tick)| visit((number % self.tags) as u16, *tick));
        }
    }

    fn run(span: u64, tags: u64, seed: u64) {
        let mut wheel = TimerWheel::new(1_000, seed as u16);
        let mut items = Numbered { ticks: BTreeMap::new(), tags };
        let mut now = 1_000;
        let mut random = seed;
        let mut next = || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            random >> 33
        };
        let rounds = if cfg!(miri) { 40 } else { 20_000 };
        for number in 0..rounds {
            match next() % 5 {
                0..=2 => {
                    let tick = now + next() % span;
                    if let Some(old) = items.ticks.insert(number % 500, tick) {
                        if !wheel.same_bucket(old, tick) {
                            wheel.insert(tick, (number % 500 % tags) as u16);
                        }
                    } else {
                        wheel.insert(tick, (number % 500 % tags) as u16);
                    }
                }
                3 => drop(items.ticks.remove(&(next() % 500))),
                _ => {
                    now += next() % (span / 3 + 2);
                    let mut due = Vec::new();
                    while !wheel.advance(now, 7, &items, &mut due) {
                        expire(&mut items, now, &mut due);
                    }
                    expire(&mut items, now, &mut due);
                    assert!(items.ticks.values().all(|&tick| tick > now), "all that was due was handed out");
                    if let Some(next) = wheel.next_tick() {
                        assert!(next > now);
                        assert!(items.ticks.values().all(|&tick| tick >= next));
                    } else {
                        assert!(items.ticks.is_empty());
                    }
                }
            }
        }
    }

    fn expire(items: &mut Numbered, now: u64, due: &mut Vec<u16>) {
        let tags = items.tags;
        for tag in due.drain(..) {
            items.ticks.retain(|n, tick| n % tags != u64::from(tag) || *tick > now);
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
        for phase in [0, 7, u16::MAX] {
            let items = Numbered { ticks: BTreeMap::from([(1, u64::MAX), (2, 1 << 63)]), tags: 10 };
            let mut wheel = TimerWheel::new(0, phase);
            items.each(&mut |tag, tick| wheel.insert(tick, tag));
            let mut due = Vec::new();
            assert!(wheel.advance(1 << 40, 10, &items, &mut due));
            assert!(due.is_empty());
            assert!(wheel.advance(u64::MAX, 10, &items, &mut due));
            due.sort_unstable();
            assert_eq!(due, [1, 2]);
            assert!(wheel.is_empty());
        }
    }

    #[test]
    fn an_item_costs_few_bytes_when_it_is_due_soon_and_none_before() {
        for (tick, most) in [(20_000, 3_600), (200_000, 0)] {
            let mut wheel = TimerWheel::new(0, 0);
            for tag in 0..1_000 {
                wheel.insert(tick + u64::from(tag), tag);
            }
            assert!(wheel.memory() <= most, "{} bytes for 1,000 items", wheel.memory());
        }
    }
}
