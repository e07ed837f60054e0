//! Sets.

use super::example::{Example, resp};

const SMALL: &[&str] = &["100x SADD set:{i} [20: member:{j}]"];
const NUMBERS: &[&str] = &["100x SADD set:{i} [100: {j}0]"];
const LARGE: &[&str] = &["100x SADD large [1000: member:{i}:{j}]"];
const TWO: &[&str] =
    &["2x SADD one [500: member:{i}:{j}]", "SADD two [500: member:1:{j}]", "SADD two [500: member:2:{j}]"];

/// Of sets.
pub static EXAMPLES: &[Example] = &[
    resp("SADD", "sets of 20, a member of them", SMALL, &[("100x SADD set:{r100} member:{r20}", ":0")]),
    resp("SISMEMBER", "sets of 20", SMALL, &[("100x SISMEMBER set:{r100} member:{r20}", ":1")]),
    resp("SMEMBERS", "sets of 20", SMALL, &[("100x SMEMBERS set:{r100}", "*20")]),
    resp("SINTER", "two sets of 20", SMALL, &[("100x SINTER set:{r100} set:{r100}", "*20")]),
    resp("SISMEMBER", "sets of 100 numbers", NUMBERS, &[("100x SISMEMBER set:{r100} {r1000}", ":*")]),
    resp("SMEMBERS", "sets of 100 numbers", NUMBERS, &[("100x SMEMBERS set:{r100}", "*100")]).in_flight(16),
    resp("SINTER", "two sets of 100 numbers", NUMBERS, &[("100x SINTER set:{r100} set:{r100}", "*100")]).in_flight(16),
    resp(
        "SADD, SREM",
        "a new member of sets of 100 numbers",
        NUMBERS,
        &[("100x SADD set:{i} 1001", ":1"), ("100x SREM set:{i} 1001", ":1")],
    ),
    resp("SADD", "a set of 100,000, a member of it", LARGE, &[("100x SADD large member:{r100}:{r1000}", ":0")]),
    resp(
        "SADD, SREM",
        "a new member of a set of 100,000",
        LARGE,
        &[("100x SADD large new:{i}", ":1"), ("100x SREM large new:{i}", ":1")],
    ),
    resp("SISMEMBER", "a set of 100,000", LARGE, &[("100x SISMEMBER large member:{r100}:{r1000}", ":1")]),
    resp(
        "SMISMEMBER",
        "10 of a set of 100,000",
        LARGE,
        &[("100x SMISMEMBER large [10: member:{r200}:{r1000}]", "*10")],
    ),
    resp("SRANDMEMBER", "one of 100,000", LARGE, &[("100x SRANDMEMBER large", "$*")]),
    resp("SRANDMEMBER", "10 of 100,000", LARGE, &[("100x SRANDMEMBER large 10", "*10")]),
    resp("SPOP, SADD", "a set of 100,000", LARGE, &[("SPOP large", "$*"), ("SADD large new:{r1000000000}", ":*")]),
    resp("SMEMBERS", "a set of 100,000", LARGE, &[("SMEMBERS large", "*100000")]).in_flight(1),
    resp("SSCAN", "10 of 100,000", LARGE, &[("100x SSCAN large 0", "*2")]),
    resp("SCARD", "a set of 100,000", LARGE, &[("100x SCARD large", ":100000")]),
    resp(
        "SMOVE",
        "a set of 100,000, a member there and back",
        LARGE,
        &[("100x SMOVE large other member:1:{i}", ":1"), ("100x SMOVE other large member:1:{i}", ":1")],
    ),
    resp("SINTER", "two sets of 1,000, half alike", TWO, &[("SINTER one two", "*500")]).in_flight(4),
    resp("SUNION", "two sets of 1,000, half alike", TWO, &[("SUNION one two", "*1500")]).in_flight(4),
    resp("SDIFF", "two sets of 1,000, half alike", TWO, &[("SDIFF one two", "*500")]).in_flight(4),
    resp("SINTERCARD", "two sets of 1,000, half alike", TWO, &[("SINTERCARD 2 one two", ":500")]).in_flight(4),
    resp("SINTERSTORE", "two sets of 1,000, half alike", TWO, &[("SINTERSTORE to one two", ":500")]).in_flight(4),
    resp("SUNIONSTORE", "two sets of 1,000, half alike", TWO, &[("SUNIONSTORE to one two", ":1500")]).in_flight(4),
];
