//! Lists.

use super::example::{Example, resp};

const SMALL: &[&str] = &["100x RPUSH list:{i} [20: element:{j}]"];
const LARGE: &[&str] = &["100x RPUSH large [1000: element:{i}:{j}]"];

/// Of lists.
pub static EXAMPLES: &[Example] = &[
    resp("LPUSH, RPOP", "a queue of one", &[], &[("LPUSH queue job:1234", ":1"), ("RPOP queue", "$8")]),
    resp("RPUSH", "one element, to 1,000", &[], &[("DEL list", "*"), ("1000x RPUSH list element:7", ":*")]),
    resp("RPUSH", "16 elements, to 1,600", &[], &[("DEL list", "*"), ("100x RPUSH list [16: element:{j}]", ":*")]),
    resp(
        "LPUSH",
        "100 lists of 10 elements",
        &[],
        &[("100x DEL list:{i}", "*"), ("1000x LPUSH list:{r100} element:7", ":*")],
    ),
    resp("LPOP, RPUSH", "a list of 100,000", LARGE, &[("LPOP large", "$*"), ("RPUSH large element:1:1", ":100000")]),
    resp("LMOVE", "a list of 100,000, its first to its end", LARGE, &[("100x LMOVE large large LEFT RIGHT", "$*")]),
    resp("LRANGE", "10 of lists of 20", SMALL, &[("100x LRANGE list:{r100} 0 9", "*10")]),
    resp("LRANGE", "the first 100 of 100,000", LARGE, &[("100x LRANGE large 0 99", "*100")]).in_flight(16),
    resp("LRANGE", "the first 600 of 100,000", LARGE, &[("100x LRANGE large 0 599", "*600")]).in_flight(4),
    resp("LRANGE", "10 in the middle of 100,000", LARGE, &[("100x LRANGE large 50000 50009", "*10")]),
    resp("LINDEX", "the middle of 100,000", LARGE, &[("100x LINDEX large 50000", "$*")]),
    resp("LINDEX", "the last of 100,000", LARGE, &[("100x LINDEX large -1", "$14")]),
    resp("LINDEX", "any of 100,000", LARGE, &[("100x LINDEX large {r100000}", "$*")]),
    resp("LSET", "the middle of 100,000", LARGE, &[("100x LSET large 50000 element:50:x", "+OK")]),
    resp("LLEN", "a list of 100,000", LARGE, &[("100x LLEN large", ":100000")]),
    resp("LREM", "one that is not among 100,000", LARGE, &[("LREM large 1 none", ":0")]).in_flight(1),
    resp("LPOS", "the last of 100,000", LARGE, &[("LPOS large element:99:999", ":99999")]).in_flight(1),
    resp("LINSERT", "the middle of 100,000 and more", LARGE, &[("LINSERT large BEFORE element:50:0 x", ":*")])
        .in_flight(1),
    resp(
        "LPUSH, LTRIM",
        "a list of 1,000",
        &["RPUSH list [1000: element:{j}]"],
        &[("LPUSH list element:1", ":1001"), ("LTRIM list 0 999", "+OK")],
    ),
];
