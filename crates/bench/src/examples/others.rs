//! Transactions, scripts and functions, messages, and what is asked of the server itself.

use super::example::{Example, resp};
use super::keys::KEYS;

const FUNCTION: &[&str] = &[
    "FUNCTION LOAD REPLACE `#!lua name=bench\nredis.register_function('bench', function(keys) return redis.call('GET', keys[1]) end)`",
    "SET key {x5}",
];

/// Of all else.
pub static EXAMPLES: &[Example] = &[
    resp("MULTI, SET, GET, EXEC", "one key", &[], &[
        ("MULTI", "+OK"),
        ("SET key {x5}", "+QUEUED"),
        ("GET key", "+QUEUED"),
        ("EXEC", "*2"),
    ]),
    resp("WATCH, MULTI, INCR, EXEC", "one key", &[], &[
        ("WATCH key", "+OK"),
        ("MULTI", "+OK"),
        ("INCR key", "+QUEUED"),
        ("EXEC", "*1"),
    ]),
    resp("EVAL", "`return 1`", &[], &[("100x EVAL `return 1` 0", ":1")]),
    resp("EVAL", "a GET", &["SET key {x5}"], &[("100x EVAL `return redis.call('GET', KEYS[1])` 1 key", "$5")]),
    resp("EVAL", "INCR, and EXPIRE the first time", &[], &[(
        "100x EVAL `local c = redis.call('INCR', KEYS[1]) if c == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end return c` 1 rate 60",
        ":*",
    )]),
    resp("EVAL", "10 INCR", &[], &[("100x EVAL `for i = 1, 10 do redis.call('INCR', KEYS[1]) end return 1` 1 rate", ":1")]).in_flight(16),
    resp("EVAL", "10,000 additions", &[], &[("EVAL `local s = 0 for i = 1, 10000 do s = s + i end return s` 0", ":50005000")]).in_flight(1),
    resp("EVAL", "JSON there and back", &[], &[(
        "100x EVAL `return cjson.encode(cjson.decode(ARGV[1]))` 0 `{\"a\":1,\"b\":[1,2,3],\"c\":{\"d\":\"hello\"},\"e\":null}`",
        "$*",
    )]),
    resp("EVAL", "MessagePack there and back", &[], &[(
        "100x EVAL `return cmsgpack.pack(cmsgpack.unpack(cmsgpack.pack({1, 2, 3, 'abc', {a = 1}})))` 0",
        "$*",
    )]),
    resp("EVAL", "100 texts formatted and joined", &[], &[(
        "10x EVAL `local t = {} for i = 1, 100 do t[#t + 1] = string.format('%d:%s', i, ARGV[1]) end return table.concat(t, ',')` 0 x",
        "$*",
    )]).in_flight(4),
    resp("EVAL", "HGETALL of 100 fields", &["HSET hash [100: field:{j} value:{j}]"], &[
        ("10x EVAL `local r = redis.call('HGETALL', KEYS[1]) return #r` 1 hash", ":200"),
    ]).in_flight(16),
    resp("FCALL", "a GET", FUNCTION, &[("100x FCALL bench 1 key", "$5")]),
    resp("PUBLISH", "nobody listens", &[], &[("100x PUBLISH channel message", ":0")]),
    resp("PING", "", &[], &[("100x PING", "+PONG")]),
    resp("ECHO", "", &[], &[("100x ECHO abc", "$3")]),
    resp("SELECT", "the same database", &[], &[("100x SELECT 0", "+OK")]),
    resp("TIME", "", &[], &[("100x TIME", "*2")]),
    resp("CLIENT ID", "", &[], &[("100x CLIENT ID", ":*")]),
    resp("CLIENT LIST", "", &[], &[("10x CLIENT LIST", "$*")]).in_flight(4),
    resp("INFO", "", &[], &[("10x INFO", "$*")]).in_flight(4),
    resp("CONFIG GET", "`*`", &[], &[("CONFIG GET *", "**")]).in_flight(1),
    resp("COMMAND COUNT", "", &[], &[("100x COMMAND COUNT", ":*")]),
    resp("COMMAND", "", &[], &[("COMMAND", "**")]).in_flight(1),
    resp("none", "an unknown command", &[], &[("100x NOSUCH a", "-ERR unknown command*")]),
    resp("LPUSH", "a key of another type", KEYS, &[("100x LPUSH key:1 a", "-WRONGTYPE*")]),
];
