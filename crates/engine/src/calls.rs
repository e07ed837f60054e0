//! Waiting until every call that is under way has ended: a worker looks whether there is a pause once for many commands, and a
//! script once for all of its own, so who has begun one waits for those that may not have seen it. Knows no event loop.
//!
//! ```text
//!  who waits:  a number to each worker ---> between two calls: its answer ---> all have answered
//!  lent calls (`meanwhile`) go on beside their worker's loop, which answers: they have numbers of their own, and those
//!  that there are when all have answered are waited for, too
//! ```
//!
//! Calls themselves write nothing for this.

use crate::engine::Engine;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How often whoever waits looks whether it is to go on waiting, and asks the workers again: they may not have run yet.
const PERIOD: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
struct State {
    /// For each worker, the number of the last question that it has answered.
    answered: Vec<u64>,
    /// The numbers of the calls that have lent their loop and have not ended.
    lent: Vec<u64>,
    /// How many have.
    lent_count: u64,
}

/// The calls, as far as anybody waits for them.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// How many wait for answers: workers are woken for much else.
    waiting: AtomicUsize,
    /// How often it was asked.
    asked: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

impl Calls {
    /// Notes that a worker is between two calls.
    fn answer(&self, worker: usize) {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return;
        }
        // Acquired, so that the calls that follow see what was done before the question.
        let asked = self.asked.load(Ordering::Acquire);
        let mut state = self.state.lock();
        if state.answered.len() <= worker {
            state.answered.resize(worker + 1, 0);
        }
        state.answered[worker] = asked;
        self.changed.notify_all();
    }

    /// Has every worker asked, and waits until all have answered and the calls are over that had lent their loops by then;
    /// `false` when `goes_on` did not want that any more.
    fn wait(&self, workers: usize, ask: impl Fn(usize), goes_on: impl Fn() -> bool) -> bool {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let have_ended = self.wait_for_answers(workers, ask, goes_on);
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        have_ended
    }

    fn wait_for_answers(&self, workers: usize, ask: impl Fn(usize), goes_on: impl Fn() -> bool) -> bool {
        let number = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let mut awaited = None;
        loop {
            let mut state = self.state.lock();
            let is_missing = |worker: &usize| state.answered.get(*worker).is_none_or(|&answered| answered < number);
            let missing: Vec<usize> = (0..workers).filter(is_missing).collect();
            if missing.is_empty() {
                let awaited: &mut Vec<u64> = awaited.get_or_insert_with(|| state.lent.clone());
                awaited.retain(|call| state.lent.contains(call));
                if awaited.is_empty() {
                    return true;
                }
            } else {
                drop(state);
                missing.into_iter().for_each(&ask);
                state = self.state.lock();
            }
            if !goes_on() {
                return false;
            }
            self.changed.wait_for(&mut state, PERIOD);
        }
    }
}

impl Engine {
    /// Notes that the worker of this index is between two calls; the event loop says so when it is woken.
    pub fn between_calls(&self, worker: usize) {
        self.calls.answer(worker);
    }

    /// Notes that a call lends its worker's loop, before another thread has that; gives its number.
    pub fn begin_lent_call(&self) -> u64 {
        let mut state = self.calls.state.lock();
        state.lent_count += 1;
        let number = state.lent_count;
        state.lent.push(number);
        number
    }

    /// Notes that the call of this number has ended.
    pub fn end_lent_call(&self, number: u64) {
        let mut state = self.calls.state.lock();
        state.lent.retain(|lent| *lent != number);
        self.calls.changed.notify_all();
    }

    /// Waits until all calls have ended that are under way; those that follow see what was done before this. `false` when
    /// `goes_on` does not want that any more. To be called by no worker.
    pub(crate) fn await_calls(&self, goes_on: impl Fn() -> bool) -> bool {
        match self.waker() {
            Some(wake) => self.calls.wait(self.workers(), |worker| wake(worker), goes_on),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Machine};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn whoever_waits_has_all_workers_answer_and_lent_calls_end() {
        let engine = Arc::new(Engine::new(Config::new(Machine::detect()), &[], 1));
        let workers = engine.workers();
        let woken = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&woken);
        engine.set_wake(Arc::new(move |_| _ = counted.fetch_add(1, Ordering::Relaxed)));
        // An answer to no question, and a call that has ended.
        (0..workers).for_each(|worker| engine.between_calls(worker));
        engine.end_lent_call(engine.begin_lent_call());
        assert!(!engine.await_calls(|| false), "nobody has answered");
        let lent = engine.begin_lent_call();
        let is_over = Arc::new(AtomicBool::new(false));
        let waiting = std::thread::spawn({
            let (engine, is_over) = (Arc::clone(&engine), Arc::clone(&is_over));
            move || {
                let all_have_ended = engine.await_calls(|| true);
                (all_have_ended, is_over.load(Ordering::SeqCst))
            }
        });
        let before = woken.load(Ordering::Relaxed);
        while woken.load(Ordering::Relaxed) < before + 2 * workers as u64 {
            std::thread::yield_now();
        }
        (0..workers).for_each(|worker| engine.between_calls(worker));
        is_over.store(true, Ordering::SeqCst);
        engine.end_lent_call(lent);
        assert_eq!(waiting.join().expect("it does not panic"), (true, true));
    }
}
