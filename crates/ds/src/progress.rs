//! How far long work has come: whoever goes through many elements counts them here, and every so often whoever listens is
//! called, in the middle of the work. Knows no clock, and not what is done then.
//!
//! The counter is a thread's own and goes on from one piece of work to the next, so a little work costs an addition and a
//! comparison, and no piece has to say where it begins or ends.

use std::cell::Cell;
use std::sync::OnceLock;

/// Steps from one call to the next: a tenth of a millisecond's work where each waits for memory once or twice.
const STEPS: u32 = 256;

/// Bytes that are copied or looked through in about the time of a step.
const STEP_BYTES: usize = 1024;

thread_local! {
    static LEFT: Cell<u32> = const { Cell::new(STEPS) };
}

static LISTENER: OnceLock<fn(usize)> = OnceLock::new();

static TAKER: OnceLock<fn(usize)> = OnceLock::new();

/// Has `listener` be called where long work goes on, on the thread that does it, with how many steps begin now at the least;
/// the first one stays. It must not touch what anybody works on: that may be half changed.
pub fn listen(listener: fn(usize)) {
    LISTENER.get_or_init(|| listener);
}

/// Has `listener` be told how many bytes of memory long work is about to take at once; the first one stays.
pub fn listen_to_taking(listener: fn(usize)) {
    TAKER.get_or_init(|| listener);
}

/// Tells how many bytes of memory are about to be taken at once, by work that takes time. It is told only what the next call of
/// [`count`] would not find in time.
pub fn will_take(bytes: usize) {
    if let Some(listener) = TAKER.get() {
        listener(bytes);
    }
}

/// Counts steps of work that begin now: as a rule one for each element that is looked for or looked at.
#[inline(always)]
pub fn count(steps: usize) {
    LEFT.with(|left| match (left.get() as usize).checked_sub(steps) {
        Some(rest) => left.set(rest as u32),
        None => call(steps),
    });
}

/// Counts as many steps as bytes take that are to be copied or looked through.
#[inline]
pub fn count_bytes(bytes: usize) {
    count(bytes / STEP_BYTES);
}

#[cold]
#[inline(never)]
fn call(steps: usize) {
    LEFT.set(STEPS);
    if let Some(listener) = LISTENER.get() {
        listener(steps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static CALLS: Cell<u32> = const { Cell::new(0) };
        static MOST: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn whoever_listens_is_called_as_often_as_there_is_work() {
        listen(|steps| {
            CALLS.set(CALLS.get() + 1);
            MOST.set(MOST.get().max(steps));
        });
        let calls_of = |steps: usize, times: usize| {
            let before = CALLS.get();
            (0..times).for_each(|_| count(steps));
            CALLS.get() - before
        };
        assert_eq!(calls_of(1, STEPS as usize), 0);
        assert_eq!(calls_of(1, 1), 1, "the count goes on from one piece of work to the next");
        assert_eq!(MOST.get(), 1);
        assert_eq!((calls_of(usize::MAX, 3), MOST.get()), (3, usize::MAX), "what is announced is told");
        assert_eq!(calls_of(0, 1_000), 0);
        let before = CALLS.get();
        (0..8).for_each(|_| count_bytes(STEPS as usize * STEP_BYTES));
        assert!((4..=8).contains(&(CALLS.get() - before)));
        // Another thread has a count of its own.
        std::thread::spawn(|| (0..STEPS).for_each(|_| count(1))).join().expect("it ends");
    }
}
