//! How many bytes the process has allocated, counted without a shared counter. Knows no limit and no policy.
//!
//! Each thread adds to a cell of its own, which another has after it; `used` sums the cells. A block allocated by one thread
//! and freed by another leaves one cell too high and the other too low by the same amount, so only the sum has a meaning.

use crate::apart::Apart;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering};

/// Threads at a time with a cell of their own are one fewer; further threads share the last cell.
const CELLS: usize = 256;
const SHARED: usize = CELLS - 1;

/// What one thread has allocated.
struct Counts {
    /// Bytes of everything.
    all: AtomicIsize,
    /// Bytes of the slots among them of tables that have them counted ([`crate::hash_table::Pointer::COUNTS_SLOTS`]).
    slots: AtomicIsize,
}

static COUNTS: [Apart<Counts>; CELLS] =
    [const { Apart(Counts { all: AtomicIsize::new(0), slots: AtomicIsize::new(0) }) }; CELLS];
/// Cells that have been some thread's.
static USED_CELLS: AtomicUsize = AtomicUsize::new(0);
/// Which are a thread's now: a bit each. The last one is never.
static TAKEN: [AtomicU64; CELLS / 64] = [const { AtomicU64::new(0) }; CELLS / 64];

/// No cell is assigned yet.
const UNASSIGNED: usize = usize::MAX;

thread_local! {
    static CELL: Cell<usize> = const { Cell::new(UNASSIGNED) };
    /// What this thread has added to the shared cell.
    static SHARED_HERE: Cell<isize> = const { Cell::new(0) };
    static LEAVING: Leaving = const { Leaving };
}

/// Gives the thread's cell back when the thread ends.
struct Leaving;

impl Drop for Leaving {
    fn drop(&mut self) {
        // What else is torn down is freed behind this.
        let index = CELL.replace(SHARED);
        if index < SHARED {
            // The next one adds to what this one has left there.
            TAKEN[index / 64].fetch_and(!(1 << (index % 64)), Ordering::Release);
        }
    }
}

/// Adds `bytes` (negative: freed) to what this thread has allocated.
#[inline]
pub fn count(bytes: isize) {
    if !add(|counts| &counts.all, bytes) {
        count_beside(bytes);
    }
}

#[cold]
fn count_beside(bytes: isize) {
    SHARED_HERE.set(SHARED_HERE.get().wrapping_add(bytes));
}

/// Adds `bytes` (negative: freed) to what this thread has allocated for tables' slots, which is counted besides.
#[inline]
pub(crate) fn count_slots(bytes: isize) {
    add(|counts| &counts.slots, bytes);
}

/// Adds to a count of this thread's cell; `false` if that is the shared one.
#[inline]
fn add(of: fn(&Counts) -> &AtomicIsize, bytes: isize) -> bool {
    let index = own_cell();
    let count = of(&COUNTS[index]);
    if index < SHARED {
        // Only this thread writes this cell: no read-modify-write is needed.
        count.store(count.load(Ordering::Relaxed).wrapping_add(bytes), Ordering::Relaxed);
        true
    } else {
        count.fetch_add(bytes, Ordering::Relaxed);
        false
    }
}

/// The cell of this thread.
#[inline]
fn own_cell() -> usize {
    let index = CELL.get();
    if index == UNASSIGNED { assign() } else { index }
}

/// What this thread's cell says. It may be below zero; only the difference between two moments has a meaning: how much
/// more this thread has allocated than freed between them.
#[inline]
pub fn counted_here() -> isize {
    let index = own_cell();
    if index < SHARED { COUNTS[index].all.load(Ordering::Relaxed) } else { SHARED_HERE.get() }
}

#[cold]
fn assign() -> usize {
    let index = TAKEN.iter().enumerate().find_map(|(word, taken)| take_bit(taken).map(|bit| word * 64 + bit));
    let index = index.unwrap_or(SHARED);
    USED_CELLS.fetch_max(index + 1, Ordering::Relaxed);
    // First: what follows may allocate. While the thread is torn down there is nobody left to give the cell back.
    CELL.set(index);
    if LEAVING.try_with(|_| ()).is_err() {
        drop(Leaving);
    }
    CELL.get()
}

/// Sets the lowest bit that is not set, if it is not that of the shared cell.
fn take_bit(taken: &AtomicU64) -> Option<usize> {
    let is_last = std::ptr::eq(taken, &TAKEN[SHARED / 64]);
    let bits = if is_last { u64::MAX >> 1 } else { u64::MAX };
    let lowest_free = |taken: u64| (!taken & bits).trailing_zeros();
    let set = |taken: u64| (lowest_free(taken) < 64).then(|| taken | 1 << lowest_free(taken));
    let before = taken.fetch_update(Ordering::Acquire, Ordering::Relaxed, set).ok()?;
    Some(lowest_free(before) as usize)
}

/// Bytes that are allocated now, over all threads. Exact when no thread allocates meanwhile.
pub fn used() -> usize {
    sum(|counts| &counts.all)
}

/// Bytes of them that are the slots of tables of keys.
pub fn slots() -> usize {
    sum(|counts| &counts.slots)
}

fn sum(of: fn(&Counts) -> &AtomicIsize) -> usize {
    let used = USED_CELLS.load(Ordering::Relaxed).min(SHARED);
    let own: isize = COUNTS[..used].iter().map(|counts| of(counts).load(Ordering::Relaxed)).sum();
    usize::try_from(own + of(&COUNTS[SHARED]).load(Ordering::Relaxed)).unwrap_or(0)
}

/// A global allocator that counts what passes through it.
#[derive(Debug)]
pub struct Counting<A>(pub A);

// SAFETY: every call is forwarded unchanged to `A`, which upholds the contract; counting allocates nothing.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds `GlobalAlloc::alloc`'s contract.
        counted(unsafe { self.0.alloc(layout) }, layout.size() as isize)
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds `GlobalAlloc::alloc_zeroed`'s contract.
        counted(unsafe { self.0.alloc_zeroed(layout) }, layout.size() as isize)
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller upholds `GlobalAlloc::dealloc`'s contract.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller upholds `GlobalAlloc::realloc`'s contract.
        counted(unsafe { self.0.realloc(pointer, layout, size) }, size as isize - layout.size() as isize)
    }
}

/// Counts an allocation if there was one: what `try_reserve` asks for in vain must not count as used for good.
#[inline]
fn counted(pointer: *mut u8, bytes: isize) -> *mut u8 {
    if !pointer.is_null() {
        count(bytes);
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_threads() {
        // Other tests of this crate count too, but never this much.
        const BIG: isize = 1 << 50;
        count(BIG);
        std::thread::spawn(|| count(BIG)).join().unwrap();
        let here = counted_here();
        count(BIG);
        assert_eq!((counted_here() - here + BIG / 2) / BIG, 1);
        count(-BIG);
        assert_eq!((used() as isize + (BIG / 2)) / BIG, 2);
        std::thread::spawn(|| count(-2 * BIG)).join().unwrap();
        assert_eq!((used() as isize + (BIG / 2)) / BIG, 0);
    }

    #[test]
    fn threads_have_a_cell_one_after_another_and_each_its_own_sum() {
        const BIG: isize = 1 << 40;
        let own_sum = || {
            let before = counted_here();
            count(BIG);
            count_slots(BIG);
            let counted = counted_here() - before;
            count(-BIG);
            count_slots(-BIG);
            (counted + BIG / 2) / BIG
        };
        let threads = if cfg!(miri) { 8 } else { 2 * CELLS };
        // More by far than there are cells, and none is left with the shared one.
        for _ in 0..threads {
            assert_eq!(std::thread::spawn(move || (own_sum(), own_cell() < SHARED)).join().unwrap(), (1, true));
        }
        let all_are_there = std::sync::Arc::new(std::sync::Barrier::new(threads));
        let together = (0..threads).map(|_| {
            let all_are_there = std::sync::Arc::clone(&all_are_there);
            std::thread::spawn(move || {
                own_cell();
                all_are_there.wait();
                own_sum()
            })
        });
        let together: Vec<_> = together.collect();
        assert!(together.into_iter().all(|thread| thread.join().unwrap() == 1));
    }

    /// An allocator that never has anything.
    struct Exhausted;

    // SAFETY: null says that there was nothing to give, so nothing comes back.
    unsafe impl GlobalAlloc for Exhausted {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            std::ptr::null_mut()
        }
        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {
            unreachable!("nothing was given out")
        }
        unsafe fn realloc(&self, _: *mut u8, _: Layout, _: usize) -> *mut u8 {
            std::ptr::null_mut()
        }
    }

    #[test]
    fn what_could_not_be_allocated_is_not_counted() {
        // Larger than what other tests count meanwhile.
        const HUGE: usize = 1 << 55;
        let layout = Layout::from_size_align(HUGE, 8).unwrap();
        let mut byte = 0u8;
        let before = used();
        // SAFETY: the layout has a size, and `Exhausted` does not look at what it is given.
        unsafe {
            assert!(Counting(Exhausted).alloc(layout).is_null());
            assert!(Counting(Exhausted).alloc_zeroed(layout).is_null());
            assert!(Counting(Exhausted).realloc(&raw mut byte, Layout::new::<u8>(), HUGE).is_null());
        }
        assert!(used().abs_diff(before) < HUGE / 2);
    }
}
