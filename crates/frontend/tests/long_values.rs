//! Long values, put where they stay by whoever moves the bytes: whatever the pieces, they are kept whole, and what follows
//! them is not taken for a part of them.

mod host;

use host::{Client, Host, command, take};
use proptest::prelude::*;
use std::sync::atomic::Ordering;
use tenon_engine::clients::Dialect;
use tenon_frontend::Flow;

/// Hands over `bytes` in pieces of these lengths: into the room where there is one, unless the piece says otherwise.
/// Gives the answers.
fn deliver(host: &mut Host, client: &mut Client, mut bytes: &[u8], pieces: &[(usize, bool)]) -> Vec<u8> {
    let mut got = Vec::new();
    for &(len, into_room) in pieces.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let mut now = len.min(bytes.len());
        let room = if client.flow == Flow::Fill && into_room { client.connection.room() } else { None };
        if let Some(room) = room {
            now = now.min(room.capacity() - room.len());
            room.extend_from_slice(&bytes[..now]);
            client.flow = client.connection.on_filled(&host.engine, &mut host.worker, now, &mut client.out);
        } else {
            host.send(client, &bytes[..now]);
        }
        bytes = &bytes[now..];
        loop {
            got.extend(take(&mut client.out));
            if client.flow != Flow::Drain {
                break;
            }
            host.resume(client);
        }
        if matches!(client.flow, Flow::Close | Flow::CloseAfterFlush) {
            break;
        }
    }
    got
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

/// Lengths around those at which something changes: taken out of the stream, a chunk, two of them.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![65_530_usize..65_550, 262_130_usize..262_160, 524_280_usize..524_300, 1_usize..700_000]
}

fn pieces() -> impl Strategy<Value = Vec<(usize, bool)>> {
    prop::collection::vec(
        (prop_oneof![1_usize..100, 1_usize..70_000, 1_usize..300_000], prop::bool::weighted(0.8)),
        1..12,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn memcached_clients_get_what_they_set(lengths in prop::collection::vec(length(), 1..4), pieces in pieces()) {
        let mut host = Host::new();
        let mut client = host.memcached();
        let (mut stream, mut expected) = (Vec::new(), Vec::new());
        for len in lengths {
            let data = pattern(len);
            stream.extend_from_slice(format!("set k 3 0 {len}\r\n").as_bytes());
            stream.extend_from_slice(&data);
            stream.extend_from_slice(b"\r\nget k\r\nmn\r\n");
            expected.extend_from_slice(format!("STORED\r\nVALUE k 3 {len}\r\n").as_bytes());
            expected.extend_from_slice(&data);
            expected.extend_from_slice(b"\r\nEND\r\nMN\r\n");
        }
        prop_assert!(deliver(&mut host, &mut client, &stream, &pieces) == expected);
        prop_assert_eq!(client.flow, Flow::Continue);
    }

    #[test]
    fn clients_of_redis_get_what_they_set(first in length(), second in length(), pieces in pieces()) {
        let mut host = Host::new();
        let mut client = host.connect(Dialect::Resp);
        let (a, b) = (pattern(first), pattern(second));
        let stream = [command(&[b"MSET", b"a", &a, b"b", &b]), command(&[b"GET", b"a"]), command(&[b"GET", b"b"])].concat();
        let bulk = |data: &[u8]| [format!("${}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat();
        let expected = [&b"+OK\r\n"[..], &bulk(&a), &bulk(&b)].concat();
        prop_assert!(deliver(&mut host, &mut client, &stream, &pieces) == expected);
        prop_assert_eq!(client.flow, Flow::Continue);
    }

    #[test]
    fn a_block_that_does_not_end_is_refused_and_the_stream_goes_on(len in length(), pieces in pieces()) {
        let mut host = Host::new();
        let mut client = host.memcached();
        let stream = [format!("set k 0 0 {len}\r\n").as_bytes(), &vec![b'x'; len], b"xx\r\nmn\r\nget k\r\n"].concat();
        let got = deliver(&mut host, &mut client, &stream, &pieces);
        prop_assert_eq!(String::from_utf8_lossy(&got), "CLIENT_ERROR bad data chunk\r\nERROR\r\nMN\r\nEND\r\n");
    }
}

#[test]
fn what_has_come_of_a_long_value_is_counted_and_no_more() {
    let mut host = Host::new();
    for dialect in [Dialect::Memcached, Dialect::Resp] {
        let mut client = host.connect(dialect);
        let head: &[u8] = match dialect {
            Dialect::Memcached => b"set k 0 0 2000000\r\n",
            Dialect::Resp => b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000\r\n",
        };
        host.send(&mut client, head);
        assert_eq!(client.flow, Flow::Fill);
        let input_bytes = |client: &Client| client.connection.client().input_bytes.load(Ordering::Relaxed) as usize;
        let received_bytes =
            |client: &Client| client.connection.client().received_bytes.load(Ordering::Relaxed) as usize;
        let mut sent = head.len();
        for _ in 0..3 {
            let room = client.connection.room().expect("room");
            let now = room.capacity() - room.len();
            assert!((1..=524_288).contains(&now));
            room.resize(room.capacity(), b'v');
            client.flow = client.connection.on_filled(&host.engine, &mut host.worker, now, &mut client.out);
            assert_eq!(client.flow, Flow::Fill);
            sent += now;
            assert_eq!((input_bytes(&client), received_bytes(&client)), (sent, sent));
        }
        let rest = [vec![b'v'; head.len() + 2_000_000 - sent], b"\r\n".to_vec()].concat();
        host.send(&mut client, &rest);
        assert_eq!((client.flow, input_bytes(&client)), (Flow::Continue, 0));
        assert!(client.connection.room().is_none());
        client.connection.closed(&host.engine, tenon_frontend::Ending::Normal);
    }
}

#[test]
fn what_is_too_long_is_not_given_room() {
    let mut host = Host::with(&[("max-value-size", "100000")]);
    let mut client = host.memcached();
    host.send(&mut client, b"set k 0 0 100001\r\n");
    assert!(client.connection.room().is_none());
    assert_eq!(take(&mut client.out), b"SERVER_ERROR object too large for cache\r\n");
    let behind = [&vec![b'x'; 100_001][..], b"\r\nmn\r\n"].concat();
    assert_eq!(host.ask(&mut client, &behind), b"MN\r\n");

    let mut host = Host::with(&[("client-query-buffer-limit", "1mb")]);
    let mut client = host.connect(Dialect::Resp);
    // What ran before it is answered.
    let answer = host.ask(&mut client, b"PING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000\r\n");
    assert_eq!((&answer[..], client.flow), (&b"+PONG\r\n"[..], Flow::CloseAfterFlush));
    assert!(client.connection.room().is_none());
}
