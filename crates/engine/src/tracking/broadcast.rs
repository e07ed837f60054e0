//! Prefixes of which every change is told, whoever has read what. Knows no message.

use crate::high_water::HighWater;
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The prefixes and who wants to hear of each.
#[derive(Default)]
pub(super) struct Prefixes {
    inner: RwLock<Inner>,
    count: AtomicUsize,
}

#[derive(Default)]
struct Inner {
    listeners: HashMap<Box<[u8]>, BTreeSet<u64>>,
    most: HighWater,
    /// How many prefixes there are of each length: only so many beginnings of a key need be looked up.
    lengths: BTreeMap<usize, usize>,
}

/// Keys that have changed and who changed each last, in the order of the bytes.
pub(crate) type Changes = BTreeMap<Box<[u8]>, u64>;

/// Some of them.
pub(super) type Changed<'a> = BTreeMap<&'a [u8], u64>;

impl Prefixes {
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, prefix: &[u8], client: u64) {
        let mut inner = self.inner.write();
        if !inner.listeners.contains_key(prefix) {
            *inner.lengths.entry(prefix.len()).or_default() += 1;
        }
        inner.listeners.entry(prefix.into()).or_default().insert(client);
        let count = inner.listeners.len();
        inner.most.rise(count);
        self.count.store(count, Ordering::Relaxed);
    }

    pub(super) fn remove(&self, prefix: &[u8], client: u64) {
        let mut inner = self.inner.write();
        let Some(listeners) = inner.listeners.get_mut(prefix) else { return };
        listeners.remove(&client);
        if listeners.is_empty() {
            inner.listeners.remove(prefix);
            let of_length = inner.lengths.get_mut(&prefix.len()).expect("every prefix's length is counted");
            *of_length -= 1;
            if *of_length == 0 {
                inner.lengths.remove(&prefix.len());
            }
            let count = inner.listeners.len();
            if let Some(room) = inner.most.fall(count) {
                inner.listeners.shrink_to(room);
            }
        }
        self.count.store(inner.listeners.len(), Ordering::Relaxed);
    }

    /// Whether a key begins with one of them.
    pub(super) fn has_one_of(&self, key: &[u8]) -> bool {
        self.count() > 0 && self.inner.read().of(key).next().is_some()
    }

    /// Each prefix that some of these keys begin with: those keys, and who listens.
    pub(super) fn matching<'a>(&self, changes: &'a Changes) -> Vec<(Changed<'a>, Vec<u64>)> {
        let inner = self.inner.read();
        let mut found: HashMap<&[u8], Changed<'a>> = HashMap::new();
        for (key, writer) in changes {
            for prefix in inner.of(key) {
                found.entry(prefix).or_default().insert(key, *writer);
            }
        }
        let listeners = |prefix: &[u8]| inner.listeners[prefix].iter().copied().collect();
        found.into_iter().map(|(prefix, changed)| (changed, listeners(prefix))).collect()
    }
}

impl Inner {
    /// The prefixes that a key begins with.
    fn of<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let lengths = self.lengths.keys().take_while(|&&length| length <= key.len());
        lengths.filter_map(|&length| self.listeners.get_key_value(&key[..length]).map(|(prefix, _)| &**prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_all_their_beginnings() {
        let prefixes = Prefixes::default();
        prefixes.add(b"", 1);
        prefixes.add(b"a", 2);
        prefixes.add(b"a", 3);
        prefixes.add(b"ab", 4);
        prefixes.add(b"b", 5);
        assert_eq!(prefixes.count(), 4);
        let changes: Changes =
            [("abc", 7), ("a", 8), ("", 9), ("abc", 6)].map(|(key, writer)| (key.as_bytes().into(), writer)).into();
        assert!(prefixes.has_one_of(b"b") && prefixes.has_one_of(b"x"));
        let mut found = prefixes.matching(&changes);
        found.sort_by_key(|(_, listeners)| listeners.clone());
        let of = |keys: &[(&'static str, u64)]| keys.iter().map(|(key, by)| (key.as_bytes(), *by)).collect::<Changed>();
        assert_eq!(
            found,
            [
                (of(&[("", 9), ("a", 8), ("abc", 6)]), vec![1]),
                (of(&[("a", 8), ("abc", 6)]), vec![2, 3]),
                (of(&[("abc", 6)]), vec![4]),
            ]
        );
        for (prefix, client) in [("", 1), ("a", 2), ("a", 3), ("ab", 4), ("b", 5), ("b", 5)] {
            prefixes.remove(prefix.as_bytes(), client);
        }
        assert_eq!(prefixes.count(), 0);
        assert!(prefixes.matching(&changes).is_empty());
    }

    #[test]
    fn the_room_of_many_prefixes_goes_with_them() {
        const PREFIXES: usize = 50_000;
        let prefixes = Prefixes::default();
        let names: Vec<String> = (0..PREFIXES).map(|number| format!("prefix {number}")).collect();
        names.iter().for_each(|name| prefixes.add(name.as_bytes(), 1));
        prefixes.add(b"one of another", 2);
        assert!(prefixes.inner.read().listeners.capacity() >= PREFIXES);
        names.iter().for_each(|name| prefixes.remove(name.as_bytes(), 1));
        assert!(prefixes.inner.read().listeners.capacity() < 100);
        assert!(prefixes.has_one_of(b"one of another's") && prefixes.count() == 1);
    }
}
