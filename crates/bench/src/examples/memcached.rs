//! memcached's verbs: the classic ones and the meta commands.

use super::example::{Example, meta, text};

const KEYS: &[&str] = &["10000x set key:{i} 0 0 32\r\n{x32}"];
const KEYS_1K: &[&str] = &["1000x set key:{i} 0 0 1000\r\n{x1000}"];
const KEYS_16K: &[&str] = &["100x set key:{i} 0 0 16000\r\n{x16000}"];
const COUNTERS: &[&str] = &["1000x set count:{i} 0 0 9\r\n100000000"];

/// Of memcached's protocols.
pub static EXAMPLES: &[Example] = &[
    text("get", "one of 10,000 values of 32 bytes", KEYS, &[("100x get key:{r10000}", "VALUE*")]),
    text("get", "one of 1,000 values of 1,000 bytes", KEYS_1K, &[("100x get key:{r1000}", "VALUE*")]),
    text("get", "one of 100 values of 16,000 bytes", KEYS_16K, &[("100x get key:{r100}", "VALUE*")]).in_flight(16),
    text("get", "a key that is not there", KEYS, &[("100x get none:{r10000}", "END")]),
    text(
        "get",
        "4 of 10,000 values of 32 bytes",
        KEYS,
        &[("100x get key:{r10000} key:{r10000} key:{r10000} key:{r10000}", "VALUE*")],
    ),
    text("gets", "one of 10,000 values of 32 bytes", KEYS, &[("100x gets key:{r10000}", "VALUE*")]),
    text("gat", "one of 10,000 values of 32 bytes", KEYS, &[("100x gat 1000 key:{r10000}", "VALUE*")]),
    text("set", "one of 10,000 values of 32 bytes", KEYS, &[("100x set key:{r10000} 0 0 32\r\n{x32}", "STORED")]),
    text(
        "set",
        "one of 1,000 values of 1,000 bytes",
        KEYS_1K,
        &[("100x set key:{r1000} 0 0 1000\r\n{x1000}", "STORED")],
    ),
    text(
        "set",
        "one of 100 values of 16,000 bytes",
        KEYS_16K,
        &[("100x set key:{r100} 0 0 16000\r\n{x16000}", "STORED")],
    )
    .in_flight(16),
    text(
        "set",
        "one of 10,000 values of 32 bytes, with an end",
        KEYS,
        &[("100x set key:{r10000} 0 100 32\r\n{x32}", "STORED")],
    ),
    text("add", "one of 10,000 keys, which is there", KEYS, &[("100x add key:{r10000} 0 0 32\r\n{x32}", "NOT_STORED")]),
    text(
        "replace",
        "one of 10,000 values of 32 bytes",
        KEYS,
        &[("100x replace key:{r10000} 0 0 32\r\n{x32}", "STORED")],
    ),
    text(
        "append, set",
        "3 bytes to 32",
        KEYS,
        &[("100x append key:{i} 0 0 3\r\nabc", "STORED"), ("100x set key:{i} 0 0 32\r\n{x32}", "STORED")],
    ),
    text(
        "cas",
        "one of 10,000 values, of another unique",
        KEYS,
        &[("100x cas key:{r10000} 0 0 32 0\r\n{x32}", "EXISTS")],
    ),
    text("incr", "one of 1,000 counters", COUNTERS, &[("100x incr count:{r1000} 1", "*")]),
    text("decr", "one of 1,000 counters", COUNTERS, &[("100x decr count:{r1000} 1", "*")]),
    text("touch", "one of 10,000 keys", KEYS, &[("100x touch key:{r10000} 1000", "TOUCHED")]),
    text(
        "delete, set",
        "each of 100 keys of 10,000",
        KEYS,
        &[("100x delete key:{i}", "DELETED"), ("100x set key:{i} 0 0 32\r\n{x32}", "STORED")],
    ),
    text("delete", "a key that is not there", KEYS, &[("100x delete none:{r10000}", "NOT_FOUND")]),
    text("stats", "", KEYS, &[("10x stats", "STAT*")]).in_flight(4),
    text("version", "", &[], &[("100x version", "VERSION*")]),
    text("none", "an unknown command", &[], &[("100x nosuch", "ERROR")]),
    meta("mg", "v", KEYS, &[("100x mg key:{r10000} v", "VA 32")]),
    meta("mg", "s t c f v k", KEYS, &[("100x mg key:{r10000} s t c f v k", "VA 32 *")]),
    meta("mg", "h l t v", KEYS, &[("100x mg key:{r10000} h l t v", "VA 32 *")]),
    meta("mg", "N vivify, of keys that are there", KEYS, &[("100x mg key:{r10000} v N30", "VA 32")]),
    meta("mg", "O k q v", KEYS, &[("100x mg key:{r10000} O123 k q v", "VA 32 *")]),
    meta("mg, mn", "v q, of keys that are not there", KEYS, &[("100x mg none:{r10000} v q\r\nmn", "MN")]),
    meta("ms", "32 bytes", KEYS, &[("100x ms key:{r10000} 32\r\n{x32}", "HD")]),
    meta("ms", "32 bytes, T c", KEYS, &[("100x ms key:{r10000} 32 T100 c\r\n{x32}", "HD c*")]),
    meta("ma", "one of 1,000 counters", COUNTERS, &[("100x ma count:{r1000}", "HD")]),
    meta("ma", "v t N J", COUNTERS, &[("100x ma count:{r1000} v t N100 J1", "VA*")]),
    meta(
        "md, ms",
        "each of 100 keys of 10,000",
        KEYS,
        &[("100x md key:{i}", "HD"), ("100x ms key:{i} 32\r\n{x32}", "HD")],
    ),
    meta("me", "one of 10,000 keys", KEYS, &[("100x me key:{r10000}", "ME*")]),
];
