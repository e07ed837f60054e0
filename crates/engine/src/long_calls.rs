//! The calls that have lent their worker's other clients, and the clients that wait for what those calls hold: they are put
//! off until one of them ends, so that no thread waits with each. Knows no command.
//!
//! A long command holds the shards of its keys to its end. Whoever asks for a key in one of them could wait on the thread
//! that has the other clients, and those be lent once more; but there are only a few such threads. So a command that has
//! not changed anything yet comes again later, as it does at the end of a CLIENT PAUSE.
//!
//! ```text
//!  a call ---- long: `begin` ------------------------------ its end: `end`
//!                        ^                                     |
//!  another's command ----+ a shard is held: `wait`             +--> a letter to each that waits: it tries again
//! ```

use crate::clients::{ConnectionKey, Message};
use crate::engine::Engine;
use crate::worker::Worker;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The long calls.
#[derive(Debug, Default)]
pub(crate) struct LongCalls {
    /// How many there are. Changed with `waiting` locked.
    count: AtomicUsize,
    waiting: Mutex<Vec<ConnectionKey>>,
}

impl LongCalls {
    /// Whether there is any.
    #[inline]
    pub(crate) fn are_there(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Notes that one more call is long.
    pub(crate) fn begin(&self) {
        let _waiting = self.waiting.lock();
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that one of them has ended; gives the connections that have waited.
    #[must_use = "who waits is to be told"]
    pub(crate) fn end(&self) -> Vec<ConnectionKey> {
        let mut waiting = self.waiting.lock();
        self.count.fetch_sub(1, Ordering::Relaxed);
        std::mem::take(&mut waiting)
    }

    /// The connections that wait: they are to look for themselves, as something else has changed.
    #[must_use = "who waits is to be told"]
    pub(crate) fn wake(&self) -> Vec<ConnectionKey> {
        std::mem::take(&mut self.waiting.lock())
    }

    /// Has a connection wait for the end of one of them; `false`: there is none, and nobody would wake it.
    #[must_use = "whoever waits although there is no long call is never woken"]
    fn wait(&self, key: ConnectionKey) -> bool {
        let mut waiting = self.waiting.lock();
        let is_one = self.are_there();
        if is_one {
            waiting.push(key);
        }
        is_one
    }
}

impl Engine {
    /// Tells connections that have waited to go on.
    pub(crate) fn go_on(&self, waiting: Vec<ConnectionKey>) {
        waiting.into_iter().for_each(|client| self.clients.tell(client, Message::Unpause));
    }

    /// Has a client wait that cannot have a shard, if a long call may hold that; tells whether it does. Its command must not
    /// have changed anything, and is run again from its start.
    pub(crate) fn puts_off(&self, worker: &mut Worker, client: ConnectionKey) -> bool {
        let waits = !worker.is_nested && self.clients.post().is_some() && self.long_calls.wait(client);
        worker.waits_for_another_turn |= waits;
        if waits && self.scripts.running.busy().is_some() {
            // A script has become busy just now: whoever waits is refused.
            self.go_on(self.long_calls.wake());
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_told_at_the_end_of_any_long_call() {
        let calls = LongCalls::default();
        let [one, other] = [1, 2].map(|index| ConnectionKey { worker: 0, index, generation: 0 });
        assert!(!calls.are_there() && !calls.wait(one), "who comes too late is not left waiting");
        calls.begin();
        calls.begin();
        assert!(calls.wait(one) && calls.wait(other));
        assert_eq!(calls.end(), [one, other]);
        assert!(calls.are_there() && calls.wait(other));
        assert_eq!(calls.wake(), [other]);
        assert!(calls.wait(one));
        assert_eq!(calls.end(), [one]);
        assert!(!calls.are_there() && !calls.wait(one));
    }
}
