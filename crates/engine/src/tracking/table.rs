//! Which clients have read which keys. As in Redis a key is a name, whatever database it was read in. Knows no message.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenon_store::hash::KeyHash;

/// Parts that keys are split into by their hashes, each with a lock of its own; a power of two.
const STRIPES: usize = 256;

/// The numbers of clients, in order. Those that are gone stay until the key changes.
pub(super) type Readers = Vec<u64>;

/// One part of the keys.
#[derive(Default)]
struct Stripe {
    readers: BTreeMap<Box<[u8]>, Readers>,
    /// The key that was forgotten last for want of room: the next one is behind it, so that each has its turn.
    hand: Box<[u8]>,
}

/// Keys and their readers.
pub(super) struct KeyTable {
    stripes: Box<[Mutex<Stripe>]>,
    keys: AtomicUsize,
    items: AtomicUsize,
    /// The part that gives up a key next.
    next_stripe: AtomicUsize,
}

impl Default for KeyTable {
    fn default() -> KeyTable {
        KeyTable {
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            keys: AtomicUsize::new(0),
            items: AtomicUsize::new(0),
            next_stripe: AtomicUsize::new(0),
        }
    }
}

impl KeyTable {
    pub(super) fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    pub(super) fn items(&self) -> usize {
        self.items.load(Ordering::Relaxed)
    }

    /// Notes that a client has read a key.
    pub(super) fn add(&self, hash: KeyHash, key: &[u8], client: u64) {
        let mut stripe = self.stripes[hash.shard(STRIPES)].lock();
        if let Some(readers) = stripe.readers.get_mut(key) {
            if let Err(place) = readers.binary_search(&client) {
                readers.insert(place, client);
                self.items.fetch_add(1, Ordering::Relaxed);
            }
            return;
        }
        stripe.readers.insert(key.into(), vec![client]);
        self.items.fetch_add(1, Ordering::Relaxed);
        self.keys.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a key's readers out: they are told of one change.
    pub(super) fn take(&self, hash: KeyHash, key: &[u8]) -> Option<Readers> {
        if self.keys() == 0 {
            return None;
        }
        let readers = self.stripes[hash.shard(STRIPES)].lock().readers.remove(key)?;
        self.forgotten(1, readers.len());
        Some(readers)
    }

    /// Takes some key out, not always the same.
    pub(super) fn take_any(&self) -> Option<(Box<[u8]>, Readers)> {
        for _ in 0..STRIPES {
            let next = self.next_stripe.fetch_add(1, Ordering::Relaxed) % STRIPES;
            let mut stripe = self.stripes[next].lock();
            let behind = (Bound::Excluded(&*stripe.hand), Bound::Unbounded);
            let first = stripe.readers.range::<[u8], _>(behind).next().or_else(|| stripe.readers.first_key_value());
            let Some(key) = first.map(|(key, _)| key.clone()) else { continue };
            let readers = stripe.readers.remove(&key).expect("it was just there");
            stripe.hand.clone_from(&key);
            self.forgotten(1, readers.len());
            return Some((key, readers));
        }
        None
    }

    /// Forgets all keys.
    pub(super) fn clear(&self) {
        for stripe in &self.stripes {
            let readers = std::mem::take(&mut stripe.lock().readers);
            self.forgotten(readers.len(), readers.values().map(Vec::len).sum());
        }
    }

    fn forgotten(&self, keys: usize, items: usize) {
        self.keys.fetch_sub(keys, Ordering::Relaxed);
        self.items.fetch_sub(items, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_store::hash::KeyHasher;

    #[test]
    fn every_reader_is_noted_once_and_taken_once() {
        let hasher = KeyHasher::new(1);
        let table = KeyTable::default();
        let counts = |table: &KeyTable| (table.keys(), table.items());
        for client in [2, 1, 2, 3] {
            table.add(hasher.hash(b"k"), b"k", client);
        }
        table.add(hasher.hash(b"other"), b"other", 1);
        assert_eq!(counts(&table), (2, 4));
        assert_eq!(table.take(hasher.hash(b"k"), b"k"), Some(vec![1, 2, 3]));
        assert_eq!(table.take(hasher.hash(b"k"), b"k"), None);
        assert_eq!(counts(&table), (1, 1));
        table.clear();
        assert_eq!(counts(&table), (0, 0));
    }

    #[test]
    fn each_key_has_its_turn_to_be_forgotten() {
        let hasher = KeyHasher::new(1);
        let table = KeyTable::default();
        let keys: Vec<Box<[u8]>> = (0..600u32).map(|number| number.to_string().into_bytes().into()).collect();
        keys.iter().for_each(|key| table.add(hasher.hash(key), key, 1));
        let mut forgotten: Vec<_> = std::iter::from_fn(|| table.take_any()).map(|(key, _)| key).collect();
        forgotten.sort_unstable();
        let mut all = keys;
        all.sort_unstable();
        assert_eq!(forgotten, all);
        assert_eq!(table.keys(), 0);
    }
}
