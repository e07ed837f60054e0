//! Hashes against a plain list of fields: random changes in all forms, back and forth over their limits, and the order
//! that a packed hash keeps.

use std::collections::HashMap;
use tenon_ds::looks::Looks;
use tenon_store::types::{Collection, Hash, HashLimits, HashRef, PACKED_INLINE_MAX};

/// What a packed run may have; a run of so many fields is longer than what lies in an entry.
const LIMITS: HashLimits = HashLimits { fields: if cfg!(miri) { 60 } else { 300 }, bytes: 60 };

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        ((mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ mixed >> 31) % bound
    }
}

/// Fields with their values, in the order in which they came.
#[derive(Default)]
struct Model {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Model {
    fn position(&self, field: &[u8]) -> Option<usize> {
        self.pairs.iter().position(|pair| pair.0 == field)
    }

    fn set(&mut self, field: Vec<u8>, value: Vec<u8>) -> bool {
        match self.position(&field) {
            Some(index) => {
                self.pairs[index].1 = value;
                false
            }
            None => {
                self.pairs.push((field, value));
                true
            }
        }
    }
}

/// Integers, names that begin alike, names of all lengths.
fn field(number: u64) -> Vec<u8> {
    match number % 3 {
        0 => (number as i64 - 60).to_string().into_bytes(),
        1 => format!("field:{number:012}").into_bytes(),
        _ => vec![b'a' + (number % 23) as u8; 1 + (number / 3 % 50) as usize],
    }
}

fn pairs_of(hash: HashRef<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut pairs = Vec::new();
    hash.for_each(|field, value| pairs.push((field.to_vec(), value.to_vec())));
    pairs
}

fn check(hash: &Hash, model: &Model) {
    let mut pairs = pairs_of(hash.view());
    let mut expected = model.pairs.clone();
    assert_eq!((hash.view().len(), hash.is_empty()), (expected.len(), expected.is_empty()));
    if let HashRef::Table(_) = hash.view() {
        pairs.sort();
        expected.sort();
    }
    assert_eq!(pairs, expected);
    let copy = hash.clone();
    for (field, value) in &model.pairs {
        assert_eq!(hash.view().get(field).map(|value| value.to_vec()).as_ref(), Some(value), "{field:?}");
        assert!(copy.contains(field));
    }
    assert_eq!(hash.view().get(b"no such field"), None);
    if hash.packs_into(usize::MAX) {
        let ((form, bytes), _) = hash.clone().pack(|form, bytes| (form, bytes.to_vec()));
        assert_eq!(pairs_of(Hash::view_packed(form, &bytes).expect("a packed hash")), model.pairs);
        let copy = Hash::from_packed(form, bytes).expect("a packed hash");
        assert!(model.pairs.iter().all(|(field, _)| copy.contains(field)));
    }
}

/// Changes a hash of up to `range` fields with values of up to `value_max` bytes; tells how long its run became.
fn play(seed: u64, range: u64, value_max: u64, limits: HashLimits) -> usize {
    let (mut random, mut longest) = (Random(seed), 0);
    let (mut hash, mut model) = (Hash::default(), Model::default());
    let rounds = range * if cfg!(miri) { 2 } else { 8 };
    for round in 0..rounds {
        let growing = (round * 4 / rounds).is_multiple_of(2);
        let name = field(random.below(range));
        assert_eq!(hash.contains(&name), model.position(&name).is_some());
        if random.below(8) < if growing { 7 } else { 2 } {
            let value = match random.below(3) {
                0 => random.below(1 << 40).to_string().into_bytes(),
                _ => vec![b'v'; random.below(value_max + 1) as usize],
            };
            assert_eq!(hash.set(&name, &value, limits), model.set(name, value));
        } else {
            let index = model.position(&name);
            assert_eq!(hash.remove(&name), index.is_some());
            index.map(|index| model.pairs.remove(index));
        }
        if hash.packs_into(usize::MAX) {
            longest = longest.max(hash.clone().pack(|_, bytes| bytes.len()).0);
        }
        if round % (rounds / if cfg!(miri) { 3 } else { 40 }).max(1) == 0 {
            check(&hash, &model);
        }
    }
    for (name, _) in std::mem::take(&mut model.pairs) {
        assert!(hash.remove(&name));
    }
    check(&hash, &model);
    longest
}

#[test]
fn behaves_like_a_map() {
    let ranges: &[u64] = if cfg!(miri) { &[30] } else { &[10, 100, 250, 1_000] };
    for &range in ranges {
        for value_max in [4, 30, 60] {
            play(range, range, value_max, LIMITS);
        }
    }
}

#[test]
fn long_runs_are_packed_as_long_as_they_may_be() {
    let (range, value_max) = if cfg!(miri) { (20, 500) } else { (250, 60) };
    let limits = HashLimits { bytes: value_max as usize, ..LIMITS };
    assert!(play(3, range, value_max, limits) > PACKED_INLINE_MAX);
}

#[test]
#[cfg_attr(miri, ignore = "two megabytes")]
fn a_run_that_no_place_reaches_is_searched_all_the_same() {
    let limits = HashLimits { fields: 300, bytes: 100_000 };
    assert!(play(5, 60, 60_000, limits) > 1 << 20);
    assert!(play(7, 30, 60_000, limits) < 1 << 20);
}

#[test]
fn too_many_fields_or_too_long_a_one_make_a_table() {
    let mut hash = Hash::default();
    let count = LIMITS.fields as u64;
    (0..count).for_each(|number| assert!(hash.set(format!("f{number}").as_bytes(), b"value", LIMITS)));
    assert_eq!(hash.encoding(), "listpack");
    assert!(!hash.set(b"f7", b"another", LIMITS));
    assert_eq!(hash.encoding(), "listpack");
    assert!(hash.set(b"one more", b"", LIMITS));
    assert_eq!(hash.encoding(), "hashtable");
    let seen: HashMap<Vec<u8>, Vec<u8>> = pairs_of(hash.view()).into_iter().collect();
    assert_eq!((seen.len(), &seen[&b"f7"[..]]), (LIMITS.fields + 1, &b"another".to_vec()));
    let mut short = Hash::default();
    short.set(b"f", &[b'x'; 61], LIMITS);
    assert_eq!(short.encoding(), "hashtable");
}

#[test]
fn places_take_little_beside_the_run() {
    let mut hash = Hash::default();
    for number in 0..LIMITS.fields {
        hash.set(format!("{number}:f").as_bytes(), b"12345678901", LIMITS);
    }
    let (len, _) = hash.clone().pack(|_, bytes| bytes.len());
    // An eighth of either may be spare.
    assert!(hash.memory(Looks::ALL) <= len * 9 / 8 + LIMITS.fields * 4 * 9 / 8 + 64, "{}", hash.memory(Looks::ALL));
}
