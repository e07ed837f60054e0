//! Which thread has which heap. Knows nothing of what heaps hold.

use super::heap::Heap;
use std::cell::Cell;
use std::ptr;
use std::sync::Mutex;

static HEAPS: Mutex<Vec<&'static Heap>> = Mutex::new(Vec::new());

thread_local! {
    /// The heap that this thread has, null before its first block.
    pub(super) static HEAP: Cell<*const Heap> = const { Cell::new(ptr::null()) };
    static LEASE: Lease = const { Lease };
}

/// Gives the thread's heap back when the thread ends.
struct Lease;

impl Drop for Lease {
    fn drop(&mut self) {
        let heap = HEAP.replace(ptr::null());
        if !heap.is_null() {
            // SAFETY: heaps are leaked, so the pointer stays valid; until it is disowned, the heap is this thread's.
            unsafe {
                (*heap).stop_draining();
                (*heap).disown();
            }
        }
    }
}

#[inline]
pub(super) fn own_heap() -> &'static Heap {
    let heap = HEAP.get();
    // SAFETY: heaps are leaked, so a non-null pointer stays valid.
    if heap.is_null() { lease_heap() } else { unsafe { &*heap } }
}

#[cold]
fn lease_heap() -> &'static Heap {
    let mut heaps = HEAPS.lock().expect("no code panics while it holds the list of heaps");
    let idle = heaps.iter().find(|heap| heap.try_own()).copied();
    let heap = idle.unwrap_or_else(|| {
        let heap: &'static Heap = Box::leak(Box::new(Heap::new()));
        heaps.push(heap);
        heap
    });
    HEAP.set(heap);
    // While the thread is torn down the lease is gone; such a heap then stays leased for good, which is harmless.
    let _ = LEASE.try_with(|_| ());
    heap
}

/// Bytes of all threads' freed blocks whose memory is still taken, of threads that have ended too. What others have freed
/// of a thread's blocks and it has not taken back yet is not among them.
pub fn waste_of_all() -> usize {
    HEAPS.lock().expect("no code panics while it holds the list of heaps").iter().map(|heap| heap.waste()).sum()
}

/// Takes back what was freed of the blocks of threads that have ended, at most so many of each; no thread may come for a
/// long time that would do so for its own heap. Tells whether something is left.
pub(super) fn collect_idle(blocks_max: usize) -> bool {
    // Whoever holds the lock leases a heap, or collects already.
    let Ok(heaps) = HEAPS.try_lock() else { return false };
    let mut is_left = false;
    for heap in heaps.iter() {
        if heap.try_own() {
            // SAFETY: this thread owns the heap for the moment.
            unsafe {
                heap.drain_remote(blocks_max);
                is_left |= heap.has_remote();
            }
            heap.disown();
        }
    }
    is_left
}
