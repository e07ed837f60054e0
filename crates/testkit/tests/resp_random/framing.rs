//! Bytes that are no well-formed requests: inline commands, wrong lengths, wrong quotes, and well-formed ones between
//! them. What is answered is compared byte for byte, and whether the connection ends.

use crate::sides::{Connection, sides};
use tenon_testkit::random::Random;

const CASES: usize = 400;
/// Behind everything else, so that what is answered has an end: the answer, or the connection's.
const LAST: &[u8] = b"\r\nPING the-last-one\r\n";
const LAST_ANSWER: &[u8] = b"$12\r\nthe-last-one\r\n";

/// Bytes that a client might send, or might not.
fn bytes(random: &mut Random) -> Vec<u8> {
    const PIECES: [&[u8]; 51] = [
        b"PING\r\n",
        b"PING\n",
        b"ping hello\r\n",
        b"PING \"a b\"\r\n",
        b"PING 'a b'\r\n",
        b"PING \"\\x41\\n\\\"\"\r\n",
        b"PING 'it\\'s'\r\n",
        b"PING \"a\"b\r\n",
        b"PING 'a'b\r\n",
        b"PING \"a\r\n",
        b"PING 'a\r\n",
        b"PING \"\\xzz\"\r\n",
        b"  PING   x  \r\n",
        b"\tPING\tx\r\n",
        b"\r\n",
        b"\n",
        b"   \r\n",
        b"\"\"\r\n",
        b"\"\" x\r\n",
        b"SET s1 \xff\r\n",
        b"GET s1\r\n",
        b"NOSUCH a b\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        b"*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\n",
        b"*0\r\n",
        b"*-1\r\n",
        b"*-5\r\n",
        b"*\r\n",
        b"*a\r\n",
        b"*1x\r\n",
        b"*+1\r\n$4\r\nPING\r\n",
        b"*01\r\n$4\r\nPING\r\n",
        b"* 1\r\n$4\r\nPING\r\n",
        b"*1\n$4\r\nPING\r\n",
        b"*1048577\r\n",
        b"*2147483648\r\n",
        b"*9223372036854775808\r\n",
        b"*1\r\n$-1\r\n",
        b"*1\r\n$-5\r\n",
        b"*1\r\n$\r\n",
        b"*1\r\n$a\r\n",
        b"*1\r\n$04\r\nPING\r\n",
        b"*1\r\n$+4\r\nPING\r\n",
        b"*1\r\n$536870913\r\n",
        b"*1\r\n:4\r\nPING\r\n",
        b"*1\r\nPING\r\n",
        b"*1\r\n\r\n",
        b"*1\r\n$0\r\n\r\n",
        b"*1\r\n$4\r\nPINGxx",
        b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n",
        b"$4\r\nPING\r\n",
    ];
    let mut out = Vec::new();
    for _ in 0..1 + random.below(4) {
        let mut piece = random.of(&PIECES).to_vec();
        match random.below(14) {
            0 => {
                let at = random.below(piece.len());
                piece[at] = random.of(b"\r\n *$:'\"-0a1\\");
            }
            1 => {
                let at = random.below(piece.len());
                piece.remove(at);
            }
            2 => {
                let len = 1 + random.below(30);
                piece = random.bytes(len);
            }
            _ => {}
        }
        out.extend(piece);
    }
    // In a line with a NUL in it Redis finds no end, and waits for ever.
    out.retain(|&byte| byte != 0);
    out
}

/// What is answered to the bytes, up to the answer to the last request or the connection's end.
fn converse(connection: &mut Connection, bytes: &[u8]) -> Vec<u8> {
    // A length that was announced swallows what follows: enough for all that are small, twice.
    connection.send_raw(&[bytes, LAST, LAST, LAST].concat());
    connection.finish_sending();
    let answer = connection.everything();
    let last = answer.windows(LAST_ANSWER.len()).position(|window| window == LAST_ANSWER);
    last.map_or(answer.clone(), |at| answer[..at + LAST_ANSWER.len()].to_vec())
}

#[test]
fn framing() {
    let Some(mut sides) = sides() else { return };
    let mut random = Random(0x7e40_0011);
    let times = std::env::var("TENON_RANDOM_TIMES").map_or(1, |text| text.parse().expect("a number"));
    let mut seen = Vec::new();
    for _ in 0..CASES * times {
        let bytes = bytes(&mut random);
        let answers = sides.each_mut().map(|side| {
            side.forget(0);
            converse(side.connection(0), &bytes)
        });
        if answers[0] != answers[1] && seen.len() < 12 {
            let [tenon, redis] = answers.each_ref().map(|answer| answer.escape_ascii().to_string());
            seen.push(format!("{}\n  tenon: {tenon}\n  redis: {redis}", bytes.escape_ascii()));
        }
    }
    assert!(seen.is_empty(), "{} differences\n{}", seen.len(), seen.join("\n"));
}
