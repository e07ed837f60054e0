//! How many bytes the process has allocated, counted without a shared counter. Knows no limit and no policy.
//!
//! Each thread adds to a cell of its own; `used` sums the cells. A block allocated by one thread and freed by another
//! leaves one cell too high and the other too low by the same amount, so only the sum has a meaning.

use crate::apart::Apart;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

/// Threads with a cell of their own; further threads share the last one.
const CELLS: usize = 256;

/// What one thread has allocated.
struct Counts {
    /// Bytes of everything.
    all: AtomicIsize,
    /// Bytes of the slots among them of tables that have them counted ([`crate::hash_table::Pointer::COUNTS_SLOTS`]).
    slots: AtomicIsize,
}

static COUNTS: [Apart<Counts>; CELLS] =
    [const { Apart(Counts { all: AtomicIsize::new(0), slots: AtomicIsize::new(0) }) }; CELLS];
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// No cell is assigned yet.
const UNASSIGNED: usize = usize::MAX;

thread_local! {
    static CELL: Cell<usize> = const { Cell::new(UNASSIGNED) };
}

/// Adds `bytes` (negative: freed) to what this thread has allocated.
#[inline]
pub fn count(bytes: isize) {
    add(|counts| &counts.all, bytes);
}

/// Adds `bytes` (negative: freed) to what this thread has allocated for tables' slots, which is counted besides.
#[inline]
pub(crate) fn count_slots(bytes: isize) {
    add(|counts| &counts.slots, bytes);
}

#[inline]
fn add(of: fn(&Counts) -> &AtomicIsize, bytes: isize) {
    let index = own_cell();
    let count = of(&COUNTS[index]);
    if index < CELLS - 1 {
        // Only this thread writes this cell: no read-modify-write is needed.
        count.store(count.load(Ordering::Relaxed).wrapping_add(bytes), Ordering::Relaxed);
    } else {
        count.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The cell of this thread.
#[inline]
fn own_cell() -> usize {
    // An access while the thread is torn down falls to the shared cell.
    CELL.try_with(|cell| if cell.get() == UNASSIGNED { assign(cell) } else { cell.get() }).unwrap_or(CELLS - 1)
}

/// What this thread's cell says. It may be below zero; only the difference between two moments has a meaning: how much
/// more this thread has allocated than freed between them.
#[inline]
pub fn counted_here() -> isize {
    COUNTS[own_cell()].all.load(Ordering::Relaxed)
}

#[cold]
fn assign(cell: &Cell<usize>) -> usize {
    let index = THREADS.fetch_add(1, Ordering::Relaxed).min(CELLS - 1);
    cell.set(index);
    index
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
    let threads = THREADS.load(Ordering::Relaxed).min(CELLS);
    let own: isize = COUNTS[..threads].iter().map(|counts| of(counts).load(Ordering::Relaxed)).sum();
    let shared = if threads < CELLS { of(&COUNTS[CELLS - 1]).load(Ordering::Relaxed) } else { 0 };
    usize::try_from(own + shared).unwrap_or(0)
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
