//! WATCH: which sessions watch which keys of a shard, and the flag that tells them of a change.

use std::collections::HashMap;
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

/// A key of a database.
type Watchable = (usize, Box<[u8]>);

/// The watched keys of one shard.
#[derive(Debug, Default)]
pub struct Watched {
    keys: HashMap<Watchable, Vec<DirtyFlag>>,
}

impl Watched {
    /// Adds a watcher of a key; tells whether it did not watch the key before.
    pub fn add(&mut self, database: usize, key: &[u8], flag: &DirtyFlag) -> bool {
        let flags = self.keys.entry((database, key.into())).or_default();
        let is_new = !flags.iter().any(|other| other.is(flag));
        if is_new {
            flags.push(flag.clone());
        }
        is_new
    }

    /// Takes a watcher of a key away; tells whether nobody watches anything here any more.
    pub fn remove(&mut self, database: usize, key: &[u8], flag: &DirtyFlag) -> bool {
        let watchable = (database, key.into());
        if let Some(flags) = self.keys.get_mut(&watchable) {
            flags.retain(|other| !other.is(flag));
            if flags.is_empty() {
                self.keys.remove(&watchable);
            }
        }
        self.keys.is_empty()
    }

    /// Tells the watchers of a key that it has changed.
    pub fn changed(&self, database: usize, key: &[u8]) {
        if let Some(flags) = self.keys.get(&(database, Box::from(key))) {
            flags.iter().for_each(DirtyFlag::set);
        }
    }

    /// The watched keys of a database.
    pub fn keys_of(&self, database: usize) -> impl Iterator<Item = &[u8]> {
        self.keys.keys().filter(move |(watched, _)| *watched == database).map(|(_, key)| &**key)
    }

    /// Tells the watchers of a database's keys that pass `changed` (all that the database held is going away).
    pub fn changed_if(&self, database: usize, changed: impl Fn(&[u8]) -> bool) {
        for ((watched, key), flags) in &self.keys {
            if *watched == database && changed(key) {
                flags.iter().for_each(DirtyFlag::set);
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
        assert!(watched.add(0, b"k", &a));
        assert!(!watched.add(0, b"k", &a));
        assert!(watched.add(1, b"k", &b));
        watched.changed(0, b"other");
        assert!(!a.is_set() && !b.is_set());
        watched.changed(0, b"k");
        assert!(a.is_set() && !b.is_set());
        watched.changed_if(1, |key| key == b"k");
        assert!(b.is_set());
        assert!(!watched.remove(0, b"k", &a));
        assert!(watched.remove(1, b"k", &b));
    }
}
