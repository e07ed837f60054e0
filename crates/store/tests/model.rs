//! The keyspace against a plain map: random writes, deadlines, removals, scans and the passing of time.

use std::collections::BTreeMap;
use tenon_store::entry::{Marks, Meta, NewValue, ValueRef};
use tenon_store::hash::KeyHasher;
use tenon_store::keyspace::{Expired, Keyspace, TICK_MS, is_past};
use tenon_store::types::Object;

#[derive(Clone, Debug, PartialEq)]
struct Item {
    value: Vec<u8>,
    meta: Meta,
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 24) % bound
    }
}

fn bytes_of(value: ValueRef<'_>) -> Vec<u8> {
    match value {
        ValueRef::Bytes(bytes) => bytes.to_vec(),
        ValueRef::Int(int) => int.to_string().into_bytes(),
        ValueRef::Object(Object::Shared(bytes)) => bytes.to_vec(),
        ValueRef::Object(Object::Rope(rope)) => rope.to_vec(),
        ValueRef::Packed(..) | ValueRef::Object(_) => unreachable!("the test stores strings"),
    }
}

fn meta(random: &mut Random, now_ms: u64) -> Meta {
    let spans = [50, 3_000, 1_000_000];
    Meta {
        deadline_ms: (random.below(2) == 0).then(|| now_ms + random.below(spans[random.0 as usize % 3])),
        cas: (random.below(4) == 0).then(|| 1 + random.below(100)),
        flags: if random.below(4) == 0 { random.below(1 << 32) as u32 } else { 0 },
        access: random.below(1 << 24) as u32,
        marks: if random.below(4) == 0 { Marks::STALE.or(Marks::FETCHED) } else { Marks::NONE },
    }
}

fn check(seed: u64, keys: u64, rounds: u64) {
    let mut random = Random(seed);
    let hasher = KeyHasher::new(seed);
    let mut keyspace = Keyspace::default();
    let mut model: BTreeMap<Vec<u8>, Item> = BTreeMap::new();
    let mut now_ms = 1_700_000_000_000;
    for round in 0..rounds {
        let key = format!("key:{}", random.below(keys)).into_bytes();
        let hash = hasher.hash(&key);
        let slot = keyspace.find(hash, &key);
        assert_eq!(slot.is_some(), model.contains_key(&key), "round {round}");
        if let Some(slot) = slot {
            let entry = keyspace.entry(slot);
            let item = Item { value: bytes_of(entry.value()), meta: entry.meta() };
            assert_eq!(&item, &model[&key], "round {round}");
        }
        match random.below(10) {
            0..=4 => {
                let meta = meta(&mut random, now_ms);
                let int = random.below(1_000) as i64 - 500;
                let len = [0, 5, 32, 300, 20_000, 300_000][random.below(if cfg!(miri) { 4 } else { 6 }) as usize];
                let text = vec![b'a' + (round % 26) as u8; len];
                let (value, bytes) = if random.below(4) == 0 {
                    (NewValue::Int(int), int.to_string().into_bytes())
                } else {
                    (NewValue::Bytes(&text), text.clone())
                };
                match slot {
                    Some(slot) => {
                        let replaced = keyspace.overwrite(slot, value, &meta, now_ms);
                        assert!(replaced.is_none_or(|entry| entry.view().key() == key));
                    }
                    None => {
                        keyspace.insert(hash, &key, value, &meta, now_ms);
                    }
                }
                model.insert(key, Item { value: bytes, meta });
            }
            5 => {
                if let Some(slot) = slot {
                    let meta = meta(&mut random, now_ms);
                    keyspace.set_meta(slot, &meta, now_ms);
                    model.get_mut(&key).expect("they agree").meta = meta;
                }
            }
            6 | 7 => {
                if let Some(slot) = slot {
                    assert_eq!(keyspace.remove(slot).view().key(), key);
                    model.remove(&key);
                }
            }
            8 => {
                now_ms += random.below([3, 100, 5_000][random.0 as usize % 3]);
                while !keyspace.expire_due(
                    now_ms,
                    5,
                    |_| unreachable!("there is no snapshot"),
                    |expired| {
                        let Expired::Key(entry) = expired else { unreachable!("strings have no members") };
                        let item = model.remove(entry.view().key()).expect("only what is there expires");
                        assert!(is_past(item.meta.deadline_ms, now_ms));
                    },
                ) {}
                let late = now_ms.saturating_sub(TICK_MS);
                assert!(model.values().all(|item| !is_past(item.meta.deadline_ms, late)), "round {round}");
            }
            _ => {
                let due = keyspace.next_due_ms();
                let first = model.values().filter_map(|item| item.meta.deadline_ms).min();
                assert_eq!(due.is_some(), first.is_some());
                assert!(due.is_none_or(|due| due <= first.unwrap() + TICK_MS));
                if round % 50 == 9 {
                    let mut from = Some(0);
                    let mut seen = Vec::new();
                    while let Some(tag) = from {
                        from = keyspace.scan(tag, 7, |entry| seen.push(entry.key().to_vec()));
                    }
                    seen.sort();
                    assert!(seen.iter().eq(model.keys()), "round {round}");
                }
            }
        }
        assert_eq!(keyspace.len(), model.len());
        assert_eq!(keyspace.expiring(), model.values().filter(|item| item.meta.deadline_ms.is_some()).count());
    }
}

#[test]
fn a_keyspace_behaves_like_a_map() {
    let rounds = if cfg!(miri) { 70 } else { 30_000 };
    for (seed, keys) in [(1, 10), (2, 300), (3, 5_000)].into_iter().take(if cfg!(miri) { 2 } else { 3 }) {
        check(seed, keys, rounds);
    }
}
