//! When the general allocator gives memory that is free back to the kernel. Knows nothing of what is allocated.
//!
//! Its rule: of mimalloc's functions it calls only those that touch no block in use, and that any thread may call at any time.
#![allow(unsafe_code)]

use libmimalloc_sys::{mi_collect, mi_option_set, mi_option_t};

/// `mi_option_purge_delay` of mimalloc.h, for which the crate has no name. Options keep their numbers in that file.
const PURGE_DELAY: mi_option_t = 15;
/// What is free for so long goes back, in milliseconds. mimalloc does it for all that is free at that time, also for what
/// was freed just now: with the second that it waits by default, each overwriting of long values pays for a part of their
/// pages once a second.
const MILLISECONDS: i64 = 5000;

/// Has the allocator keep free memory for five seconds, unless `MIMALLOC_PURGE_DELAY` says otherwise.
pub fn keep_free_memory() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        // SAFETY: mimalloc takes any option at any time, from any thread, and passes over a number that it does not know.
        unsafe { mi_option_set(PURGE_DELAY, MILLISECONDS) }
    }
}

/// Gives up what is free of this thread's.
pub fn collect() {
    // SAFETY: it frees what nobody uses, and may be called at any time, from any thread.
    unsafe { mi_collect(false) }
}

/// Gives back now what is free: what this thread keeps for itself, and what any thread has given up.
pub fn release() {
    // SAFETY: it frees what nobody uses, and may be called at any time, from any thread.
    unsafe { mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libmimalloc_sys::mi_option_get;

    /// If the number were another option's, its value would be neither of these.
    #[test]
    fn the_option_is_the_one_that_is_meant() {
        // SAFETY: as for setting it.
        let value = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(value(), 1000, "mimalloc's own delay");
        keep_free_memory();
        assert_eq!(value(), MILLISECONDS);
    }
}
