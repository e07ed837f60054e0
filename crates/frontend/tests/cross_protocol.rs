//! One keyspace behind both protocols: what one client stores the other one reads, expiry included.

mod host;

use host::{Host, command, take};
use tenon_engine::clients::{Dialect, Message};

fn bulk(data: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}

/// Values of every shape in which a string is kept.
fn values() -> Vec<Vec<u8>> {
    let mut values: Vec<Vec<u8>> =
        ["", "x", "0", "-17", "9223372036854775807", "18446744073709551615", "007", "a\r\nb\0\u{ff}"]
            .iter()
            .map(|text| text.as_bytes().to_vec())
            .collect();
    values.extend([100, 16_383, 16_384, 262_144, 262_145, 1_000_000].map(|len| vec![b'v'; len]));
    values
}

#[test]
fn what_memcached_stores_resp_reads() {
    let mut host = Host::new();
    let (mut memcached, mut resp) = (host.memcached(), host.connect(Dialect::Resp));
    for value in values() {
        let request = [format!("set k 5 0 {}\r\n", value.len()).as_bytes(), &value, b"\r\n"].concat();
        assert_eq!(host.ask(&mut memcached, &request), b"STORED\r\n");
        assert!(host.ask(&mut resp, &command(&[b"GET", b"k"])) == bulk(&value), "{} bytes", value.len());
    }
}

#[test]
fn what_resp_stores_memcached_reads() {
    let mut host = Host::new();
    let (mut memcached, mut resp) = (host.memcached(), host.connect(Dialect::Resp));
    for value in values() {
        assert_eq!(host.ask(&mut resp, &command(&[b"SET", b"k", &value])), b"+OK\r\n");
        let expected = [format!("VALUE k 0 {}\r\n", value.len()).as_bytes(), &value, b"\r\nEND\r\n"].concat();
        assert!(host.ask(&mut memcached, b"get k\r\n") == expected, "{} bytes", value.len());
    }
}

#[test]
fn expiry_is_one() {
    let mut host = Host::new();
    let (mut memcached, mut resp) = (host.memcached(), host.connect(Dialect::Resp));
    host.says(&mut memcached, "set a 0 10 1\r\nx\r\n");
    assert_eq!(host.ask(&mut resp, &command(&[b"SET", b"b", b"y", b"PX", b"5000"])), b"+OK\r\n");
    host.pass(4_900);
    assert_eq!(host.ask(&mut resp, &command(&[b"GET", b"a"])), b"$1\r\nx\r\n");
    assert_eq!(host.says(&mut memcached, "get b\r\n"), "VALUE b 0 1\r\ny\r\nEND\r\n");
    host.pass(5_100);
    assert_eq!(host.says(&mut memcached, "get b\r\n"), "END\r\n");
    host.pass(10_100);
    assert_eq!(host.ask(&mut resp, &command(&[b"GET", b"a"])), b"$-1\r\n");

    // Each takes away what the other has set.
    host.says(&mut memcached, "set a 0 10 1\r\nx\r\n");
    assert_eq!(host.ask(&mut resp, &command(&[b"SET", b"a", b"z"])), b"+OK\r\n");
    assert_eq!(host.ask(&mut resp, &command(&[b"SET", b"b", b"y", b"PX", b"5000"])), b"+OK\r\n");
    host.says(&mut memcached, "touch b 0\r\n");
    host.pass(60_000);
    assert_eq!(host.says(&mut memcached, "get a b\r\n"), "VALUE a 0 1\r\nz\r\nVALUE b 0 1\r\ny\r\nEND\r\n");
}

#[test]
fn a_write_of_the_other_protocol_voids_a_cas_token() {
    let mut host = Host::new();
    let (mut memcached, mut resp) = (host.memcached(), host.connect(Dialect::Resp));
    host.says(&mut memcached, "set k 9 0 1\r\nx\r\n");
    let token = host.says(&mut memcached, "gets k\r\n").split_whitespace().nth(4).expect("a token").to_owned();
    assert_eq!(host.ask(&mut resp, &command(&[b"SET", b"k", b"y"])), b"+OK\r\n");
    assert_eq!(host.says(&mut memcached, &format!("cas k 0 0 1 {token}\r\nz\r\n")), "EXISTS\r\n");
    // SET knows no flags: they go with the value they described.
    assert_eq!(host.says(&mut memcached, "get k\r\n"), "VALUE k 0 1\r\ny\r\nEND\r\n");
}

#[test]
fn a_write_of_memcacheds_breaks_a_watch() {
    for write in [
        "set k 0 0 1\r\nx\r\n",
        "incr k 1\r\n",
        "append k 0 0 1\r\n1\r\n",
        "touch k 100\r\n",
        "delete k\r\n",
        "flush_all\r\n",
    ] {
        let mut host = Host::new();
        let (mut memcached, mut resp) = (host.memcached(), host.connect(Dialect::Resp));
        host.says(&mut memcached, "set k 0 0 1\r\n1\r\n");
        let transaction = |host: &mut Host, resp: &mut host::Client| {
            host.ask(resp, &[command(&[b"MULTI"]), command(&[b"PING"]), command(&[b"EXEC"])].concat())
        };
        host.ask(&mut resp, &command(&[b"WATCH", b"k"]));
        host.says(&mut memcached, "gets k\r\n");
        assert!(transaction(&mut host, &mut resp).ends_with(b"*1\r\n+PONG\r\n"), "a read changes nothing");
        host.ask(&mut resp, &command(&[b"WATCH", b"k"]));
        host.says(&mut memcached, write);
        assert!(transaction(&mut host, &mut resp).ends_with(b"*-1\r\n"), "{write:?}");
    }
}

#[test]
fn onlookers_see_both_protocols() {
    let mut host = Host::new();
    let (mut memcached, mut resp) = (host.memcached(), host.connect(Dialect::Resp));
    let mut monitor = host.connect(Dialect::Resp);
    assert_eq!(host.ask(&mut monitor, &command(&[b"MONITOR"])), b"+OK\r\n");
    assert_eq!(host.ask(&mut resp, &command(&[b"HOTKEYS", b"START", b"METRICS", b"1", b"NET"])), b"+OK\r\n");
    // In one packet, and a data block that comes later.
    host.says(&mut memcached, "set k 5 0 6\r\na \r\nbc\r\n\r\nget k  missing\r\nincr k 1\r\nset late 0 0 3\r\nx");
    host.says(&mut memcached, "yz\r\nnonsense\r\n");
    host.ask(&mut resp, &command(&[b"GET", b"k"]));
    host.tell(&mut monitor, Message::Output);
    let shown = String::from_utf8(take(&mut monitor.out)).expect("it is text");
    let shown: Vec<&str> = shown.lines().map(|line| line.split_once("] ").expect("who it was").1).collect();
    let expected = [
        r#""set" "k" "5" "0" "6" "a \r\nbc""#,
        r#""get" "k" "missing""#,
        r#""incr" "k" "1""#,
        r#""set" "late" "0" "0" "3" "xyz""#,
        r#""GET" "k""#,
    ];
    assert_eq!(shown, expected);
    let report = host.engine.hotkeys.report(host.worker.clock.now_ms).expect("a search goes on");
    let keys: Vec<&[u8]> = report.by_bytes.iter().map(|(key, _)| &**key).collect();
    assert_eq!(keys.iter().filter(|key| [&b"k"[..], b"missing", b"late"].contains(key)).count(), keys.len());
    assert_eq!((keys[0], keys.len()), (&b"k"[..], 3));
}

#[test]
fn a_list_of_lines_to_read_by_has_the_keys_that_a_line_can_name() {
    let mut host = Host::new();
    let mut redis = host.connect(Dialect::Resp);
    let graphic = |len: usize| "x".repeat(len);
    for key in
        ["k".to_owned(), "a b".to_owned(), String::new(), graphic(250), graphic(251), " ".repeat(186), " ".repeat(187)]
    {
        let request = format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n$1\r\n1\r\n", key.len());
        assert_eq!(host.says(&mut redis, &request), "+OK\r\n");
    }
    let mut memcached = host.memcached();
    let listed = host.says(&mut memcached, "lru_crawler mgdump all\r\n");
    let mut lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.pop(), Some("EN"));
    lines.sort_unstable();
    let blanks = format!("mg {} b", "ICAg".repeat(62));
    assert_eq!(lines, [blanks, "mg YSBi b".to_owned(), "mg k".to_owned(), format!("mg {}", graphic(250))]);
    for line in lines {
        let answer = host.says(&mut memcached, &format!("{line}\r\n"));
        assert!(answer.starts_with("HD"), "{line}: {answer}");
    }
}
