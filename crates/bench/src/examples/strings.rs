//! Strings, numbers and bits in them, and HyperLogLogs.

use super::example::{Example, resp};
use super::keys::KEYS;

const KEYS_1K: &[&str] = &["1000x SET key:{i} {x1000}"];
const KEYS_16K: &[&str] = &["100x SET key:{i} {x16000}"];
const BITS: &[&str] = &["SETBIT bits 1000000 1", "1000x SETBIT bits {r1000000} 1", "SETBIT other 1000000 1"];
const SKETCHES: &[&str] = &["20x PFADD one [1000: {r1000000000}]", "20x PFADD two [1000: {r1000000000}]"];

/// Of strings.
pub static EXAMPLES: &[Example] = &[
    resp("GET", "one of 10,000 values of 32 bytes", KEYS, &[("100x GET key:{r10000}", "$32")]),
    resp("GET", "one of 1,000 values of 1,000 bytes", KEYS_1K, &[("100x GET key:{r1000}", "$1000")]),
    resp("GET", "one of 100 values of 16,000 bytes", KEYS_16K, &[("100x GET key:{r100}", "$16000")]).in_flight(16),
    resp("GET", "a key that is not there", KEYS, &[("100x GET none:{r10000}", "$-1")]),
    resp("SET", "one of 10,000 values of 32 bytes", KEYS, &[("100x SET key:{r10000} {x32}", "+OK")]),
    resp("SET", "one of 1,000 values of 1,000 bytes", KEYS_1K, &[("100x SET key:{r1000} {x1000}", "+OK")]),
    resp("SET", "one of 100 values of 16,000 bytes", KEYS_16K, &[("100x SET key:{r100} {x16000}", "+OK")])
        .in_flight(16),
    resp("SET EX", "one of 10,000 values of 32 bytes", KEYS, &[("100x SET key:{r10000} {x32} EX 100", "+OK")]),
    resp("SETEX", "one of 10,000 values of 32 bytes", KEYS, &[("100x SETEX key:{r10000} 100 {x32}", "+OK")]),
    resp("SETNX", "one of 10,000 keys, which is there", KEYS, &[("100x SETNX key:{r10000} {x32}", ":0")]),
    resp("GETSET", "one of 10,000 values of 32 bytes", KEYS, &[("100x GETSET key:{r10000} {x32}", "$32")]),
    resp("GETEX", "one of 10,000 values of 32 bytes", KEYS, &[("100x GETEX key:{r10000} EX 1000", "$32")]),
    resp("MGET", "16 of 10,000 values of 32 bytes", KEYS, &[("100x MGET [16: key:{r10000}]", "*16")]).in_flight(16),
    resp("MSET", "16 of 10,000 values of 32 bytes", KEYS, &[("100x MSET [16: key:{r10000} {x32}]", "+OK")])
        .in_flight(16),
    resp("MSETNX", "16 keys that are there", KEYS, &[("100x MSETNX [16: key:{r10000} {x32}]", ":0")]).in_flight(16),
    resp("STRLEN", "one of 10,000 values of 32 bytes", KEYS, &[("100x STRLEN key:{r10000}", ":32")]),
    resp("GETRANGE", "7 of 32 bytes", KEYS, &[("100x GETRANGE key:{r10000} 3 9", "$7")]),
    resp("SETRANGE", "3 of 32 bytes", KEYS, &[("100x SETRANGE key:{r10000} 3 abc", ":32")]),
    resp(
        "APPEND",
        "8 bytes to one value, to 800 bytes",
        &[],
        &[("SET long ``", "+OK"), ("100x APPEND long {x8}", ":*")],
    ),
    resp(
        "APPEND",
        "8 bytes to one value of 1 MB and more",
        &["SETRANGE long 999999 x"],
        &[("100x APPEND long {x8}", ":*")],
    ),
    resp("INCR", "one of 1,000 counters", &[], &[("100x INCR count:{r1000}", ":*")]),
    resp("INCRBYFLOAT", "one of 1,000 counters", &[], &[("100x INCRBYFLOAT sum:{r1000} 1.5", "$*")]),
    resp(
        "LCS",
        "texts of 40 and 45 bytes",
        &["SET one ohmytextohmytextohmytextohmytextohmytext", "SET two mynewtextmynewtextmynewtextmynewtextmynewtext"],
        &[("10x LCS one two", "$*")],
    )
    .in_flight(16),
    resp("SETBIT", "one of 1,000,000 bits", BITS, &[("100x SETBIT bits {r1000000} 1", ":*")]),
    resp("GETBIT", "one of 1,000,000 bits", BITS, &[("100x GETBIT bits {r1000000}", ":*")]),
    resp("BITCOUNT", "1,000,000 bits", BITS, &[("BITCOUNT bits", ":*")]).in_flight(4),
    resp("BITPOS", "the last of 1,000,000 bits", BITS, &[("BITPOS other 1", ":1000000")]).in_flight(4),
    resp("BITOP AND", "twice 1,000,000 bits", BITS, &[("BITOP AND to bits other", ":125001")]).in_flight(4),
    resp("BITOP OR", "twice 1,000,000 bits", BITS, &[("BITOP OR to bits other", ":125001")]).in_flight(4),
    resp("BITOP NOT", "1,000,000 bits", BITS, &[("BITOP NOT to bits", ":125001")]).in_flight(4),
    resp("BITFIELD", "one of 1,000 bytes, incremented", BITS, &[("100x BITFIELD bits INCRBY u8 #{r1000} 1", "*1")]),
    resp("BITFIELD_RO", "one of 1,000 bytes", BITS, &[("100x BITFIELD_RO bits GET u8 #{r1000}", "*1")]),
    resp("PFADD", "a sketch of 20,000", SKETCHES, &[("100x PFADD one {r1000000000}", ":*")]),
    resp("PFADD", "a sketch of 50, which all are in", &["PFADD few [50: {j}]"], &[("100x PFADD few {r50}", ":0")]),
    resp("PFCOUNT", "a sketch of 20,000", SKETCHES, &[("100x PFCOUNT one", ":*")]),
    resp("PFCOUNT", "two sketches of 20,000", SKETCHES, &[("PFCOUNT one two", ":*")]).in_flight(4),
    resp("PFMERGE", "two sketches of 20,000", SKETCHES, &[("PFMERGE to one two", "+OK")]).in_flight(4),
];
