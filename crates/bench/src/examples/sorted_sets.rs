//! Sorted sets, and places in them.

use super::example::{Example, resp};

const SMALL: &[&str] = &["100x ZADD board:{i} [20: {j} member:{j}]"];
const LARGE: &[&str] = &["100x ZADD large [1000: {r1000000} member:{i}:{j}]"];
const TWO: &[&str] =
    &["2x ZADD one [500: {j} member:{i}:{j}]", "ZADD two [500: {j} member:1:{j}]", "ZADD two [500: {j} member:2:{j}]"];
const WORDS: &[&str] = &["ZADD words [1000: 0 {r1000000000}]"];
const PLACES: &[&str] = &["200x GEOADD places [100: {r-179..179}.{r1000000} {r-80..80}.{r1000000} place:{i}:{j}]"];

/// Of sorted sets and places.
pub static EXAMPLES: &[Example] = &[
    resp("ZADD", "20 members, a score changed", SMALL, &[("100x ZADD board:{r100} {r100} member:{r20}", ":0")]),
    resp("ZSCORE", "20 members", SMALL, &[("100x ZSCORE board:{r100} member:{r20}", "$*")]),
    resp("ZRANK", "20 members", SMALL, &[("100x ZRANK board:{r100} member:{r20}", ":*")]),
    resp("ZRANGE", "all of 20 members", SMALL, &[("100x ZRANGE board:{r100} 0 -1", "*20")]),
    resp("ZRANGE WITHSCORES", "all of 20 members", SMALL, &[("100x ZRANGE board:{r100} 0 -1 WITHSCORES", "*40")]),
    resp(
        "ZADD",
        "100,000 members, a score changed",
        LARGE,
        &[("100x ZADD large {r1000000} member:{r100}:{r1000}", ":0")],
    ),
    resp("ZADD GT", "100,000 members, a score kept", LARGE, &[("100x ZADD large GT -1 member:{r100}:{r1000}", ":0")]),
    resp(
        "ZADD, ZREM",
        "a new member of 100,000",
        LARGE,
        &[("100x ZADD large {r1000000} new:{i}", ":1"), ("100x ZREM large new:{i}", ":1")],
    ),
    resp(
        "ZINCRBY",
        "100,000 members, by up to 100",
        LARGE,
        &[("100x ZINCRBY large {r100} member:{r100}:{r1000}", "$*")],
    ),
    resp("ZINCRBY", "100 of 100,000 members, by 1", LARGE, &[("100x ZINCRBY large 1 member:7:{r100}", "$*")]),
    resp("ZSCORE", "100,000 members", LARGE, &[("100x ZSCORE large member:{r100}:{r1000}", "$*")]),
    resp("ZMSCORE", "10 of 100,000 members", LARGE, &[("100x ZMSCORE large [10: member:{r100}:{r1000}]", "*10")]),
    resp("ZRANK", "100,000 members", LARGE, &[("100x ZRANK large member:{r100}:{r1000}", ":*")]),
    resp(
        "ZREVRANK WITHSCORE",
        "100,000 members",
        LARGE,
        &[("100x ZREVRANK large member:{r100}:{r1000} WITHSCORE", "*2")],
    ),
    resp("ZRANGE REV WITHSCORES", "the first 10 of 100,000", LARGE, &[("100x ZRANGE large 0 9 REV WITHSCORES", "*20")]),
    resp("ZREVRANGE", "the first 10 of 100,000", LARGE, &[("100x ZREVRANGE large 0 9", "*10")]),
    resp("ZRANGE", "100 in the middle of 100,000", LARGE, &[("100x ZRANGE large 50000 50099", "*100")]).in_flight(16),
    resp(
        "ZRANGEBYSCORE LIMIT",
        "10 of 100,000",
        LARGE,
        &[("100x ZRANGEBYSCORE large {r900000} +inf LIMIT 0 10", "*10")],
    ),
    resp(
        "ZRANGEBYSCORE LIMIT",
        "10 of 100,000, 100 passed over",
        LARGE,
        &[("100x ZRANGEBYSCORE large {r900000} +inf LIMIT 100 10", "*10")],
    ),
    resp(
        "ZREVRANGEBYSCORE LIMIT",
        "10 of 100,000",
        LARGE,
        &[("100x ZREVRANGEBYSCORE large {r100000..1000000} -inf LIMIT 0 10", "*10")],
    ),
    resp("ZCOUNT", "100,000 members", LARGE, &[("100x ZCOUNT large {r500000} {r500000..1000000}", ":*")]),
    resp("ZLEXCOUNT", "1,000 words", WORDS, &[("100x ZLEXCOUNT words `[1` `[5`", ":*")]),
    resp(
        "ZPOPMIN, ZADD",
        "100,000 members",
        LARGE,
        &[("ZPOPMIN large", "*2"), ("ZADD large {r1000000} new:{r1000000000}", ":*")],
    ),
    resp(
        "ZREMRANGEBYRANK, ZADD",
        "100,000 members",
        LARGE,
        &[("ZREMRANGEBYRANK large 0 0", ":1"), ("ZADD large {r1000000} new:{r1000000000}", ":*")],
    ),
    resp("ZREMRANGEBYSCORE", "none of 100,000", LARGE, &[("100x ZREMRANGEBYSCORE large -inf -5", ":0")]),
    resp("ZRANDMEMBER", "one of 100,000", LARGE, &[("100x ZRANDMEMBER large", "$*")]),
    resp("ZRANDMEMBER", "10 of 100,000", LARGE, &[("100x ZRANDMEMBER large 10", "*10")]),
    resp("ZSCAN", "10 of 100,000", LARGE, &[("100x ZSCAN large 0", "*2")]),
    resp("ZCARD", "100,000 members", LARGE, &[("100x ZCARD large", ":100000")]),
    resp("ZRANGESTORE", "100 of 100,000", LARGE, &[("10x ZRANGESTORE to large 0 99", ":100")]).in_flight(16),
    resp("ZUNIONSTORE", "twice 1,000, half alike", TWO, &[("ZUNIONSTORE to 2 one two", ":1500")]).in_flight(4),
    resp("ZINTERSTORE", "twice 1,000, half alike", TWO, &[("ZINTERSTORE to 2 one two", ":500")]).in_flight(4),
    resp("ZUNION WITHSCORES", "twice 1,000, half alike", TWO, &[("ZUNION 2 one two WITHSCORES", "*3000")]).in_flight(4),
    resp("ZINTER", "twice 1,000, half alike", TWO, &[("ZINTER 2 one two", "*500")]).in_flight(4),
    resp("ZDIFF", "twice 1,000, half alike", TWO, &[("ZDIFF 2 one two", "*500")]).in_flight(4),
    resp("ZINTERCARD", "twice 1,000, half alike", TWO, &[("ZINTERCARD 2 one two", ":500")]).in_flight(4),
    resp(
        "GEOADD",
        "one of 20,000 places, moved",
        PLACES,
        &[("100x GEOADD places {r-179..179}.{r1000000} {r-80..80}.{r1000000} place:{r200}:{r100}", ":0")],
    ),
    resp(
        "GEODIST",
        "two of 20,000 places",
        PLACES,
        &[("100x GEODIST places place:{r200}:{r100} place:{r200}:{r100}", "$*")],
    ),
    resp("GEOPOS", "one of 20,000 places", PLACES, &[("100x GEOPOS places place:{r200}:{r100}", "*1")]),
    resp("GEOHASH", "one of 20,000 places", PLACES, &[("100x GEOHASH places place:{r200}:{r100}", "*1")]),
    resp(
        "GEOSEARCH BYRADIUS",
        "20,000 places, within 100 km",
        PLACES,
        &[("100x GEOSEARCH places FROMLONLAT {r-179..179}.5 {r-80..80}.5 BYRADIUS 100 km ASC", "**")],
    ),
    resp(
        "GEOSEARCH BYRADIUS",
        "20,000 places, the nearest 10 within 1,000 km",
        PLACES,
        &[("100x GEOSEARCH places FROMLONLAT {r-179..179}.5 {r-70..70}.5 BYRADIUS 1000 km ASC COUNT 10", "*10")],
    )
    .in_flight(16),
    resp(
        "GEOSEARCH BYBOX WITHDIST",
        "20,000 places, 500 km by 500 km",
        PLACES,
        &[("100x GEOSEARCH places FROMLONLAT {r-179..179}.5 {r-80..80}.5 BYBOX 500 500 km WITHDIST", "**")],
    )
    .in_flight(16),
];
