//! Streams: the forms of five versions, what stands behind them, and those that lie.

use super::content::{Content, GroupContent, StreamContent, check_round_trip, content, loaded, payload_of};
use super::{read_of_version, string};
use tenon_persist::rdb::{DecodeError, LoadError, Loaded, Value};
use tenon_store::types::stream::{Group, Pending, ProducerCounts, ProducerLimits, StreamId, StreamState};
use tenon_store::types::{Stream, StreamLimits};
use tenon_wire::rdb::{ReadError, seal};

/// A stream as redis-server 7.0 (19), 8.0 (21), 8.6 (26), 8.8 (27) and one before 7.0 (15) write it, in its parts.
struct StreamParts {
    kind: u8,
    block_id: Vec<u8>,
    block: Vec<u8>,
    len: u8,
    last_id: Vec<u8>,
    pending: Vec<u8>,
    consumers: Vec<u8>,
    released: Vec<u8>,
    producers: Vec<u8>,
}

const SEEN_MS: u64 = 1_795_329_652_953;

impl StreamParts {
    fn new(kind: u8) -> StreamParts {
        let id = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2];
        let seen = SEEN_MS.to_le_bytes();
        let active = |active: &[u8]| if kind >= 21 { active.to_vec() } else { Vec::new() };
        let one = [&string(b"one")[..], &seen, &active(&seen), b"\x01", &id].concat();
        let two = [&string(b"two")[..], &seen, &active(&[0xFF; 8]), b"\x00"].concat();
        StreamParts {
            kind,
            block_id: string(b"\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01"),
            // 1-1 is deleted, 1-2 has the block's field a, 3-0 others.
            block: string(
                b"=\0\0\0\x18\0\x02\x01\x01\x01\x01\x01\x81a\x02\0\x01\x03\x01\0\x01\0\x01\x01\x01\x04\x01\x02\x01\0\x01\
                  \x01\x01\x02\x01\x04\x01\0\x01\x02\x01\xdf\xff\x02\x02\x01\x81b\x02\x81x\x02\x81c\x02\x81y\x02\x08\x01\xff",
            ),
            len: 2,
            last_id: b"\x03\x00".to_vec(),
            pending: [&b"\x01"[..], &id, &seen, b"\x01"].concat(),
            consumers: [&b"\x02"[..], &one, &two].concat(),
            released: if kind >= 27 { vec![0] } else { Vec::new() },
            // For an hour, and 7 of each: two ids of p, one of them a number, and one of q; 7 there were, and one again.
            producers: match kind {
                26.. => b"\x4e\x10\x07\x02\x01p\x02\xc0\x01\x01\x02\x02id\x03\x00\x01q\x01\xc0\x01\x03\x00\x07\x01".to_vec(),
                _ => Vec::new(),
            },
        }
    }

    fn read(&self) -> Result<Content, LoadError> {
        // First id, highest deleted id, entries added; and what the group has read.
        let (counters, read) =
            if self.kind == 15 { (&b""[..], &b""[..]) } else { (&b"\x01\x02\x01\x01\x03"[..], &b"\x02"[..]) };
        let group = [&string(b"g")[..], b"\x01\x02", read, &self.pending, &self.consumers, &self.released].concat();
        let before = [&b"\x01"[..], &self.block_id[..], &self.block, &[self.len], &self.last_id, counters].concat();
        let body = [&before[..], b"\x01", &group, &self.producers].concat();
        let version = match self.kind {
            27 => 14,
            26 => 13,
            _ => 12,
        };
        read_of_version(self.kind, &body, version)
    }
}

#[test]
fn streams_of_five_versions_are_read() {
    let id = StreamId::new;
    let pairs =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(field, value)| ((*field).into(), (*value).into())).collect();
    for kind in [15, 19, 21, 26, 27] {
        let before_7 = kind == 15;
        let active = |active_ms| if kind >= 21 { active_ms } else { Some(SEEN_MS) };
        let state = StreamState {
            last_id: id(3, 0),
            max_deleted_id: if before_7 { StreamId::MIN } else { id(1, 1) },
            entries_added: if before_7 { 2 } else { 3 },
        };
        let group = GroupContent {
            name: b"g".to_vec(),
            last_id: id(1, 2),
            // Before Redis 7 it was not said: up to 1-2 there is one entry.
            entries_read: Some(if before_7 { 1 } else { 2 }),
            consumers: vec![
                (b"one".to_vec(), SEEN_MS, active(Some(SEEN_MS))),
                (b"two".to_vec(), SEEN_MS, active(None)),
            ],
            pending: vec![(id(1, 2), b"one".to_vec(), SEEN_MS, 1)],
            released: Vec::new(),
        };
        let entries = vec![(id(1, 2), pairs(&[("a", "2")])), (id(3, 0), pairs(&[("b", "x"), ("c", "y")]))];
        let mut expected = StreamContent {
            entries,
            state,
            groups: vec![group],
            limits: ProducerLimits::INITIAL,
            counts: ProducerCounts::default(),
            producers: Vec::new(),
        };
        if kind >= 26 {
            let of_p = vec![(b"1".to_vec(), id(1, 2)), (b"id".to_vec(), id(3, 0))];
            expected.producers = vec![(b"p".to_vec(), of_p), (b"q".to_vec(), vec![(b"1".to_vec(), id(3, 0))])];
            expected.limits = ProducerLimits { duration_s: 3_600, ids_max: 7 };
            expected.counts = ProducerCounts { added: 7, duplicates: 1 };
        }
        let expected = Content::Stream(expected);
        assert_eq!(StreamParts::new(kind).read(), Ok(expected), "{kind}");
    }
}

#[test]
fn streams_that_lie_are_refused() {
    let refused = |why: &str, change: &dyn Fn(&mut StreamParts)| {
        let mut parts = StreamParts::new(19);
        change(&mut parts);
        assert!(matches!(parts.read(), Err(LoadError::Value(DecodeError::Read(_)))), "{why}: {:?}", parts.read());
    };
    let own = StreamParts::new(19);
    let replace = |bytes: &[u8], from: &[u8], to: &[u8]| {
        let at = bytes.windows(from.len()).rposition(|window| window == from).expect("it is there");
        [&bytes[..at], to, &bytes[at + from.len()..]].concat()
    };
    refused("a length that is not the entries'", &|parts| parts.len = 3);
    refused("a last id that is not the last", &|parts| parts.last_id = b"\x02\x00".to_vec());
    refused("a block's id of 15 bytes", &|parts| parts.block_id = string(&[0; 15]));
    refused("a block's id behind its entries'", &|parts| parts.block_id = string(&[1; 16]));
    refused("a block of nothing", &|parts| parts.block = string(b"\x07\0\0\0\0\0\xff"));
    refused("fewer live entries", &|parts| parts.block = replace(&own.block, b"\x18\0\x02\x01", b"\x18\0\x03\x01"));
    refused("more live entries", &|parts| parts.block = replace(&own.block, b"\x18\0\x02\x01", b"\x18\0\x01\x01"));
    refused("a wrong number of elements", &|parts| parts.block = replace(&own.block, b"\x08\x01\xff", b"\x07\x01\xff"));
    refused("entries out of order", &|parts| {
        parts.block = replace(&own.block, b"\x02\x01\0\x01\x01\x01", b"\x02\x01\0\x01\0\x01");
    });
    refused("half an entry", &|parts| parts.block = replace(&own.block, b"\x02\x01\xdf\xff", b"\x7f\x01\xdf\xff"));
    // Two consumers have the same entry.
    let id = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2];
    refused("an entry of two", &|parts| {
        parts.consumers.pop();
        parts.consumers.extend_from_slice(b"\x01");
        parts.consumers.extend_from_slice(&id);
    });
    refused("an entry of nobody", &|parts| parts.consumers = b"\x00".to_vec());
    refused("an entry that the group does not know", &|parts| parts.pending = b"\x00".to_vec());
    refused("an entry twice", &|parts| {
        parts.pending = [&b"\x02"[..], &own.pending[1..], &own.pending[1..]].concat();
    });
    refused("a consumer twice", &|parts| parts.consumers = replace(&own.consumers, b"two", b"one"));
    refused("a terabyte of pending entries", &|parts| parts.pending = b"\x81\0\0\x01\0\0\0\0\0".to_vec());
    refused("a terabyte of consumers", &|parts| parts.consumers = b"\x81\0\0\x01\0\0\0\0\0".to_vec());
    refused("more behind it", &|parts| parts.consumers.push(0));
}

#[test]
fn a_block_all_of_whose_entries_were_deleted_is_passed_over() {
    // What Redis 8.0.6 gives for XADD s 1-1 f a, XADD s 2-1 f b, XGROUP CREATE s g 0, XDEL s 2-1, XTRIM s MINID 2.
    let of_redis: &[u8] = b"\x15\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01((\x00\x00\x00\x0f\x00\x00\x01\x02\x01\x01\x01\x81f\x02\x00\x01\x03\x01\x00\x01\x00\x01\x81a\x02\x04\x01\x03\x01\x01\x01\x00\x01\x81b\x02\x04\x01\xff\x00\x02\x01\x00\x00\x02\x01\x02\x01\x01g\x00\x00\x81\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x0c\x00\x8d&\xf8\x1e/\x12\"0";
    let Loaded { value, .. } = loaded(of_redis).expect("Redis wrote it");
    let Content::Stream(read) = content(&value) else { panic!("it is a stream") };
    assert_eq!((read.entries.len(), read.state.last_id, read.state.entries_added), (0, StreamId::new(2, 1), 2));
    assert_eq!(read.state.max_deleted_id, StreamId::new(2, 1));
    check_round_trip(value, 0);
    // It has entries that were deleted, and as many as it says.
    let mut again = of_redis[..of_redis.len() - 10].to_vec();
    seal(&mut again);
    assert!(loaded(&again).is_ok());
    for (why, block) in [("none", &b"\x0f\x00\x00\x01\x00\x01"[..]), ("more", b"\x0f\x00\x00\x01\x03\x01")] {
        let at = of_redis.windows(6).position(|window| window == b"\x0f\x00\x00\x01\x02\x01").expect("it is there");
        let mut broken = of_redis[..of_redis.len() - 10].to_vec();
        broken[at..at + 6].copy_from_slice(block);
        seal(&mut broken);
        assert!(loaded(&broken).is_err(), "{why}");
    }
}

#[test]
fn what_a_group_was_given_back_is_anybodys() {
    let id = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2];
    let nobodys = |consumer: &[u8]| {
        let mut parts = StreamParts::new(27);
        let name = [&[consumer.len() as u8][..], consumer].concat();
        parts.consumers = [&b"\x01"[..], &name, &SEEN_MS.to_le_bytes(), &SEEN_MS.to_le_bytes(), b"\x00"].concat();
        parts.released = [&b"\x01"[..], &id].concat();
        parts
    };
    let group = |parts: &StreamParts| match parts.read() {
        Ok(Content::Stream(stream)) => stream.groups[0].clone(),
        other => panic!("{other:?}"),
    };
    // As often delivered as before.
    for name in [&b"one"[..], b""] {
        let read = group(&nobodys(name));
        assert_eq!(read.pending, [(StreamId::new(1, 2), Vec::new(), 0, 1)]);
        assert_eq!(read.released, [StreamId::new(1, 2)]);
        assert_eq!(read.consumers, [(name.to_vec(), SEEN_MS, Some(SEEN_MS))]);
    }
    // One that a consumer has, one that the group does not know, one twice, and a terabyte.
    let refused = |why: &str, parts: &StreamParts| {
        assert!(matches!(parts.read(), Err(LoadError::Value(DecodeError::Read(_)))), "{why}: {:?}", parts.read());
    };
    let mut owned = StreamParts::new(27);
    owned.released = [&b"\x01"[..], &id].concat();
    refused("an entry of somebody", &owned);
    let mut unknown = nobodys(b"one");
    unknown.released[16] = 9;
    refused("an entry that the group does not know", &unknown);
    let mut twice = nobodys(b"one");
    twice.released = [&b"\x02"[..], &id, &id].concat();
    refused("an entry twice", &twice);
    let mut huge = nobodys(b"one");
    huge.released = b"\x81\0\0\x01\0\0\0\0\0".to_vec();
    refused("a terabyte of entries", &huge);
}

#[test]
fn what_is_nobodys_stands_behind_the_form_of_old_servers() {
    let mut stream = Stream::default();
    let mut group = Group::new(StreamId::new(9, 0), None);
    let (consumer, _) = group.see_consumer(b"c", 5);
    group.assign(StreamId::new(1, 0), Pending::of(consumer, 7, 1));
    group.release(StreamId::new(3, 0), 2);
    group.release(StreamId::new(2, 0), 0);
    stream.add_group(b"g", group);
    let payload = payload_of(Value::Stream(stream), 0);
    let field = b"\x15tenon-stream-released";
    let at = payload.windows(field.len()).position(|window| window == field).expect("it is there");
    let id = |ms: u8| [&[0; 7][..], &[ms], &[0; 8]].concat();
    let text = [&b"\x01g\x00\x02"[..], &id(3), &id(2)].concat();
    assert_eq!((payload[0], payload[at - 1]), (19, 0xFA));
    let body = |value: &[u8], text: &[u8]| {
        let extra = [&[0xFA][..], field, &[text.len() as u8], text].concat();
        let mut payload = [value, &extra].concat();
        seal(&mut payload);
        loaded(&payload).map(|loaded| content(&loaded.value))
    };
    let value = &payload[..at - 1];
    let Ok(Content::Stream(read)) = body(value, &text) else { panic!("it is a stream") };
    assert_eq!(read.groups[0].released, [StreamId::new(3, 0), StreamId::new(2, 0)]);
    assert_eq!(read.groups[0].consumers.len(), 1);
    // Who has no form for it sees a consumer without a name.
    let mut plain = value.to_vec();
    seal(&mut plain);
    let Content::Stream(plain) = content(&loaded(&plain).expect("it is a stream").value) else { panic!("it is one") };
    assert_eq!(plain.groups[0].consumers.iter().map(|(name, ..)| &name[..]).collect::<Vec<_>>(), [&b""[..], b"c"]);
    assert_eq!(plain.groups[0].released, []);
    // One that somebody has, one that the group does not know, one twice, another group, and what is no stream.
    for ids in [vec![1], vec![4], vec![3, 3]] {
        let ids = [&[ids.len() as u8][..], &ids.iter().flat_map(|ms| id(*ms)).collect::<Vec<_>>()].concat();
        assert!(body(value, &[b"\x01g\x00", &ids[..]].concat()).is_err(), "{ids:?}");
    }
    assert!(body(value, b"\x01h\x00\x00").is_err());
    assert!(body(b"\x00\x01v", &text).is_err());
}

#[test]
fn producers_that_lie_are_refused() {
    let own = StreamParts::new(26).producers;
    let read = |producers: &[u8]| {
        let mut parts = StreamParts::new(26);
        parts.producers = producers.to_vec();
        parts.read()
    };
    assert!(read(b"\x01\x01\x00\x00\x00").is_ok(), "no producers");
    assert!(read(b"\x01\x01\x01\x01p\x00\x00\x00").is_ok(), "a producer without ids");
    for end in 0..own.len() {
        assert_eq!(read(&own[..end]), Err(LoadError::Value(DecodeError::Read(ReadError::Truncated))), "{end} bytes");
    }
    let huge = b"\x81\0\0\x01\0\0\0\0\0";
    for (why, wrong) in [
        ("a terabyte of producers", [&b"\x01\x01"[..], huge].concat()),
        ("a terabyte of ids", [&b"\x01\x01\x01\x01p"[..], huge].concat()),
        ("a terabyte of a name", [&b"\x01\x01\x01"[..], huge].concat()),
        ("a string in a number's place", [&b"\xc0\x01"[..], &own[2..]].concat()),
        ("more behind it", [&own[..], b"\x00"].concat()),
        ("no time", b"\x00\x01\x00\x00\x00".to_vec()),
        ("no ids", b"\x01\x00\x00\x00\x00".to_vec()),
        ("more than a day", b"\x80\x00\x01\x51\x81\x01\x00\x00\x00".to_vec()),
        ("more than 10,000 ids", b"\x01\x67\x11\x00\x00\x00".to_vec()),
    ] {
        assert!(matches!(read(&wrong), Err(LoadError::Value(DecodeError::Read(_)))), "{why}: {:?}", read(&wrong));
    }
    for (why, wrong) in [
        ("with other ids", &b"\x01\x01\x02\x01p\x01\x01a\x05\x01\x01p\x01\x01b\x05\x02\x02\x00"[..]),
        ("without ids", b"\x01\x01\x03\x01p\x00\x01q\x00\x01p\x00\x00\x00"),
        ("without a name", b"\x01\x01\x02\x00\x00\x00\x00\x00\x00"),
    ] {
        let error = format!("{:?}", read(wrong).expect_err(why));
        assert!(error.contains("a stream has a producer twice"), "{why}: {error}");
    }
    // The form before has none.
    let mut parts = StreamParts::new(21);
    parts.producers = own;
    assert!(parts.read().is_err());
}

#[test]
fn what_a_stream_remembers_stands_behind_the_form_of_old_servers() {
    let mut stream = Stream::default();
    stream.remember(b"p", b"id", StreamId::new(5, 1));
    let payload = payload_of(Value::Stream(stream), 0);
    let field = b"\x16tenon-stream-producers";
    let at = payload.windows(field.len()).position(|window| window == field).expect("it is there");
    assert_eq!((payload[0], payload[at - 1]), (19, 0xFA));
    assert_eq!(
        payload[at + field.len()..payload.len() - 10],
        *b"\x0f\x40\x64\x40\x64\x01\x01p\x01\x02id\x05\x01\x01\x00"
    );
    // Without it the stream is a stream, and nothing else may have it.
    let body = |kind: u8, value: &[u8]| {
        let mut payload = [&[kind][..], value, &payload[at - 1..payload.len() - 10]].concat();
        seal(&mut payload);
        loaded(&payload).map(|loaded| content(&loaded.value))
    };
    let Ok(Content::Stream(read)) = body(19, &payload[1..at - 1]) else { panic!("it is a stream") };
    assert_eq!(read.producers, [(b"p".to_vec(), vec![(b"id".to_vec(), StreamId::new(5, 1))])]);
    assert!(body(0, b"\x01v").is_err());
}

#[test]
fn ids_far_apart_come_back() {
    let mut stream = Stream::default();
    for (ms, seq) in [(1, 1), (1 << 63, 0), ((1 << 63) + 1, u64::MAX), (u64::MAX, u64::MAX - 1)] {
        stream.append(StreamId::new(ms, seq), [(&b"f"[..], &b"v"[..])].into_iter(), StreamLimits::new(4_096, 100));
    }
    assert_eq!(stream.block_count(), 1);
    check_round_trip(Value::Stream(stream), 0);
}

#[test]
fn a_streams_counters_are_such_as_commands_could_set() {
    let mut stream = Stream::default();
    stream.append(StreamId::new(5, 0), [(&b"f"[..], &b"v"[..])].into_iter(), StreamLimits::new(4_096, 100));
    let last_id = stream.last_id();
    stream.set_state(StreamState { last_id, max_deleted_id: StreamId::MAX, entries_added: 0 });
    let Loaded { value: Value::Stream(read), .. } = loaded(&payload_of(Value::Stream(stream), 0)).expect("it is one")
    else {
        panic!("it is no stream");
    };
    assert_eq!(read.state(), StreamState { last_id, max_deleted_id: last_id, entries_added: 1 });
}
