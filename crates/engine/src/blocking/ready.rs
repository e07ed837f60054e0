//! The keys that somebody waits for and that have changed, each once, in the order of their first change. Knows no waiter.

use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A key that somebody waits for and that has changed.
#[derive(Clone, Debug, Eq)]
pub struct ReadyKey {
    /// In which database.
    pub database: usize,
    /// The key.
    pub key: Arc<[u8]>,
}

impl PartialEq for ReadyKey {
    fn eq(&self, other: &ReadyKey) -> bool {
        #[cfg(test)]
        tests::COMPARED.with(|compared| compared.set(compared.get() + 1));
        self.database == other.database && self.key == other.key
    }
}

impl Hash for ReadyKey {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.database, &self.key).hash(hasher);
    }
}

/// Such keys. A script may make tens of thousands ready, and each of them many times.
#[derive(Debug, Default)]
pub struct ReadyKeys {
    keys: VecDeque<ReadyKey>,
    noted: HashSet<ReadyKey>,
}

impl ReadyKeys {
    /// Whether there is none: almost always.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Notes a key, if it is not noted.
    pub fn note(&mut self, ready: ReadyKey) {
        if self.noted.insert(ready.clone()) {
            self.keys.push_back(ready);
        }
    }

    /// The one that was ready first.
    pub fn front(&self) -> Option<&ReadyKey> {
        self.keys.front()
    }

    /// Takes the one that was ready first; from now on it can be noted again.
    pub fn pop_front(&mut self) -> Option<ReadyKey> {
        let ready = self.keys.pop_front()?;
        self.noted.remove(&ready);
        Some(ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        /// How often keys were compared.
        pub(super) static COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    fn key(number: usize) -> ReadyKey {
        ReadyKey { database: number % 2, key: number.to_le_bytes()[..].into() }
    }

    #[test]
    fn a_key_is_noted_once_until_it_is_taken() {
        let mut ready = ReadyKeys::default();
        [1, 2, 1, 3, 2].into_iter().for_each(|number| ready.note(key(number)));
        assert_eq!((ready.len(), ready.front()), (3, Some(&key(1))));
        assert_eq!(ready.pop_front(), Some(key(1)));
        ready.note(key(1));
        let taken: Vec<ReadyKey> = std::iter::from_fn(|| ready.pop_front()).collect();
        assert_eq!(taken, [key(2), key(3), key(1)]);
        assert!(ready.is_empty());
    }

    #[test]
    fn many_keys_are_not_looked_for_among_each_other() {
        const KEYS: usize = 40_000;
        let mut ready = ReadyKeys::default();
        let before = COMPARED.get();
        for _ in 0..3 {
            (0..KEYS).for_each(|number| ready.note(key(number)));
        }
        while ready.pop_front().is_some() {}
        // Each is compared with itself when it is noted again and when it is taken, and hardly ever with another one.
        let compared = COMPARED.get() - before;
        assert!(compared < 4 * KEYS, "{compared}");
    }
}
