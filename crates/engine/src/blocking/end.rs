//! The ends of waits: who is taken out of the queues, and what its client is answered. Knows no command by name.

use super::registry::Leaving;
use super::serve::Parked;
use super::waiter::{Ending, State, Waiter};
use crate::clients::{Client, Message};
use crate::engine::Engine;
use crate::session::Session;
use crate::worker::Worker;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tenon_wire::OutBuf;

impl Engine {
    /// Ends a wait that nothing was found for; tells whether it was still going on. No shard is locked.
    pub(crate) fn end_wait(&self, waiter: &Arc<Waiter>, ending: Ending) -> bool {
        let queues = self.queues_of(waiter);
        if !waiter.end(ending) {
            return false;
        }
        for (shard, key) in queues {
            self.leave_queue_soon(Leaving { shard, key, waiter: Arc::clone(waiter) });
        }
        self.ended(waiter);
        true
    }

    /// Takes a waiter that waits no more out of a key's queue: now, or with a later tick if somebody holds the shard, a long
    /// script or the very EXEC that has ended the wait. A moment's wait for each of many waiters' keys would be seconds. Nobody
    /// is served in its name any more, and whoever comes does not wait behind it.
    pub(super) fn leave_queue_soon(&self, leaving: Leaving) {
        match self.shards.try_lock(leaving.shard) {
            Some(mut state) => self.leave_queue(&leaving.waiter, &leaving.key, &mut state),
            None => self.blocking.leaving.lock().push(leaving),
        }
    }

    /// Takes out of queues what could not be while somebody held the shard for long: for a tick, so of a shard that is still
    /// held all stay. No shard is locked.
    pub(crate) fn leave_queues_deferred(&self) {
        if self.pause.is_busy() {
            return;
        }
        let mut still_held = None;
        // Taken in a statement of its own: in the loop's head the lock would be held to the loop's end.
        let deferred = std::mem::take(&mut *self.blocking.leaving.lock());
        for leaving in deferred {
            let is_held = still_held == Some(leaving.shard);
            match if is_held { None } else { self.shards.try_lock(leaving.shard) } {
                Some(mut state) => self.leave_queue(&leaving.waiter, &leaving.key, &mut state),
                None => {
                    still_held = Some(leaving.shard);
                    self.blocking.leaving.lock().push(leaving);
                }
            }
        }
    }

    /// What the end of any wait entails.
    pub(super) fn ended(&self, waiter: &Waiter) {
        self.blocking.clients.fetch_sub(1, Ordering::Relaxed);
        waiter.client.waiting_bytes.store(0, Ordering::Relaxed);
        if let Some(end_ns) = waiter.end_ns {
            self.blocking.timers[self.timer_of(waiter)].remove(end_ns, waiter.ticket);
        }
        let again_ns = waiter.again_ns.load(Ordering::Relaxed);
        if again_ns != u64::MAX {
            self.blocking.looks[self.timer_of(waiter)].remove(again_ns, waiter.ticket);
        }
        self.clients.tell(waiter.client.info.key, Message::Unblocked);
    }

    /// Ends another client's wait as if its time were over, or with an error; tells whether it waited.
    pub fn unblock(&self, worker: &Worker, client: &Client, how: Unblocking) -> bool {
        let Some(waiter) = client.waiter.lock().clone() else { return false };
        let ending = match how {
            Unblocking::AsTimeout => self.timeout_of(&waiter),
            Unblocking::WithError => Ending::Error,
        };
        let ended = self.end_wait(&waiter, ending);
        if ended && how == Unblocking::WithError {
            worker.stats.commands[waiter.resolved.number as usize].failed.add(1);
            worker.stats.all.errors.add(1);
            self.count_error("UNBLOCKED".to_owned());
        }
        ended
    }

    /// Ends a session's wait, as the client is gone.
    pub(crate) fn leave_wait(&self, session: &mut Session) {
        match session.parked.take() {
            Some(Parked::ForKey { waiter, .. }) => {
                self.end_wait(&waiter, Ending::Gone);
                *session.client.waiter.lock() = None;
            }
            Some(Parked::Away { errand, .. }) => self.abandon_errand(&errand),
            Some(Parked::InSlices(_) | Parked::Pausing(_)) | None => {}
        }
    }

    /// Ends a session's wait, as the server ends; `false` if it was served before, by whichever thread, or goes on a slice at a time:
    /// a message that says so is on its way, and what it was given is nowhere else any more.
    pub fn ends_unanswered(&self, session: &Session) -> bool {
        match &session.parked {
            Some(Parked::ForKey { waiter, .. }) => self.end_wait(waiter, Ending::Gone),
            Some(Parked::InSlices(_)) => false,
            Some(Parked::Away { .. } | Parked::Pausing(_)) | None => true,
        }
    }

    /// Writes the reply of a session's command that has waited, for a key or an errand, if its wait is over; tells
    /// whether it is.
    pub fn finish_wait(&self, worker: &mut Worker, session: &mut Session, out: &mut OutBuf) -> bool {
        if let Some(Parked::InSlices(_)) = &session.parked
            && let Some(Parked::InSlices(unfinished)) = session.parked.take()
        {
            return self.go_on_in_slices(worker, session, unfinished, out);
        }
        if matches!(session.parked, Some(Parked::Pausing(_))) {
            return self.answer_pause(worker, session, out);
        }
        let Some(Parked::ForKey { waiter, is_silent }) = &session.parked else {
            return self.finish_errand(worker, session, out);
        };
        let mut state = waiter.state.lock();
        let State::Ended(reply) = &mut *state else { return false };
        if !is_silent {
            out.append(reply);
        }
        drop(state);
        // What it was given, whoever served it has put into the log: the reply waits for that.
        let journaled = session.client.journaled.swap(0, Ordering::Acquire);
        if journaled > worker.journaled {
            worker.journaled = journaled;
            session.client.note_written(journaled);
            self.follow_journal(worker);
        }
        session.client.active_ms.store(worker.clock.now_ms, Ordering::Relaxed);
        session.client.count_commands(1);
        *session.client.waiter.lock() = None;
        session.parked = None;
        true
    }
}

/// How CLIENT UNBLOCK ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unblocking {
    /// As if the time were over.
    AsTimeout,
    /// With an error.
    WithError,
}
