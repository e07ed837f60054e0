//! Memory for what is long, in whole pages: what is free is joined with what is free beside it, whatever its length was
//! before, and goes back to the system when it is not needed. Knows not what is kept there.
//!
//! General allocators keep blocks of a length together, also long ones: where lengths change, a few of the old ones hold
//! the pages of many. Here blocks of any length lie side by side.
//!
//! ```text
//!            take: the shortest run that has room              put
//! in use  <----------------------------------------  kept  <---------- in use
//!         <---------------------------  given back  <------ beyond the bound, and what
//!               where no kept one has                        was not needed for a while
//! ```

mod runs;

use crate::pages::{self, PAGE};
use runs::{Run, Runs};
use std::alloc::{GlobalAlloc, Layout};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Longer blocks than this are extents.
const SHORT_MAX: usize = 16 * 1024;
/// What is asked of the system at first, and then twice as much each time, in bytes of addresses: pages come when they are
/// written to.
const REGION_MIN: usize = 64 << 20;
const REGION_MAX: usize = 1 << 30;
/// A block of so many bytes that does not fit into what is kept has as much of that given back.
const LARGE: usize = 16 << 20;
/// Of what is kept so large a part stays when it has become too much.
const STAYS: (usize, usize) = (3, 4);

static STATE: Mutex<State> = Mutex::new(State {
    kept: Runs::new(),
    given_back: Runs::new(),
    least_kept: 0,
    next_region: REGION_MIN,
    regions: 0,
});
/// How many bytes are kept at most.
static KEPT_MAX: AtomicUsize = AtomicUsize::new(REGION_MIN);
/// How many are, for whoever looks.
static KEPT: AtomicUsize = AtomicUsize::new(0);

struct State {
    /// Free, with their pages.
    kept: Runs,
    /// Free, without: they read as zeros.
    given_back: Runs,
    /// The fewest pages that were kept since `release_unneeded`.
    least_kept: usize,
    /// Bytes of the next region.
    next_region: usize,
    /// Bytes of all regions.
    regions: usize,
}

fn state() -> MutexGuard<'static, State> {
    // Nothing here panics between two changes that belong together.
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Takes pages from what is free; zeros if they are to be.
    fn take(&mut self, pages: usize, zeroed: bool) -> Option<Run> {
        let kept = if zeroed { None } else { self.kept.take(pages) };
        if kept.is_some() {
            self.kept_changed();
        }
        kept.or_else(|| self.given_back.take(pages)).or_else(|| self.take_of_new_region(pages))
    }

    fn take_of_new_region(&mut self, pages: usize) -> Option<Run> {
        let wanted = pages.checked_mul(PAGE)?;
        let len = self.next_region.max(wanted);
        // Where addresses are scarce what is wanted may still be had.
        let (start, len) = pages::map(len).map(|start| (start, len)).or_else(|| Some((pages::map(wanted)?, wanted)))?;
        self.next_region = (self.next_region * 2).min(REGION_MAX);
        self.regions += len;
        self.given_back.put(Run { start: start / PAGE, pages: len / PAGE });
        self.given_back.take(pages)
    }

    fn put(&mut self, run: Run) {
        self.kept.put(run);
        self.kept_changed();
    }

    fn kept_changed(&mut self) {
        let pages = self.kept.pages();
        self.least_kept = self.least_kept.min(pages);
        KEPT.store(pages * PAGE, Ordering::Relaxed);
    }
}

/// Gives the longest of what is kept back until so many bytes are left.
fn release_down_to(bytes: usize) {
    loop {
        let mut state = state();
        let longest = if state.kept.pages() * PAGE > bytes { state.kept.take_longest() } else { None };
        let Some(run) = longest else { return };
        let too_much = (state.kept.pages() + run.pages) - bytes / PAGE;
        if too_much < run.pages {
            // The end of it is enough.
            state.kept.put(Run { start: run.start, pages: run.pages - too_much });
        }
        let pages = run.pages.min(too_much);
        let run = Run { start: run.start + run.pages - pages, pages };
        state.kept_changed();
        drop(state);
        // Outside the lock, as the system takes a while over it.
        // SAFETY: the run was free and is in neither set now, so it is nobody's but ours.
        unsafe { pages::release(run.start * PAGE, run.pages * PAGE) };
        self::state().given_back.put(run);
    }
}

/// Says how many bytes may be kept at most of what is free.
pub fn keep_at_most(bytes: usize) {
    KEPT_MAX.store(bytes, Ordering::Relaxed);
}

/// Bytes that are free and have their pages.
pub fn kept() -> usize {
    KEPT.load(Ordering::Relaxed)
}

/// Gives back what was free all the time since this was called last.
pub fn release_unneeded() {
    let (pages, least) = {
        let mut state = state();
        let pages = state.kept.pages();
        (pages, std::mem::replace(&mut state.least_kept, pages))
    };
    release_down_to((pages - least.min(pages)) * PAGE);
}

/// Gives back all that is free.
pub fn release() {
    release_down_to(0);
}

/// A global allocator whose long blocks are extents; the others are `A`'s.
#[derive(Debug)]
pub struct Extents<A>(pub A);

fn is_long(layout: Layout) -> bool {
    pages::HAS_PAGES && layout.size() > SHORT_MAX && layout.align() <= PAGE
}

fn pages_of(bytes: usize) -> usize {
    bytes.div_ceil(PAGE)
}

fn take(bytes: usize, zeroed: bool) -> *mut u8 {
    let (run, kept_before, kept) = {
        let mut state = state();
        let before = state.kept.pages();
        (state.take(pages_of(bytes), zeroed), before, state.kept.pages())
    };
    // Else one small block in the middle of what is kept would have all of it and as much again resident.
    if bytes >= LARGE && !zeroed && kept == kept_before {
        release_down_to((kept * PAGE).saturating_sub(bytes));
    }
    run.map_or(ptr::null_mut(), |run| ptr::with_exposed_provenance_mut(run.start * PAGE))
}

fn put(run: Run) {
    state().put(run);
    let most = KEPT_MAX.load(Ordering::Relaxed);
    if kept() > most {
        release_down_to(most / STAYS.1 * STAYS.0);
    }
}

// SAFETY: a long block is a run of pages that is taken out of what is free until it is put back, of at least as many bytes
// as asked for, and begins where a page does; whether a block is long can be told from its layout, so that each goes back to
// where it came from. The sets allocate nothing that is long. Short blocks are `A`'s, which upholds the contract.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Extents<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_long(layout) {
            return take(layout.size(), false);
        }
        // SAFETY: the caller upholds `GlobalAlloc::alloc`'s contract.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_long(layout) {
            return take(layout.size(), true);
        }
        // SAFETY: the caller upholds `GlobalAlloc::alloc_zeroed`'s contract.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if is_long(layout) {
            return put(Run { start: pointer.addr() / PAGE, pages: pages_of(layout.size()) });
        }
        // SAFETY: the caller upholds `GlobalAlloc::dealloc`'s contract.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller vouches for the size: rounded up to the alignment it does not overflow.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (is_long(layout), is_long(new)) {
            // SAFETY: the caller upholds `GlobalAlloc::realloc`'s contract.
            (false, false) => unsafe { self.0.realloc(pointer, layout, size) },
            (true, true) if pages_of(size) <= pages_of(layout.size()) => {
                let (pages, left) = (pages_of(size), pages_of(layout.size()) - pages_of(size));
                if left > 0 {
                    put(Run { start: pointer.addr() / PAGE + pages, pages: left });
                }
                pointer
            }
            _ => {
                // SAFETY: the caller upholds the contracts; the old block has `layout.size()` bytes and the new one, if there is
                // one, `size`, and they do not overlap.
                unsafe {
                    let block = self.alloc(new);
                    if !block.is_null() {
                        ptr::copy_nonoverlapping(pointer, block, layout.size().min(size));
                        self.dealloc(pointer, layout);
                    }
                    block
                }
            }
        }
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;
    use std::alloc::System;

    const EXTENTS: Extents<System> = Extents(System);

    /// The state is everybody's.
    static ALONE: Mutex<()> = Mutex::new(());

    fn alone() -> MutexGuard<'static, ()> {
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 8).expect("the size is no more than what is tried here")
    }

    /// A block whose every byte is its own.
    struct Block {
        pointer: *mut u8,
        size: usize,
        mark: u8,
    }

    impl Block {
        fn new(size: usize, mark: u8) -> Block {
            // SAFETY: the size is not zero; the block has as many bytes.
            unsafe {
                let pointer = EXTENTS.alloc(layout(size));
                pointer.write_bytes(mark, size);
                Block { pointer, size, mark }
            }
        }

        fn zeroed(size: usize, mark: u8) -> Block {
            // SAFETY: as for `new`; all bytes are initialised.
            unsafe {
                let pointer = EXTENTS.alloc_zeroed(layout(size));
                assert!(std::slice::from_raw_parts(pointer, size).iter().all(|&byte| byte == 0));
                pointer.write_bytes(mark, size);
                Block { pointer, size, mark }
            }
        }

        fn check(&self, len: usize) {
            // SAFETY: the block is live and was written up to `size`, which `len` does not exceed.
            let bytes = unsafe { std::slice::from_raw_parts(self.pointer, len) };
            assert!(bytes.iter().all(|&byte| byte == self.mark));
        }

        fn resize(&mut self, size: usize) {
            // SAFETY: the block is live and came with this layout; the new size is not zero.
            self.pointer = unsafe { EXTENTS.realloc(self.pointer, layout(self.size), size) };
            self.check(self.size.min(size));
            self.size = size;
            // SAFETY: the block has as many bytes.
            unsafe { self.pointer.write_bytes(self.mark, size) };
        }

        fn free(self) {
            self.check(self.size);
            // SAFETY: the block is live, came with this layout, and is freed once.
            unsafe { EXTENTS.dealloc(self.pointer, layout(self.size)) }
        }
    }

    /// Numbers that look like any.
    fn numbers(mut seed: u64) -> impl FnMut(usize) -> usize {
        move |below| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed as usize % below
        }
    }

    fn churn(seed: u64) {
        let mut number = numbers(seed);
        let mut blocks = Vec::new();
        for _ in 0..2_000 {
            let below = if number(8) == 0 { 2_000_000 } else { 100_000 };
            let size = 1 + number(below);
            let mark = number(255) as u8 + 1;
            match number(6) {
                0 | 1 => blocks.push(Block::new(size, mark)),
                2 => blocks.push(Block::zeroed(size, mark)),
                3 if !blocks.is_empty() => {
                    let at = number(blocks.len());
                    blocks[at].resize(size);
                }
                _ if !blocks.is_empty() => {
                    let at = number(blocks.len());
                    blocks.swap_remove(at).free();
                }
                _ => {}
            }
        }
        blocks.into_iter().for_each(Block::free);
    }

    #[test]
    #[cfg_attr(miri, ignore = "tens of millions of bytes")]
    fn what_a_large_block_does_not_fit_into_makes_way_for_it() {
        let _alone = alone();
        release();
        keep_at_most(4 * LARGE);
        let [first, second] = [LARGE, LARGE].map(|size| Block::new(size, 1));
        [first, second].into_iter().for_each(Block::free);
        assert_eq!(kept(), 2 * LARGE);
        let small = Block::new(64 * 1024, 2);
        let large = Block::new(2 * LARGE, 3);
        assert_eq!(kept(), 0);
        [small, large].into_iter().for_each(Block::free);
        release();
    }

    #[test]
    fn no_block_is_another_ones() {
        let _alone = alone();
        keep_at_most(1 << 20);
        std::thread::scope(|scope| {
            (1..4).for_each(|seed| drop(scope.spawn(move || churn(seed * 0x9e37_79b9))));
        });
        assert!(kept() <= 1 << 20);
        release();
        let state = state();
        assert_eq!((state.kept.pages(), state.given_back.pages() * PAGE), (0, state.regions));
    }

    #[test]
    fn what_is_free_beside_one_another_serves_longer_ones() {
        let _alone = alone();
        keep_at_most(usize::MAX);
        release();
        let short: Vec<Block> = (0..64).map(|mark| Block::new(64 << 10, mark)).collect();
        short.into_iter().for_each(Block::free);
        assert_eq!(kept(), 64 * (64 << 10));
        let long = Block::new(64 * (64 << 10), 1);
        assert_eq!(kept(), 0, "the pages of the short ones are the long one's");
        long.free();
        release();
    }

    #[test]
    fn what_was_not_needed_for_a_while_goes_back() {
        let _alone = alone();
        keep_at_most(usize::MAX);
        release();
        let (one, other) = (Block::new(1 << 20, 1), Block::new(3 << 20, 2));
        one.free();
        other.free();
        release_unneeded();
        assert_eq!(kept(), 4 << 20, "it was in use since");
        Block::new(1 << 20, 3).free();
        release_unneeded();
        assert_eq!(kept(), 1 << 20, "so much was needed");
        release_unneeded();
        assert_eq!(kept(), 0);
    }

    #[test]
    fn what_cannot_be_had_is_told() {
        let _alone = alone();
        // SAFETY: the size is not zero.
        assert!(unsafe { EXTENTS.alloc(layout(1 << 60)) }.is_null());
        let mut block = Block::new(100_000, 7);
        // SAFETY: the block is live and came with this layout.
        assert!(unsafe { EXTENTS.realloc(block.pointer, layout(block.size), 1 << 60) }.is_null());
        block.check(block.size);
        block.resize(40_000);
        block.free();
    }
}
