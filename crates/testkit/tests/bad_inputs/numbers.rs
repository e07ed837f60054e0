//! Numbers at and over every limit, in every place where a command or verb takes one: the original servers' answers.
//! Knows where numbers stand, not what they do.

use crate::support::{assert_alive, connect, read_until, send, tenon};
use tenon_client::Stream;
use tenon_client::resp::encode_command;
use tenon_testkit::oracle::oracle;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// Texts around the ends of every type a server may read a number into, and what merely looks like one.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "-0",
    "+0",
    "+5",
    " 5",
    "5 ",
    "5\t",
    "05",
    "00",
    "0x5",
    "1e3",
    "1E3",
    "1.0",
    "1.5",
    ".5",
    "5.",
    "",
    " ",
    "-",
    "+",
    "--5",
    "5-",
    "x",
    "5x",
    "inf",
    "-inf",
    "+inf",
    "Infinity",
    "nan",
    "-nan",
    "NaN",
    "5\0",
    "\0",
    "5\r\n",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775",
    "9223372036854776",
    "-9223372036854776",
    "9223372036854775806",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775807",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999",
    "1e400",
    "-1e400",
    "1e-400",
    "1e4932",
    "1e5000",
    "\u{661}",
];

/// What is stored before each try.
const VALUES: &[&str] = &["10", "9223372036854775807", "-9223372036854775808", "abc", "1.5"];

/// Commands with a number where the `#` stands. `k` holds a value, `other` is there too, `missing` is not.
const COMMANDS: &[&str] = &[
    "INCRBY k #",
    "DECRBY k #",
    "INCRBYFLOAT k #",
    "INCRBY missing #",
    "DECRBY missing #",
    "INCRBYFLOAT missing #",
    "GETRANGE k # -1",
    "GETRANGE k 0 #",
    "GETRANGE k # #",
    "SUBSTR k # 1",
    "SETRANGE missing # \"\"",
    "SETEX k # v",
    "PSETEX k # v",
    "SET k v EX #",
    "SET k v PX #",
    "SET k v EXAT #",
    "SET k v PXAT #",
    "GETEX k EX #",
    "GETEX k PX #",
    "GETEX k EXAT #",
    "GETEX k PXAT #",
    "EXPIRE k #",
    "PEXPIRE k #",
    "EXPIREAT k #",
    "PEXPIREAT k #",
    "EXPIRE k # NX",
    "EXPIRE k # GT",
    "EXPIRE k # LT",
    "EXPIRE missing #",
    "LCS k other IDX MINMATCHLEN #",
    "LCS k other MINMATCHLEN #",
    "SCAN # COUNT 1000",
    "SCAN 0 COUNT #",
    "SPOP missing #",
    "SRANDMEMBER missing #",
    "SSCAN missing #",
    "SSCAN missing # COUNT 1000",
    "SINTERCARD # missing",
    "SINTERCARD 1 missing LIMIT #",
    "SELECT #",
    "MOVE k #",
    "COPY k copied DB #",
    "SWAPDB # 1",
    "SWAPDB 0 #",
    "CLIENT KILL ID #",
    "CLIENT UNBLOCK #",
    "HELLO #",
    "OBJECT FREQ #",
    "SLOWLOG GET #",
    "LATENCY HISTORY #",
    "MEMORY USAGE k SAMPLES #",
    "COMMAND GETKEYS SET k v EX #",
    "CONFIG SET maxmemory-samples #",
    "GETBIT k #",
    "SETBIT k 1 #",
    "BITCOUNT k # -1",
    "BITCOUNT k 0 #",
    "BITCOUNT k 0 # BIT",
    "BITPOS k #",
    "BITPOS k 1 #",
    "BITPOS k 0 0 # BIT",
    "BITFIELD k GET u8 #",
    "BITFIELD k SET u8 0 #",
    "BITFIELD k INCRBY u8 0 #",
    "BITFIELD k OVERFLOW FAIL INCRBY i64 0 #",
    "BITFIELD_RO k GET i64 #",
    "LINDEX l #",
    "LSET l # v",
    "LREM l # a",
    "LPOP l #",
    "RPOP l #",
    "LPOP missing #",
    "LRANGE l # -1",
    "LRANGE l 0 #",
    "LRANGE l # #",
    "LTRIM l # -1",
    "LTRIM l 0 #",
    "LPOS l a RANK #",
    "LPOS l a COUNT #",
    "LPOS l a MAXLEN #",
    "LMPOP # l LEFT",
    "LMPOP 1 l LEFT COUNT #",
    "HINCRBY h f #",
    "HINCRBY h g #",
    "HINCRBY h new #",
    "HINCRBYFLOAT h f #",
    "HINCRBYFLOAT h new #",
    "HSCAN h #",
    "ZADD z # new",
    "ZADD z INCR # a",
    "ZADD z GT # b",
    "ZINCRBY z # a",
    "ZINCRBY z # inf",
    "ZPOPMIN z #",
    "ZPOPMAX z #",
    "ZMPOP # z MIN",
    "ZMPOP 1 z MIN COUNT #",
    "ZRANGE z # -1",
    "ZRANGE z 0 #",
    "ZRANGE z # +inf BYSCORE",
    "ZRANGE z -inf # BYSCORE",
    "ZRANGE z -inf +inf BYSCORE LIMIT # 1",
    "ZRANGE z -inf +inf BYSCORE LIMIT 0 #",
    "ZRANGE z - # BYLEX",
    "ZRANGEBYSCORE z # 2",
    "ZREVRANGE z # -1",
    "ZCOUNT z # +inf",
    "ZREMRANGEBYRANK z # -1",
    "ZREMRANGEBYSCORE z # 2",
    "ZINTERCARD # z",
    "ZINTERCARD 1 z LIMIT #",
    "ZUNION # z",
    "ZUNION 1 z WEIGHTS # WITHSCORES",
    "ZDIFF # z",
    "GEOADD g # 10 n",
    "GEOADD g 10 # n",
    "GEOSEARCH g FROMLONLAT # 10 BYRADIUS 5 km",
    "GEOSEARCH g FROMLONLAT 13 38 BYRADIUS # km ASC",
    "GEOSEARCH g FROMLONLAT 13 38 BYBOX # 5 km ASC",
    "GEOSEARCH g FROMLONLAT 13 38 BYRADIUS 500 km COUNT #",
    "GEORADIUS g 13 38 # km ASC",
    "PFADD k #",
];

/// Commands that store the text itself where it is read as a number.
const STORED: &[&str] = &["INCR k", "DECR k", "INCRBY k 1", "DECRBY k 1", "INCRBYFLOAT k 1", "GETRANGE k 0 -1"];

fn command(words: &str, number: &str) -> Vec<Vec<u8>> {
    let word = |word: &str| match word {
        "#" => number.as_bytes().to_vec(),
        "\"\"" => Vec::new(),
        other => other.as_bytes().to_vec(),
    };
    words.split(' ').map(word).collect()
}

/// A client that gives each answer as the bytes it came in.
struct Raw {
    stream: Stream,
    said: u32,
}

impl Raw {
    fn new(server: &Server) -> Raw {
        Raw { stream: connect(server, Dialect::Redis), said: 0 }
    }

    /// The bytes that answer these commands, sent in one write.
    fn ask(&mut self, commands: &[Vec<Vec<u8>>]) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        for command in commands {
            let arguments: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            encode_command(&arguments, &mut bytes);
        }
        self.said += 1;
        let marker = format!("asked {:09}", self.said);
        encode_command(&[b"ECHO", marker.as_bytes()], &mut bytes);
        send(&mut self.stream, &bytes);
        let echo = format!("${}\r\n{marker}\r\n", marker.len());
        let mut answer = read_until(&mut self.stream, echo.as_bytes())?;
        answer.truncate(answer.len() - echo.len());
        Ok(answer)
    }
}

/// What is there afterwards, without what depends on the moment.
fn state() -> Vec<Vec<Vec<u8>>> {
    [
        "SELECT 0",
        "GET k",
        "GET other",
        "GET missing",
        "EXISTS copied",
        "DBSIZE",
        "SELECT 1",
        "GET k",
        "DBSIZE",
        "SELECT 0",
        "LRANGE l 0 -1",
        "HGET h f",
        "HGET h g",
        "HGET h new",
        "ZRANGE z 0 -1 WITHSCORES",
        "ZRANGE g 0 -1 WITHSCORES",
    ]
    .map(|words| command(words, ""))
    .to_vec()
}

/// A clean start, so that one try says nothing about the next.
fn start(value: &str) -> Vec<Vec<Vec<u8>>> {
    vec![
        command("HELLO 2", ""),
        command("FLUSHALL", ""),
        command("SELECT 0", ""),
        command("SET k #", value),
        command("SET other abcd", ""),
        command("RPUSH l a b a", ""),
        command("HSET h f 5 g x", ""),
        command("ZADD z -1 a 2 b 2.5 c inf inf", ""),
        command("GEOADD g 13.361389 38.115556 p 15 37 q", ""),
    ]
}

/// Whether answers are the same, however they spell scores: Redis spells them anew from 7.2 on.
fn same(ours: &[u8], theirs: &[u8]) -> bool {
    let lines = |answer: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(answer).into_owned();
        text.split("\r\n").filter(|line| !line.starts_with('$')).map(str::to_owned).collect()
    };
    let number =
        |line: &str| line.parse::<f64>().ok().filter(|_| line.bytes().all(|byte| b"+-.0123456789e".contains(&byte)));
    ours == theirs
        || lines(ours).len() == lines(theirs).len()
            && lines(ours)
                .iter()
                .zip(&lines(theirs))
                .all(|(our, their)| our == their || number(our).is_some() && number(our) == number(their))
}

/// Tries every number in this command; gives where the servers differ.
fn differences(words: &str, tenon: &mut Raw, redis: &mut Option<Raw>) -> Vec<String> {
    let mut found = Vec::new();
    let values = if words.contains(" k ") && !words.contains("EX") { VALUES } else { &VALUES[..1] };
    for (&value, &number) in values.iter().flat_map(|value| NUMBERS.iter().map(move |number| (value, number))) {
        found.extend(lasting_difference(value, command(words, number), tenon, redis));
    }
    found
}

/// Where the servers differ each time: a key that lives for a second may be gone where one of them was asked late.
fn lasting_difference(value: &str, tried: Vec<Vec<u8>>, tenon: &mut Raw, redis: &mut Option<Raw>) -> Option<String> {
    difference(value, tried.clone(), tenon, redis)?;
    difference(value, tried.clone(), tenon, redis)?;
    difference(value, tried, tenon, redis)
}

fn difference(value: &str, tried: Vec<Vec<u8>>, tenon: &mut Raw, redis: &mut Option<Raw>) -> Option<String> {
    let shown = tried.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ");
    let play = |client: &mut Raw| -> Result<_, String> {
        client.ask(&start(value))?;
        let answer = client.ask(std::slice::from_ref(&tried))?;
        // HELLO describes the server, and it may change the protocol.
        let answer = if answer.first().is_some_and(|kind| b"%*".contains(kind)) && tried[0] == b"HELLO" {
            b"a description".to_vec()
        } else {
            answer
        };
        client.ask(&[command("HELLO 2", "")])?;
        Ok((answer, client.ask(&state())?))
    };
    let ours = match play(tenon) {
        Ok(ours) => ours,
        Err(problem) => return Some(format!("{shown} with k = {value}: {problem}")),
    };
    if ours.0.starts_with(b"-") {
        // What was refused changed nothing: all that the start left is there.
        let untouched = tenon.ask(&start(value)).and_then(|_| tenon.ask(&state()));
        if untouched.as_ref() != Ok(&ours.1) {
            return Some(format!("{shown} with k = {value}: refused, but now {}", ours.1.escape_ascii()));
        }
    }
    let theirs = play(redis.as_mut()?).expect("redis answers");
    // Which keys a page of SCAN has, and how much memory a key takes, is each server's own: not whether it is an error.
    // Redis ends a cursor at a NUL; here it is no number, as everywhere else.
    let own = [b"SCAN".as_slice(), b"MEMORY"].contains(&&*tried[0]);
    let cursor = match &*tried[0] {
        b"SCAN" => Some(1),
        b"SSCAN" | b"HSCAN" => Some(2),
        _ => None,
    };
    let nul_in_cursor = cursor.is_some_and(|at| tried[at].contains(&0));
    // A millisecond after it was set the key is gone, on one server sooner than on the other.
    let ends_at_once = tried.windows(2).any(|pair| pair[0] == b"PX" && pair[1] == b"1")
        || [b"PSETEX".as_slice(), b"PEXPIRE"].contains(&&*tried[0]) && tried[2] == b"1";
    if ends_at_once && ours.0 == theirs.0 {
        return None;
    }
    if nul_in_cursor || own && [&ours, &theirs].iter().all(|played| !played.0.starts_with(b"-")) && ours.1 == theirs.1 {
        return None;
    }
    // Redis 7.0 negates the number and goes over the end of its type; later versions refuse it as Tenon does.
    if ["LPOS l a RANK -9223372036854775808", "LREM l -9223372036854775808 a"].contains(&&*shown) {
        return None;
    }
    // Counters count on from a number that memcached has left blanks behind.
    let counts_on = [b"INCR".as_slice(), b"DECR", b"INCRBY", b"DECRBY", b"INCRBYFLOAT"].contains(&&*tried[0]);
    let has_blanks = value.strip_suffix(' ').is_some_and(|number| number.trim_end_matches(' ').parse::<u64>().is_ok());
    if counts_on && has_blanks && !ours.0.starts_with(b"-") && theirs.0.starts_with(b"-") {
        return None;
    }
    // From Redis 8 on there are 64 at most. What is no number neither takes.
    let number = tried.last().and_then(|word| std::str::from_utf8(word).ok()?.parse::<i64>().ok());
    let is_beyond =
        shown.starts_with("CONFIG SET maxmemory-samples ") && number.is_some_and(|it| !(1..=64).contains(&it));
    if is_beyond && ours.0.ends_with(b"argument must be between 1 and 64 inclusive\r\n") {
        return None;
    }
    let is_same = same(&ours.0, &theirs.0) && same(&ours.1, &theirs.1);
    (!is_same).then(|| {
        let show =
            |(answer, state): &(Vec<u8>, Vec<u8>)| format!("{} [{}]", answer.escape_ascii(), state.escape_ascii());
        format!("{shown} with k = {value}:\n  tenon {}\n  redis {}", show(&ours), show(&theirs))
    })
}

#[test]
fn every_command_reads_numbers_as_redis_does() {
    let tenon_server = tenon(&[("slowlog-log-slower-than", "-1")]);
    let redis_server = oracle(Dialect::Redis, &[("slowlog-log-slower-than", "-1")]);
    let mut tenon = Raw::new(&tenon_server);
    let mut redis = redis_server.as_ref().map(Raw::new);
    let mut found: Vec<String> = COMMANDS.iter().flat_map(|words| differences(words, &mut tenon, &mut redis)).collect();
    for (words, number) in STORED.iter().flat_map(|words| NUMBERS.iter().map(move |number| (words, number))) {
        found.extend(lasting_difference(number, command(words, ""), &mut tenon, &mut redis));
    }
    assert!(found.is_empty(), "{} differences\n{}", found.len(), found.join("\n"));
    assert_alive(&tenon_server);
}
