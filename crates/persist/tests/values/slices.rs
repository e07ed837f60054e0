//! A large value that is written in slices holds what it held, and no slice is long.

use super::content::{LIMITS, as_written, content, loaded};
use std::cell::Cell;
use tenon_ds::listpack::End;
use tenon_ds::packed::Item;
use tenon_ds::progress;
use tenon_persist::aof::Reader;
use tenon_persist::rdb::file::{Access, FileOptions, Form, write_entry, write_slice};
use tenon_persist::rdb::{Cursor, Value, is_large};
use tenon_store::entry::{Entry, Meta};
use tenon_store::types::stream::{Acknowledgement, Group, Pending, ProducerLimits, StreamId};
use tenon_store::types::{Hash, List, Set, Stream, StreamLimits, Zset};
use tenon_wire::rdb::{Compression, seal};

/// Bytes that no slice of these values exceeds: a slice ends when it has 64 KiB of elements.
const SLICE_MAX: usize = 100_000;

/// Checks a value that takes at least so many slices.
fn check(value: Value, slices_min: usize) {
    let wanted = as_written(content(&value));
    let meta = Meta { flags: 7, ..Meta::default() };
    let entry = value.store(|value| Entry::new(b"k", value, &meta));
    assert!(is_large(entry.view().value()));
    check_commands(&entry);
    for compression in [Compression::On, Compression::Off] {
        let options = FileOptions { form: Form::Rdb, compression, has_checksum: true };
        let mut bytes = Vec::new();
        let mut slices = 0;
        let mut next = Some(Cursor::START);
        while let Some(cursor) = next {
            let before = bytes.len();
            next = write_slice(&mut bytes, &options, entry.view(), Access::Unsaid, &cursor);
            assert!(bytes.len() - before < SLICE_MAX, "a slice of {} bytes", bytes.len() - before);
            slices += 1;
        }
        assert!(slices >= slices_min, "{slices} slices");
        // A payload is the same without the key.
        assert_eq!(bytes[1..3], *b"\x01k");
        let mut payload = [&bytes[..1], &bytes[3..]].concat();
        seal(&mut payload);
        let loaded = loaded(&payload).expect("what was written loads");
        assert_eq!(loaded.client_flags, 7);
        assert_eq!(content(&loaded.value), wanted);
    }
}

/// Checks that slices of commands are short, too, and each is whole commands.
fn check_commands(entry: &Entry) {
    let options = FileOptions { form: Form::Commands, compression: Compression::Off, has_checksum: false };
    let mut next = Some(Cursor::START);
    while let Some(cursor) = next {
        let mut bytes = Vec::new();
        next = write_slice(&mut bytes, &options, entry.view(), Access::Unsaid, &cursor);
        assert!(bytes.len() < 2 * SLICE_MAX, "a slice of {} bytes", bytes.len());
        let mut reader = Reader::new(&bytes[..]);
        while reader.next().expect("a slice is whole commands").is_some() {}
        assert_eq!(reader.valid_up_to(), bytes.len() as u64);
    }
}

fn word(number: u64) -> Vec<u8> {
    match number % 3 {
        0 => number.to_string().into_bytes(),
        1 => format!("element-{number}").into_bytes(),
        _ => format!("{number}-{}", "long".repeat(20)).into_bytes(),
    }
}

#[test]
fn lists() {
    let mut list = List::default();
    for number in 0..20_000 {
        let element = word(number);
        list.prepare([&element[..]].into_iter(), &LIMITS.list);
        list.push(End::Back, Item::of(&element), &LIMITS.list);
    }
    check(Value::List(list), 10);
}

#[test]
fn hashes_with_and_without_deadlines() {
    for expiring in [0, 2_000] {
        let mut hash = Hash::default();
        for number in 0..5_000 {
            hash.set(&word(number), &word(number + 1), LIMITS.hash);
            if number < expiring {
                hash.set_deadline(&word(number), 1_000_000 + number * 7);
            }
        }
        check(Value::Hash(hash), 10);
    }
}

#[test]
fn sets_with_and_without_deadlines() {
    for expiring in [0, 2_000] {
        let mut set = Set::default();
        for number in 0..5_000 {
            set.add(Item::of(&word(number)), LIMITS.set);
            if number < expiring {
                set.set_deadline(&word(number), 1_000_000 + number * 7);
            }
        }
        check(Value::Set(set), 10);
    }
}

#[test]
fn sorted_sets_with_and_without_deadlines() {
    for expiring in [0, 2_000] {
        let mut zset = Zset::default();
        for number in 0..5_000 {
            zset.set(&word(number), (number % 97) as f64 / 3.0, LIMITS.zset);
            if number < expiring {
                zset.set_deadline(&word(number), 1_000_000 + number * 7);
            }
        }
        check(Value::Zset(zset), 10);
    }
}

#[test]
fn streams_with_groups() {
    let mut stream = Stream::default();
    for number in 0..5_000 {
        let value = word(number);
        let fields = [(&b"field"[..], &value[..])];
        stream.append(StreamId::new(number + 1, 0), fields.into_iter(), StreamLimits::new(1_000, 20));
    }
    for name in [b"g1", b"g2"] {
        let mut group = Group::new(StreamId::MIN, None);
        let (consumer, _) = group.see_consumer(b"c", 5);
        stream.add_group(name, group);
        stream.deliver(name, consumer, 100, 5, Acknowledgement::Expected, |_| {});
    }
    check(Value::Stream(stream), 5);
}

#[test]
fn streams_whose_groups_wait_for_much() {
    let mut stream = Stream::default();
    for number in 0..20_000 {
        let value = word(number);
        stream.append(
            StreamId::new(number + 1, 0),
            [(&b"field"[..], &value[..])].into_iter(),
            StreamLimits::new(1_000, 20),
        );
    }
    // One consumer with very many entries, one without any, very many with a few each.
    let mut group = Group::new(StreamId::MIN, None);
    let consumers: Vec<_> =
        (0..2_000).map(|number| group.see_consumer(format!("c{number:04}").as_bytes(), 5).0).collect();
    stream.add_group(b"g1", group);
    stream.deliver(b"g1", consumers[7], 15_000, 5, Acknowledgement::Expected, |_| {});
    for consumer in &consumers[9..] {
        stream.deliver(b"g1", *consumer, 2, 6, Acknowledgement::Expected, |_| {});
    }
    stream.add_group(b"g2", Group::new(StreamId::MIN, None));
    stream.add_group(b"g3", stream.group(b"g1").expect("it was added").clone());
    // Each of two groups has its 18,982 entries twice.
    check(Value::Stream(stream.clone()), 2 * 2 * 18_982 / 512);
    // Much is nobody's, in a group that has somebody of that name, and in one that has nobody.
    let group = stream.group_mut(b"g3").expect("it was added");
    let (nameless, _) = group.see_consumer(b"", 5);
    (16_000..17_000).for_each(|ms| group.assign(StreamId::new(ms, 0), Pending::of(nameless, 6, 1)));
    for name in [b"g1", b"g3"] {
        let group = stream.group_mut(name).expect("it was added");
        (1..=5_000).rev().for_each(|ms| group.release(StreamId::new(ms, 0), ms));
    }
    check(Value::Stream(stream), (2 * 2 * 18_982 + 2 * 5_000) / 512);
}

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// Steps from one call of who listens to long work to the next.
const STEPS: usize = 256;

#[test]
fn streams_of_many_groups_are_gone_through_once() {
    progress::listen(|_| CALLS.set(CALLS.get() + 1));
    const GROUPS: u64 = 3_000;
    let mut stream = Stream::default();
    let fields = [(&b"field"[..], &b"value"[..])];
    stream.append(StreamId::new(1, 0), fields.into_iter(), StreamLimits::new(1_000, 20));
    for number in 0..GROUPS {
        let mut group = Group::new(StreamId::new(number, 0), Some(number));
        for at in 0..number % 3 {
            let (consumer, _) = group.see_consumer(&word(at), number);
            group.assign(StreamId::new(at, 1), Pending::of(consumer, number, 1));
        }
        // Of few groups something is nobody's.
        if number % 100 == 1 {
            group.release(StreamId::new(0, 1), number);
        }
        stream.add_group(format!("g{number:05}").as_bytes(), group);
    }
    check(Value::Stream(stream.clone()), 10);
    let entry = Value::Stream(stream).store(|value| Entry::new(b"k", value, &Meta::default()));
    for form in [Form::Rdb, Form::Commands] {
        let options = FileOptions { form, compression: Compression::Off, has_checksum: false };
        let (mut whole, mut bytes) = (Vec::new(), Vec::new());
        write_entry(&mut whole, &options, entry.view(), Access::Unsaid);
        let before = CALLS.get();
        let mut slices = 0;
        let mut next = Some(Cursor::START);
        while let Some(cursor) = next {
            next = write_slice(&mut bytes, &options, entry.view(), Access::Unsaid, &cursor);
            slices += 1;
        }
        assert!(bytes == whole);
        // Each has one consumer with one entry on average, and is looked at once more for what is nobody's.
        let steps = (CALLS.get() - before) * STEPS / GROUPS as usize;
        assert!(steps < 8, "{steps} steps for a group");
        assert!(slices < GROUPS / 10, "{slices} slices");
    }
}

#[test]
fn streams_that_remember_much() {
    // One producer with very many ids, many with one each; one with long ids.
    let mut stream = Stream::default();
    stream.set_producer_limits(ProducerLimits { duration_s: 60, ids_max: 5_000 });
    let producers = (0..5_000).map(|number| (b"p".to_vec(), number)).chain((0..3_000).map(|number| (word(number), 1)));
    for (name, number) in producers {
        stream.remember(&name, &word(number), StreamId::new(number + 1, 0));
    }
    for number in 0..20u8 {
        stream.remember(b"long", &vec![b'a' + number; 20_000], StreamId::new(1, 0));
    }
    check(Value::Stream(stream), 15);
}
