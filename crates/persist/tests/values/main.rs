//! Values of every type and form through payloads and back, the forms of old versions, and payloads that lie.

mod content;
mod packed;
mod slices;
mod streams;
mod strings;

use content::{Content, Deadlines, LIMITS, check_round_trip, content, loaded, payload_of};
use proptest::prelude::*;
use tenon_ds::packed::Item;
use tenon_persist::rdb::file::OnModule;
use tenon_persist::rdb::{DecodeError, LoadError, Loaded, Value, load};
use tenon_store::types::stream::{Acknowledgement, Group, NotPending, ProducerLimits, Recount, References, StreamId};
use tenon_store::types::{Hash, List, Set, Stream, StreamLimits, Zset};
use tenon_wire::rdb::{crc64, seal};

/// The content of a value of this form, given as Redis writes it.
fn read(kind: u8, body: &[u8]) -> Result<Content, LoadError> {
    read_of_version(kind, body, 10)
}

fn read_of_version(kind: u8, body: &[u8], version: u16) -> Result<Content, LoadError> {
    let mut payload = vec![kind];
    payload.extend_from_slice(body);
    payload.extend_from_slice(&version.to_le_bytes());
    payload.extend_from_slice(&crc64(0, &payload).to_le_bytes());
    loaded(&payload).map(|loaded| content(&loaded.value))
}

/// A string as the format has it, uncompressed.
fn string(text: &[u8]) -> Vec<u8> {
    assert!(text.len() < 64);
    [&[text.len() as u8][..], text].concat()
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => any::<i64>().prop_map(|int| int.to_string().into_bytes()),
        4 => (-200..200i64).prop_map(|int| int.to_string().into_bytes()),
        4 => proptest::collection::vec(any::<u8>(), 0..80),
        2 => (0..70usize, any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
        1 => (4_000..70_000usize).prop_map(|len| b"abcab".iter().copied().cycle().take(len).collect()),
    ]
}

fn values() -> impl Strategy<Value = Value> {
    let scores = prop_oneof![
        (-5..5i32).prop_map(f64::from),
        any::<f64>().prop_filter("a score is a number", |score| !score.is_nan()),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(0.1),
    ];
    let lists = proptest::collection::vec(texts(), 1..60).prop_map(|texts| {
        let mut list = List::default();
        for text in &texts {
            list.prepare([&text[..]].into_iter(), &LIMITS.list);
            list.push(tenon_ds::listpack::End::Back, Item::of(text), &LIMITS.list);
        }
        Value::List(list)
    });
    let due = || prop_oneof![3 => Just(None), 1 => prop_oneof![1_000..2_000u64, 0..1u64 << 46].prop_map(Some)];
    let hashes = proptest::collection::vec((texts(), texts(), due()), 1..40).prop_map(|fields| {
        let mut hash = Hash::default();
        for (field, value, due_ms) in &fields {
            hash.set(field, value, LIMITS.hash);
            due_ms.inspect(|due_ms| hash.set_deadline(field, *due_ms));
        }
        Value::Hash(hash)
    });
    let set_of = |texts: Vec<Vec<u8>>| {
        let mut set = Set::default();
        texts.iter().for_each(|text| _ = set.add(Item::of(text), LIMITS.set));
        Value::Set(set)
    };
    let sets = proptest::collection::vec(texts(), 1..40).prop_map(set_of);
    let expiring = proptest::collection::vec((texts(), due()), 1..40).prop_map(|members| {
        let mut set = Set::default();
        for (member, due_ms) in &members {
            set.add(Item::of(member), LIMITS.set);
            due_ms.inspect(|due_ms| set.set_deadline(member, *due_ms));
        }
        Value::Set(set)
    });
    let ints =
        proptest::collection::vec(prop_oneof![any::<i64>(), -9..9i64].prop_map(|int| int.to_string().into()), 1..40);
    let zsets = proptest::collection::vec((texts(), scores, due()), 1..40).prop_map(|members| {
        let mut zset = Zset::default();
        for (member, score, due_ms) in &members {
            zset.set(member, *score, LIMITS.zset);
            due_ms.inspect(|due_ms| zset.set_deadline(member, *due_ms));
        }
        Value::Zset(zset)
    });
    prop_oneof![
        streams().prop_map(Value::Stream),
        texts().prop_map(Value::String),
        lists,
        hashes,
        sets,
        expiring,
        ints.prop_map(set_of),
        zsets
    ]
}

/// What is done to a stream.
#[derive(Clone, Debug)]
enum Step {
    Add { after_ms: u64, fields: Vec<(Vec<u8>, Vec<u8>)> },
    Delete(usize),
    Group(u8),
    Deliver { group: u8, consumer: u8, most: usize },
    Acknowledge { group: u8, at: usize },
    Release { group: u8, at: usize, recount: Recount },
    Remember { producer: u8, id: Vec<u8> },
    Limits(ProducerLimits),
}

fn streams() -> impl Strategy<Value = Stream> {
    let short = || prop_oneof![Just(b"f".to_vec()), Just(b"12".to_vec()), texts()];
    let steps = prop_oneof![
        6 => (0..3u64, proptest::collection::vec((short(), short()), 1..4))
            .prop_map(|(after_ms, fields)| Step::Add { after_ms, fields }),
        1 => any::<usize>().prop_map(Step::Delete),
        1 => (0..3u8).prop_map(Step::Group),
        2 => (0..3u8, 0..3u8, 1..5usize).prop_map(|(group, consumer, most)| Step::Deliver { group, consumer, most }),
        1 => (0..3u8, any::<usize>()).prop_map(|(group, at)| Step::Acknowledge { group, at }),
        1 => (0..3u8, any::<usize>(), prop_oneof![Just(Recount::Most), (0..5u64).prop_map(Recount::Set)])
            .prop_map(|(group, at, recount)| Step::Release { group, at, recount }),
        1 => (0..3u8, proptest::collection::vec(any::<u8>(), 1..80))
            .prop_map(|(producer, id)| Step::Remember { producer, id }),
        1 => (1..=86_400u32, 1..=10_000u32)
            .prop_map(|(duration_s, ids_max)| Step::Limits(ProducerLimits { duration_s, ids_max })),
    ];
    proptest::collection::vec(steps, 0..60).prop_map(|steps| {
        let mut stream = Stream::default();
        let limits = StreamLimits::new(300, 5);
        for (now_ms, step) in (1_000..).zip(steps) {
            let ids: Vec<StreamId> = stream.range(StreamId::MIN..=StreamId::MAX).map(|entry| entry.id()).collect();
            match step {
                Step::Add { after_ms, fields } => {
                    let last = stream.last_id();
                    let id = StreamId::new(last.ms + after_ms, if after_ms == 0 { last.seq + 1 } else { 0 });
                    let fields = fields.iter().map(|(field, value)| (&field[..], &value[..]));
                    stream.append(id, fields, limits);
                }
                Step::Delete(at) if !ids.is_empty() => _ = stream.delete(ids[at % ids.len()], References::Keep),
                Step::Group(name) => _ = stream.add_group(&[b'g', name], Group::new(StreamId::MIN, None)),
                Step::Deliver { group, consumer, most } => {
                    if let Some(found) = stream.group_mut(&[b'g', group]) {
                        // One is called as who is nobody.
                        let (number, _) =
                            found.see_consumer(&[b'c', consumer][..2 * usize::from(consumer.min(1))], now_ms);
                        stream.deliver(&[b'g', group], number, most, now_ms, Acknowledgement::Expected, |_| {});
                    }
                }
                Step::Acknowledge { group, at } => {
                    if let Some(id) = ids.get(at % ids.len().max(1))
                        && let Some(group) = stream.group_mut(&[b'g', group])
                    {
                        group.acknowledge(*id);
                    }
                }
                Step::Release { group, at, recount } => {
                    if let Some(id) = ids.get(at % ids.len().max(1)) {
                        stream.release(&[b'g', group], *id, recount, NotPending::Made);
                    }
                }
                Step::Remember { producer, id } => {
                    if stream.entry_of_producer(&[b'p', producer], &id, 0).is_some() {
                        stream.count_duplicate();
                    } else {
                        stream.remember(&[b'p', producer], &id, stream.last_id());
                    }
                }
                Step::Limits(limits) => _ = stream.set_producer_limits(limits),
                Step::Delete(_) => {}
            }
        }
        stream
    })
}

proptest! {
    #[test]
    fn values_come_back(value in values(), flags in prop_oneof![3 => Just(0), 1 => any::<u32>()]) {
        check_round_trip(value, flags);
    }

    #[test]
    fn broken_payloads_never_panic(value in values(), changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..4)) {
        let mut payload = payload_of(value, 0);
        payload.truncate(payload.len() - 10);
        for (at, byte) in changes {
            let at = at % payload.len();
            payload[at] = byte;
        }
        seal(&mut payload);
        if let Ok(Loaded { value, client_flags }) = loaded(&payload) {
            check_round_trip(value, client_flags);
        }
    }

    #[test]
    fn garbage_never_panics(kind in 0..30u8, body in proptest::collection::vec(any::<u8>(), 0..120)) {
        if let Ok(content) = read(kind, &body) {
            prop_assert!(!matches!(content, Content::List(elements, _) if elements.is_empty()));
        }
    }
}

#[test]
fn what_ends_early_is_refused_at_every_byte() {
    let mut zset = Zset::default();
    let mut hash = Hash::default();
    let mut list = List::default();
    for number in 0..30 {
        let text = format!("member {number}");
        zset.set(text.as_bytes(), f64::from(number) / 3.0, LIMITS.zset);
        hash.set(text.as_bytes(), number.to_string().as_bytes(), LIMITS.hash);
        list.push(tenon_ds::listpack::End::Back, Item::of(text.as_bytes()), &LIMITS.list);
    }
    for value in [Value::Zset(zset), Value::Hash(hash), Value::List(list), Value::String(vec![b'x'; 900])] {
        let payload = payload_of(value, 7);
        let body = &payload[..payload.len() - 10];
        for end in 0..body.len() {
            let mut cut = body[..end].to_vec();
            seal(&mut cut);
            match loaded(&cut) {
                // Before the flags the value is whole.
                Ok(loaded) => assert_eq!((loaded.client_flags, end), (0, body.len() - 22)),
                Err(error) => assert!(matches!(error, LoadError::Value(_))),
            }
        }
        for at in 0..payload.len() {
            let mut wrong = payload.clone();
            wrong[at] ^= 0x10;
            assert_eq!(loaded(&wrong).err(), Some(LoadError::Footer), "byte {at}");
        }
    }
}

fn none() -> Deadlines {
    Deadlines::new()
}

#[test]
fn forms_of_old_versions_are_read() {
    let elements = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
    // A linked list of strings, one of them an integer.
    let list = [&b"\x03"[..], &string(b"a"), b"\xC1\x2C\x01", &string(b"c")].concat();
    assert_eq!(read(1, &list), Ok(Content::List(elements(&["a", "300", "c"]), "listpack")));
    // Ziplists, alone and as nodes.
    let ziplist = string(b"\x1c\0\0\0\x0e\0\0\0\x03\0\0\xf3\x02\xf6\x02\x0bHello World\xff");
    assert_eq!(read(10, &ziplist), Ok(Content::List(elements(&["2", "5", "Hello World"]), "listpack")));
    let nodes = [&b"\x02"[..], &ziplist, &ziplist].concat();
    let twice = elements(&["2", "5", "Hello World", "2", "5", "Hello World"]);
    assert_eq!(read(14, &nodes), Ok(Content::List(twice, "listpack")));
    // A plain node and a listpack.
    let nodes = [&b"\x02\x01"[..], &string(b"plain"), b"\x02", &string(b"\x0a\0\0\0\x01\0\x81a\x02\xff")].concat();
    assert_eq!(read(18, &nodes), Ok(Content::List(elements(&["plain", "a"]), "listpack")));
    let fields = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(field, value)| (field.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
    };
    // A zipmap, a ziplist and a listpack of fields and values.
    let zipmap = string(b"\x02\x03foo\x03\x00bar\x01n\x01\x007\xff");
    assert_eq!(read(9, &zipmap), Ok(Content::Hash(fields(&[("foo", "bar"), ("n", "7")]), "listpack", none())));
    let pair = string(b"\x10\0\0\0\x0d\0\0\0\x02\0\0\x01f\x03\xf3\xff");
    assert_eq!(read(13, &pair), Ok(Content::Hash(fields(&[("f", "2")]), "listpack", none())));
    let pair = string(b"\x0c\0\0\0\x02\0\x81f\x02\x02\x01\xff");
    assert_eq!(read(16, &pair), Ok(Content::Hash(fields(&[("f", "2")]), "listpack", none())));
    // Sets: of integers, Redis 7.2's listpack.
    let members = |texts: &[&str]| elements(texts).into_iter().collect();
    let ints = string(b"\x02\0\0\0\x03\0\0\0\xff\xff\x01\0\x00\x40");
    assert_eq!(read(11, &ints), Ok(Content::Set(members(&["-1", "1", "16384"]), "intset", none())));
    let small = string(b"\x0c\0\0\0\x02\0\x81a\x02\x05\x01\xff");
    assert_eq!(read_of_version(20, &small, 11), Ok(Content::Set(members(&["a", "5"]), "listpack", none())));
    // Sorted sets: scores as texts, in a ziplist, in a listpack.
    let scored =
        |pairs: &[(&str, f64)]| pairs.iter().map(|(member, score)| (member.as_bytes().to_vec(), *score)).collect();
    let texts = [&b"\x03"[..], &string(b"c"), b"\xfe", &string(b"a"), b"\xff", &string(b"b"), b"\x042.5\x20"].concat();
    assert!(read(3, &texts).is_err(), "a blank is in a score");
    let texts = [&b"\x03"[..], &string(b"c"), b"\xfe", &string(b"a"), b"\xff", &string(b"b"), b"\x032.5"].concat();
    let members = scored(&[("a", f64::NEG_INFINITY), ("b", 2.5), ("c", f64::INFINITY)]);
    assert_eq!(read(3, &texts), Ok(Content::Zset(members, "listpack", none())));
    let pair = string(b"\x12\0\0\0\x0d\0\0\0\x02\0\0\x01f\x03\x033.5\xff");
    assert!(read(12, &pair).is_err(), "its length is wrong");
    let pair = string(b"\x13\0\0\0\x0d\0\0\0\x02\0\0\x01f\x03\x033.5\xff");
    assert_eq!(read(12, &pair), Ok(Content::Zset(scored(&[("f", 3.5)]), "listpack", none())));
    let pairs = string(b"\x14\0\0\0\x04\0\x81b\x02\x02\x01\x81a\x02\x831.5\x04\xff");
    assert_eq!(read(17, &pairs), Ok(Content::Zset(scored(&[("a", 1.5), ("b", 2.0)]), "listpack", none())));
}

#[test]
fn what_modules_keep_of_a_key_is_split_off() {
    // As Redis 8.6.3 has written them: the class KMT1 may be left out, KMT2 may not.
    let lenient = b"\xf3\x01\x09\xf5\xc4\x28\x05\x04kept\x02\x01\x03\x00\x00\xc0\x3f\x05\xc3\x0f\x16\x040xa.a\xe0\x03\x00\x049ep-5\
                    \x00\x00\x01v\x0d\x00\xc3\x92\x97\x78\xf3\x8d\x0f\x74";
    let strict = b"\xf3\x01\x18\xf6\xc4\x28\x05\x02hm\x02\x01\x03\x00\x00\xc0\x3f\x05\xc3\x0f\x16\x040xa.a\xe0\x03\x00\x049ep-5\
                   \x00\x10\x11\x11\x00\x00\x00\x04\x00\x81a\x02\x01\x01\x81b\x02\x02\x01\xff\x0d\x00\x02\xad\x7e\xa6\x1e\x66\x85\xcf";
    let of =
        |payload: &[u8], on_metadata| load(payload, *LIMITS, 1 << 20, on_metadata).map(|loaded| content(&loaded.value));
    for on_metadata in [OnModule::Refuse, OnModule::Skip] {
        assert_eq!(of(lenient, on_metadata), Ok(Content::String(b"v".to_vec())));
    }
    let fields = [("a", "1"), ("b", "2")].map(|(field, value)| (field.into(), value.into())).into();
    assert_eq!(of(strict, OnModule::Refuse), Err(LoadError::Value(DecodeError::Metadata)));
    assert_eq!(of(strict, OnModule::Skip), Ok(Content::Hash(fields, "listpack", none())));
    // Metadata alone, of too many classes, twice, and of Valkey, which has none.
    let malformed = |body: &[u8]| {
        let error = read_of_version(0xF3, body, 13).expect_err("it lies");
        assert!(matches!(error, LoadError::Value(DecodeError::Read(_))), "{body:?}: {error:?}");
    };
    let body = &lenient[1..lenient.len() - 10];
    (0..body.len()).for_each(|end| malformed(&body[..end]));
    malformed(b"\x08");
    malformed(b"\x81\xff\xff\xff\xff\xff\xff\xff\xff");
    malformed(b"\x01\x09\xf5\xc4\x28\x06");
    malformed(b"\x01\x09\xf5\xc4\x28\x05\x81\0\0\x01\0\0\0\0\0");
    assert_eq!(
        read_of_version(0xF3, &[b"\x00\xf3", body].concat(), 13),
        Err(LoadError::Value(DecodeError::UnknownKind(0xF3)))
    );
    assert_eq!(read_of_version(0xF3, body, 80), Err(LoadError::Value(DecodeError::UnknownKind(0xF3))));
}

#[test]
fn fields_that_expire_are_read() {
    let fields: std::collections::BTreeMap<_, _> =
        [("a", "1"), ("b", "x")].map(|(field, value)| (field.into(), value.into())).into();
    let due: Deadlines = [(b"b".to_vec(), 1_005)].into();
    let hash = |encoding| Ok(Content::Hash(fields.clone(), encoding, due.clone()));
    let first_ms = 1_000u64.to_le_bytes();
    // Redis 7.4: counted from the first deadline, and in a listpack as they are.
    let relative =
        [&first_ms[..], b"\x02\x00", &string(b"a"), &string(b"1"), b"\x06", &string(b"b"), &string(b"x")].concat();
    assert_eq!(read_of_version(24, &relative, 12), hash("listpackex"));
    let listpack = b"\x17\0\0\0\x06\0\x81a\x02\x01\x01\x00\x01\x81b\x02\x81x\x02\xc3\xed\x02\xff";
    assert_eq!(read_of_version(25, &[&first_ms[..], &string(listpack)].concat(), 12), hash("listpackex"));
    // Valkey 9; the number meant something else to a release candidate of Redis.
    let never = u64::MAX.to_le_bytes();
    let late = 1_005u64.to_le_bytes();
    let absolute = [&b"\x02"[..], &string(b"a"), &string(b"1"), &never, &string(b"b"), &string(b"x"), &late].concat();
    assert_eq!(read_of_version(22, &absolute, 80), hash("listpackex"));
    assert!(read_of_version(22, &absolute, 12).is_err());
    // Release candidates of Redis 7.4.
    let early = [&b"\x02\x00"[..], &string(b"a"), &string(b"1"), b"\x43\xED", &string(b"b"), &string(b"x")].concat();
    assert_eq!(read_of_version(22, &early, 12), hash("listpackex"));
    assert_eq!(read_of_version(23, &string(listpack), 12), hash("listpackex"));
    assert_eq!(read_of_version(23, &string(listpack), 80), Err(LoadError::Value(DecodeError::UnknownKind(23))));
    // Deadlines that no member can have, and of members that are not there.
    let too_late = [&[0xFF; 8][..], b"\x01\x06", &string(b"a"), &string(b"1")].concat();
    assert!(read_of_version(24, &too_late, 12).is_err());
    let of_valkey = |ms: u64| [&b"\x01"[..], &string(b"a"), &string(b"1"), &ms.to_le_bytes()].concat();
    assert!(read_of_version(22, &of_valkey(1 << 63), 80).is_err());
    // Valkey has later ones than any here.
    let latest = read_of_version(22, &of_valkey((1 << 46) - 1), 80);
    assert!(latest.is_ok());
    for late_ms in [1 << 46, 253_402_300_799_000, i64::MAX as u64] {
        assert_eq!(read_of_version(22, &of_valkey(late_ms), 80), latest, "{late_ms}");
    }
    let set = |deadlines: &[u8]| [&b"\x01\x01a\xfa\x16tenon-member-deadlines"[..], &string(deadlines)].concat();
    let one = [&b"\x01\x01a"[..], &late].concat();
    assert_eq!(
        read(2, &set(&one)),
        Ok(Content::Set([b"a".to_vec()].into(), "listpack", [(b"a".to_vec(), 1_005)].into()))
    );
    assert!(read(2, &set(&[&b"\x01\x01b"[..], &late].concat())).is_err());
    assert!(read(2, &set(&one[..9])).is_err());
    assert!(read(1, &set(&one)).is_err());
}

#[test]
fn lies_are_refused() {
    let malformed = |kind, body: &[u8]| {
        let error = read(kind, body).expect_err("it lies");
        assert!(matches!(error, LoadError::Value(DecodeError::Read(_))), "{kind}: {error:?}");
    };
    let pair = [string(b"f"), string(b"v")].concat();
    // Twice the same.
    malformed(2, &[&b"\x02"[..], &string(b"a"), &string(b"a")].concat());
    malformed(2, &[&b"\x02"[..], &string(b"1"), b"\xC0\x01"].concat());
    malformed(4, &[&b"\x02"[..], &pair, &pair].concat());
    malformed(5, &[&b"\x02"[..], &string(b"a"), &[0; 8], &string(b"a"), &[0; 8]].concat());
    malformed(16, &string(b"\x12\0\0\0\x04\0\x81f\x02\x02\x01\x81f\x02\x02\x01\xff"));
    malformed(20, &string(b"\x0d\0\0\0\x02\0\x81a\x02\x81a\x02\xff"));
    // No numbers.
    malformed(5, &[&b"\x01"[..], &string(b"a"), &f64::NAN.to_le_bytes()].concat());
    malformed(3, &[&b"\x01"[..], &string(b"a"), b"\xfd"].concat());
    malformed(17, &string(b"\x0f\0\0\0\x02\0\x81a\x02\x83nan\x04\xff"));
    malformed(17, &string(b"\x0f\0\0\0\x02\0\x81a\x02\x83abc\x04\xff"));
    // Half a pair, and more than there are.
    malformed(16, &string(b"\x0a\0\0\0\x01\0\x81a\x02\xff"));
    malformed(13, &string(b"\x0e\0\0\0\x0a\0\0\0\x01\0\0\x01f\xff"));
    malformed(4, &[&b"\x03"[..], &pair].concat());
    malformed(18, &[&b"\x01\x03"[..], &string(b"a")].concat());
    malformed(18, b"\x01\x01\x00");
    // A terabyte of each.
    for kind in [1, 2, 3, 4, 5, 14, 18] {
        malformed(kind, b"\x81\0\0\x01\0\0\0\0\0");
        malformed(kind, b"\x81\xff\xff\xff\xff\xff\xff\xff\xff");
    }
    malformed(0, b"\x81\0\0\x01\0\0\0\0\0");
    malformed(0, b"\xC3\x02\x81\0\0\x01\0\0\0\0\0\0a");
    // More than the value.
    malformed(0, b"\x01ab");
    malformed(0, b"\x01a\xfa\x01x\x011");
    malformed(0, b"\x01a\xfa\x12tenon-client-flags\xC0\xff");
    malformed(0, b"\x01a\xfa\x12tenon-client-flags\xC0\x01!");
    // Nothing in it.
    for (kind, body) in [(1, &b"\0"[..]), (2, b"\0"), (3, b"\0"), (4, b"\0"), (5, b"\0"), (14, b"\0"), (18, b"\0")] {
        assert_eq!(read(kind, body), Err(LoadError::Value(DecodeError::Empty)));
    }
    for kind in [16, 17, 20] {
        assert_eq!(read(kind, &string(b"\x07\0\0\0\0\0\xff")), Err(LoadError::Value(DecodeError::Empty)));
    }
    assert_eq!(read(11, &string(b"\x02\0\0\0\0\0\0\0")), Err(LoadError::Value(DecodeError::Empty)));
    assert_eq!(
        read(18, &[&b"\x01\x02"[..], &string(b"\x07\0\0\0\0\0\xff")].concat()),
        Err(LoadError::Value(DecodeError::Empty))
    );
    // What there is not.
    for kind in [6, 7] {
        assert_eq!(read(kind, b"\x01"), Err(LoadError::Value(DecodeError::Module)));
    }
    for kind in [8, 28, 99, 255] {
        assert_eq!(read(kind, b"\x01"), Err(LoadError::Value(DecodeError::UnknownKind(kind))));
    }
}

#[test]
fn large_collections_come_back() {
    let many = 70_000;
    let mut list = List::default();
    let mut hash = Hash::default();
    let mut set = Set::default();
    let mut zset = Zset::default();
    for number in 0..many {
        let text = format!("element {number}");
        list.prepare([text.as_bytes()].into_iter(), &LIMITS.list);
        list.push(tenon_ds::listpack::End::Back, Item::of(text.as_bytes()), &LIMITS.list);
        hash.set(text.as_bytes(), b"1", LIMITS.hash);
        set.add(Item::Int(number), LIMITS.set);
        zset.set(text.as_bytes(), 1.0 / number as f64, LIMITS.zset);
    }
    for value in [Value::List(list), Value::Hash(hash), Value::Set(set), Value::Zset(zset)] {
        check_round_trip(value, 0);
    }
}
