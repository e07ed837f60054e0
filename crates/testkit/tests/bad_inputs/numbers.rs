//! Numbers at and over every limit, in every place where a command or verb takes one: the original servers' answers.
//! Knows where numbers stand, not what they do.

use crate::support::{assert_alive, connect, oracle, read_until, send, tenon};
use tenon_client::Stream;
use tenon_client::resp::encode_command;
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
    ]
}

/// Tries every number in this command; gives where the servers differ.
fn differences(words: &str, tenon: &mut Raw, redis: &mut Option<Raw>) -> Vec<String> {
    let mut found = Vec::new();
    let values = if words.contains(" k ") && !words.contains("EX") { VALUES } else { &VALUES[..1] };
    for (&value, &number) in values.iter().flat_map(|value| NUMBERS.iter().map(move |number| (value, number))) {
        if let Some(difference) = difference(value, command(words, number), tenon, redis) {
            found.push(difference);
        }
    }
    found
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
        // What was refused changed nothing: as much as the start left is there.
        let untouched = format!("+OK\r\n${}\r\n{value}\r\n$4\r\nabcd\r\n$-1\r\n:0\r\n:2\r\n", value.len());
        if !ours.1.starts_with(untouched.as_bytes()) {
            return Some(format!("{shown} with k = {value}: refused, but now {}", ours.1.escape_ascii()));
        }
    }
    let theirs = play(redis.as_mut()?).expect("redis answers");
    // Which keys a page of SCAN has, and how much memory a key takes, is each server's own: not whether it is an error.
    // Redis ends a cursor at a NUL; here it is no number, as everywhere else.
    let own = [b"SCAN".as_slice(), b"MEMORY"].contains(&&*tried[0]);
    let cursor = match &*tried[0] {
        b"SCAN" => Some(1),
        b"SSCAN" => Some(2),
        _ => None,
    };
    let nul_in_cursor = cursor.is_some_and(|at| tried[at].contains(&0));
    // A millisecond after it was set the key is gone, on one server sooner than on the other.
    let ends_at_once = tried.windows(2).any(|pair| pair[0] == b"PX" && pair[1] == b"1");
    if ends_at_once && ours.0 == theirs.0 {
        return None;
    }
    if nul_in_cursor || own && [&ours, &theirs].iter().all(|played| !played.0.starts_with(b"-")) && ours.1 == theirs.1 {
        return None;
    }
    (ours != theirs).then(|| {
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
        found.extend(difference(number, command(words, ""), &mut tenon, &mut redis));
    }
    assert!(found.is_empty(), "{} differences\n{}", found.len(), found.join("\n"));
    assert_alive(&tenon_server);
}
