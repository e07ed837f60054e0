//! memcached's front end while writes are refused: memory is full, or the disk fails.

mod host;

use host::{Host, take};
use tenon_frontend::Flow;

fn set(key: &str, data: &[u8]) -> Vec<u8> {
    [format!("set {key} 3 0 {}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}

/// A request of the binary protocol.
fn binary(opcode: u8, extras: &[u8], key: &str, value: &str) -> Vec<u8> {
    let body = (extras.len() + key.len() + value.len()) as u8;
    let head = [0x80, opcode, 0, key.len() as u8, extras.len() as u8, 0, 0, 0, 0, 0, 0, body];
    [&head[..], &[0; 12], extras, key.as_bytes(), value.as_bytes()].concat()
}

#[test]
fn a_full_memory_refuses_what_needs_more() {
    let mut host = Host::new();
    let mut client = host.memcached();
    host.says(&mut client, "set a 0 0 1\r\n1\r\nset b 0 0 1\r\n1\r\n");
    host.set("maxmemory", "1");
    for (request, answer) in [
        ("add new 0 0 1\r\nx\r\n", "SERVER_ERROR out of memory storing object\r\n"),
        ("append a 0 0 1\r\nx\r\n", "SERVER_ERROR out of memory storing object\r\n"),
        ("incr a 9\r\n", "SERVER_ERROR out of memory\r\n"),
        ("get a new\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n"),
        ("touch a 100\r\n", "TOUCHED\r\n"),
        // What a client has tried to replace it must not read again.
        ("set a 0 0 1\r\nx\r\n", "SERVER_ERROR out of memory storing object\r\n"),
        ("get a\r\n", "END\r\n"),
        ("set b 0 0 1 noreply\r\nx\r\nget b\r\n", "END\r\n"),
        ("delete b\r\n", "NOT_FOUND\r\n"),
    ] {
        assert_eq!(host.says(&mut client, request), answer, "{request:?}");
    }
    assert_eq!(host.worker.stats.all.mc_no_memory.get(), 5);
    host.set("maxmemory-policy", "allkeys-lru");
    host.set("maxmemory", "0");
    assert_eq!(host.says(&mut client, "set a 0 0 1\r\n1\r\n"), "STORED\r\n");
    host.set("maxmemory", "1");
    assert_eq!(host.says(&mut client, "set c 0 0 1\r\n1\r\nget a c\r\n"), "STORED\r\nVALUE c 0 1\r\n1\r\nEND\r\n");
    assert_eq!(host.worker.stats.all.evicted.get(), 1);
}

#[test]
fn a_full_memory_refuses_only_counting_that_needs_more() {
    const NO_NUMBER: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
    let mut host = Host::new();
    let mut client = host.memcached();
    host.says(&mut client, "set a 0 0 1\r\n1\r\nset ten 0 0 2\r\n10\r\nset word 0 0 1\r\nx\r\n");
    host.set("maxmemory", "1");
    for (request, answer) in [
        ("incr a 1\r\n", "2\r\n"),
        ("incr a 8\r\n", "SERVER_ERROR out of memory\r\n"),
        ("incr none 1\r\n", "NOT_FOUND\r\n"),
        ("decr none 1\r\n", "NOT_FOUND\r\n"),
        ("incr word 1\r\n", NO_NUMBER),
        // The blank that is left behind is room.
        ("decr ten 1\r\nget ten\r\n", "9\r\nVALUE ten 0 2\r\n9 \r\nEND\r\n"),
        ("incr ten 1\r\nget ten\r\n", "10\r\nVALUE ten 0 2\r\n10\r\nEND\r\n"),
        ("ma a v\r\n", "VA 1\r\n3\r\n"),
        ("ma a D7\r\n", "SERVER_ERROR out of memory\r\n"),
        ("ma none\r\n", "NF\r\n"),
        ("ma none N0\r\n", "SERVER_ERROR Out of memory allocating new item\r\n"),
        ("ma word\r\n", NO_NUMBER),
    ] {
        assert_eq!(host.says(&mut client, request), answer, "{request:?}");
    }
    let mut client = host.memcached();
    for (key, delta, is_made, status, text) in [
        ("a", 1, true, 0, &b"\0\0\0\0\0\0\0\x04"[..]),
        ("a", 6, true, 0x82, b"Out of memory incrementing value"),
        ("none", 1, false, 1, b"Not found"),
        ("none", 1, true, 0x82, b"Out of memory allocating new item"),
        ("word", 1, true, 6, b"Non-numeric server-side value for incr or decr"),
    ] {
        let exptime = if is_made { [0; 4] } else { [0xff; 4] };
        let extras = [&[0; 7], &[delta][..], &[0; 8], &exptime].concat();
        let answer = host.ask(&mut client, &binary(0x05, &extras, key, ""));
        assert_eq!((answer[7], &answer[24..]), (status, text), "{key} {delta} {is_made}");
    }
    assert_eq!(host.worker.stats.all.mc_no_memory.get(), 5);
}

#[test]
fn reads_behind_a_refused_write_find_their_keys() {
    const REFUSED: &str = "SERVER_ERROR Redis is configured to save RDB snapshots";
    const FOUND: &str = "VALUE b 3 1\r\nB\r\nEND\r\n";
    let mut host = Host::new();
    let mut client = host.memcached();
    host.ask(&mut client, &[set("a", b"A"), set("b", b"B"), set("k", &[b'v'; 100_000])].concat());
    host.set("max-value-size", "1000");
    host.engine.refuse_writes_for_snapshot(true);
    let too_long = "x".repeat(1_001);
    for (writes, answers) in [
        ("set a 0 0 1\r\nx\r\n", 1),
        ("set a 0 0 1 noreply\r\nx\r\n", 0),
        ("incr a 1\r\ndelete a\r\ntouch a 9\r\nflush_all\r\n", 4),
        ("gat 9 a b a\r\nmg a T9\r\nma a\r\nmd a q\r\nms a 1\r\nx\r\n", 5),
        (&format!("set a 0 0 1001\r\n{too_long}\r\nms a 1001\r\n{too_long}\r\n"), 2),
        ("get a\r\nset a 0 0 1 noreply\r\nx\r\nmg a v\r\nset a 0 0 1 noreply\r\nx\r\n", 0),
    ] {
        let answer = host.says(&mut client, &format!("{writes}get b\r\n"));
        assert!(answer.ends_with(FOUND), "{writes}: {answer}");
        assert_eq!(answer.matches(REFUSED).count(), answers, "{writes}: {answer}");
    }
    // A read that was answered in part and is refused now leaves nothing to the next one.
    host.engine.refuse_writes_for_snapshot(false);
    host.send(&mut client, format!("gat 100{}\r\nget b\r\n", " k".repeat(40)).as_bytes());
    assert_eq!(client.flow, Flow::Drain);
    take(&mut client.out);
    host.engine.refuse_writes_for_snapshot(true);
    let answer = host.ask(&mut client, b"");
    assert!(answer.starts_with(REFUSED.as_bytes()) && answer.ends_with(FOUND.as_bytes()), "{answer:?}");

    let (get, getkq, noop) = (binary(0x00, &[], "b", ""), binary(0x0d, &[], "b", ""), binary(0x0a, &[], "", ""));
    let mut client = host.memcached();
    for write in [
        binary(0x01, &[0; 8], "a", "x"),
        binary(0x11, &[0; 8], "a", "x"),
        binary(0x04, &[], "a", ""),
        binary(0x05, &[0; 20], "a", ""),
        binary(0x1c, &[0; 4], "a", ""),
        binary(0x1d, &[0; 4], "a", ""),
        binary(0x08, &[], "", ""),
    ] {
        let answer = host.ask(&mut client, &[&write[..], &write, &get, &getkq, &noop].concat());
        let count = |text: &[u8]| answer.windows(text.len()).filter(|window| *window == text).count();
        assert_eq!(count(b"writes are refused"), 2, "{write:?}: {answer:?}");
        // Flags and data, and behind these the same with the key.
        assert_eq!((count(b"\0\0\0\x03B"), count(b"\0\0\0\x03bB")), (1, 1), "{write:?}: {answer:?}");
    }
}
