//! A keyspace that moves out of half-empty memory keeps every key, value and deadline.

use tenon_ds::slab;
use tenon_store::entry::{Meta, NewValue, ValueRef};
use tenon_store::hash::KeyHasher;
use tenon_store::keyspace::Keyspace;
use tenon_store::types::Object;

const NOW_MS: u64 = 1_700_000_000_000;

fn key(number: u64) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

fn value(number: u64) -> Vec<u8> {
    // Of different parity in length, so that blocks are aligned to four as well as to eight; every tenth an object.
    let len = if number.is_multiple_of(10) { 20_000 } else { 6_000 + number as usize % 9 };
    vec![number as u8; len]
}

fn meta(number: u64) -> Meta {
    Meta { deadline_ms: number.is_multiple_of(3).then_some(NOW_MS + 1_000 + number), ..Meta::default() }
}

#[test]
fn a_keyspace_moves_whole() {
    let hasher = KeyHasher::new(5);
    let numbers = 0..if cfg!(miri) { 120 } else { 4_000u64 };
    let mut keyspace = Keyspace::default();
    for number in numbers.clone() {
        let bytes = value(number);
        keyspace.insert(hasher.hash(&key(number)), &key(number), NewValue::Bytes(&bytes), &meta(number), NOW_MS);
    }
    let (go, stay): (Vec<u64>, Vec<u64>) = numbers.partition(|number| number % 4 > 0);
    for number in go {
        let slot = keyspace.find(hasher.hash(&key(number)), &key(number)).unwrap();
        drop(keyspace.remove(slot));
    }
    let before = slab::waste();
    assert!(slab::start_draining(usize::MAX));
    keyspace.relocate_table();
    keyspace.relocate_entries();
    slab::stop_draining();
    assert!(slab::waste() < before / 2, "{} of {before} bytes are still waste", slab::waste());
    assert_eq!(keyspace.len(), stay.len());
    for &number in &stay {
        let slot = keyspace.find(hasher.hash(&key(number)), &key(number)).expect("the key is still there");
        let entry = keyspace.entry(slot);
        assert_eq!(entry.meta(), meta(number));
        assert!(!keyspace.is_draining(slot));
        match entry.value() {
            ValueRef::Bytes(bytes) => assert!(bytes == value(number)),
            ValueRef::Object(Object::Shared(bytes)) => assert!(*bytes == value(number)),
            other => panic!("the value became {other:?}"),
        }
    }
    let mut expired = 0;
    while !keyspace.expire_due(NOW_MS + 1_000_000, 5, |_| unreachable!("there is no snapshot"), |_| expired += 1) {}
    assert_eq!(expired, stay.iter().filter(|&&number| meta(number).deadline_ms.is_some()).count());
    assert_eq!(keyspace.len(), stay.len() - expired);
}
