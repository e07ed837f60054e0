//! Memcached's text protocol, line by line. Every case was put to memcached 1.6.18; where Tenon differs, it says so.
#![allow(missing_docs)]

#[path = "feed/connection.rs"]
mod feed;

use feed::{MemcacheEvent, memcache_events};
use tenon_wire::ArgSpans;
use tenon_wire::memcache::{GetVerb, Limits, Step, TextDecoder};

/// Tells what comes of `input`, one event a line; `~` before what is not answered because of `noreply`.
fn transcript(input: &[u8]) -> String {
    let show = |list: &[Vec<u8>]| {
        list.iter().map(|bytes| format!(" [{}]", bytes.escape_ascii())).collect::<String>().replace("\\'", "'")
    };
    let limits = Limits { value_max: 1 << 20, ..Limits::default() };
    let lines = memcache_events(&[input], &limits).into_iter().map(|event| match event {
        MemcacheEvent::Request(text, list) => {
            let noreply = text.ends_with("noreply true") || text.contains("noreply: true");
            let text = text.replace(" noreply false", "").replace(" noreply true", "");
            format!("{}{text}{}", if noreply { "~" } else { "" }, show(&list))
        }
        MemcacheEvent::Get(verb, exptime, list, true) => {
            let exptime = exptime.map_or(String::new(), |exptime| format!(" exptime {exptime}"));
            format!("{verb:?}{exptime}{}", show(&list))
        }
        MemcacheEvent::Get(..) => unreachable!("an unfinished read is left out"),
        MemcacheEvent::Refused(error, noreply, stale) => {
            let stale = stale.map_or(String::new(), |key| format!(", drop{}", show(&[key])));
            format!("{}{error}{stale}", if noreply { "~" } else { "" })
        }
        MemcacheEvent::Fatal(error) => format!("closed: {}", error.text().unwrap_or("")),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(input: impl AsRef<[u8]>, expected: &str) {
    assert_eq!(transcript(input.as_ref()), expected);
}

const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";

#[test]
fn reads() {
    check("get a\r\n", "Get [a]");
    check("  get  a b \n", "Get [a] [b]");
    check("gets a\n", "Gets [a]");
    check("gat 10 a b\r\n", "Gat exptime 10 [a] [b]");
    check("gats -1 a\r\n", "Gats exptime -1 [a]");
    check("gat 1\r\n", "Gat exptime 1");
    check("gat\r\n", "ERROR");
    check("get\r\n", "ERROR");
    check("get \r\n", "ERROR");
    check("gat x a\r\n", "CLIENT_ERROR invalid exptime argument");
    check("gat x\r\n", "CLIENT_ERROR invalid exptime argument");
    check("gat noreply k\r\n", "CLIENT_ERROR invalid exptime argument");
    check("get noreply\r\n", "Get [noreply]");
    check("get \tk\r\n", "Get [\\tk]");
    check("get k\r\r\n", "Get [k\\r]");
    check("get k\rfoo\r\n", "Get [k\\rfoo]");
    // Memcached ends the line at the NUL and reads `k`; here the key is what the client sent.
    check(b"get k\0b\r\n", "Get [k\\x00b]");
}

#[test]
fn keys_are_at_most_250_bytes() {
    let (fits, over) = ("k".repeat(250), "k".repeat(251));
    check(format!("get {fits}\r\n"), &format!("Get [{fits}]"));
    // Nothing of the line is answered.
    check(format!("get k {over}\r\nversion\r\n"), &format!("{BAD_FORMAT}\nVersion"));
    check(format!("gat 1 {over}\r\n"), BAD_FORMAT);
    check(format!("gat x {over}\r\n"), "CLIENT_ERROR invalid exptime argument");
    check(format!("incr {over} x\r\n"), BAD_FORMAT);
    check(format!("touch {over} x\r\n"), BAD_FORMAT);
    check(format!("delete {over}\r\n"), BAD_FORMAT);
    check(format!("delete {over} x\r\n"), "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]");
    // What was to be stored is no request. (Memcached 1.6.18 takes it for some.)
    check(format!("set {over} 0 0 7\r\nversion\r\nversion\r\n"), &format!("{BAD_FORMAT}\nVersion"));
    check(format!("set {over} 0 0 2 noreply\r\nhi\r\nversion\r\n"), &format!("~{BAD_FORMAT}\nVersion"));
    check(format!("ms {over} 7\r\nversion\r\nversion\r\n"), &format!("{BAD_FORMAT}\nVersion"));
}

#[test]
fn writes() {
    check("set k 5 10 2\r\nhi\r\n", "Set flags 5 exptime 10 [k] [hi]");
    check("set  k  0  0  2  \r\nhi\r\n", "Set flags 0 exptime 0 [k] [hi]");
    check("add k 0 -1 0\n\r\n", "Add flags 0 exptime -1 [k] []");
    check("replace k 0 0 4\r\na\r\nb\r\n", "Replace flags 0 exptime 0 [k] [a\\r\\nb]");
    check("append k 4294967295 0 1\r\na\r\n", "Append flags 4294967295 exptime 0 [k] [a]");
    check("prepend k 0 9223372036854775807 1\r\na\r\n", "Prepend flags 0 exptime 9223372036854775807 [k] [a]");
    check("cas k 0 0 2 18446744073709551615\r\nhi\r\n", "Cas(18446744073709551615) flags 0 exptime 0 [k] [hi]");
    check("cas k 0 0 2 1 noreply\r\nhi\r\n", "~Cas(1) flags 0 exptime 0 [k] [hi]");
    check("cas k 0 0 2 1 x\r\nhi\r\n", "Cas(1) flags 0 exptime 0 [k] [hi]");
    check("set k 0 0 2 noreply\r\nhi\r\n", "~Set flags 0 exptime 0 [k] [hi]");
    check("set k 0 0 2 x\r\nhi\r\n", "Set flags 0 exptime 0 [k] [hi]");
    check("set noreply 0 0 2\r\nhi\r\n", "Set flags 0 exptime 0 [noreply] [hi]");
    check("set k +1 01 +2\r\nhi\r\n", "Set flags 1 exptime 1 [k] [hi]");
    check("set k \t1 -0 2\t\r\nhi\r\n", "Set flags 1 exptime 0 [k] [hi]");
    check("set k 1 0 2\r\r\nhi\r\n", "Set flags 1 exptime 0 [k] [hi]");
}

#[test]
fn wrong_writes() {
    for fields in ["0 0 -1", "0 0 -2", "0 0 x", "0 0 2147483646", "0 0 9999999999999999999999", "0 0 4294967298"] {
        check(format!("set k {fields}\r\nhi\r\nversion\r\n"), &format!("{BAD_FORMAT}\nERROR\nVersion"));
        check(format!("set k {fields} noreply\r\nhi\r\n"), &format!("~{BAD_FORMAT}\nERROR"));
    }
    // Where the length is known the data block is none of the requests. Memcached stores what has the flags of the last line,
    // without their bits over 32.
    for fields in
        ["x 0 2", "-1 0 2", "0 x 2", "0 9223372036854775808 2", "0x1 0 2", "1a 0 2", "- 0 2", "4294967296 0 2"]
    {
        check(format!("set k {fields}\r\nhi\r\nversion\r\n"), &format!("{BAD_FORMAT}\nVersion"));
        check(format!("set k {fields} noreply\r\nhi\r\n"), &format!("~{BAD_FORMAT}"));
    }
    for cas in ["x", "-1", "18446744073709551616"] {
        check(format!("cas k 0 0 2 {cas}\r\nhi\r\nversion\r\n"), &format!("{BAD_FORMAT}\nVersion"));
    }
    for line in ["set k 0 0", "set k", "set", "set k 0 0 2 noreply x", "cas k 0 0 2", "cas k 0 0 2 1 noreply x"] {
        check(format!("{line}\r\nhi\r\n"), "ERROR\nERROR");
    }
    check(b"set k\0b 0 0\r\n", "ERROR");
}

#[test]
fn wrong_data_blocks() {
    check("set k 0 0 2\r\nhello\r\nversion\r\n", "CLIENT_ERROR bad data chunk\nERROR\nVersion");
    check("set k 0 0 2\r\nhi\nversion\r\n", "CLIENT_ERROR bad data chunk\nERROR");
    check("set k 0 0 4\r\nhi\r\nversion\r\n", "CLIENT_ERROR bad data chunk\nERROR");
    check("set k 0 0 2 noreply\r\nhix\r\nversion\r\n", "~CLIENT_ERROR bad data chunk\nERROR\nVersion");
    let data = "x".repeat(2_000_000);
    for (line, expected) in [
        ("set k 0 0 2000000", "SERVER_ERROR object too large for cache, drop [k]"),
        ("set k 0 0 2000000 noreply", "~SERVER_ERROR object too large for cache, drop [k]"),
        ("add k 0 0 2000000", "SERVER_ERROR object too large for cache"),
        ("cas k 0 0 2000000 1", "SERVER_ERROR object too large for cache"),
    ] {
        // The announced block is swallowed, whatever its end.
        check(format!("{line}\r\n{data}zzversion\r\n"), &format!("{expected}\nVersion"));
    }
    check("set k 0 0 2147483645\r\nhi\r\n", "SERVER_ERROR object too large for cache, drop [k]");
}

#[test]
fn counters() {
    check("incr k 18446744073709551615\r\n", "Incr delta 18446744073709551615 [k]");
    check("decr k 1 noreply\r\n", "~Decr delta 1 [k]");
    check("incr k 1 zz\r\n", "Incr delta 1 [k]");
    for delta in ["x", "-1", "18446744073709551616"] {
        check(format!("incr k {delta}\r\n"), "CLIENT_ERROR invalid numeric delta argument");
    }
    check("decr k x noreply\r\n", "~CLIENT_ERROR invalid numeric delta argument");
    check("incr k noreply\r\n", "~CLIENT_ERROR invalid numeric delta argument");
    check("incr k\r\n", "ERROR");
    check("incr k 1 2 3\r\n", "ERROR");
}

#[test]
fn delete_and_touch() {
    const USAGE: &str = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]";
    check("delete k\r\n", "Delete [k]");
    check("delete k 0\r\n", "Delete [k]");
    check("delete k noreply\r\n", "~Delete [k]");
    check("delete k 0 noreply\r\n", "~Delete [k]");
    check("delete noreply\r\n", "Delete [noreply]");
    check("delete k 1\r\n", USAGE);
    check("delete k x\r\n", USAGE);
    check("delete k 0 x\r\n", USAGE);
    check("delete k 1 noreply\r\n", &format!("~{USAGE}"));
    check("delete\r\n", "ERROR");
    check("delete k 0 0 noreply\r\n", "ERROR");
    check("touch k 5\r\n", "Touch exptime 5 [k]");
    check("touch k 5 x\r\n", "Touch exptime 5 [k]");
    check("touch k 5 noreply\r\n", "~Touch exptime 5 [k]");
    check("touch k x\r\n", "CLIENT_ERROR invalid exptime argument");
    check("touch k x noreply\r\n", "~CLIENT_ERROR invalid exptime argument");
    check("touch noreply noreply\r\n", "~CLIENT_ERROR invalid exptime argument");
    check("touch k\r\n", "ERROR");
}

#[test]
fn administration() {
    check("flush_all\r\n", "FlushAll { exptime: None, noreply: false }");
    check("flush_all 5\r\n", "FlushAll { exptime: Some(5), noreply: false }");
    check("flush_all -1 x\r\n", "FlushAll { exptime: Some(-1), noreply: false }");
    check("flush_all noreply\r\n", "~FlushAll { exptime: None, noreply: true }");
    check("flush_all 0 noreply\r\n", "~FlushAll { exptime: Some(0), noreply: true }");
    check("flush_all x\r\n", "CLIENT_ERROR invalid exptime argument");
    check("flush_all noreply x\r\n", "CLIENT_ERROR invalid exptime argument");
    check("flush_all 9223372036854775808\r\n", "CLIENT_ERROR invalid exptime argument");
    check("flush_all noreply noreply\r\n", "~CLIENT_ERROR invalid exptime argument");
    check("flush_all 0 0 0\r\n", "ERROR");
    check("verbosity 4294967296\r\n", "Verbosity { level: 4294967296, noreply: false }");
    check("verbosity 1 noreply\r\n", "~Verbosity { level: 1, noreply: true }");
    check("verbosity x\r\n", BAD_FORMAT);
    check("verbosity -1\r\n", BAD_FORMAT);
    check("verbosity noreply\r\n", &format!("~{BAD_FORMAT}"));
    check("verbosity\r\n", "ERROR");
    check("verbosity 1 2 3\r\n", "ERROR");
    check("cache_memlimit 64\r\n", "CacheMemlimit { megabytes: 64, noreply: false }");
    check("cache_memlimit 64 noreply\r\n", "~CacheMemlimit { megabytes: 64, noreply: true }");
    check("cache_memlimit x\r\n", "ERROR");
    check("cache_memlimit x noreply\r\n", "~ERROR");
    check("cache_memlimit -1\r\n", "ERROR");
    check("cache_memlimit\r\ncache_memlimit 1 2 3\r\n", "ERROR\nERROR");
    check("version\r\nversion a b c d\r\n", "Version\nVersion");
    check("quit\r\nquit x\r\n", "Quit\nQuit");
    check("stats\r\nstats detail on\r\n", "Stats\nStats [detail] [on]");
    check("shutdown\r\nshutdown graceful\r\n", "Shutdown\nShutdown [graceful]");
    check(
        "slabs automove 1\r\nlru tune\r\nlru_crawler crawl all\r\n",
        "Slabs [automove] [1]\nLru [tune]\nLruCrawler [crawl] [all]",
    );
}

#[test]
fn what_is_no_request() {
    for line in ["", " ", "\r", "x", "GET k", "Get k", "mx", "slab x", "xx HTTP", "\u{80}"] {
        check(format!("{line}\r\nversion\n"), "ERROR\nVersion");
    }
    for line in ["POST / HTTP/1.1", "GET / HTTP/1.1", "HTTP/1.1", "xx HTTP/"] {
        check(format!("{line}\r\nversion\r\n"), "closed: ");
    }
}

/// Memcached closes at 2,048 bytes without a line end, without a word; what reads longer lines depends on how they
/// arrive. Here it is the same for all, and the client is told why.
#[test]
fn long_lines() {
    const CLOSED: &str = "closed: CLIENT_ERROR line too long";
    check("a".repeat(2048), "");
    check("a".repeat(2049), CLOSED);
    check(" ".repeat(2049), CLOSED);
    check(format!("{}\n", "a".repeat(2048)), "ERROR");
    check(format!("{}\r\n", "a".repeat(2048)), CLOSED);
    check(format!("set k 0 0 2{}\r\nhi\r\n", " ".repeat(2048)), CLOSED);
    check(format!("get{}", "k".repeat(2048)), CLOSED);
    check(format!("gat {} 1 k\r\n", " ".repeat(2048)), CLOSED);
    let keys = vec![b"k".to_vec(); 2000];
    let long = |verb: &str| [verb.as_bytes(), b" ", &keys.join(&b' ')].concat();
    let limits = Limits::default();
    let events = |bytes: &[u8]| memcache_events(&[bytes], &limits);
    for end in ["\r\n", "\n"] {
        let input = [long("get"), end.into()].concat();
        assert_eq!(events(&input), [MemcacheEvent::Get(GetVerb::Get, None, keys.clone(), true)]);
        let input = [long("gat 7"), end.into()].concat();
        assert_eq!(events(&input), [MemcacheEvent::Get(GetVerb::Gat, Some(7), keys.clone(), true)]);
    }
    check([long("gat x"), b"\r\nversion\r\n".to_vec()].concat(), "CLIENT_ERROR invalid exptime argument\nVersion");
    check(format!("get {}\r\nversion\r\n", " ".repeat(3000)), "ERROR\nVersion");
    check(format!("get {}k\r\nversion\r\n", " ".repeat(3000)), "Get [k]\nVersion");
    check(format!("get {}\r\nversion\r\n", "k".repeat(3000)), &format!("{BAD_FORMAT}\nVersion"));
}

/// Where a length is too long for memcached's number it counts while `max-value-size` is that large.
#[test]
fn a_limit_that_is_lowered_during_an_upload_is_for_the_next() {
    let limits = |value_max| Limits { value_max, big_min: 30, ..Limits::default() };
    let mut args = ArgSpans::default();
    let mut decoder = TextDecoder::new();
    let line = b"ms k 3000000000\r\n";
    let begun = decoder.next(line, 0, &mut args, &limits(4_000_000_000));
    assert!(matches!(begun, Ok(Step::Big { len: 3_000_000_000, at: 17 })), "{begun:?}");
    decoder.big_taken();
    let whole = decoder.next(b"ms k 3000000000\r\n\r\n", 0, &mut args, &limits(100));
    assert!(matches!(whole, Ok(Step::Request { end: 19, .. })), "{whole:?}");
    assert_eq!(args.spans.len(), 1);
}
