//! The atomics and locks of the ring: the standard library's, or loom's, which tries every order of their steps. Knows
//! nothing of the ring.

#[cfg(not(all(test, loom)))]
pub(super) use std::cell::UnsafeCell;
#[cfg(not(all(test, loom)))]
pub(super) use std::sync::{
    Arc, Condvar, Mutex,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

#[cfg(all(test, loom))]
pub(super) use loom::{
    cell::UnsafeCell,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

/// Stands between a write and the reading of what others have written, both sequentially consistent. Loom takes such
/// accesses for weaker ones and wants a fence.
#[inline(always)]
pub(super) fn after_write() {
    #[cfg(all(test, loom))]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

/// A number that no one else was given.
pub(super) fn next_id() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
