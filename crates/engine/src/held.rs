//! Replies that wait for the log to be on disk: until when, and who is told that they may leave. Knows no socket and no
//! file.

use crate::engine::Engine;
use crate::worker::Worker;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Makes the worker of this index look at what it holds.
pub type Wake = Arc<dyn Fn(usize) + Send + Sync>;

/// Which workers hold replies.
#[derive(Default)]
pub struct HeldReplies {
    /// A bit for each worker that holds some, those from the 64th on together.
    holding: AtomicU64,
    wake: OnceLock<Wake>,
}

impl fmt::Debug for HeldReplies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldReplies").field("holding", &self.holding).finish_non_exhaustive()
    }
}

/// The bit of a worker.
fn bit(worker: usize) -> u64 {
    1 << worker.min(63)
}

impl Engine {
    /// Says how workers are woken; once, before the first of them runs. They have event loops, then, each of which calls
    /// [`Engine::end_turn`].
    ///
    /// # Panics
    /// When it was said before.
    pub fn set_wake(&self, wake: Wake) {
        assert!(self.held_replies.wake.set(wake).is_ok(), "how workers are woken is said once");
    }

    /// How workers are woken, if they have event loops.
    pub(crate) fn waker(&self) -> Option<&Wake> {
        self.held_replies.wake.get()
    }

    /// Whether workers have event loops.
    pub(crate) fn has_event_loops(&self) -> bool {
        self.held_replies.wake.get().is_some()
    }

    /// Forgets what the worker has put into the log so far: what follows is another client's.
    #[inline]
    pub fn begin_call(&self, worker: &mut Worker) {
        worker.journaled = 0;
    }

    /// Up to which position the log has to be on disk before the replies to what this worker has run since
    /// [`Engine::begin_call`] may be sent; `None` if they may be sent now. Whoever holds them looks at
    /// [`Engine::durable`] after this, and again when the worker is woken.
    #[inline]
    pub fn holds_replies(&self, worker: &Worker) -> Option<u64> {
        if worker.journaled == 0 { None } else { self.must_wait(worker) }
    }

    fn must_wait(&self, worker: &Worker) -> Option<u64> {
        let position = worker.journaled;
        let own = worker.journal.journal.as_ref().filter(|_| worker.journal.number == self.journal_number());
        let may_leave = match own {
            // The one that it appended to: no look at what all workers share.
            Some(journal) => journal.may_answer(position),
            // It ends, or has ended; the next one's positions lie behind its end.
            None => position <= self.durable(),
        };
        if may_leave {
            return None;
        }
        self.holds_on(worker);
        Some(position)
    }

    /// Notes that the worker holds replies, so that it is woken when the log has come further. Whoever is woken has to say it
    /// anew for what it goes on holding, and looks at [`Engine::durable`] after this.
    pub fn holds_on(&self, worker: &Worker) {
        // Before the look at how far the log is: see `may_answer`. Who finds it set is told, too.
        let bit = bit(worker.index);
        if self.held_replies.holding.load(Ordering::SeqCst) & bit == 0 {
            self.held_replies.holding.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Tells the workers that hold replies that the log has come further. Called when it has: a worker that says that it
    /// holds some after this sees so by itself.
    pub fn replies_may_leave(&self) {
        self.end_waits_for_disk();
        let holding = self.held_replies.holding.swap(0, Ordering::SeqCst);
        let Some(wake) = self.held_replies.wake.get() else { return };
        for worker in (0..self.workers()).filter(|worker| holding & bit(*worker) != 0) {
            wake(worker);
        }
    }
}
