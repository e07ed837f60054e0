//! Keys and their deadlines, whatever they hold.

use super::example::{Example, resp};

/// Ten thousand short strings.
pub const KEYS: &[&str] = &["10000x SET key:{i} {x32}"];

/// Of keys.
pub static EXAMPLES: &[Example] = &[
    resp("EXISTS", "one of 10,000 keys", KEYS, &[("100x EXISTS key:{r10000}", ":1")]),
    resp("EXPIRE", "one of 10,000 keys", KEYS, &[("100x EXPIRE key:{r10000} 1000", ":1")]),
    resp("TTL", "one of 10,000 keys without an end", KEYS, &[("100x TTL key:{r10000}", ":-1")]),
    resp("PERSIST", "one of 10,000 keys without an end", KEYS, &[("100x PERSIST key:{r10000}", ":0")]),
    resp("TYPE", "one of 10,000 keys", KEYS, &[("100x TYPE key:{r10000}", "+string")]),
    resp(
        "DEL, SET",
        "each of 100 keys of 10,000",
        KEYS,
        &[("100x DEL key:{i}", ":1"), ("100x SET key:{i} {x32}", "+OK")],
    ),
    resp(
        "UNLINK, SET",
        "each of 100 keys of 10,000",
        KEYS,
        &[("100x UNLINK key:{i}", ":1"), ("100x SET key:{i} {x32}", "+OK")],
    ),
    resp("RENAME", "a key there and back", KEYS, &[("RENAME key:1 to", "+OK"), ("RENAME to key:1", "+OK")]),
    resp("COPY", "one of 10,000 keys over another", KEYS, &[("100x COPY key:{r10000} to REPLACE", ":1")]),
    resp("OBJECT ENCODING", "one of 10,000 keys", KEYS, &[("100x OBJECT ENCODING key:{r10000}", "$*")]),
    resp("MEMORY USAGE", "one of 10,000 keys", KEYS, &[("100x MEMORY USAGE key:{r10000}", ":*")]),
    resp("DUMP", "one of 10,000 keys", KEYS, &[("100x DUMP key:{r10000}", "$*")]),
    resp("RANDOMKEY", "10,000 keys", KEYS, &[("100x RANDOMKEY", "$*")]),
    resp("DBSIZE", "10,000 keys", KEYS, &[("100x DBSIZE", ":10000")]),
    resp("SCAN", "10 of 10,000 keys", KEYS, &[("100x SCAN 0", "*2")]),
    resp("SCAN COUNT", "1,000 of 10,000 keys", KEYS, &[("SCAN 0 COUNT 1000", "*2")]).in_flight(4),
    resp("SCAN MATCH", "1,000 of 10,000 keys", KEYS, &[("SCAN 0 MATCH key:*77 COUNT 1000", "*2")]).in_flight(4),
    resp("KEYS", "10,000 keys, all of them", KEYS, &[("KEYS *", "*10000")]).in_flight(1),
    resp("KEYS", "10,000 keys, `*77*`", KEYS, &[("KEYS *77*", "*280")]).in_flight(1),
    resp(
        "SORT",
        "the first 10 of a list of 100 numbers",
        &["RPUSH numbers [100: {r1000}]"],
        &[("10x SORT numbers LIMIT 0 10", "*10")],
    )
    .in_flight(16),
    resp(
        "SORT BY",
        "100 elements, two keys for each",
        &["RPUSH ids [100: {j}]", "100x SET weight:{i} {r100}", "100x SET object:{i} {x3}"],
        &[("10x SORT ids BY weight:* GET # GET object:*", "*200")],
    )
    .in_flight(4),
];
