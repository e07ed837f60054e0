//! Streams.

use super::example::{Example, resp};

const LOG: &[&str] = &["20000x XADD log * temperature 21 humidity 40"];
const READ: &[&str] = &[
    "20000x XADD log * temperature 21 humidity 40",
    "XGROUP CREATE log group 0",
    "XREADGROUP GROUP group one COUNT 1000 STREAMS log >",
];
const GROUP: &[&str] = &["20000x XADD log * temperature 21 humidity 40", "XGROUP CREATE log group 0"];

/// Of streams.
pub static EXAMPLES: &[Example] = &[
    resp("XADD", "20,000 entries and more", LOG, &[("100x XADD log * temperature 21 humidity 40", "$*")]),
    resp("XADD", "entries with an ID, 100 of them", &[], &[("DEL log", "*"), ("100x XADD log {i+1}-1 a b", "$*")]),
    resp("XADD MAXLEN ~", "1,000 entries", LOG, &[("100x XADD log MAXLEN ~ 1000 * temperature 21 humidity 40", "$*")]),
    resp("XADD MAXLEN", "1,000 entries", LOG, &[("100x XADD log MAXLEN 1000 * temperature 21 humidity 40", "$*")]),
    resp("XLEN", "20,000 entries", LOG, &[("100x XLEN log", ":20000")]),
    resp("XRANGE", "the first 10 of 20,000", LOG, &[("100x XRANGE log - + COUNT 10", "*10")]),
    resp("XREVRANGE", "the last 10 of 20,000", LOG, &[("100x XREVRANGE log + - COUNT 10", "*10")]),
    resp("XRANGE", "the first 1,000 of 20,000", LOG, &[("XRANGE log - + COUNT 1000", "*1000")]).in_flight(4),
    resp("XREAD", "the first 10 of 20,000", LOG, &[("100x XREAD COUNT 10 STREAMS log 0", "*1")]),
    resp("XREAD", "nothing new", LOG, &[("100x XREAD COUNT 10 STREAMS log $", "*-1")]),
    resp(
        "XREADGROUP",
        "one entry after another",
        GROUP,
        &[("XGROUP SETID log group 0", "+OK"), ("1000x XREADGROUP GROUP group one COUNT 1 STREAMS log >", "*1")],
    ),
    resp(
        "XREADGROUP NOACK",
        "one entry after another",
        GROUP,
        &[("XGROUP SETID log group 0", "+OK"), ("1000x XREADGROUP GROUP group one COUNT 1 NOACK STREAMS log >", "*1")],
    ),
    resp("XPENDING", "1,000 entries of one consumer", READ, &[("100x XPENDING log group", "*4")]),
    resp("XPENDING", "the first 10 of 1,000 entries", READ, &[("100x XPENDING log group - + 10", "*10")]),
    resp("XAUTOCLAIM", "10 of 1,000 entries", READ, &[("100x XAUTOCLAIM log group two 0 0 COUNT 10", "*3")]),
    resp("XINFO STREAM", "20,000 entries", LOG, &[("100x XINFO STREAM log", "**")]),
    resp(
        "XADD, XREADGROUP, XACK",
        "100 entries, which are read at once",
        &[],
        &[
            ("DEL log", "*"),
            ("100x XADD log {i+1}-1 a b", "$*"),
            ("XGROUP CREATE log group 0", "+OK"),
            ("XREADGROUP GROUP group one COUNT 100 STREAMS log >", "*1"),
            ("100x XACK log group {i+1}-1", ":1"),
        ],
    ),
    resp(
        "XADD, XDEL",
        "100 entries",
        &[],
        &[("DEL log", "*"), ("100x XADD log {i+1}-1 a b", "$*"), ("100x XDEL log {i+1}-1", ":1")],
    ),
];
