//! Tests of entries: what goes in comes out, and what is written in place is as if it were made anew.

use super::*;
use crate::types::{Collection, Set, SetLimits};

fn metas() -> Vec<Meta> {
    let mut metas = Vec::new();
    for deadline_ms in [None, Some(0), Some(1_700_000_000_000)] {
        for cas in [None, Some(7)] {
            for flags in [0, u32::MAX] {
                for marks in [Marks::NONE, Marks::STALE.or(Marks::FETCHED)] {
                    metas.push(Meta { deadline_ms, cas, flags, access: 0xab_cdef, marks });
                }
            }
        }
    }
    // Some of each with some of all others, for Miri.
    metas.into_iter().step_by(if cfg!(miri) { 5 } else { 1 }).collect()
}

#[test]
fn gives_back_what_was_put_in() {
    for meta in metas() {
        for key_len in [0, 1, 16, 255, 256, 70_000] {
            let key = vec![b'k'; key_len];
            for value_len in [0, 8, 100, INLINE_LEN_MAX] {
                let value = vec![b'v'; value_len];
                let entry = Entry::new(&key, NewValue::Bytes(&value), &meta);
                assert_eq!(entry.view().key(), key);
                assert!(matches!(entry.view().value(), ValueRef::Bytes(v) if v == value));
                assert_eq!(entry.view().meta(), meta);
            }
            let entry = Entry::new(&key, NewValue::Int(i64::MIN), &meta);
            assert!(matches!(entry.view().value(), ValueRef::Int(i64::MIN)));
            let long = vec![b'v'; INLINE_LEN_MAX + 1];
            let entry = Entry::new(&key, NewValue::Bytes(&long), &meta);
            assert!(matches!(entry.view().value(), ValueRef::Object(_)));
            assert_eq!(entry.view().meta(), meta);
            assert!(entry.into_object().is_some());
        }
    }
}

#[test]
fn overwrites_in_place_only_what_fits() {
    for meta in metas() {
        let step = if cfg!(miri) { 7 } else { 1 };
        for before in (0..40).step_by(step) {
            for after in (0..40).step_by(step) {
                let mut entry = Entry::new(b"key", NewValue::Bytes(&vec![b'a'; before]), &meta);
                let size = entry.view().memory();
                let raw = entry.0;
                let mut view = EntryMut(raw, PhantomData);
                let value = vec![b'b'; after];
                let done = view.try_overwrite(NewValue::Bytes(&value), &meta).is_ok();
                assert_eq!(entry.view().memory(), size);
                if done {
                    assert!(matches!(entry.view().value(), ValueRef::Bytes(v) if v == value));
                    assert_eq!(entry.view().meta(), meta);
                } else {
                    entry = Entry::new(b"key", NewValue::Bytes(&value), &meta);
                    assert_ne!(entry.view().memory(), size, "{before} to {after} bytes would have fitted");
                }
            }
        }
    }
}

#[test]
fn a_short_string_grows_in_its_block_or_moves_to_a_larger_one() {
    for meta in metas() {
        for (key_len, before) in [(3, 0), (3, 17), (300, 1_500), (20, 9_000)] {
            let key = vec![b'k'; key_len];
            for more in [0, 1, 3, 40, 300, 5_000] {
                let mut text = vec![b'v'; before];
                let mut entry = Entry::new(&key, NewValue::Bytes(&text), &meta);
                let size = entry.view().memory();
                text.resize(before + more, 0);
                let anew = Entry::new(&key, NewValue::Bytes(&text), &meta);
                let fits = anew.view().memory() == size;
                assert_eq!(entry.view_mut().try_grow(before + more), fits);
                if !fits {
                    entry = Entry::grown(entry.view(), before + more);
                }
                assert!(matches!(entry.view().value(), ValueRef::Bytes(bytes) if bytes == text));
                assert_eq!((entry.view().key(), entry.view().meta()), (&key[..], meta));
                assert_eq!(entry.view().memory(), anew.view().memory());
            }
            let mut entry = Entry::new(&key, NewValue::Bytes(&vec![b'v'; before]), &meta);
            assert!(!entry.view_mut().try_grow(INLINE_LEN_MAX + 1), "it is no short string then");
        }
    }
    assert!(!Entry::new(b"key", NewValue::Int(1), &Meta::default()).view_mut().try_grow(9));
}

#[test]
fn writes_over_only_what_has_the_same_shape() {
    for meta in metas() {
        for key_len in [0, 16, 255, 256] {
            let key = vec![b'k'; key_len];
            for (before, after) in [(0, 0), (8, 8), (8, 9), (9, 8), (INLINE_LEN_MAX, INLINE_LEN_MAX)] {
                let entry = Entry::new(&key, NewValue::Bytes(&vec![b'a'; before]), &meta);
                let value = vec![b'b'; after];
                let done = EntryMut(entry.0, PhantomData).try_write_over(&value, 5);
                let plain = meta.deadline_ms.is_none() && meta.cas.is_none() && meta.flags == 0 && key_len < 256;
                assert_eq!(done, plain && before == after);
                let marks = if done { Marks::NONE } else { meta.marks };
                assert_eq!(entry.view().marks(), marks);
                let expected = if done { value } else { vec![b'a'; before] };
                assert!(matches!(entry.view().value(), ValueRef::Bytes(v) if v == expected));
                assert_eq!(entry.view().access(), if done { 5 } else { meta.access });
                assert_eq!(entry.view().key(), key);
            }
        }
    }
    for number in [NewValue::Int(1), NewValue::Object(Box::new(Object::string(b"12345678")))] {
        let entry = Entry::new(b"k", number, &Meta::default());
        assert!(!EntryMut(entry.0, PhantomData).try_write_over(b"12345678", 5));
    }
}

#[test]
fn a_deadline_comes_and_goes_in_place() {
    let mut meta = Meta { deadline_ms: Some(5), ..Meta::default() };
    let entry = Entry::new(b"key", NewValue::Int(1), &meta);
    let mut view = EntryMut(entry.0, PhantomData);
    meta.deadline_ms = None;
    assert!(view.try_set_meta(&meta));
    assert_eq!(view.view().deadline_ms(), None);
    meta.deadline_ms = Some(9);
    assert!(view.try_set_meta(&meta));
    assert_eq!(view.view().deadline_ms(), Some(9));
    meta.flags = 1;
    assert!(!view.try_set_meta(&meta));
    view.set_int(3);
    assert!(matches!(view.view().value(), ValueRef::Int(3)));
}

/// A set of so many members that is in a table.
fn set_of(members: usize) -> Box<Object> {
    let mut set = Set::default();
    (0..members).for_each(|number| add(&mut set, format!("member:{number}").as_bytes()));
    Box::new(set.into_object())
}

fn add(set: &mut Set, member: &[u8]) {
    let limits = SetLimits { ints: 0, members: 0, bytes: 0 };
    set.add_new(tenon_ds::packed::Item::Bytes(member), limits);
}

fn members(object: &Object) -> usize {
    let set = Set::of_object(object).expect("it is a set").view();
    let mut count = 0;
    set.for_each(|member| count += usize::from(matches!(member, tenon_ds::packed::Item::Bytes(_))));
    assert_eq!(count, set.len());
    count
}

fn members_in(entry: &Entry) -> usize {
    let ValueRef::Object(object) = entry.view().value() else { panic!("it is an object") };
    members(object)
}

#[test]
fn what_is_lent_stays_as_it_is_whatever_becomes_of_its_entry() {
    const MEMBERS: usize = 12;
    let meta = Meta::default();
    type Fate = fn(Entry) -> Option<Entry>;
    let fates: [(Fate, Option<usize>); 6] = [
        (Some, Some(MEMBERS)),
        (|entry| Some(entry.moved()), Some(MEMBERS)),
        (
            |mut entry| {
                let mut view = entry.view_mut();
                let object = view.object().expect("it is one");
                add(Set::of_object_mut(object).expect("it is a set"), b"one more");
                Some(entry)
            },
            Some(MEMBERS + 1),
        ),
        (
            |mut entry| {
                entry.view_mut().try_overwrite(NewValue::Object(set_of(3)), &Meta::default()).expect("it fits");
                Some(entry)
            },
            Some(3),
        ),
        (
            |entry| {
                let object = entry.into_object().expect("it is one");
                Some(Entry::new(b"other", NewValue::Object(object), &Meta::default()))
            },
            Some(MEMBERS),
        ),
        (
            |entry| {
                drop(entry);
                None
            },
            None,
        ),
    ];
    for (fate, left) in fates {
        let mut entry = Entry::new(b"key", NewValue::Object(set_of(MEMBERS)), &meta);
        let lent = entry.view_mut().lend().expect("nobody waits");
        assert_eq!(members_in(&entry), MEMBERS);
        let entry = std::thread::scope(|scope| {
            let reader = scope.spawn(|| members(lent.object()));
            let entry = fate(entry);
            assert_eq!(reader.join().expect("it has read all"), MEMBERS);
            entry
        });
        assert_eq!(entry.as_ref().map(members_in), left);
        assert_eq!(members(lent.object()), MEMBERS);
    }
}

#[test]
fn what_nobody_reads_any_more_is_taken_back_as_it_is() {
    let mut entry = Entry::new(b"key", NewValue::Object(set_of(12)), &Meta::default());
    drop(entry.view_mut().lend());
    assert!(!entry.view().awaits_readers());
    assert_eq!(entry.view_mut().object().map(|object| members(object)), Some(12));
    assert!(Entry::new(b"key", NewValue::Int(1), &Meta::default()).view_mut().lend().is_none());
}

#[test]
fn no_more_readers_come_while_somebody_waits_for_those_there_are() {
    let mut entry = Entry::new(b"key", NewValue::Object(set_of(12)), &Meta::default());
    let first = entry.view_mut().lend().expect("nobody waits");
    let second = entry.view_mut().lend().expect("nobody waits");
    assert!(entry.view().awaits_readers());
    assert!(entry.view_mut().lend().is_none());
    drop(first);
    assert!(entry.view().awaits_readers() && entry.view_mut().lend().is_none());
    drop(second);
    assert!(!entry.view().awaits_readers());
    assert!(entry.view_mut().lend().is_none(), "who has waited may come before the next reader");
    assert!(entry.view_mut().lend().is_some());
}
