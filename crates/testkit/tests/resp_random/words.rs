//! Words that requests are made of, by the slot of a template that they fill; and how a request is spoiled. Knows no
//! template.

use crate::grammar::Request;
use tenon_testkit::random::Random;

/// Numbers at the edges, and what is nearly a number.
const EDGES: [&str; 46] = [
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "-9223372036854775809",
    "9223372036854775806",
    "-9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "4294967295",
    "4294967296",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "65535",
    "00",
    "01",
    "-01",
    "+1",
    "+0",
    "-0",
    " 1",
    "1 ",
    "1e5",
    "1e1",
    "0x10",
    "",
    "-",
    "+",
    ".",
    "1.0",
    "1.5",
    "abc",
    "nan",
    "inf",
    "-inf",
    "99999999999999999999999999",
    "9999999999999999",
    "1\0",
    "\0",
    "1,5",
    "1_0",
    "\u{663}",
    "--1",
    "1-1",
    "9007199254740993",
];

const FLOATS: [&str; 44] = [
    "0",
    "1",
    "-1",
    "1.5",
    "-2.25",
    "0.1",
    "0.2",
    "0.3",
    "3.0e3",
    "1e10",
    "1e-5",
    "1E5",
    "1e17",
    "1e21",
    "1e-7",
    "123456789.123456789",
    "inf",
    "-inf",
    "+inf",
    "infinity",
    "Inf",
    "nan",
    "NaN",
    "-nan",
    "1e400",
    "-1e400",
    "5e-324",
    "1e-400",
    "1.7976931348623157e308",
    "0x1p3",
    ".5",
    "5.",
    "1e",
    "",
    " 1",
    "1 ",
    "0.30000000000000004",
    "-0",
    "-0.0",
    "+1.5",
    "0.1000000000000000055511151231257827",
    "3.14159265358979323846",
    "9007199254740993",
    "1e308",
];

const VALUES: [&str; 30] = [
    "a",
    "b",
    "c",
    "d",
    "e",
    "",
    "1",
    "2",
    "3",
    "-1",
    "10",
    "007",
    "3.5",
    "1e3",
    "hello",
    "hello world",
    "HELLO",
    "aab",
    "ohmytext",
    "mynewtext",
    "9223372036854775807",
    "-9223372036854775808",
    " 1",
    "1 ",
    "\0",
    "\u{ff}\u{80}",
    "a\r\nb",
    "\"q\"",
    "0",
    "12345678901234567890",
];

const MEMBERS: [&str; 16] = ["a", "b", "c", "d", "e", "f", "", "1", "2", "3", "10", "-5", "aa", "ab", "1.5", "\u{e9}"];

const KEYS: [&str; 22] = [
    "s1", "s2", "n1", "n2", "l1", "l2", "t1", "t2", "z1", "z2", "h1", "h2", "x1", "x2", "p1", "p2", "g1", "g2", "e",
    "", "s1", "d",
];

const OPTIONS: [&str; 78] = [
    "NX",
    "XX",
    "GT",
    "LT",
    "CH",
    "INCR",
    "GET",
    "SET",
    "EX",
    "PX",
    "EXAT",
    "PXAT",
    "KEEPTTL",
    "PERSIST",
    "LIMIT",
    "COUNT",
    "WITHSCORES",
    "WITHVALUES",
    "BYSCORE",
    "BYLEX",
    "REV",
    "WEIGHTS",
    "AGGREGATE",
    "SUM",
    "MIN",
    "MAX",
    "STORE",
    "ALPHA",
    "ASC",
    "DESC",
    "BY",
    "MATCH",
    "TYPE",
    "RANK",
    "MAXLEN",
    "MINID",
    "NOMKSTREAM",
    "~",
    "=",
    "LEFT",
    "RIGHT",
    "BEFORE",
    "AFTER",
    "REPLACE",
    "ABSTTL",
    "IDLETIME",
    "FREQ",
    "DB",
    "LEN",
    "IDX",
    "MINMATCHLEN",
    "WITHMATCHLEN",
    "OVERFLOW",
    "SAT",
    "WRAP",
    "FAIL",
    "INCRBY",
    "BYTE",
    "BIT",
    "STREAMS",
    "GROUP",
    "JUSTID",
    "FORCE",
    "IDLE",
    "TIME",
    "RETRYCOUNT",
    "FROMMEMBER",
    "FROMLONLAT",
    "BYRADIUS",
    "BYBOX",
    "ANY",
    "WITHCOORD",
    "WITHDIST",
    "WITHHASH",
    "STOREDIST",
    "ID",
    "BLOCK",
    "NOACK",
];

/// A number from -6 to 12, seldom another one.
fn integer(random: &mut Random) -> String {
    match random.below(12) {
        0 => random.of(&EDGES).to_owned(),
        1 => (random.below(2_000) as i64 - 1_000).to_string(),
        _ => (random.below(19) as i64 - 6).to_string(),
    }
}

/// A number from 0 to 7, seldom another one.
fn count(random: &mut Random) -> String {
    match random.below(20) {
        0 => random.of(&EDGES).to_owned(),
        1 => (random.below(2_000) as i64 - 1_000).to_string(),
        _ => random.below(8).to_string(),
    }
}

fn float(random: &mut Random) -> String {
    match random.below(6) {
        0 | 1 => random.of(&FLOATS).to_owned(),
        2 => {
            let (digits, places) = (random.below(1 << 40) as f64, random.below(14) as i32);
            let sign = if random.one_in(2) { -1.0 } else { 1.0 };
            (sign * digits / 10f64.powi(places)).to_string()
        }
        3 => format!("{}e{}", random.below(1000), random.below(40) as i64 - 20),
        4 => integer(random),
        _ => format!("{}.{}", random.below(20) as i64 - 10, random.below(100)),
    }
}

/// A key that once in eight times has another type than the one asked for.
fn key(random: &mut Random, letter: char) -> String {
    if random.one_in(8) {
        return random.of(&KEYS).to_owned();
    }
    format!("{letter}{}", 1 + random.below(2))
}

fn value(random: &mut Random) -> Vec<u8> {
    match random.below(14) {
        0 => vec![b'x'; random.below(90)],
        1 => {
            let len = random.below(20);
            random.bytes(len)
        }
        2 => float(random).into_bytes(),
        3 => integer(random).into_bytes(),
        4 => b"ab".repeat(random.below(8)),
        _ => random.of(&VALUES).as_bytes().to_vec(),
    }
}

/// An id of a stream's entry.
fn id(random: &mut Random) -> String {
    const ODD: [&str; 19] = [
        "0",
        "0-0",
        "0-1",
        "1",
        "1-",
        "-1",
        "1-1-1",
        "18446744073709551615-18446744073709551615",
        "18446744073709551615",
        "18446744073709551616-0",
        "5-18446744073709551615",
        "a-1",
        "1-a",
        "",
        "-",
        "+",
        "1-01",
        "01-1",
        "1 -1",
    ];
    match random.below(12) {
        0 => random.of(&ODD).to_owned(),
        1 | 2 => random.below(40).to_string(),
        _ => format!("{}-{}", random.below(30), random.below(4)),
    }
}

fn score_bound(random: &mut Random) -> String {
    match random.below(8) {
        0 => random.of(&["-inf", "+inf", "inf", "(-inf", "(inf", "(", "((1", "(a", "[1", "(1.5", "( 1"]).to_owned(),
        1 | 2 => format!("({}", random.below(12) as i64 - 4),
        3 => float(random),
        4 => random.of(&["-inf", "+inf"]).to_owned(),
        _ => (random.below(12) as i64 - 4).to_string(),
    }
}

fn lex_bound(random: &mut Random) -> String {
    match random.below(9) {
        0 => random.of(&["-", "+", "[", "(", "a", "", "--", "++", "[-", "(+", "-inf"]).to_owned(),
        1 => "-".to_owned(),
        2 => "+".to_owned(),
        3 | 4 => format!("({}", random.of(&MEMBERS)),
        _ => format!("[{}", random.of(&MEMBERS)),
    }
}

fn pattern(random: &mut Random) -> &'static str {
    random.of(&[
        "*", "a*", "?", "[ab]*", "[^a]*", "h?llo", "*1", "s*", "[a-c]", "\\*", "[", "a\\", "**", "x[1-", "[\\a]", "",
    ])
}

/// Several keys behind their number, which is seldom wrong.
fn keys(random: &mut Random, letter: char, out: &mut Request) {
    let count = 1 + random.below(3);
    let said = if random.one_in(12) { integer(random) } else { count.to_string() };
    out.push(said.into_bytes());
    for _ in 0..count {
        out.push(key(random, letter).into_bytes());
    }
}

/// Adds what fills the slot.
pub fn append(slot: &str, random: &mut Random, out: &mut Request) {
    let word = match slot {
        "$key" => random.of(&KEYS).to_owned(),
        "$str" => key(random, 's'),
        "$num" => key(random, 'n'),
        "$list" => key(random, 'l'),
        "$set" => key(random, 't'),
        // Sets in which all scores are 0; what a range of members is among others is not said.
        "$lex" => match random.below(16) {
            0 => random.of(&["s1", "l1", "e"]).to_owned(),
            _ => format!("y{}", 1 + random.below(2)),
        },
        "$zset" => key(random, 'z'),
        "$hash" => key(random, 'h'),
        "$stream" => key(random, 'x'),
        "$hll" => key(random, 'p'),
        "$geo" => key(random, 'g'),
        "$sets" => return keys(random, 't', out),
        "$zsets" => {
            let letter = if random.one_in(4) { 't' } else { 'z' };
            return keys(random, letter, out);
        }
        "$lists" => return keys(random, 'l', out),
        "$value" => return out.push(value(random)),
        "$member" if random.one_in(12) => return out.push(value(random)),
        "$member" | "$field" => random.of(&MEMBERS).to_owned(),
        "$int" => integer(random),
        "$count" => count(random),
        "$edge" => random.of(&EDGES).to_owned(),
        "$float" => float(random),
        "$score" => match random.below(3) {
            0 => float(random),
            _ => (random.below(12) as i64 - 4).to_string(),
        },
        "$min" => score_bound(random),
        "$lexmin" => lex_bound(random),
        "$pattern" => pattern(random).to_owned(),
        "$option" => random.of(&OPTIONS).to_owned(),
        "$bit" => random.of(&["0", "1", "0", "1", "0", "1", "0", "1", "2", "-1", "", "01", "a"]).to_owned(),
        "$offset" => match random.below(12) {
            0 => random
                .of(&[
                    "-1",
                    "4294967296",
                    "99999999999",
                    "9223372036854775807",
                    "-9223372036854775808",
                    "",
                    "a",
                    "01",
                    "1.5",
                    "+1",
                ])
                .to_owned(),
            _ => random.below(300).to_string(),
        },
        "$bytes" => match random.below(12) {
            0 => random
                .of(&[
                    "-1",
                    "-9223372036854775808",
                    "9223372036854775807",
                    "536870912",
                    "4294967296",
                    "",
                    "a",
                    "01",
                    "536870911999",
                ])
                .to_owned(),
            _ => random.below(40).to_string(),
        },
        "$bits" => match random.below(12) {
            0 => random.of(&["u64", "i65", "i0", "u0", "x8", "i", "u", "8", "i-1", "u08", "i8x", "U8"]).to_owned(),
            1 => random.of(&["i64", "u63", "i1", "u1"]).to_owned(),
            _ => format!("{}{}", random.of(&['i', 'u']), 1 + random.below(63)),
        },
        "$place" => match random.below(12) {
            0 => random
                .of(&[
                    "#",
                    "#-1",
                    "-1",
                    "#a",
                    "",
                    "4294967296",
                    "#536870912",
                    "##1",
                    "9223372036854775807",
                    "#9223372036854775807",
                ])
                .to_owned(),
            1..5 => format!("#{}", random.below(6)),
            _ => random.below(100).to_string(),
        },
        // All different, as what is done may depend on which of two moments is later.
        "$secs" => match random.below(10) {
            0 => random.of(&EDGES).to_owned(),
            1 => random.of(&["0", "-1", "-100", "9223372036854775", "9223372036854776", "9223370399119966"]).to_owned(),
            _ => (1_000 + 20 * random.below(100_000)).to_string(),
        },
        "$millis" => match random.below(10) {
            0 => random.of(&EDGES).to_owned(),
            1 => random
                .of(&["0", "-1", "-100", "9223372036854775", "9223372036854775807", "9223370399119966000"])
                .to_owned(),
            _ => (1_000_000 + 20_000 * random.below(100_000)).to_string(),
        },
        "$at" => match random.below(10) {
            0 => random.of(&EDGES).to_owned(),
            1 => random.of(&["0", "-1", "1", "1000000000"]).to_owned(),
            _ => (4_000_000_000usize + random.below(10)).to_string(),
        },
        "$atms" => match random.below(10) {
            0 => random.of(&EDGES).to_owned(),
            1 => random.of(&["0", "-1", "1", "1000000000000"]).to_owned(),
            _ => (4_000_000_000_000usize + random.below(10)).to_string(),
        },
        "$id" => id(random),
        // Ids that grow, mostly.
        "$newid" => match random.below(10) {
            0 => id(random),
            1 => format!("{}-*", random.below(40)),
            _ => format!("{}-{}", random.below(40), random.below(5)),
        },
        "$from" => match random.below(6) {
            0 => "-".to_owned(),
            1 => "+".to_owned(),
            2 => format!("({}", id(random)),
            _ => id(random),
        },
        "$group" => random.of(&["g", "g", "g", "q", "no", ""]).to_owned(),
        // None with an empty name: of a consumer so called XINFO of Redis 7.0 says nothing.
        "$consumer" => random.of(&["alice", "bob", "carol"]).to_owned(),
        "$lon" => match random.below(12) {
            0 => random.of(&["180", "-180", "180.0001", "-181", "a", "", "nan", "inf"]).to_owned(),
            _ => format!("{}.{}", random.below(60) as i64 - 30, random.below(1000)),
        },
        "$lat" => match random.below(12) {
            0 => random.of(&["85.05112878", "-85.05112878", "85.06", "-90", "a", "", "nan", "inf"]).to_owned(),
            _ => format!("{}.{}", random.below(40) as i64 - 20, random.below(1000)),
        },
        "$radius" => match random.below(10) {
            0 => random.of(&["-1", "0", "a", "", "1e9", "inf", "nan", "0.0001"]).to_owned(),
            _ => (random.below(6_000) + 1).to_string(),
        },
        "$unit" => random.of(&["m", "km", "km", "km", "ft", "mi", "KM", "x", ""]).to_owned(),
        "$soon" => random
            .of(&["0.01", "0.001", "0.01", "-1", "a", "0.01", "1e-3", "nan", "inf", "99999999999999999999"])
            .to_owned(),
        "$soonms" => random.of(&["1", "5", "-1", "a", "1", "9223372036854775808"]).to_owned(),
        "$channel" => random.of(&["a", "b", "news", "", "a"]).to_owned(),
        "$channels" => random.of(&["*", "a*", "n?ws", "a", "[ab]", "", "b"]).to_owned(),
        "$db" => random.of(&["0", "0", "1", "1", "15", "16", "-1", "a", "", "00", "9223372036854775808"]).to_owned(),
        other => crate::scripts::slot(other, random),
    };
    out.push(word.into_bytes());
}

/// Makes something about a request wrong, perhaps.
pub fn spoil(request: &mut Request, random: &mut Random) {
    if request.len() < 2 {
        return request.push(value(random));
    }
    let at = 1 + random.below(request.len() - 1);
    match random.below(9) {
        0 => {
            request.remove(at);
        }
        1 => request.insert(at, request[at].clone()),
        2 => request.truncate(at),
        3 => {
            let other = 1 + random.below(request.len() - 1);
            request.swap(at, other);
        }
        4 => request[at] = random.of(&EDGES).as_bytes().to_vec(),
        5 => request[at] = random.of(&KEYS).as_bytes().to_vec(),
        6 => request.insert(at, random.of(&OPTIONS).as_bytes().to_vec()),
        7 => request.push(random.of(&OPTIONS).as_bytes().to_vec()),
        _ => request.push(value(random)),
    }
}
