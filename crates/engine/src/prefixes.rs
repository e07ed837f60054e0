//! Requests of memcached's clients by the part of their keys before a delimiter (`stats detail`). Knows no request.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// What ends the part of a key that is counted, where nothing else is said.
const DELIMITER: u8 = b':';

/// Most prefixes that are kept: clients choose them.
const PREFIXES_MAX: usize = 100_000;

/// What was asked for under one prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixCounts {
    /// Reads.
    pub gets: u64,
    /// Reads that found an item.
    pub hits: u64,
    /// Writes.
    pub sets: u64,
    /// Removals.
    pub deletes: u64,
}

/// The counts of all prefixes, if anybody wants them.
#[derive(Debug)]
pub struct Prefixes {
    delimiter: u8,
    is_on: AtomicBool,
    counts: Mutex<BTreeMap<Box<[u8]>, PrefixCounts>>,
}

impl Prefixes {
    /// None yet. Who says what ends them, by the first byte of a text, wants them counted from now on.
    pub fn new(delimiter: &str) -> Prefixes {
        let given = delimiter.bytes().next();
        Prefixes {
            delimiter: given.unwrap_or(DELIMITER),
            is_on: AtomicBool::new(given.is_some()),
            counts: Mutex::default(),
        }
    }

    /// What ends a prefix.
    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Whether requests are counted.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Begins to count, or ends it; what was counted stays.
    pub fn set_on(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// Counts a request for this key, if the key has a prefix.
    #[cold]
    pub fn count(&self, key: &[u8], count: impl FnOnce(&mut PrefixCounts)) {
        let Some(len) = key.iter().position(|&byte| byte == self.delimiter) else { return };
        let mut counts = self.counts.lock();
        if let Some(found) = counts.get_mut(&key[..len]) {
            count(found);
        } else if counts.len() < PREFIXES_MAX {
            count(counts.entry(key[..len].into()).or_default());
        }
    }

    /// Calls `visit` with every prefix, in the order of their bytes.
    pub fn each(&self, mut visit: impl FnMut(&[u8], &PrefixCounts)) {
        self.counts.lock().iter().for_each(|(prefix, counts)| visit(prefix, counts));
    }

    /// Forgets what was counted.
    pub fn reset(&self) {
        self.counts.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_counted_by_what_stands_before_the_first_delimiter() {
        let prefixes = Prefixes::new("");
        for key in ["a:1", "a:1:2", "a:", ":", "b", "ab:1"] {
            prefixes.count(key.as_bytes(), |counts| counts.gets += 1);
        }
        let mut seen = Vec::new();
        prefixes.each(|prefix, counts| seen.push((prefix.to_vec(), counts.gets)));
        assert_eq!(seen, [(b"".to_vec(), 1), (b"a".to_vec(), 3), (b"ab".to_vec(), 1)]);
        prefixes.reset();
        prefixes.each(|_, _| panic!("all is forgotten"));
    }

    #[test]
    fn who_gives_a_delimiter_wants_counts() {
        let prefixes = Prefixes::new("/-");
        prefixes.count(b"a:1-2/3", |counts| counts.gets += 1);
        prefixes.each(|prefix, counts| assert_eq!((prefix, counts.gets), (&b"a:1-2"[..], 1)));
        assert_eq!((prefixes.is_on(), prefixes.delimiter()), (true, b'/'));
        let prefixes = Prefixes::new("");
        assert_eq!((prefixes.is_on(), prefixes.delimiter()), (false, b':'));
    }

    #[test]
    fn there_is_an_end_to_prefixes() {
        let prefixes = Prefixes::new("");
        for number in 0..PREFIXES_MAX + 5 {
            prefixes.count(format!("{number}:").as_bytes(), |counts| counts.sets += 1);
        }
        let mut count = 0;
        prefixes.each(|_, _| count += 1);
        assert_eq!(count, PREFIXES_MAX);
    }
}
