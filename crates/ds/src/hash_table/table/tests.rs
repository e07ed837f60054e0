//! The table beside a map of the standard library, and how full it is.

use super::*;
use std::collections::BTreeMap;

/// An element that knows its tag and key.
struct Boxed(Box<(u16, u64)>);

// SAFETY: a box's address is unique and below 2^48; views borrow the box's content.
unsafe impl Pointer for Boxed {
    type Ref<'a> = &'a (u16, u64);
    type Mut<'a> = &'a mut (u16, u64);

    fn into_raw(self) -> NonNull<u8> {
        NonNull::new(Box::into_raw(self.0)).unwrap().cast()
    }
    unsafe fn from_raw(raw: NonNull<u8>) -> Boxed {
        // SAFETY: the pointer came from `Box::into_raw`.
        Boxed(unsafe { Box::from_raw(raw.cast().as_ptr()) })
    }
    unsafe fn as_ref<'a>(raw: NonNull<u8>) -> &'a (u16, u64) {
        // SAFETY: as the trait's contract says.
        unsafe { raw.cast().as_ref() }
    }
    unsafe fn as_mut<'a>(raw: NonNull<u8>) -> &'a mut (u16, u64) {
        // SAFETY: as the trait's contract says.
        unsafe { raw.cast().as_mut() }
    }
}

fn check_order(table: &TagTable<Boxed>) {
    let mut last = 0;
    for index in 0..table.capacity {
        let word = table.read(index);
        if word.is_null() {
            continue;
        }
        let tag = tag_of(word);
        assert!(tag >= last, "tags are in order");
        let home = table.home(tag);
        assert!(home <= index);
        assert!((home..index).all(|i| !table.read(i).is_null()), "no gap between home and place");
        last = tag;
    }
    assert!(table.capacity == 0 || table.read(table.capacity - 1).is_null());
}

fn tag_for(key: u64, tags: u64) -> u16 {
    ((key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) % tags) as u16
}

#[test]
fn a_table_that_expects_its_elements_does_not_grow() {
    for len in [0u32, 100, 1_300] {
        let mut table: TagTable<Boxed> = TagTable::new();
        table.insert(3, Boxed(Box::new((3, 0))));
        table.reserve(len);
        let reserved = table.capacity;
        for key in 1..u64::from(len) {
            let tag = tag_for(key, 65_536);
            table.insert(tag, Boxed(Box::new((tag, key))));
        }
        assert_eq!(table.capacity, reserved, "{len} elements");
        assert_eq!(load_max(table.capacity).max(len), load_max(table.capacity));
        check_order(&table);
        table.reserve(len / 2);
        assert_eq!(table.capacity, reserved, "it does not shrink");
    }
}

#[test]
fn behaves_like_a_map() {
    let rounds = if cfg!(miri) { 200 } else { 60_000 };
    // Few tags force long runs of equal ones; many are the usual case.
    for tags in [1, 7, 500, 65_536u64] {
        let mut table: TagTable<Boxed> = TagTable::new();
        let (mut model, mut random) = (BTreeMap::new(), tags);
        for round in 0..rounds {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Grow for a while, then shrink, so that both directions are walked.
            let keep = if round * 2 / rounds % 2 == 0 { 3 } else { 1 };
            let key = (random >> 33) % if tags < 100 { 200 } else { 3_000 };
            let tag = tag_for(key, tags);
            let found = table.find(tag, |e: &(u16, u64)| e.1 == key);
            assert_eq!(found.is_some(), model.contains_key(&key));
            match found {
                Some(slot) if (random >> 60) % 4 >= keep => {
                    assert_eq!(table.remove(slot).0.1, key);
                    model.remove(&key);
                }
                Some(slot) => {
                    let old = table.replace(slot, Boxed(Box::new((tag, key))));
                    assert_eq!(old.0.1, key);
                    assert_eq!(*table.get_mut(slot), (tag, key));
                }
                None if (random >> 60) % 4 < keep => {
                    let slot = table.insert(tag, Boxed(Box::new((tag, key))));
                    assert_eq!(*table.get(slot), (tag, key));
                    assert_eq!(table.tag(slot), tag);
                    model.insert(key, ());
                }
                None => {}
            }
            assert_eq!(table.len(), model.len());
            if round % 97 == 0 {
                check_order(&table);
                let mut seen: Vec<u64> = Vec::new();
                table.scan(0, usize::MAX, |_, e| seen.push(e.1));
                seen.sort_unstable();
                assert!(seen.iter().eq(model.keys()));
            }
        }
    }
}

#[test]
fn a_scan_meets_all_that_stays_once_while_the_table_grows_and_shrinks() {
    let stay = if cfg!(miri) { 50 } else { 2_000u64 };
    let mut table: TagTable<Boxed> = TagTable::new();
    for key in 0..stay {
        table.insert(tag_for(key, 65_536), Boxed(Box::new((0, key))));
    }
    let mut seen = Vec::new();
    let mut from = Some(0);
    let mut step = 0u64;
    while let Some(tag) = from {
        from = table.scan(tag, 10, |_, e| seen.push(e.1));
        step += 1;
        for key in stay + step * 50..stay + (step + 1) * 50 {
            if step % 40 < 20 {
                table.insert(tag_for(key, 65_536), Boxed(Box::new((0, key))));
            } else if let Some(slot) = table.find(tag_for(key - 1000, 65_536), |e| e.1 == key - 1000) {
                table.remove(slot);
            }
        }
    }
    seen.retain(|&key| key < stay);
    seen.sort_unstable();
    assert!(seen.iter().copied().eq(0..stay));
}

#[test]
fn the_load_stays_high_while_it_grows() {
    let mut table: TagTable<Boxed> = TagTable::new();
    let mut loads = Vec::new();
    for key in 0..if cfg!(miri) { 1_500 } else { 20_000u64 } {
        table.insert(tag_for(key, 65_536), Boxed(Box::new((0, key))));
        if key >= 100 {
            loads.push(table.len() as f64 / table.capacity() as f64);
        }
    }
    let mean = loads.iter().sum::<f64>() / loads.len() as f64;
    assert!(mean > 0.82, "the mean load is {mean}");
    assert!(loads.iter().all(|&load| load > 0.7));
}

#[test]
fn small_tables_are_nearly_full() {
    let mut table: TagTable<Boxed> = TagTable::new();
    let mut slots = 0;
    for key in 0..60u64 {
        table.insert(tag_for(key, 65_536), Boxed(Box::new((0, key))));
        slots += table.capacity();
        check_order(&table);
    }
    let mean = (1..=60).sum::<usize>() as f64 / slots as f64;
    assert!(mean > 0.82, "the mean load is {mean}");
}

#[test]
fn what_is_left_of_a_table_takes_little_more_than_it_needs() {
    let keys = if cfg!(miri) { 300 } else { 3_000 };
    let mut table: TagTable<Boxed> = TagTable::new();
    for key in 0..keys {
        table.insert(tag_for(key, 65_536), Boxed(Box::new((0, key))));
    }
    let mut capacities = vec![table.capacity()];
    for key in 0..keys - 20 {
        let slot = table.find(tag_for(key, 65_536), |it| it.1 == key).expect("it is there");
        table.remove(slot);
        if *capacities.last().expect("there is one") != table.capacity() {
            capacities.push(table.capacity());
            check_order(&table);
        }
        assert!(table.len() * 2 + 8 > table.capacity(), "{} in {}", table.len(), table.capacity());
    }
    assert!(capacities.is_sorted_by(|a, b| a - a / 8 > *b), "no small steps: {capacities:?}");
}

#[test]
fn samples_reach_every_element() {
    let mut table: TagTable<Boxed> = TagTable::new();
    assert_eq!(table.sample(7), None);
    for key in 0..20u64 {
        table.insert(tag_for(key, 65_536), Boxed(Box::new((0, key))));
    }
    let mut seen: Vec<u64> = (0..2_000u32).map(|i| table.get(table.sample(i << 21).unwrap()).1).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 20);
}

#[test]
fn slots_from_a_tag_on_are_those_of_the_tags_behind_it() {
    let mut table: TagTable<Boxed> = TagTable::new();
    assert_eq!(table.slots_from(0).count(), 0);
    for key in 0..200u64 {
        table.insert(tag_for(key, 100), Boxed(Box::new((0, key))));
    }
    for from in [0, 1, 17, 50, 98, 99, 100, u16::MAX] {
        let tags: Vec<u16> = table.slots_from(from).map(|slot| table.tag(slot)).collect();
        assert!(tags.is_sorted() && tags.iter().all(|tag| *tag >= from), "{from}: {tags:?}");
        assert_eq!(tags.len(), (0..200).filter(|key| tag_for(*key, 100) >= from).count());
    }
}

#[test]
fn an_element_is_found_from_where_it_was() {
    let mut table: TagTable<Boxed> = TagTable::new();
    let keys = if cfg!(miri) { 60 } else { 1_000 };
    // Many share a tag, so that what is seen first is often another's.
    let tag = |key: u64| tag_for(key, keys / 3);
    let mut nears = vec![Slot::NOWHERE; keys as usize];
    for round in 0..4 {
        for key in (0..keys).filter(|key| (key + round) % 4 != 0) {
            if table.find(tag(key), |element| element.1 == key).is_none() {
                table.insert(tag(key), Boxed(Box::new((tag(key), key))));
            }
        }
        // What lies where others are seen has moved since it was looked at, is gone, or is there for the first time.
        for key in 0..keys {
            let expected = table.find(tag(key), |element| element.1 == key);
            for near in [nears[key as usize], Slot::NOWHERE, Slot(table.capacity), Slot(table.capacity - 1)] {
                let found = table.find_near(near, tag(key), |element| element.1 == key);
                assert_eq!(found.map(|(slot, element)| (slot, element.1)), expected.map(|slot| (slot, key)));
            }
            nears[key as usize] = table.prefetch_element(tag(key));
        }
        for key in (0..keys).filter(|key| (key + round) % 3 == 0) {
            if let Some(slot) = table.find(tag(key), |element| element.1 == key) {
                table.remove(slot);
            }
        }
    }
    assert!(TagTable::<Boxed>::new().find_near(Slot(0), 0, |_| true).is_none());
}
