//! Hashes.

use super::example::{Example, resp};

const SMALL: &[&str] = &["1000x HSET hash:{i} [10: field:{j} val:{j}]"];
const MIDDLE: &[&str] = &["100x HSET hash:{i} [100: field:{j} value:{j}]"];
const LARGE: &[&str] = &["100x HSET large [1000: field:{i}:{j} val:1]"];

/// Of hashes.
pub static EXAMPLES: &[Example] = &[
    resp("HGET", "hashes of 10 fields", SMALL, &[("100x HGET hash:{r1000} field:{r10}", "$5")]),
    resp("HSET", "hashes of 10 fields, one overwritten", SMALL, &[("100x HSET hash:{r1000} field:{r10} val:x", ":0")]),
    resp(
        "HMGET",
        "5 fields of hashes of 10",
        SMALL,
        &[("100x HMGET hash:{r1000} field:1 field:3 field:5 field:7 field:9", "*5")],
    ),
    resp("HGETALL", "hashes of 10 fields", SMALL, &[("100x HGETALL hash:{r1000}", "*20")]),
    resp("HVALS", "hashes of 10 fields", SMALL, &[("100x HVALS hash:{r1000}", "*10")]),
    resp("HLEN", "hashes of 10 fields", SMALL, &[("100x HLEN hash:{r1000}", ":10")]),
    resp("HEXISTS", "hashes of 10 fields", SMALL, &[("100x HEXISTS hash:{r1000} field:7", ":1")]),
    resp("HINCRBY", "hashes of 10 fields and a counter", SMALL, &[("100x HINCRBY hash:{r1000} count 1", ":*")]),
    resp(
        "HDEL, HSET",
        "one field of hashes of 10",
        SMALL,
        &[("100x HDEL hash:{i} field:9", ":1"), ("100x HSET hash:{i} field:9 val:9", ":1")],
    ),
    resp(
        "HSET, DEL",
        "a new hash of 5 fields",
        &[],
        &[("100x HSET new:{i} a 1 b two c three d {x20} e 5", ":5"), ("100x DEL new:{i}", ":1")],
    ),
    resp("HGET", "hashes of 100 fields", MIDDLE, &[("100x HGET hash:{r100} field:{r100}", "$*")]),
    resp(
        "HSET",
        "hashes of 100 fields, one overwritten",
        MIDDLE,
        &[("100x HSET hash:{r100} field:{r100} value:x", ":0")],
    ),
    resp("HGETALL", "hashes of 100 fields", MIDDLE, &[("100x HGETALL hash:{r100}", "*200")]).in_flight(16),
    resp("HRANDFIELD", "5 of hashes of 100 fields", MIDDLE, &[("100x HRANDFIELD hash:{r100} 5", "*5")]),
    resp("HGET", "a hash of 100,000 fields", LARGE, &[("100x HGET large field:{r100}:{r1000}", "$5")]),
    resp(
        "HSET",
        "a hash of 100,000 fields, one overwritten",
        LARGE,
        &[("100x HSET large field:{r100}:{r1000} val:x", ":0")],
    ),
    resp(
        "HSET, HDEL",
        "a new field of a hash of 100,000",
        LARGE,
        &[("100x HSET large new:{i} val:1", ":1"), ("100x HDEL large new:{i}", ":1")],
    ),
    resp(
        "HINCRBY",
        "a hash of 100,000 fields and 1,000 counters",
        LARGE,
        &[("100x HINCRBY large count:{r1000} 1", ":*")],
    ),
    resp("HSCAN", "10 of 100,000 fields", LARGE, &[("100x HSCAN large 0", "*2")]),
    resp("HSCAN COUNT", "100 of 100,000 fields", LARGE, &[("100x HSCAN large 0 COUNT 100", "*2")]).in_flight(16),
    resp("HRANDFIELD", "one of 100,000 fields", LARGE, &[("100x HRANDFIELD large", "$*")]),
    resp("HGETALL", "a hash of 100,000 fields", LARGE, &[("HGETALL large", "*200000")]).in_flight(1),
    resp(
        "HEXPIRE",
        "one of 1,000 of 100,000 fields",
        LARGE,
        &[("100x HEXPIRE large 1000 FIELDS 1 field:7:{r1000}", "*1")],
    ),
    resp("HTTL", "one of 100,000 fields, without an end", LARGE, &[("100x HTTL large FIELDS 1 field:7:{r1000}", "*1")]),
];
