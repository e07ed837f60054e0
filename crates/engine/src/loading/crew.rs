//! Who puts a file's keys into the store: whoever cuts it hands batches of them to the workers, and takes its own share
//! where they are slower. Knows neither files nor shards.

use super::insert::{Counts, Plan};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::Duration;
use tenon_persist::rdb::file::{Batch, FileError};

/// Batches that wait at most, and their bytes: enough for nobody to wait for the file, and little memory. One of a long
/// record may be longer.
const WAITING_MAX: usize = 16;
const WAITING_BYTES_MAX: usize = 4 << 20;

/// What went wrong.
#[derive(Debug)]
pub(super) enum Failure {
    /// The file is not as it has to be.
    File(FileError),
    /// A bug made somebody panic.
    Panicked,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Batch>,
    waiting_bytes: usize,
    /// Batches that somebody works at.
    running: usize,
    counts: Counts,
    failure: Option<Failure>,
}

impl State {
    fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX || self.waiting_bytes >= WAITING_BYTES_MAX
    }
}

/// A file whose keys are put into the store.
#[derive(Debug)]
pub(super) struct Job {
    /// How that is done.
    pub(super) plan: Plan,
    state: Mutex<State>,
    /// A batch has come, or one is done.
    changed: Condvar,
}

/// A batch that somebody works at.
struct Running<'a> {
    job: &'a Job,
    outcome: Option<Result<Counts, FileError>>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.job.state.lock();
        state.running -= 1;
        match self.outcome.take() {
            Some(Ok(counts)) => state.counts.add(counts),
            // Of several the first in the file is told.
            Some(Err(error)) => match &state.failure {
                Some(Failure::File(earlier)) if earlier.offset <= error.offset => {}
                _ => state.failure = Some(Failure::File(error)),
            },
            None => _ = state.failure.get_or_insert(Failure::Panicked),
        }
        drop(state);
        self.job.changed.notify_all();
    }
}

impl Job {
    pub(super) fn new(plan: Plan) -> Job {
        Job { plan, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Hands a batch to whoever comes first; gives it back when there was no room for so long.
    pub(super) fn offer(&self, batch: Batch, patience: Duration) -> Result<(), Batch> {
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| state.is_full() && state.failure.is_none(), patience);
        if state.is_full() {
            return Err(batch);
        }
        state.waiting_bytes += batch.len();
        state.waiting.push_back(batch);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Works at the next batch, if one comes within this time; tells whether one did.
    pub(super) fn work_at_next(
        &self,
        patience: Duration,
        work: impl FnOnce(&Plan, &Batch) -> Result<Counts, FileError>,
    ) -> bool {
        let mut state = self.state.lock();
        if !patience.is_zero() {
            self.changed.wait_while_for(&mut state, |state| state.waiting.is_empty(), patience);
        }
        let was_full = state.is_full();
        let Some(batch) = state.waiting.pop_front() else { return false };
        state.waiting_bytes -= batch.len();
        state.running += 1;
        if was_full {
            // Whoever cuts waits for room, and may go on before this is done.
            self.changed.notify_all();
        }
        // What comes behind something wrong is of no use any more.
        let has_failed = state.failure.is_some();
        drop(state);
        let mut running = Running { job: self, outcome: None };
        running.outcome = Some(if has_failed { Ok(Counts::default()) } else { work(&self.plan, &batch) });
        true
    }

    /// Works at a batch that nobody else has room for.
    pub(super) fn work_at(&self, batch: &Batch, work: impl FnOnce(&Plan, &Batch) -> Result<Counts, FileError>) {
        self.state.lock().running += 1;
        let mut running = Running { job: self, outcome: None };
        running.outcome = Some(work(&self.plan, batch));
    }

    /// Whether something went wrong.
    pub(super) fn has_failed(&self) -> bool {
        self.state.lock().failure.is_some()
    }

    /// Waits for so long at most until nobody works at a batch and none waits; tells whether that is so.
    pub(super) fn is_done_within(&self, patience: Duration) -> bool {
        let mut state = self.state.lock();
        let is_done = |state: &State| state.waiting.is_empty() && state.running == 0;
        self.changed.wait_while_for(&mut state, |state| !is_done(state), patience);
        is_done(&state)
    }

    /// How many keys there were so far.
    pub(super) fn counts(&self) -> Counts {
        self.state.lock().counts
    }

    /// What went wrong, if anything did.
    pub(super) fn take_failure(&self) -> Option<Failure> {
        self.state.lock().failure.take()
    }
}
