//! The calls that have lent their worker's other clients, and the clients that wait for what those calls hold: they are put
//! off until one of them ends, so that no thread waits with each. Knows no command.
//!
//! A long command holds the shards of its keys to its end, or for long. Whoever asks for a key in one of them could wait on the thread
//! that has the other clients, and those be lent once more; but there are only a few such threads. So a command that has
//! not changed anything yet comes again later, as it does at the end of a CLIENT PAUSE.
//!
//! ```text
//!  a call ---- long: `begin` ------------------------------ its end: `end`
//!                        ^                                     |
//!  another's command ----+ a shard is held: `wait`             +--> a letter to each whose shard is free: it tries again
//! ```
//!
//! Who holds the shard may also be somebody else, whom the system has taken its core from: who waits is told with the next tick
//! that finds the shard free, and with the end of the last long call. Who waits for another one's is left alone: there may be
//! a thousand, and each would look for a moment.

use crate::clients::{ConnectionKey, Message};
use crate::engine::Engine;
use crate::locking::MOMENT;
use crate::worker::Worker;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The long calls.
#[derive(Debug, Default)]
pub(crate) struct LongCalls {
    /// How many there are. Changed with `waiting` locked.
    count: AtomicUsize,
    waiting: Mutex<Waiting>,
}

/// What somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// A shard that is held.
    Shard(usize),
    /// A value that others read while its shard is free (`lendings.rs`).
    Readers,
}

/// Who waits, and for what, in order; nobody twice, or those who are told would become ever more.
#[derive(Debug, Default)]
struct Waiting {
    order: Vec<(ConnectionKey, WaitsFor)>,
    connections: HashSet<ConnectionKey>,
    /// How many wait for each shard.
    of_shards: HashMap<usize, usize>,
}

impl Waiting {
    fn add(&mut self, key: ConnectionKey, waits_for: WaitsFor) {
        if self.connections.insert(key) {
            self.order.push((key, waits_for));
        } else if let Some(known) = self.order.iter_mut().rfind(|(known, _)| *known == key) {
            let before = std::mem::replace(&mut known.1, waits_for);
            self.forget(before);
        }
        if let WaitsFor::Shard(shard) = waits_for {
            *self.of_shards.entry(shard).or_default() += 1;
        }
    }

    fn forget(&mut self, waits_for: WaitsFor) {
        if let WaitsFor::Shard(shard) = waits_for
            && let Some(count) = self.of_shards.get_mut(&shard)
        {
            *count -= 1;
            if *count == 0 {
                self.of_shards.remove(&shard);
            }
        }
    }

    fn take(&mut self, mut is_taken: impl FnMut(WaitsFor) -> bool) -> Vec<ConnectionKey> {
        let taken: Vec<_> = self.order.extract_if(.., |&mut (_, waits_for)| is_taken(waits_for)).collect();
        for (key, waits_for) in &taken {
            self.connections.remove(key);
            self.forget(*waits_for);
        }
        taken.into_iter().map(|(key, _)| key).collect()
    }
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

    /// Notes that one of them has ended, and holds nothing any more; gives the connections that have waited for what is free now,
    /// and all where it was the last one.
    #[must_use = "who waits is to be told"]
    pub(crate) fn end(&self, is_free: impl Fn(usize) -> bool) -> Vec<ConnectionKey> {
        let mut waiting = self.waiting.lock();
        let was_last = self.count.fetch_sub(1, Ordering::Relaxed) == 1;
        let mut is_free = asked_once(is_free);
        waiting.take(|waits_for| was_last || is_free(waits_for).unwrap_or(true))
    }

    /// The connections that wait for what is free now that one of several commands of a call has ended, which may have held it.
    #[must_use = "who waits is to be told"]
    pub(crate) fn command_ended(&self, is_free: impl Fn(usize) -> bool) -> Vec<ConnectionKey> {
        let mut is_free = asked_once(is_free);
        self.waiting.lock().take(|waits_for| is_free(waits_for).unwrap_or(true))
    }

    /// Whether somebody waits for a shard already: it is held for long.
    pub(crate) fn is_waited_for(&self, shard: usize) -> bool {
        self.are_there() && self.waiting.lock().of_shards.contains_key(&shard)
    }

    /// The connections that wait: they are to look for themselves, as something else has changed.
    #[must_use = "who waits is to be told"]
    pub(crate) fn wake(&self) -> Vec<ConnectionKey> {
        self.waiting.lock().take(|_| true)
    }

    /// The connections that wait for a shard that is free.
    #[must_use = "who waits is to be told"]
    fn wake_where(&self, is_free: impl Fn(usize) -> bool) -> Vec<ConnectionKey> {
        if !self.are_there() {
            return Vec::new();
        }
        let mut is_free = asked_once(is_free);
        self.waiting.lock().take(|waits_for| is_free(waits_for) == Some(true))
    }

    /// Has a connection wait until one of them ends; `false`: there is none, and nobody would wake it.
    #[must_use = "whoever waits although there is no long call is never woken"]
    fn wait(&self, key: ConnectionKey, waits_for: WaitsFor) -> bool {
        let mut waiting = self.waiting.lock();
        let is_one = self.are_there();
        if is_one {
            waiting.add(key, waits_for);
        }
        is_one
    }
}

/// Asks whether a shard is free once for all that follow one another and wait for it: they may be very many. Of other things
/// it knows nothing.
fn asked_once(is_free: impl Fn(usize) -> bool) -> impl FnMut(WaitsFor) -> Option<bool> {
    let mut last = None;
    move |waits_for| {
        let WaitsFor::Shard(shard) = waits_for else { return None };
        match last {
            Some((of, is_free)) if of == shard => Some(is_free),
            _ => Some(last.insert((shard, is_free(shard))).1),
        }
    }
}

impl Engine {
    /// Whether nobody holds a shard.
    pub(crate) fn is_free(&self, shard: usize) -> bool {
        self.shards.try_lock(shard).is_some()
    }

    /// How long a command waits for a shard before it is put off: not at all for one that others wait for already.
    pub(crate) fn moment_for(&self, shard: usize) -> Duration {
        if self.long_calls.is_waited_for(shard) { Duration::ZERO } else { MOMENT }
    }

    /// Whether somebody holds a shard for longer than a command waits for it.
    pub(crate) fn stays_held(&self, shard: usize) -> bool {
        self.shards.try_lock_for(shard, self.moment_for(shard)).is_none()
    }

    /// Tells connections that have waited to go on.
    pub(crate) fn go_on(&self, waiting: Vec<ConnectionKey>) {
        waiting.into_iter().for_each(|client| self.clients.tell(client, Message::Unpause));
    }

    /// Tells connections to go on whose shards are free.
    pub(crate) fn go_on_where_free(&self) {
        self.go_on(self.long_calls.wake_where(|shard| self.is_free(shard)));
    }

    /// Whether a client may have to wait for a long call, and is told of its end: not while a script is busy, when whoever waits
    /// is woken at once.
    pub(crate) fn may_put_off(&self) -> bool {
        self.long_calls.are_there() && self.scripts.running.busy().is_none()
    }

    /// Has a client wait that cannot have what it wants, if a long call may have that; tells whether it does. Its command must
    /// not have changed anything, and is run again from its start.
    pub(crate) fn puts_off(&self, worker: &mut Worker, client: ConnectionKey, waits_for: WaitsFor) -> bool {
        let waits = !worker.is_nested && self.clients.post().is_some() && self.long_calls.wait(client, waits_for);
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
    use crate::config::{Config, Machine};

    fn keys() -> [ConnectionKey; 3] {
        [1, 2, 3].map(|index| ConnectionKey { worker: 0, index, generation: 0 })
    }

    #[test]
    fn who_waits_is_told_at_the_end_of_the_long_call_that_held_it_or_of_the_last_one() {
        let calls = LongCalls::default();
        let [one, other, third] = keys();
        assert!(!calls.are_there() && !calls.wait(one, WaitsFor::Shard(0)), "who comes too late is not left waiting");
        calls.begin();
        calls.begin();
        calls.begin();
        assert!(calls.wait(one, WaitsFor::Shard(0)) && calls.wait(other, WaitsFor::Readers));
        assert!(calls.wait(one, WaitsFor::Shard(1)), "it is told once all the same");
        assert!(calls.wait(third, WaitsFor::Shard(2)));
        assert_eq!([0, 1, 2].map(|shard| calls.is_waited_for(shard)), [false, true, true]);
        assert_eq!(calls.end(|shard| shard == 1), [one, other]);
        assert_eq!([0, 1, 2].map(|shard| calls.is_waited_for(shard)), [false, false, true]);
        assert!(calls.are_there() && calls.wait(other, WaitsFor::Shard(0)));
        assert_eq!(calls.command_ended(|shard| shard == 0), [other]);
        assert!(calls.wait(other, WaitsFor::Shard(0)));
        assert_eq!(calls.wake(), [third, other]);
        assert!(calls.wait(one, WaitsFor::Shard(0)));
        assert_eq!(calls.end(|_| false), []);
        assert_eq!(calls.end(|_| false), [one], "nobody else would tell it");
        assert!(!calls.are_there() && !calls.wait(one, WaitsFor::Shard(0)));
        assert!(!calls.is_waited_for(0));
    }

    #[test]
    fn who_waits_for_what_no_long_call_holds_is_told_by_a_tick() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let [one, other, third] = keys();
        engine.long_calls.begin();
        let of_long_call = engine.shards.lock(3);
        for (key, waits_for) in [(one, WaitsFor::Shard(3)), (other, WaitsFor::Shard(4)), (third, WaitsFor::Readers)] {
            assert!(engine.long_calls.wait(key, waits_for));
        }
        engine.tick(&mut engine.worker(0));
        let left = [(one, WaitsFor::Shard(3)), (third, WaitsFor::Readers)];
        assert_eq!(engine.long_calls.waiting.lock().order, left);
        drop(of_long_call);
    }
}
