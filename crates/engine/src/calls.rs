//! Waiting until every call that is under way has ended: a worker looks whether there is a pause once for many commands, and a
//! script once for all of its own, so who has begun one waits for those that may not have seen it. Knows no event loop.
//!
//! ```text
//!  who waits:  a number to each worker ---> between two calls: its answer ---> all have answered
//!  lent calls (`meanwhile`) go on beside their worker's loop, which answers: they have numbers of their own, and those
//!  that there are when all have answered are waited for, too. Some end in the middle of a worker's call (the outcome of
//!  an errand): so behind them every worker answers once more
//! ```
//!
//! Calls themselves write nothing for this. The end of the process waits on a thread; CLIENT PAUSE has its client wait, and
//! what it wants done then whoever comes last does.

use crate::engine::Engine;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How often whoever waits looks whether it is to go on waiting, and asks the workers again: they may not have run yet.
const PERIOD: Duration = Duration::from_millis(20);

/// What is to be done when all calls have ended.
type Then = Box<dyn FnOnce(&Engine) + Send>;

#[derive(Default)]
struct State {
    /// For each worker, the number of the last question that it has answered.
    answered: Vec<u64>,
    /// The numbers of the calls that have lent their loop and have not ended.
    lent: Vec<u64>,
    /// How many have.
    lent_count: u64,
    /// What is to be done, and how far those have come who wait for that.
    to_do: Vec<(Wait, Then)>,
}

impl State {
    fn missing(&self, question: u64, workers: usize) -> impl Iterator<Item = usize> {
        (0..workers).filter(move |worker| self.answered.get(*worker).is_none_or(|&answered| answered < question))
    }
}

/// How far somebody has come who waits.
struct Wait {
    /// The question that the workers are to answer.
    question: u64,
    /// The lent calls that are waited for, as soon as it is known which.
    lent: Option<Vec<u64>>,
}

/// The calls, as far as anybody waits for them.
#[derive(Default)]
pub(crate) struct Calls {
    /// How many wait for answers: workers are woken for much else.
    waiting: AtomicUsize,
    /// How often it was asked.
    asked: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").field("waiting", &self.waiting).field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl Calls {
    /// Notes that a worker is between two calls.
    fn answer(&self, worker: usize) {
        // Acquired, so that the calls that follow see what was done before the question.
        let asked = self.asked.load(Ordering::Acquire);
        let mut state = self.state.lock();
        if state.answered.len() <= worker {
            state.answered.resize(worker + 1, 0);
        }
        state.answered[worker] = asked;
        self.changed.notify_all();
    }

    fn are_awaited(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Somebody begins to wait.
    fn begin(&self) -> Wait {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        Wait { question: self.next_question(), lent: None }
    }

    /// Somebody waits no more.
    fn end(&self) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }

    fn next_question(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Goes on with a wait as far as that can be; tells whether it is over.
    fn is_over(&self, wait: &mut Wait, state: &State, workers: usize) -> bool {
        loop {
            if state.missing(wait.question, workers).next().is_some() {
                return false;
            }
            match &mut wait.lent {
                None if state.lent.is_empty() => return true,
                None => wait.lent = Some(state.lent.clone()),
                Some(lent) if lent.is_empty() => return true,
                Some(lent) => {
                    lent.retain(|call| state.lent.contains(call));
                    if !lent.is_empty() {
                        return false;
                    }
                    wait.question = self.next_question();
                }
            }
        }
    }

    /// Has every worker asked, and waits until all calls are over; `false` when `goes_on` did not want that any more.
    fn wait(&self, workers: usize, ask: impl Fn(usize), goes_on: impl Fn() -> bool) -> bool {
        let mut wait = self.begin();
        let have_ended = loop {
            let mut state = self.state.lock();
            if self.is_over(&mut wait, &state, workers) {
                break true;
            }
            let missing: Vec<usize> = state.missing(wait.question, workers).collect();
            if !missing.is_empty() {
                drop(state);
                missing.into_iter().for_each(&ask);
                state = self.state.lock();
            }
            if !goes_on() {
                break false;
            }
            self.changed.wait_for(&mut state, PERIOD);
        };
        self.end();
        have_ended
    }

    /// Goes on with the waits of those who have left word what is to be done; gives what is to be done now, and whether
    /// workers are to be asked once more.
    fn go_on(&self, workers: usize) -> (Vec<Then>, bool) {
        let mut state = self.state.lock();
        let mut to_do = std::mem::take(&mut state.to_do);
        let mut asks = false;
        let over = to_do.extract_if(.., |(wait, _)| {
            let before = wait.question;
            let is_over = self.is_over(wait, &state, workers);
            asks |= wait.question != before;
            is_over
        });
        let over: Vec<Then> = over.map(|(_, then)| then).collect();
        state.to_do = to_do;
        over.iter().for_each(|_| self.end());
        (over, asks)
    }
}

/// A call that goes on beside its worker's loop, until this is dropped.
pub struct LentCall {
    engine: Arc<Engine>,
    number: u64,
}

impl fmt::Debug for LentCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LentCall").field(&self.number).finish()
    }
}

impl Drop for LentCall {
    fn drop(&mut self) {
        self.engine.end_lent_call(self.number);
    }
}

impl Engine {
    /// Notes that the worker of this index is between two calls; the event loop says so when it is woken.
    pub fn between_calls(&self, worker: usize) {
        if self.calls.are_awaited() {
            self.calls.answer(worker);
            self.go_on_with_waits_for_calls();
        }
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
        drop(state);
        if self.calls.are_awaited() {
            self.go_on_with_waits_for_calls();
        }
    }

    /// Whether a call has lent its loop.
    pub(crate) fn has_lent_calls(&self) -> bool {
        !self.calls.state.lock().lent.is_empty()
    }

    /// A call that is waited for as one that has lent its loop, for what is not done yet when its worker goes on; `None` where
    /// nobody moves bytes, and nothing goes on beside anything.
    pub fn lent_call(&self) -> Option<LentCall> {
        let engine = self.shared().filter(|_| self.has_event_loops())?;
        let number = engine.begin_lent_call();
        Some(LentCall { engine, number })
    }

    /// Waits until all calls have ended that are under way; those that follow see what was done before this. `false` when
    /// `goes_on` does not want that any more. To be called by no worker.
    pub(crate) fn await_calls(&self, goes_on: impl Fn() -> bool) -> bool {
        match self.waker() {
            Some(wake) => self.calls.wait(self.workers(), |worker| wake(worker), goes_on),
            None => true,
        }
    }

    /// Has something done when all calls have ended that are under way, also the one that says so: by whoever ends the last of
    /// them. Where nobody moves bytes it is done now.
    pub(crate) fn behind_calls(&self, then: impl FnOnce(&Engine) + Send + 'static) {
        let Some(wake) = self.waker() else { return then(self) };
        let wait = self.calls.begin();
        self.calls.state.lock().to_do.push((wait, Box::new(then)));
        (0..self.workers()).for_each(|worker| wake(worker));
    }

    fn go_on_with_waits_for_calls(&self) {
        let (to_do, asks) = self.calls.go_on(self.workers());
        if asks && let Some(wake) = self.waker() {
            (0..self.workers()).for_each(|worker| wake(worker));
        }
        to_do.into_iter().for_each(|then| then(self));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Machine};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

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
        let deadline = Instant::now() + Duration::from_secs(60);
        while woken.load(Ordering::Relaxed) < before + 2 * workers as u64 {
            assert!(Instant::now() < deadline, "they are not asked");
            std::thread::yield_now();
        }
        (0..workers).for_each(|worker| engine.between_calls(worker));
        is_over.store(true, Ordering::SeqCst);
        engine.end_lent_call(lent);
        // They are asked once more.
        while !waiting.is_finished() {
            assert!(Instant::now() < deadline, "all has ended, and it is waited for");
            (0..workers).for_each(|worker| engine.between_calls(worker));
            std::thread::yield_now();
        }
        assert_eq!(waiting.join().expect("it does not panic"), (true, true));
    }

    #[test]
    fn what_comes_behind_calls_is_done_by_who_ends_the_last_of_them() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let done = Arc::new(AtomicU64::new(0));
        let behind = |engine: &Engine| {
            let done = Arc::clone(&done);
            engine.behind_calls(move |_| _ = done.fetch_add(1, Ordering::Relaxed));
        };
        behind(&engine);
        assert_eq!(done.load(Ordering::Relaxed), 1, "nobody moves bytes");
        let workers = engine.workers();
        let woken = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&woken);
        engine.set_wake(Arc::new(move |_| _ = counted.fetch_add(1, Ordering::Relaxed)));
        let lent = engine.begin_lent_call();
        behind(&engine);
        behind(&engine);
        (0..workers).for_each(|worker| engine.between_calls(worker));
        // One that has begun since is not waited for.
        let later = engine.begin_lent_call();
        assert_eq!((done.load(Ordering::Relaxed), woken.load(Ordering::Relaxed)), (1, 2 * workers as u64));
        engine.end_lent_call(lent);
        // It may have ended in the middle of a worker's call.
        assert_eq!((done.load(Ordering::Relaxed), woken.load(Ordering::Relaxed)), (1, 3 * workers as u64));
        (0..workers).for_each(|worker| engine.between_calls(worker));
        assert_eq!(done.load(Ordering::Relaxed), 3);
        engine.end_lent_call(later);
        assert_eq!((done.load(Ordering::Relaxed), engine.calls.waiting.load(Ordering::Relaxed)), (3, 0));
    }
}
