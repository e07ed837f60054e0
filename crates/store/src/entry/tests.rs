//! Tests of entries: what goes in comes out, and what is written in place is as if it were made anew.

use super::*;

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
    metas
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
