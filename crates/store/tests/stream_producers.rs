//! What streams remember of their producers, against a model that keeps lists; and the keyspace that has them forget.

// Streams are safe code over the standard library's trees.
#![cfg(not(miri))]

use proptest::prelude::*;
use std::collections::BTreeMap;
use tenon_ds::looks::Looks;
use tenon_store::entry::{Entry, Meta, NewValue, ValueRef};
use tenon_store::hash::KeyHasher;
use tenon_store::keyspace::{Ahead, DeadlineCounts, Expired, Keyspace, TICK_MS};
use tenon_store::types::stream::{ProducerCounts, ProducerLimits, Producers, StreamId};
use tenon_store::types::{Collection, Object, Stream};

const START_MS: u64 = 1_700_000_000_000;

#[derive(Clone, Debug)]
enum Step {
    /// An entry comes from this producer, with this id; so much later, or its stream's ids have gone back so far.
    Add {
        producer: u8,
        id: u16,
        later_ms: u64,
        back_ms: u64,
    },
    /// What is past goes, at most so many.
    Forget {
        later_ms: u64,
        at_most: usize,
    },
    Limits {
        duration_s: u32,
        ids_max: u32,
    },
    Clone,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0u8..6, 0u16..40, prop_oneof![5 => 0u64..300, 1 => 0u64..4_000], prop_oneof![9 => Just(0u64), 1 => 0u64..3_000])
            .prop_map(|(producer, id, later_ms, back_ms)| Step::Add { producer, id, later_ms, back_ms }),
        4 => (0u64..2_000, prop_oneof![Just(1usize), Just(3), Just(usize::MAX)])
            .prop_map(|(later_ms, at_most)| Step::Forget { later_ms, at_most }),
        1 => (1u32..5, 1u32..20).prop_map(|(duration_s, ids_max)| Step::Limits { duration_s, ids_max }),
        1 => Just(Step::Clone),
    ]
}

#[derive(Debug)]
struct Model {
    producers: BTreeMap<Vec<u8>, Vec<(Vec<u8>, StreamId)>>,
    limits: ProducerLimits,
    counts: ProducerCounts,
}

impl Model {
    fn is_past(&self, entry: StreamId, now_ms: u64) -> bool {
        entry.ms + u64::from(self.limits.duration_s) * 1_000 <= now_ms
    }

    fn known(&self, producer: &[u8], id: &[u8], now_ms: u64) -> Option<StreamId> {
        let (_, entry) = self.producers.get(producer)?.iter().find(|(known, _)| known == id)?;
        (!self.is_past(*entry, now_ms)).then_some(*entry)
    }

    fn remember(&mut self, producer: &[u8], id: &[u8], entry: StreamId) {
        let ids = self.producers.entry(producer.to_vec()).or_default();
        ids.retain(|(known, _)| known != id);
        ids.push((id.to_vec(), entry));
        if ids.len() > self.limits.ids_max as usize {
            ids.remove(0);
        }
        self.counts.added += 1;
    }

    /// Forgets all that is past at the front of its producer.
    fn forget(&mut self, now_ms: u64) -> usize {
        let mut taken = 0;
        let duration_ms = u64::from(self.limits.duration_s) * 1_000;
        for ids in self.producers.values_mut() {
            let stays = ids.iter().position(|(_, entry)| entry.ms + duration_ms > now_ms).unwrap_or(ids.len());
            taken += stays;
            ids.drain(..stays);
        }
        self.producers.retain(|_, ids| !ids.is_empty());
        taken
    }
}

fn shown(producers: &Producers) -> BTreeMap<Vec<u8>, Vec<(Vec<u8>, StreamId)>> {
    let ids_of =
        |ids: &mut dyn Iterator<Item = (&[u8], StreamId)>| ids.map(|(id, entry)| (id.to_vec(), entry)).collect();
    producers.starting_at(0).map(|(name, mut ids)| (name.to_vec(), ids_of(&mut ids))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 300 }))]

    #[test]
    fn producers_agree_with_their_model(steps in prop::collection::vec(steps(), 0..300)) {
        let mut stream = Stream::default();
        let initial = ProducerLimits::INITIAL;
        let mut model = Model { producers: BTreeMap::new(), limits: initial, counts: ProducerCounts::default() };
        let mut now_ms = START_MS;
        for step in steps {
            match step {
                Step::Add { producer, id, later_ms, back_ms } => {
                    now_ms += later_ms;
                    let (producer, id) = (format!("producer {producer}").into_bytes(), format!("id {id}").into_bytes());
                    let known = stream.entry_of_producer(&producer, &id, now_ms);
                    prop_assert_eq!(known, model.known(&producer, &id, now_ms));
                    if known.is_some() {
                        stream.count_duplicate();
                        model.counts.duplicates += 1;
                    } else {
                        let entry = StreamId::new(now_ms - back_ms, now_ms);
                        stream.remember(&producer, &id, entry);
                        model.remember(&producer, &id, entry);
                    }
                }
                Step::Forget { later_ms, at_most } => {
                    now_ms += later_ms;
                    let past = model.forget(now_ms);
                    let ids = |stream: &Stream| stream.producers().map_or(0, Producers::ids);
                    let before = ids(&stream);
                    while stream.producers_due_ms().is_some_and(|due_ms| now_ms > due_ms) {
                        let at_first = ids(&stream);
                        // A producer may be looked at for nothing, and counts.
                        let done = stream.forget_past(now_ms, at_most);
                        prop_assert!((1..=at_most).contains(&done) && at_first - ids(&stream) <= done);
                    }
                    prop_assert_eq!(before - ids(&stream), past);
                    prop_assert_eq!(stream.forget_past(now_ms, at_most), 0);
                }
                Step::Limits { duration_s, ids_max } => {
                    let limits = ProducerLimits { duration_s, ids_max };
                    let changes = limits != model.limits;
                    prop_assert_eq!(stream.set_producer_limits(limits).is_some(), changes);
                    if changes {
                        model.producers.clear();
                        model.limits = limits;
                    }
                }
                Step::Clone => stream = stream.clone(),
            }
            prop_assert_eq!(stream.producer_limits(), model.limits);
            let first_ms = model.producers.values().filter_map(|ids| ids.first()).map(|(_, entry)| entry.ms).min();
            let due_ms = first_ms.map(|ms| ms + u64::from(model.limits.duration_s) * 1_000 - 1);
            prop_assert_eq!(stream.producers_due_ms().is_some(), due_ms.is_some());
            prop_assert!(stream.producers_due_ms() <= due_ms, "what is past is found in time");
            if let Some(producers) = stream.producers() {
                prop_assert_eq!(producers.counts(), model.counts);
                prop_assert_eq!(&shown(producers), &model.producers);
                prop_assert_eq!(producers.len(), model.producers.len());
                prop_assert_eq!(producers.ids(), model.producers.values().map(Vec::len).sum::<usize>());
            } else {
                prop_assert!(model.producers.is_empty());
            }
        }
    }
}

#[test]
fn limits_have_bounds() {
    for (duration_s, ids_max, is_right) in [
        (1, 1, true),
        (86_400, 10_000, true),
        (0, 1, false),
        (1, 0, false),
        (86_401, 1, false),
        (1, 10_001, false),
        (u64::MAX, u64::MAX, false),
    ] {
        assert_eq!(ProducerLimits::new(duration_s, ids_max).is_some(), is_right, "{duration_s} {ids_max}");
    }
}

#[test]
fn ids_as_high_as_numbers_go_are_never_past() {
    let mut stream = Stream::default();
    stream.remember(b"p", b"a", StreamId::MAX);
    assert_eq!(stream.producers_due_ms(), None);
    assert_eq!(stream.forget_past(u64::MAX, usize::MAX), 0);
    assert_eq!(stream.entry_of_producer(b"p", b"a", u64::MAX), Some(StreamId::MAX));
    // Behind one that stays all stay, as in Redis; but what is past is added again.
    stream.remember(b"p", b"b", StreamId::new(5, 0));
    assert_eq!(stream.forget_past(START_MS, usize::MAX), 0);
    assert_eq!(stream.entry_of_producer(b"p", b"b", START_MS), None);
    stream.remember(b"p", b"b", StreamId::new(START_MS, 0));
    assert_eq!(stream.producers().map(Producers::ids), Some(2));
}

#[test]
fn a_stream_without_producers_is_as_small_as_before() {
    assert!(Stream::default().producers().is_none());
    let mut stream = Stream::default();
    assert!(stream.set_producer_limits(ProducerLimits::INITIAL).is_none());
    assert!(stream.producers().is_none());
}

#[test]
#[cfg_attr(miri, ignore = "it is about figures, and takes long")]
fn memory_of_ids_is_counted_and_given_back() {
    let mut stream = Stream::default();
    let empty = stream.memory(Looks::ALL);
    for number in 0..10_000u64 {
        let id = format!("an id of thirty-two bytes: {number:05}");
        stream.remember(
            format!("producer {}", number % 100).as_bytes(),
            id.as_bytes(),
            StreamId::new(START_MS, number),
        );
    }
    let full = stream.memory(Looks::ALL) - empty;
    assert!((10_000 * 60..10_000 * 120).contains(&full), "{full} bytes for 10,000 ids");
    assert!(stream.allocations() > 10_000);
    assert_eq!(stream.forget_past(START_MS + 100_000, usize::MAX), 10_000);
    assert!(stream.memory(Looks::ALL) - empty < 1_000, "{} bytes are left", stream.memory(Looks::ALL) - empty);
}

#[test]
#[cfg_attr(miri, ignore = "it is about figures, and takes long")]
fn producers_that_are_looked_at_for_nothing_are_work_too() {
    let mut stream = Stream::default();
    stream.set_producer_limits(ProducerLimits { duration_s: 1, ids_max: 1 });
    for number in 0..1_000u64 {
        let name = number.to_string();
        stream.remember(name.as_bytes(), b"first", StreamId::new(START_MS, number));
        // It pushes the first one out, and the producer is noted with that one's time.
        stream.remember(name.as_bytes(), b"second", StreamId::new(START_MS + 60_000, number));
    }
    let now_ms = START_MS + 2_000;
    assert_eq!([0; 4].map(|_| stream.forget_past(now_ms, 256)), [256, 256, 256, 232]);
    assert_eq!((stream.forget_past(now_ms, 256), stream.producers().map(Producers::ids)), (0, Some(1_000)));
}

fn insert(keyspace: &mut Keyspace, key: &[u8], stream: Stream) {
    let hash = KeyHasher::new(7).hash(key);
    keyspace.insert(hash, key, NewValue::Object(Box::new(stream.into_object())), &Meta::default(), START_MS);
}

fn ids_left(keyspace: &Keyspace, key: &[u8]) -> usize {
    let slot = keyspace.find(KeyHasher::new(7).hash(key), key).expect("nothing of it expires but what it remembers");
    let ValueRef::Object(Object::Stream(stream)) = keyspace.entry(slot).value() else { panic!("it is a stream") };
    stream.producers().map_or(0, Producers::ids)
}

#[test]
fn a_stream_that_nobody_touches_forgets() {
    let mut keyspace = Keyspace::default();
    for key in [&b"one"[..], b"two", b"none"] {
        let mut stream = Stream::default();
        for number in 0..if key == b"none" { 0 } else { 1_000 } {
            stream.remember(&[number as u8], &[number as u8], StreamId::new(START_MS + number, 0));
        }
        insert(&mut keyspace, key, stream);
    }
    // They are no keys of which members expire.
    assert_eq!(keyspace.deadline_counts(), DeadlineCounts::default());
    assert!(keyspace.has_deadlines());
    let first_ms = START_MS + 744 + 100_000;
    assert!(keyspace.next_due_ms().is_some_and(|due_ms| due_ms <= first_ms + TICK_MS));
    let mut told = 0;
    let mut expire = |keyspace: &mut Keyspace, now_ms: u64| {
        let tell = |expired: Expired<'_>| {
            assert!(matches!(expired, Expired::Members { .. }), "{expired:?}");
            told += 1;
        };
        keyspace.expire_due(now_ms, 1_000_000, |_| Ahead::HandedOver, tell)
    };
    assert!(expire(&mut keyspace, START_MS + 50_000));
    assert_eq!((ids_left(&keyspace, b"one"), ids_left(&keyspace, b"two")), (256, 256));
    assert!(expire(&mut keyspace, first_ms + 100 + TICK_MS));
    assert!((1..=155).contains(&ids_left(&keyspace, b"one")), "{}", ids_left(&keyspace, b"one"));
    assert!(expire(&mut keyspace, first_ms + 1_000));
    assert_eq!((ids_left(&keyspace, b"one"), ids_left(&keyspace, b"two")), (0, 0));
    assert!(told > 0 && !keyspace.has_deadlines(), "the index is gone with the last of them");
    assert_eq!(keyspace.len(), 3);
}

#[test]
fn the_index_follows_a_stream_that_changes_and_goes() {
    let mut keyspace = Keyspace::default();
    insert(&mut keyspace, b"s", Stream::default());
    assert!(!keyspace.has_deadlines());
    let slot = keyspace.find(KeyHasher::new(7).hash(b"s"), b"s").expect("it is there");
    let change = |keyspace: &mut Keyspace, change: &dyn Fn(&mut Stream)| {
        let slot = keyspace.find(KeyHasher::new(7).hash(b"s"), b"s").expect("it is there");
        let mut entry = keyspace.entry_mut(slot);
        change(Stream::of_object_mut(entry.object().expect("it is one")).expect("it is a stream"));
        keyspace.members_changed(slot, START_MS)
    };
    assert!(change(&mut keyspace, &|stream| stream.remember(b"p", b"a", StreamId::new(START_MS, 1))));
    assert!(keyspace.has_deadlines());
    assert_eq!(keyspace.entry(slot).members_due_ms(), Some(START_MS + 99_999));
    assert!(!change(&mut keyspace, &|stream| stream.remember(b"p", b"b", StreamId::new(START_MS, 2))));
    let limits = ProducerLimits { duration_s: 5, ids_max: 1 };
    assert!(change(&mut keyspace, &|stream| _ = stream.set_producer_limits(limits)));
    assert!(!keyspace.has_deadlines());
    assert!(change(&mut keyspace, &|stream| stream.remember(b"p", b"a", StreamId::new(START_MS, 3))));
    let entry: Entry = keyspace.remove(slot);
    assert_eq!(entry.view().members_due_ms(), Some(START_MS + 4_999));
    assert!(!keyspace.has_deadlines() && keyspace.is_empty());
}
