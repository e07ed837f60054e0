//! Entries as their users see them: what they cost, and what is noted of them.

use tenon_ds::listpack::End;
use tenon_ds::packed::Item;
use tenon_store::entry::{Entry, Meta, NewValue};
use tenon_store::hash::KeyHasher;
use tenon_store::keyspace::Keyspace;
use tenon_store::types::stream::StreamId;
use tenon_store::types::{
    Collection, Hash, HashLimits, List, ListLimits, Object, Rope, Set, SetLimits, Stream, StreamLimits, Zset,
    ZsetLimits,
};

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

/// What waits to be freed is told by it: where it is far too little, more is evicted than need be.
#[test]
#[cfg_attr(miri, ignore = "it is about figures, and takes long")]
fn a_few_pieces_tell_what_a_large_value_takes() {
    const BYTES: usize = 64;
    let limits = ListLimits::new(-2, usize::MAX);
    let (mut hash, mut set, mut zset) = (Hash::default(), Set::default(), Zset::default());
    let (mut list, mut stream, mut rope) = (List::default(), Stream::default(), Rope::default());
    for number in 0..50_000u64 {
        // Of lengths that rise and fall along the value.
        let element = format!("{number}:{}", "x".repeat((number / 100 % 300) as usize));
        let bytes = element.as_bytes();
        hash.set(bytes, bytes, HashLimits { fields: BYTES, bytes: BYTES });
        set.add(Item::of(bytes), SetLimits { ints: BYTES, members: BYTES, bytes: BYTES });
        zset.set(bytes, number as f64, ZsetLimits { members: BYTES, bytes: BYTES });
        list.prepare([bytes].into_iter(), &limits);
        list.push(End::Back, Item::of(bytes), &limits);
        let id = StreamId::new(number + 1, 0);
        stream.append(id, [(&b"field"[..], bytes)].into_iter(), StreamLimits::new(4096, 100));
        rope.append(&[b'r'; 300]);
    }
    let deadlines = (0..50_000u64).map(|number| {
        let element = format!("{number}");
        hash.set(element.as_bytes(), b"value", HashLimits { fields: BYTES, bytes: BYTES });
        hash.set_deadline(element.as_bytes(), 1_000 + number)
    });
    deadlines.for_each(drop);
    let values = [
        ("hash", Object::Hash(hash)),
        ("set", Object::Set(set)),
        ("zset", Object::Zset(zset)),
        ("list", Object::List(list)),
        ("stream", stream.into_object()),
        ("string", Object::Rope(rope)),
    ];
    for (name, value) in values {
        let entry = Entry::new(b"key", NewValue::Object(Box::new(value)), &Meta::default());
        let (rough, exact) = (entry.view().rough_memory(), entry.view().memory());
        assert!(rough.abs_diff(exact) < exact / 5, "{name}: {rough} of {exact} bytes");
    }
}
