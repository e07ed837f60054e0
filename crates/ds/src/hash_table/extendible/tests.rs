//! The table beside a map of the standard library, with good hashes and bad ones.

use super::*;
use crate::blob::Blob;
use crate::hash_table::directory::DEPTH_MAX;
use std::collections::{BTreeSet, HashMap};

/// Elements in a test that should have some tens of segments; fewer under Miri.
const MANY: u64 = if cfg!(miri) { 5 } else { 40 } * SEGMENT_LEN_MAX as u64;

#[test]
fn what_is_asked_for_ahead_may_be_there_or_not() {
    let mut random = Random(9);
    let mut table: ExtendibleTable<Blob> = ExtendibleTable::new();
    for number in 0..MANY {
        // Of an empty table, of one of one segment, and of one of many.
        for hash in [random.next(), number.wrapping_mul(0x9E37_79B9_7F4A_7C15)] {
            table.prefetch(hash, Ahead::Slots);
            table.prefetch(hash, Ahead::Element);
        }
        let bytes = number.to_le_bytes();
        table.insert(number.wrapping_mul(0x9E37_79B9_7F4A_7C15), Blob::new(&bytes), |blob| {
            let bytes = blob.bytes().first_chunk().expect("eight bytes");
            u64::from_le_bytes(*bytes).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        });
    }
    assert_eq!(table.len() as u64, MANY);
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ mixed >> 31
    }
}

fn key_of(blob: crate::blob::BlobRef<'_>) -> u64 {
    u64::from_le_bytes(blob.bytes().try_into().unwrap())
}

fn good_hash(key: u64) -> u64 {
    Random(key).next()
}

/// Only a few different ones.
fn bad_hash(key: u64) -> u64 {
    good_hash(key % 5)
}

/// A table of numbers, hashed in a way of its own.
struct Numbers {
    table: ExtendibleTable<Blob>,
    hash: fn(u64) -> u64,
}

impl Numbers {
    fn new(hash: fn(u64) -> u64) -> Numbers {
        Numbers { table: ExtendibleTable::new(), hash }
    }

    fn of(hash: fn(u64) -> u64, keys: impl IntoIterator<Item = u64>) -> Numbers {
        let mut numbers = Numbers::new(hash);
        keys.into_iter().for_each(|key| {
            numbers.insert(key);
        });
        numbers
    }

    fn find(&self, key: u64) -> Option<Location> {
        self.table.find((self.hash)(key), |blob| key_of(blob) == key)
    }

    fn insert(&mut self, key: u64) -> Location {
        let hash = self.hash;
        let at = self.table.insert(hash(key), Blob::new(&key.to_le_bytes()), |blob| hash(key_of(blob)));
        assert_eq!(key_of(self.table.get(at)), key);
        at
    }

    fn remove(&mut self, key: u64) -> bool {
        let found = self.find(key);
        if let Some(at) = found {
            assert_eq!(key_of(self.table.remove(at).view()), key);
        }
        found.is_some()
    }

    fn check(&self) {
        let Root::Many(directory) = &self.table.root else { return };
        assert!(directory.segments.len() > 1);
        assert_eq!(directory.places.len(), 1 << directory.depth);
        assert_eq!(directory.segments.iter().map(|segment| segment.table.len()).sum::<usize>(), directory.len);
        let mut of_depth = [0; DEPTH_MAX as usize + 1];
        let mut places = 0;
        for (number, segment) in directory.segments.iter().enumerate() {
            of_depth[segment.depth as usize] += 1;
            let range = directory.places_of(segment);
            places += range.len();
            assert!(directory.places[range].iter().all(|&place| place as usize == number));
            assert!(segment.table.len() <= directory.len_bound as usize);
            for (slot, element) in segment.table.iter() {
                let position = self.table.position((self.hash)(key_of(element)));
                assert_eq!(prefix_of(position, segment.depth), segment.prefix as usize);
                let tag = tag_at(position, segment.depth);
                assert_eq!(segment.table.tag(slot), tag);
            }
        }
        assert_eq!((of_depth, places), (directory.of_depth, directory.places.len()));
    }
}

#[test]
fn behaves_like_a_map() {
    for (hash, keys) in [(good_hash as fn(u64) -> u64, MANY), (bad_hash, MANY / 12)] {
        let mut numbers = Numbers::new(hash);
        let mut model: HashMap<u64, ()> = HashMap::new();
        let mut random = Random(keys);
        let rounds = if cfg!(miri) { 1 } else { 8 } * keys;
        for round in 0..rounds {
            // Grow for a while, then shrink, so that both directions are walked.
            let growing = round * 4 / rounds % 2 == 0;
            let key = random.next() % keys;
            assert_eq!(numbers.find(key).is_some(), model.contains_key(&key));
            if random.next() % 8 < if growing { 7 } else { 1 } {
                if model.insert(key, ()).is_none() {
                    numbers.insert(key);
                } else {
                    let at = numbers.find(key).unwrap();
                    let old = numbers.table.replace(at, Blob::new(&key.to_le_bytes()));
                    assert_eq!(key_of(old.view()), key);
                }
            } else {
                assert_eq!(numbers.remove(key), model.remove(&key).is_some());
            }
            assert_eq!(numbers.table.len(), model.len());
            if round % (rounds / if cfg!(miri) { 4 } else { 20 }) == 0 {
                numbers.check();
                let seen: BTreeSet<u64> = numbers.table.iter().map(key_of).collect();
                assert_eq!(seen, model.keys().copied().collect());
                let copied = numbers.table.copied(|blob| Blob::new(blob.bytes()));
                assert_eq!(copied.iter().map(key_of).collect::<BTreeSet<u64>>(), seen);
                assert_eq!(copied.len(), model.len());
            }
        }
        for key in 0..keys {
            assert_eq!(numbers.remove(key), model.remove(&key).is_some());
        }
        assert!(numbers.table.is_empty());
        assert_eq!(numbers.table.memory(Looks::ALL), 0, "an empty table has no memory of its own");
    }
}

#[test]
fn a_scan_meets_all_that_stays_while_the_table_grows_and_shrinks() {
    for (before, per_step) in [(MANY / 40, 40), (MANY, 90)] {
        let mut numbers = Numbers::of(good_hash, 0..before);
        let stay = MANY / 50;
        let (mut seen, mut cursor, mut step) = (Vec::new(), 0, 0);
        loop {
            cursor = numbers.table.scan(cursor, 10, |_, blob| seen.push(key_of(blob)));
            assert!(cursor < 1 << 48);
            if cursor == 0 {
                break;
            }
            for key in step * per_step..(step + 1) * per_step {
                match before < MANY {
                    true => drop(numbers.insert(before + key)),
                    false => drop(numbers.remove(stay + key)),
                }
            }
            step += 1;
        }
        let twice = seen.len() - seen.iter().collect::<BTreeSet<_>>().len();
        assert!(twice <= seen.len() / 100, "{twice} of {} were seen twice", seen.len());
        assert!(before < MANY || numbers.table.len() < before as usize / 4, "the table has shrunk meanwhile");
        seen.retain(|&key| key < stay);
        seen.sort_unstable();
        seen.dedup();
        assert!(seen.iter().copied().eq(0..stay));
    }
}

#[test]
fn cursors_that_were_never_given_out_do_no_harm() {
    for numbers in [Numbers::new(good_hash), Numbers::of(good_hash, 0..9), Numbers::of(good_hash, 0..MANY)] {
        for cursor in [1, 77, 1 << 47, (1 << 48) - 1, 1 << 48, u64::MAX] {
            let next = numbers.table.scan(cursor, 3, |_, _| ());
            assert!(next == 0 || next > cursor);
        }
    }
}

#[test]
fn the_order_of_one_table_spreads_over_another() {
    let source = Numbers::of(good_hash, 0..MANY);
    let mut copy = Numbers::new(good_hash);
    let mut longest = 0;
    let mut cursor = 0;
    loop {
        let mut page = Vec::new();
        cursor = source.table.scan(cursor, 100, |_, blob| page.push(key_of(blob)));
        page.into_iter().for_each(|key| {
            copy.insert(key);
        });
        if let Root::Many(directory) = &copy.table.root {
            longest = longest.max(directory.len_bound as usize);
        }
        if cursor == 0 {
            break;
        }
    }
    assert!(longest <= SEGMENT_LEN_MAX, "a segment of {longest} could not be split");
}

#[test]
fn samples_are_fair() {
    // Segments of unequal length: half of the keys of some are removed.
    let mut numbers = Numbers::of(good_hash, 0..3 * SEGMENT_LEN_MAX as u64);
    let mut random = Random(5);
    let Root::Many(directory) = &numbers.table.root else { unreachable!() };
    let gone: Vec<u64> = directory.segments[0].table.iter().map(|(_, blob)| key_of(blob)).collect();
    gone.iter().skip(1).step_by(2).for_each(|&key| assert!(numbers.remove(key)));
    let rounds = if cfg!(miri) { 4 } else { 100 } * numbers.table.len();
    let mut counts: HashMap<u64, u32> = HashMap::new();
    for _ in 0..rounds {
        let at = numbers.table.sample(|| random.next()).unwrap();
        *counts.entry(key_of(numbers.table.get(at))).or_default() += 1;
    }
    if !cfg!(miri) {
        let expected = rounds as f64 / numbers.table.len() as f64;
        let deviation = |key| (f64::from(counts[&key]) - expected).powi(2) / expected;
        let chi_squared: f64 = numbers.table.iter().map(|blob| deviation(key_of(blob))).sum();
        // Its mean is the number of elements, its deviation the root of twice that.
        let elements = numbers.table.len() as f64;
        assert!((chi_squared - elements).abs() < 6.0 * (2.0 * elements).sqrt(), "{chi_squared} of {elements}");
    }
    assert_eq!(Numbers::new(good_hash).table.sample(|| 1), None);
    // Where nearly all segments are empty, the counting takes over.
    let few = Numbers::of(bad_hash, 0..2 * SEGMENT_LEN_MAX as u64);
    for _ in 0..100 {
        assert!(few.table.sample(|| random.next()).is_some());
    }
}

#[test]
fn memory_follows_the_elements() {
    let mut numbers = Numbers::new(good_hash);
    assert_eq!(size_of::<ExtendibleTable<Blob>>(), 32);
    for key in 0..MANY {
        numbers.insert(key);
        let bytes = numbers.table.memory(Looks::ALL) as f64 / numbers.table.len() as f64;
        assert!(cfg!(miri) || key < 2_000 || bytes < 12.5, "{bytes} bytes an element of {key}");
    }
    let full = numbers.table.memory(Looks::ALL);
    for key in 0..MANY - MANY / 50 {
        numbers.remove(key);
    }
    assert!(
        numbers.table.memory(Looks::ALL) < full / 10,
        "{} of {full} bytes are left",
        numbers.table.memory(Looks::ALL)
    );
}
