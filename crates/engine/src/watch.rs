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

    /// A flag that is not set, in place of this one: the same where no shard knows it any more.
    pub fn renew(&mut self) {
        match Arc::get_mut(&mut self.0) {
            Some(flag) => *flag.get_mut() = false,
            None => *self = DirtyFlag::default(),
        }
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

/// Those of one database.
type Keys = HashMap<Box<[u8]>, Interest>;

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
    /// By the database's number; mostly there is one, and none has no key.
    databases: Vec<(usize, Keys)>,
    /// Places in queues of those whom to serve needs other shards, too.
    reaching: usize,
}

impl Watched {
    /// Whether nobody watches anything or waits for anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.databases.is_empty()
    }

    fn of(&self, database: usize, key: &[u8]) -> Option<&Interest> {
        self.databases.iter().find(|(number, _)| *number == database)?.1.get(key)
    }

    fn of_mut(&mut self, database: usize, key: &[u8]) -> Option<&mut Interest> {
        self.databases.iter_mut().find(|(number, _)| *number == database)?.1.get_mut(key)
    }

    /// The interest in a key, which there may not have been before.
    fn made_of(&mut self, database: usize, key: &[u8]) -> &mut Interest {
        let at = self.databases.iter().position(|(number, _)| *number == database).unwrap_or_else(|| {
            self.databases.push((database, Keys::new()));
            self.databases.len() - 1
        });
        self.databases[at].1.entry(key.into()).or_default()
    }

    /// Forgets a key that nobody wants to know of.
    fn forget(&mut self, database: usize, key: &[u8]) {
        let Some(at) = self.databases.iter().position(|(number, _)| *number == database) else { return };
        let keys = &mut self.databases[at].1;
        keys.remove(key);
        if keys.is_empty() {
            self.databases.swap_remove(at);
        }
    }

    /// Puts a waiter into a key's queue.
    pub(crate) fn wait(&mut self, database: usize, key: &[u8], waiter: &Arc<Waiter>) -> Only {
        let interest = self.made_of(database, key);
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
        let Some(interest) = self.of_mut(database, key) else { return only };
        let Ok(at) = interest.waiting.binary_search_by_key(&waiter.ticket(), |other| other.ticket()) else {
            return only;
        };
        interest.waiting.remove(at);
        only.at_all = interest.waiting.is_empty();
        only.until_gone = waiter.wakes_without() && !interest.waits_until_gone();
        if interest.is_none() {
            self.forget(database, key);
        }
        self.reaching -= usize::from(!waiter.further().is_empty());
        only
    }

    /// Those that wait for a key, by ticket; `None` when there are none.
    pub(crate) fn waiting(&self, database: usize, key: &[u8]) -> Option<&VecDeque<Arc<Waiter>>> {
        let interest = self.of(database, key)?;
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
        let databases = self.reaches_further().then_some(&self.databases).into_iter().flatten();
        let interests = databases.flat_map(|(_, keys)| keys.values());
        let reaching = |waiter: &&Arc<Waiter>| !waiter.further().is_empty() && waiter.is_waiting();
        interests
            .flat_map(move |interest| interest.waiting.iter().filter(reaching).take(SERVED_AT_ONCE))
            .flat_map(|waiter| waiter.further().iter().copied())
    }

    /// Adds a watcher of a key; tells whether it did not watch the key before.
    pub fn add(&mut self, database: usize, key: &[u8], flag: &DirtyFlag, found: AtWatch) -> bool {
        let flags = &mut self.made_of(database, key).flags;
        let is_new = !flags.iter().any(|(other, _)| other.is(flag));
        if is_new {
            flags.push((flag.clone(), found));
        }
        is_new
    }

    /// Takes a watcher of a key away; tells whether nobody wants to know of anything here any more.
    pub fn remove(&mut self, database: usize, key: &[u8], flag: &DirtyFlag) -> bool {
        if let Some(interest) = self.of_mut(database, key) {
            interest.flags.retain(|(other, _)| !other.is(flag));
            if interest.is_none() {
                self.forget(database, key);
            }
        }
        self.is_empty()
    }

    /// Tells the watchers of a key that it has changed; one that somebody waits for is noted in `ready`.
    pub fn changed(&self, database: usize, key: &[u8], ready: &mut ReadyKeys) {
        if let Some(interest) = self.of(database, key) {
            interest.tell(database, key, ready);
        }
    }

    /// Tells the watchers of a key that its time had come and it is gone, unless they have found it like that.
    pub fn expired(&self, database: usize, key: &[u8], ready: &mut ReadyKeys) {
        if let Some(interest) = self.of(database, key) {
            interest.tell_gone(database, key, ready);
        }
    }

    /// Notes a key that somebody waits for in `ready`; its watchers are not told.
    pub fn wake(&self, database: usize, key: &[u8], ready: &mut ReadyKeys) {
        if let Some(interest) = self.of(database, key) {
            interest.wake(database, key, ready);
        }
    }

    /// The keys of a database that somebody wants to know of.
    pub fn keys_of(&self, database: usize) -> impl Iterator<Item = &[u8]> {
        let those = self.databases.iter().filter(move |(number, _)| *number == database);
        those.flat_map(|(_, keys)| keys.keys()).map(|key| &**key)
    }

    /// Tells the watchers of a database's keys that pass `changed` (all that the database held is going away); those
    /// that somebody waits for are noted in `ready`.
    pub fn changed_if(&self, database: usize, ready: &mut ReadyKeys, changed: impl Fn(&[u8]) -> bool) {
        for (key, interest) in
            self.databases.iter().filter(|(number, _)| *number == database).flat_map(|(_, keys)| keys)
        {
            if changed(key) {
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

    #[test]
    fn a_flag_that_a_shard_still_knows_is_not_used_again() {
        let (mut flag, mut watched) = (DirtyFlag::default(), Watched::default());
        watched.add(0, b"k", &flag, AtWatch::Current);
        flag.renew();
        watched.changed(0, b"k", &mut ReadyKeys::default());
        assert!(!flag.is_set(), "it is another's now");
        flag.set();
        flag.renew();
        assert!(!flag.is_set());
    }
}
