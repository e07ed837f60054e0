//! Entries as their users see them: what they cost, and what is noted of them.

use tenon_store::entry::{Entry, Meta, NewValue};
use tenon_store::hash::KeyHasher;
use tenon_store::keyspace::Keyspace;

#[test]
fn a_small_string_costs_eight_bytes_over_key_and_value() {
    for (value_len, wanted) in [(8, 32), (32, 56), (100, 124), (1_000, 1_024)] {
        let entry = Entry::new(&[b'k'; 16], NewValue::Bytes(&vec![0; value_len]), &Meta::default());
        assert_eq!(entry.view().memory(), wanted);
    }
}

#[test]
fn a_raw_string_stays_raw_until_another_is_set() {
    let hash = KeyHasher::new(7).hash(b"key");
    for key_len in [3, 300] {
        let key = vec![b'k'; key_len];
        let mut keyspace = Keyspace::default();
        keyspace.insert(hash, &key, NewValue::Bytes(b"text"), &Meta::default(), 0);
        let slot = keyspace.find(hash, &key).expect("it was just stored");
        assert!(!keyspace.entry(slot).is_raw());
        keyspace.entry_mut(slot).mark_raw();
        assert!(keyspace.entry(slot).is_raw());
        // A field that was not there before moves the entry.
        let meta = Meta { deadline_ms: Some(1 << 40), flags: 5, ..Meta::default() };
        keyspace.set_meta(slot, &meta, 0);
        assert!(keyspace.entry(slot).is_raw());
        assert_eq!((keyspace.entry(slot).meta(), keyspace.entry(slot).key()), (meta, &key[..]));
        for value in ["same", "longer than before, and so in another block"] {
            keyspace.entry_mut(slot).mark_raw();
            assert!(keyspace.entry(slot).is_raw());
            drop(keyspace.overwrite(slot, NewValue::Bytes(value.as_bytes()), &meta, 0));
            assert!(!keyspace.entry(slot).is_raw(), "{value}");
        }
    }
}
