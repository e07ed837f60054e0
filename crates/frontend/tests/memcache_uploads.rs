//! Long values of memcached's clients that come slowly, or never wholly.

mod host;

use host::{Client, Host};
use tenon_frontend::Flow;

const MIB: usize = 1 << 20;
/// How long each value will be.
const VALUE: usize = 25 * MIB;
const NO_MEMORY: &[u8] = b"SERVER_ERROR out of memory storing object\r\n";

/// Sends so many bytes of a value in pieces; gives the answer.
fn send_part(host: &mut Host, client: &mut Client, bytes: usize) -> Vec<u8> {
    let piece = vec![b'v'; 256 * 1024];
    let mut got = Vec::new();
    let mut left = bytes;
    while left > 0 {
        let now = left.min(piece.len());
        got.extend(host.ask(client, &piece[..now]));
        left -= now;
    }
    got
}

/// A server that keeps 32 MiB of unfinished values, one client of which has sent 20 MiB of one.
fn with_one() -> (Host, Client) {
    let mut host = Host::new();
    host.set("maxmemory", "64mb");
    let mut first = host.memcached();
    assert_eq!(host.says(&mut first, &format!("set first 0 0 {VALUE}\r\n")), "");
    assert_eq!(send_part(&mut host, &mut first, 20 * MIB), b"");
    (host, first)
}

/// A SET of the binary protocol up to where its value begins.
fn binary_set(key: &str, len: usize) -> Vec<u8> {
    let mut request = vec![0x80, 1, 0, key.len() as u8, 8, 0, 0, 0];
    request.extend(((8 + key.len() + len) as u32).to_be_bytes());
    request.extend([0; 12 + 8]);
    request.extend(key.as_bytes());
    request
}

#[test]
fn one_that_is_too_much_is_let_go_and_passed_over() {
    let (mut host, mut first) = with_one();
    let mut other = host.memcached();
    host.says(&mut other, "set old 0 0 1\r\n1\r\nset kept 0 0 1\r\n1\r\n");
    for begin in [format!("set old 0 0 {VALUE}\r\n"), format!("ms old {VALUE}\r\n")] {
        let mut second = host.memcached();
        assert_eq!(host.says(&mut second, &begin), "");
        assert_eq!(send_part(&mut host, &mut second, 11 * MIB), b"");
        assert_eq!(send_part(&mut host, &mut second, 2 * MIB), NO_MEMORY);
        assert_eq!(second.flow, Flow::Continue);
        // As after every write that failed, nobody reads what is no longer so.
        assert_eq!(host.says(&mut other, "get old kept\r\n"), "VALUE kept 0 1\r\n1\r\nEND\r\n");
        // The rest of it is no request.
        let rest = [vec![b'v'; VALUE - 13 * MIB], b"\r\nget kept\r\n".to_vec()].concat();
        assert_eq!(host.ask(&mut second, &rest), b"VALUE kept 0 1\r\n1\r\nEND\r\n");
    }
    // Who does not want to hear of it does not.
    let mut silent = host.memcached();
    assert_eq!(host.says(&mut silent, &format!("set old 0 0 {VALUE} noreply\r\n")), "");
    assert_eq!(send_part(&mut host, &mut silent, VALUE), b"");
    assert_eq!(host.says(&mut silent, "\r\nmn\r\n"), "MN\r\n");
    // The first one has not lost anything.
    assert_eq!(first.flow, Flow::Fill);
    assert_eq!(send_part(&mut host, &mut first, 4 * MIB), b"");
    first.connection.closed(&host.engine, tenon_frontend::Ending::Normal);
    drop(first);
    let mut next = host.memcached();
    assert_eq!(host.says(&mut next, &format!("set next 0 0 {VALUE}\r\n")), "");
    assert_eq!(send_part(&mut host, &mut next, 24 * MIB), b"");
}

#[test]
fn the_binary_protocol_says_so_too() {
    let (mut host, _first) = with_one();
    let mut second = host.memcached();
    assert_eq!(host.ask(&mut second, &binary_set("old", VALUE)), b"");
    let answer = send_part(&mut host, &mut second, 13 * MIB);
    assert_eq!((&answer[6..8], &answer[24..]), (&[0, 0x82][..], &b"Out of memory allocating item"[..]));
    let mut rest = vec![b'v'; VALUE - 13 * MIB];
    rest.extend([0x80, 0x0a]);
    rest.extend([0; 22]);
    assert_eq!(host.ask(&mut second, &rest)[..2], [0x81, 0x0a]);
}

#[test]
fn beyond_the_share_none_begins() {
    let mut host = Host::new();
    host.set("maxmemory", "64mb");
    let mut first = host.memcached();
    host.says(&mut first, &format!("set first 0 0 {}\r\n", 60 * MIB));
    assert_eq!(send_part(&mut host, &mut first, 40 * MIB), b"", "one alone may be long");
    let mut second = host.memcached();
    assert_eq!(host.ask(&mut second, format!("add second 0 0 {VALUE}\r\n").as_bytes()), NO_MEMORY);
    let (_, _) = (send_part(&mut host, &mut second, VALUE), host.says(&mut second, "\r\n"));
    // What comes at once needs to be kept by nobody, nor do short ones.
    assert_eq!(host.says(&mut second, "mn\r\nset short 0 0 1\r\n"), "MN\r\n");
}

#[test]
fn a_value_whose_line_does_not_end_counts_too() {
    let (mut host, _first) = with_one();
    let mut second = host.memcached();
    host.says(&mut second, &format!("set second 0 0 {}\r\n", 11 * MIB));
    assert_eq!(send_part(&mut host, &mut second, 11 * MIB), b"");
    let mut third = host.memcached();
    host.says(&mut third, &format!("set third 0 0 {VALUE}\r\n"));
    assert_eq!(send_part(&mut host, &mut third, 2 * MIB), NO_MEMORY);
    assert_eq!(host.says(&mut second, "\r\nmn\r\n"), "STORED\r\nMN\r\n");
}

#[test]
fn one_that_is_let_go_stays_in_step_when_the_limit_is_lowered() {
    let (mut host, _first) = with_one();
    let begin: [(Vec<u8>, Vec<u8>); 3] = [
        (format!("set old 0 0 {VALUE}\r\n").into_bytes(), b"\r\nmn\r\n".to_vec()),
        (format!("ms old {VALUE}\r\n").into_bytes(), b"\r\nmn\r\n".to_vec()),
        (binary_set("old", VALUE), [&[0x80, 0x0a][..], &[0; 22]].concat()),
    ];
    for (line, end) in begin {
        host.set("max-value-size", "512mb");
        let mut second = host.memcached();
        assert_eq!(host.ask(&mut second, &line), b"");
        assert_eq!(send_part(&mut host, &mut second, 11 * MIB), b"");
        host.set("max-value-size", "1mb");
        assert!(!send_part(&mut host, &mut second, VALUE - 11 * MIB).is_empty());
        let answer = host.ask(&mut second, &end);
        assert!(answer == b"MN\r\n" || answer[..2] == [0x81, 0x0a], "{answer:?}");
        // Nothing of it is left for the next one.
        let next = if line[0] == 0x80 { binary_set("n", 100_000) } else { b"set n 0 0 100000\r\n".to_vec() };
        assert_eq!(host.ask(&mut second, &next), b"");
        let rest = [vec![b'v'; 100_000], if line[0] == 0x80 { vec![] } else { b"\r\n".to_vec() }].concat();
        let answer = host.ask(&mut second, &rest);
        assert!(answer == b"STORED\r\n" || answer[6..8] == [0, 0], "{answer:?}");
    }
}

#[test]
fn a_limit_that_is_lowered_meanwhile_holds_for_the_next() {
    let mut host = Host::new();
    let mut client = host.memcached();
    assert_eq!(host.says(&mut client, "ms k 70000\r\n"), "");
    host.set("max-value-size", "60000");
    let rest = [&vec![b'v'; 70_000][..], b"\r\nms k 70000\r\n"].concat();
    let answer = String::from_utf8(host.ask(&mut client, &rest)).expect("text");
    assert_eq!(answer, "HD\r\nSERVER_ERROR object too large for cache\r\n");
}

/// A server that keeps 16 MiB of unfinished short values, all but a few of which are taken by clients that say no more.
fn with_short_ones() -> (Host, Vec<Client>) {
    let mut host = Host::new();
    host.set("maxmemory", "64mb");
    let begun = [b"set stalled 0 0 64000\r\n".to_vec(), vec![b'v'; 63_900]].concat();
    let stalled = Vec::from_iter((0..16 * MIB / begun.len()).map(|_| {
        let mut client = host.memcached();
        assert_eq!(host.ask(&mut client, &begun), b"");
        client
    }));
    (host, stalled)
}

#[test]
fn short_ones_count_too() {
    let (mut host, mut stalled) = with_short_ones();
    let mut full = host.memcached();
    assert_eq!(host.says(&mut full, &format!("set full 0 0 64000\r\n{}", "v".repeat(63_900))), "");
    // Those that grow, and those that begin, are let go; the rest of them is no request.
    let mut growing = stalled.pop().expect("a client");
    assert_eq!(host.ask(&mut growing, &[b'v'; 50]), NO_MEMORY);
    assert_eq!(host.says(&mut growing, &format!("{}\r\nmn\r\n", "v".repeat(50))), "MN\r\n");
    assert_eq!(host.says(&mut growing, &format!("set again 0 0 64000\r\n{}", "v".repeat(63_900))), "");
    let (begun, rest) = ("v".repeat(5_000), "v".repeat(4_000));
    let binary = |key: &str| [binary_set(key, 9_000), begun.clone().into_bytes()].concat();
    let mut other = host.memcached();
    host.says(&mut other, "set old 0 0 1\r\n1\r\nset kept 0 0 1\r\n1\r\n");
    for begin in [format!("set old 0 0 9000\r\n{begun}"), format!("ms old 9000\r\n{begun}")] {
        let mut client = host.memcached();
        assert_eq!(host.ask(&mut client, begin.as_bytes()), NO_MEMORY);
        assert_eq!(host.says(&mut client, &format!("{rest}\r\nget old kept\r\n")), "VALUE kept 0 1\r\n1\r\nEND\r\n");
        // What comes at once, or is very short, needs no such memory.
        assert_eq!(host.says(&mut client, &format!("set old 0 0 9000\r\n{begun}{rest}\r\n")), "STORED\r\n");
        assert_eq!(host.says(&mut client, "set old 0 0 4000\r\nv"), "");
        assert_eq!(host.says(&mut client, &format!("{}\r\n", "v".repeat(3_999))), "STORED\r\n");
    }
    let mut client = host.memcached();
    let answer = host.ask(&mut client, &binary("old"));
    assert_eq!((&answer[6..8], &answer[24..]), (&[0, 0x82][..], &b"Out of memory allocating item"[..]));
    let noop = [&[0x80, 0x0a][..], &[0; 22]].concat();
    assert_eq!(host.ask(&mut client, &[rest.as_bytes(), &noop].concat())[..2], [0x81, 0x0a]);
    // Who goes makes room.
    stalled.truncate(10);
    assert_eq!(host.ask(&mut client, &binary("new")), b"");
    assert_eq!(host.ask(&mut client, rest.as_bytes())[6..8], [0, 0]);
}

#[test]
fn one_that_grows_is_let_go_in_every_protocol() {
    for binary in [false, true] {
        let (mut host, mut stalled) = with_short_ones();
        let begin = if binary { binary_set("k", 9_000) } else { b"ms k 9000\r\n".to_vec() };
        let mut client = host.memcached();
        assert_eq!(host.ask(&mut client, &[&begin[..], &[b'v'; 4_500]].concat()), b"");
        let mut last = host.memcached();
        assert_eq!(host.says(&mut last, &format!("set full 0 0 64000\r\n{}", "v".repeat(63_900))), "");
        let answer = host.ask(&mut client, &[b'v'; 100]);
        assert!(answer == NO_MEMORY || answer[6..8] == [0, 0x82], "{answer:?}");
        let end = if binary { [&[0x80, 0x0a][..], &[0; 22]].concat() } else { b"\r\nmn\r\n".to_vec() };
        let answer = host.ask(&mut client, &[&[b'v'; 4_400][..], &end].concat());
        assert!(answer == b"MN\r\n" || answer[..2] == [0x81, 0x0a], "{answer:?}");
        stalled.clear();
    }
}

#[test]
fn requests_that_wait_for_their_turn_do_not_count() {
    let (mut host, _stalled) = with_short_ones();
    let mut full = host.memcached();
    assert_eq!(host.says(&mut full, &format!("set full 0 0 64000\r\n{}", "v".repeat(63_900))), "");
    host.set("memcached-requests-per-turn", "1");
    let mut client = host.memcached();
    let requests = format!("set k 0 0 9000\r\n{}\r\n", "v".repeat(9_000)).repeat(5);
    assert_eq!(host.says(&mut client, &requests), "STORED\r\n".repeat(5));
}
