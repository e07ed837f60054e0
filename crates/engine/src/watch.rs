//! Who wants to know of changes of which keys of a shard: sessions that WATCH them, by a flag, and those that wait for
//! them, in the order in which they came.

use crate::blocking::{ReadyKey, ReadyKeys, Waiter};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set when a watched key has changed; shared by the session and the shards.
#[derive(Clone, Debug, Default)]
pub struct DirtyFlag(Arc<AtomicBool>);

impl DirtyFlag {
    /// Notes that a watched key has changed.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether a watched key has changed.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn is(&self, other: &DirtyFlag) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What a session finds that begins to watch a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtWatch {
    /// The key, or none.
    Current,
    /// A key past its deadline that a pause keeps: for the session there is none, and that it goes is no change.
    Past,
    /// A key of which a pause keeps members that are due: that they are is no change.
    MembersDue,
}

/// A key of a database.
type Watchable = (usize, Box<[u8]>);

/// For so many who wait for a key, and change others with it, a command locks what they need beside its own keys.
const SERVED_AT_ONCE: usize = 16;

/// Who wants to know of one key.
#[derive(Debug, Default)]
struct Interest {
    flags: Vec<(DirtyFlag, AtWatch)>,
    /// Those that wait for it, by ticket.
    waiting: VecDeque<Arc<Waiter>>,
}

impl Interest {
    fn is_none(&self) -> bool {
        self.flags.is_empty() && self.waiting.is_empty()
    }

    fn tell(&self, database: usize, key: &[u8], ready: &mut ReadyKeys) {
        self.flags.iter().for_each(|(flag, _)| flag.set());
        self.wake(database, key, ready);
    }

    fn tell_gone(&self, database: usize, key: &[u8], ready: &mut ReadyKeys) {
        self.flags.iter().filter(|(_, found)| *found != AtWatch::Past).for_each(|(flag, _)| flag.set());
        self.wake(database, key, ready);
    }

    fn wake(&self, database: usize, key: &[u8], ready: &mut ReadyKeys) {
        if !self.waiting.is_empty() {
            ready.note(ReadyKey { database, key: key.into() });
        }
    }

    fn waits_until_gone(&self) -> bool {
        self.waiting.iter().any(|waiter| waiter.wakes_without())
    }
}

/// Whether a waiter is the first to wait for a key, or was the last: at all, and of those that want to know when it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Only {
    pub(crate) at_all: bool,
    pub(crate) until_gone: bool,
}

/// The keys of one shard that somebody watches or waits for.
#[derive(Debug, Default)]
pub struct Watched {
    keys: HashMap<Watchable, Interest>,
    /// Places in queues of those whom to serve needs other shards, too.
    reaching: usize,
}

impl Watched {
    /// Whether nobody watches anything or waits for anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Puts a waiter into a key's queue.
    pub(crate) fn wait(&mut self, database: usize, key: &[u8], waiter: &Arc<Waiter>) -> Only {
        let interest = self.keys.entry((database, key.into())).or_default();
        let only = Only {
            at_all: interest.waiting.is_empty(),
            until_gone: waiter.wakes_without() && !interest.waits_until_gone(),
        };
        debug_assert!(interest.waiting.back().is_none_or(|last| last.ticket() < waiter.ticket()));
        interest.waiting.push_back(Arc::clone(waiter));
        self.reaching += usize::from(!waiter.further().is_empty());
        only
    }

    /// Takes a waiter out of a key's queue, if it is in it.
    pub(crate) fn stop_waiting(&mut self, database: usize, key: &[u8], waiter: &Waiter) -> Only {
        let mut only = Only { at_all: false, until_gone: false };
        let watchable = (database, key.into());
        let Some(interest) = self.keys.get_mut(&watchable) else { return only };
        let Ok(at) = interest.waiting.binary_search_by_key(&waiter.ticket(), |other| other.ticket()) else {
            return only;
        };
        interest.waiting.remove(at);
        self.reaching -= usize::from(!waiter.further().is_empty());
        only.at_all = interest.waiting.is_empty();
        only.until_gone = waiter.wakes_without() && !interest.waits_until_gone();
        if interest.is_none() {
            self.keys.remove(&watchable);
        }
        only
    }

    /// Those that wait for a key, by ticket; `None` when there are none.
    pub(crate) fn waiting(&self, database: usize, key: &[u8]) -> Option<&VecDeque<Arc<Waiter>>> {
        let interest = self.keys.get(&(database, Box::from(key)))?;
        (!interest.waiting.is_empty()).then_some(&interest.waiting)
    }

    /// Whether anybody waits here whom to serve needs other shards, too.
    pub(crate) fn reaches_further(&self) -> bool {
        self.reaching > 0
    }

    /// The shards that serving those who wait here needs beside this one: for each key those who come first. Nearly
    /// always these are all that a change can serve; whoever is left is served right behind it
    /// (`Engine::serve_left`). A queue of thousands of BLMOVE, each to a list of its own, names thousands of shards.
    pub(crate) fn further(&self) -> impl Iterator<Item = usize> {
        let interests = self.reaches_further().then(|| self.keys.values()).into_iter().flatten();
        let reaching = |waiter: &&Arc<Waiter>| !waiter.further().is_empty() && waiter.is_waiting();
        interests
            .flat_map(move |interest| interest.waiting.iter().filter(reaching).take(SERVED_AT_ONCE))
            .flat_map(|waiter| waiter.further().iter().copied())
    }

    /// Adds a watcher of a key; tells whether it did not watch the key before.
    pub fn add(&mut self, database: usize, key: &[u8], flag: &DirtyFlag, found: AtWatch) -> bool {
        let flags = &mut self.keys.entry((database, key.into())).or_default().flags;
        let is_new = !flags.iter().any(|(other, _)| other.is(flag));
        if is_new {
            flags.push((flag.clone(), found));
        }
        is_new
    }

    /// Takes a watcher of a key away; tells whether nobody wants to know of anything here any more.
    pub fn remove(&mut self, database: usize, key: &[u8], flag: &DirtyFlag) -> bool {
        let watchable = (database, key.into());
        if let Some(interest) = self.keys.get_mut(&watchable) {
            interest.flags.retain(|(other, _)| !other.is(flag));
            if interest.is_none() {
                self.keys.remove(&watchable);
            }
        }
        self.keys.is_empty()
    }

    /// Tells the watchers of a key that it has changed; one that somebody waits for is noted in `ready`.
    pub fn changed(&self, database: usize, key: &[u8], ready: &mut ReadyKeys) {
        if let Some(interest) = self.keys.get(&(database, Box::from(key))) {
            interest.tell(database, key, ready);
        }
    }

    /// Tells the watchers of a key that its time had come and it is gone, unless they have found it like that.
    pub fn expired(&self, database: usize, key: &[u8], ready: &mut ReadyKeys) {
        if let Some(interest) = self.keys.get(&(database, Box::from(key))) {
            interest.tell_gone(database, key, ready);
        }
    }

    /// Notes a key that somebody waits for in `ready`; its watchers are not told.
    pub fn wake(&self, database: usize, key: &[u8], ready: &mut ReadyKeys) {
        if let Some(interest) = self.keys.get(&(database, Box::from(key))) {
            interest.wake(database, key, ready);
        }
    }

    /// The keys of a database that somebody wants to know of.
    pub fn keys_of(&self, database: usize) -> impl Iterator<Item = &[u8]> {
        self.keys.keys().filter(move |(watched, _)| *watched == database).map(|(_, key)| &**key)
    }

    /// Tells the watchers of a database's keys that pass `changed` (all that the database held is going away); those
    /// that somebody waits for are noted in `ready`.
    pub fn changed_if(&self, database: usize, ready: &mut ReadyKeys, changed: impl Fn(&[u8]) -> bool) {
        for ((watched, key), interest) in &self.keys {
            if *watched == database && changed(key) {
                interest.tell(database, key, ready);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_watchers_of_the_key_are_told() {
        let (a, b) = (DirtyFlag::default(), DirtyFlag::default());
        let mut watched = Watched::default();
        assert!(watched.add(0, b"k", &a, AtWatch::Current));
        assert!(!watched.add(0, b"k", &a, AtWatch::Current));
        assert!(watched.add(1, b"k", &b, AtWatch::Current));
        let ready = &mut ReadyKeys::default();
        watched.changed(0, b"other", ready);
        assert!(!a.is_set() && !b.is_set());
        watched.changed(0, b"k", ready);
        assert!(a.is_set() && !b.is_set());
        watched.changed_if(1, ready, |key| key == b"k");
        assert!(ready.is_empty(), "nobody waits");
        assert!(b.is_set());
        assert!(!watched.remove(0, b"k", &a));
        assert!(watched.remove(1, b"k", &b));
    }
}
