//! Streams that are no RESP, or RESP nobody should send: Redis' words, and the connection's fate. Knows no command's work.

use crate::support::Ends::{Closed, InStep};
use crate::support::{Ends, assert_alive, connect, converse, data, read_until, read_until_closed, resp, send, tenon};
use tenon_client::resp::encode_command;
use tenon_testkit::oracle::oracle;
use tenon_testkit::target::Dialect;

/// What Redis does with the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Redis {
    /// The same.
    Agrees,
    /// Something else, for this reason.
    Differs(&'static str),
}

/// One bad input, and what must come of it.
struct Case {
    bytes: Vec<u8>,
    answer: Vec<u8>,
    ends: Ends,
    redis: Redis,
}

fn case(bytes: impl AsRef<[u8]>, answer: impl AsRef<[u8]>, ends: Ends) -> Case {
    Case { bytes: bytes.as_ref().to_vec(), answer: answer.as_ref().to_vec(), ends, redis: Redis::Agrees }
}

/// The stream is lost: an error that says how, and the end.
fn lost(bytes: impl AsRef<[u8]>, problem: &str) -> Case {
    case(bytes, format!("-ERR Protocol error: {problem}\r\n"), Closed)
}

impl Case {
    fn unlike_redis(mut self, why: &'static str) -> Case {
        self.redis = Redis::Differs(why);
        self
    }
}

/// Plays every case against Tenon, and against Redis where it agrees; nothing that is stored may change.
fn play(settings: &[(&str, &str)], cases: &[Case]) {
    let tenon = tenon(settings);
    let redis = oracle(Dialect::Redis, settings);
    let stored = settings.iter().all(|(name, _)| *name != "requirepass");
    if stored {
        resp(&tenon).call(&[b"SET", b"kept", b"as it was"]).expect("an answer");
    }
    let before = if stored { data(&tenon) } else { Default::default() };
    let mut failures = Vec::new();
    for case in cases {
        let shown = case.bytes[..case.bytes.len().min(200)].escape_ascii();
        let expected = Ok(case.answer.clone());
        let answer = converse(&tenon, Dialect::Redis, &case.bytes, case.ends);
        if answer != expected {
            failures.push(format!("tenon to '{shown}': {}, not {}", show(&answer), show(&expected)));
        }
        if let (Some(redis), Redis::Agrees) = (&redis, case.redis) {
            let answer = converse(redis, Dialect::Redis, &case.bytes, case.ends);
            if answer != expected {
                failures.push(format!("redis to '{shown}': {}, not {}", show(&answer), show(&expected)));
            }
        }
        if stored && data(&tenon) != before {
            failures.push(format!("'{shown}' changed the data"));
            break;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_alive(&tenon);
}

fn show(answer: &Result<Vec<u8>, String>) -> String {
    match answer {
        Ok(bytes) => format!("'{}'", bytes[..bytes.len().min(300)].escape_ascii()),
        Err(problem) => problem.clone(),
    }
}

/// `SET kept <new>` that must never run, behind or inside what is wrong.
const CHANGE: &str = "*3\r\n$3\r\nSET\r\n$4\r\nkept\r\n$3\r\nnew\r\n";

#[test]
fn counts_of_arguments() {
    let invalid = |count: &str| lost(format!("*{count}\r\n{CHANGE}"), "invalid multibulk length");
    play(
        &[],
        &[
            invalid("2147483648"),
            invalid("9223372036854775807"),
            invalid("9223372036854775808"),
            invalid("-9223372036854775809"),
            invalid("99999999999999999999999999"),
            invalid("x"),
            invalid("3x"),
            invalid(" 3"),
            invalid("3 "),
            invalid("+3"),
            invalid("03"),
            invalid("-0"),
            invalid("--1"),
            invalid("1.0"),
            invalid("0x3"),
            invalid("1e1"),
            invalid("\0").unlike_redis("it waits for ever"),
            invalid("\u{661}"),
            // None, or fewer: nothing to run, nothing to answer.
            case("*0\r\n", "", InStep),
            case("*-1\r\n", "", InStep),
            case("*-10\r\n", "", InStep),
            case("*-9223372036854775808\r\n", "", InStep),
            case("*0\r\n*-1\r\n*0\r\n", "", InStep),
            lost("*\r\n", "invalid multibulk length"),
            lost(format!("*{}", "1".repeat(70_000)), "too big mbulk count string"),
            lost(format!("*3\n{CHANGE}"), "invalid multibulk length"),
        ],
    );
}

#[test]
fn lengths_of_arguments() {
    let invalid =
        |len: &str| lost(format!("*3\r\n$3\r\nSET\r\n$4\r\nkept\r\n${len}\r\nnew\r\n"), "invalid bulk length");
    let no_dollar = |line: &str, got: &str| {
        lost(format!("*3\r\n$3\r\nSET\r\n$4\r\nkept\r\n{line}\r\nnew\r\n"), &format!("expected '$', got '{got}'"))
    };
    play(
        &[],
        &[
            invalid("-1"),
            invalid("-0"),
            invalid("-9223372036854775808"),
            invalid("536870913"),
            invalid("2147483648"),
            invalid("4294967299"),
            invalid("9223372036854775807"),
            invalid("9223372036854775808"),
            invalid("18446744073709551619"),
            invalid("99999999999999999999999999"),
            invalid(""),
            invalid("x"),
            invalid("3x"),
            invalid(" 3"),
            invalid("3 "),
            invalid("+3"),
            invalid("03"),
            invalid("3.0"),
            invalid("0x3"),
            invalid("\0").unlike_redis("it waits for ever"),
            no_dollar("new", "n"),
            no_dollar(":3", ":"),
            no_dollar("+new", "+"),
            // A command in a command.
            no_dollar("*1", "*"),
            no_dollar("\0", "\0").unlike_redis("it waits for ever"),
            no_dollar("", " "),
            lost(format!("*2\r\n${}", "1".repeat(70_000)), "too big bulk count string"),
            lost("*2\r\n$3\nGET\r\n$4\r\nkept\r\n", "invalid bulk length"),
        ],
    );
}

#[test]
fn a_smaller_limit_for_arguments_holds() {
    let of_len = |len: usize| {
        let mut bytes = Vec::new();
        encode_command(&[b"ECHO", &vec![b'x'; len]], &mut bytes);
        bytes
    };
    let echoed = [format!("${}\r\n", 1 << 20).as_bytes(), &vec![b'x'; 1 << 20], b"\r\n"].concat();
    play(
        &[("proto-max-bulk-len", "1mb")],
        &[case(of_len(1 << 20), echoed, InStep), lost("*2\r\n$4\r\nECHO\r\n$1048577\r\n", "invalid bulk length")],
    );
}

#[test]
fn inline_commands() {
    let long = "x".repeat(65_537);
    play(
        &[],
        &[
            lost(&long, "too big inline request"),
            lost(format!("SET kept {long}\r\n"), "too big inline request")
                .unlike_redis("it looks for the line's end first, and may find it in the same read"),
            lost("SET kept \"new\r\n", "unbalanced quotes in request"),
            lost("SET kept 'new\r\n", "unbalanced quotes in request"),
            lost("SET kept \"new\"x\r\n", "unbalanced quotes in request"),
            lost("SET kept 'new'x\r\n", "unbalanced quotes in request"),
            lost("SET kept n\0ew\r\n", "NUL byte in inline request").unlike_redis("it waits for ever"),
            lost("\0\0\0\0", "NUL byte in inline request").unlike_redis("it waits for ever"),
            case("\r\n", "", InStep),
            case("\n\n\r\n   \r\n\t\r\n", "", InStep),
            case("PING\n", "+PONG\r\n", InStep),
            case("PING\r\r\n", "+PONG\r\n", InStep),
            case("  PING  \r\n", "+PONG\r\n", InStep),
            case("\"\"\r\n", "-ERR unknown command '', with args beginning with: \r\n", InStep),
        ],
    );
}

#[test]
fn binary_arguments_cannot_break_a_reply() {
    // An error that repeats what was sent must stay one line.
    let command = |name: &[u8], argument: &[u8]| {
        let mut bytes = Vec::new();
        encode_command(&[name, argument], &mut bytes);
        bytes
    };
    let unknown =
        |name: &str, argument: &str| format!("-ERR unknown command '{name}', with args beginning with: {argument}\r\n");
    play(
        &[],
        &[
            case(command(b"a\r\n+OK\r\nb", b"x"), unknown("a  +OK  b", "'x' "), InStep),
            case(command(b"nosuch", b"\r\n$-1\r\n"), unknown("nosuch", "'  $-1  ' "), InStep),
            case(command(&[b'n'; 1000], b""), unknown(&"n".repeat(128), "'' "), InStep),
            case(command(b"nosuch", &[b'a'; 1000]), unknown("nosuch", &format!("'{}' ", "a".repeat(128))), InStep),
            case(command(b"", b""), unknown("", "'' "), InStep),
            case(command(b"GET", b"\0\r\n\xff"), "$-1\r\n", InStep),
        ],
    );
}

#[test]
fn other_protocols_are_refused() {
    let tls_hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abcdefgh\r\n";
    let http = |verb: &str| format!("{verb} / HTTP/1.1\r\nHost: localhost:6379\r\nContent-Length: 50\r\n\r\n{CHANGE}");
    play(
        &[],
        &[
            case(http("POST"), "", Closed),
            case(http("post"), "", Closed),
            // What was not sent yet is dropped with the connection.
            case(format!("PING\r\n{}", http("POST")), "", Closed),
            case(http("GETX"), "", Closed),
            case(format!("Host: localhost\r\n{CHANGE}"), "", Closed),
            case(format!("*1\r\n$5\r\nhost:\r\n{CHANGE}"), "", Closed),
            case(format!("*2\r\n$4\r\nPOST\r\n$1\r\n/\r\n{CHANGE}"), "", Closed),
            lost(tls_hello, "NUL byte in inline request").unlike_redis("it waits for ever"),
            // memcached's words are unknown commands here.
            case("version\r\n", "-ERR unknown command 'version', with args beginning with: \r\n", InStep),
        ],
    );
}

#[test]
fn clients_that_are_not_in_yet_may_send_little() {
    play(
        &[("requirepass", "secret")],
        &[
            lost("*11\r\n", "unauthenticated multibulk length"),
            lost("*2147483647\r\n", "unauthenticated multibulk length"),
            lost("*2\r\n$4\r\nAUTH\r\n$16385\r\n", "unauthenticated bulk length"),
            lost("*2\r\n$536870912\r\n", "unauthenticated bulk length"),
            lost("*2\r\n$4\r\nAUTH\r\n$536870913\r\n", "invalid bulk length"),
        ],
    );
}

#[test]
fn a_command_may_come_one_byte_at_a_time() {
    let server = tenon(&[]);
    let mut stream = connect(&server, Dialect::Redis);
    let argument = b"a\r\n$3\r\nb*\0".as_slice();
    let mut bytes = Vec::new();
    encode_command(&[b"SET", b"slow", argument], &mut bytes);
    encode_command(&[b"GET", b"slow"], &mut bytes);
    bytes.extend_from_slice(b"*0\r\n\r\nGET  slow\r\n");
    for byte in &bytes {
        send(&mut stream, std::slice::from_ref(byte));
    }
    let bulk = [b"$10\r\n".as_slice(), argument, b"\r\n"].concat();
    let expected = [b"+OK\r\n".as_slice(), &bulk, &bulk].concat();
    assert_eq!(read_until(&mut stream, &expected), Ok(expected));

    // The same for what is wrong.
    let mut stream = connect(&server, Dialect::Redis);
    for byte in b"*2\r\n$4\r\nECHO\r\n$-1\r\n" {
        send(&mut stream, std::slice::from_ref(byte));
    }
    assert_eq!(read_until_closed(&mut stream), Ok(b"-ERR Protocol error: invalid bulk length\r\n".to_vec()));
    assert_alive(&server);
}

#[test]
fn a_client_that_leaves_in_the_middle_changes_nothing() {
    let server = tenon(&[]);
    resp(&server).call(&[b"SET", b"kept", b"as it was"]).expect("an answer");
    let before = data(&server);
    let mut long = Vec::new();
    encode_command(&[b"SET", b"kept", &vec![b'x'; 300_000]], &mut long);
    for bytes in [CHANGE.as_bytes(), &long] {
        for len in [1, 2, 5, 9, 14, 20, bytes.len() - 2, bytes.len() - 1] {
            send(&mut connect(&server, Dialect::Redis), &bytes[..len]);
        }
    }
    assert_alive(&server);
    assert_eq!(data(&server), before);
}
