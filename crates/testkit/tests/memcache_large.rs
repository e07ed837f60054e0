//! Values as long as they may be, in and out over each protocol: the server holds them once. Longer ones are refused without
//! being held.
#![allow(missing_docs)]

use std::fs;
use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError};
use tenon_client::Stream;
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

const MIB: usize = 1 << 20;
/// Mebibytes of the value: what `max-value-size` is unless somebody says otherwise.
const LEN_MIB: usize = 512;
const LEN: usize = LEN_MIB * MIB;
/// What a server may need beside the value: what is under way.
const MORE: usize = 8 * MIB;

/// One after another: together they would need the memory of a small machine.
static ALONE: Mutex<()> = Mutex::new(());

/// How a protocol stores the value and reads it. Of answers that begin with something that is not known before, the length
/// is told.
struct Exchange {
    store: Vec<u8>,
    behind: &'static [u8],
    stored: (Vec<u8>, usize),
    ask: Vec<u8>,
    front: (Vec<u8>, usize),
    end: &'static [u8],
}

fn line(text: &str) -> (Vec<u8>, usize) {
    (text.into(), text.len())
}

/// The most memory that the server has ever had resident, in bytes.
fn peak(server: &Server) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells the peak");
    let kib: usize = line.trim().trim_end_matches("kB").trim().parse().expect("a number of kB");
    kib * 1024
}

fn expect(stream: &mut Stream, (begins, len): &(Vec<u8>, usize)) {
    let mut answer = vec![0; *len];
    stream.read_exact(&mut answer).expect("an answer");
    assert!(answer.starts_with(begins), "{}", answer.escape_ascii());
}

fn send_value(stream: &mut Stream) {
    for number in 0..LEN_MIB {
        stream.write_all(&vec![number as u8; MIB]).expect("sent");
    }
}

fn check(dialect: Dialect, exchange: &Exchange) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::tenon(&[]).expect("tenon starts");
    let mut stream = server.connect(dialect, PATIENCE).expect("connected");
    let allowed = peak(&server) + LEN + MORE;
    stream.write_all(&exchange.store).expect("sent");
    send_value(&mut stream);
    stream.write_all(exchange.behind).expect("sent");
    expect(&mut stream, &exchange.stored);
    assert!(peak(&server) <= allowed, "storing took {} bytes too many", peak(&server) - allowed);
    // Twice, so that an answer whose memory is kept would be seen.
    for _ in 0..2 {
        stream.write_all(&exchange.ask).expect("sent");
        expect(&mut stream, &exchange.front);
        let mut got = vec![0; MIB];
        for number in 0..LEN_MIB {
            stream.read_exact(&mut got).expect("the value");
            assert!(got == vec![number as u8; MIB], "other bytes came back from mebibyte {number} on");
        }
        expect(&mut stream, &(exchange.end.to_vec(), exchange.end.len()));
    }
    assert!(peak(&server) <= allowed, "reading took {} bytes too many", peak(&server) - allowed);
}

/// What a message of the binary protocol begins with.
fn header(magic: u8, opcode: u8, key_len: u8, extras_len: u8, body_len: usize) -> Vec<u8> {
    let mut bytes = vec![magic, opcode, 0, key_len, extras_len, 0, 0, 0];
    bytes.extend((body_len as u32).to_be_bytes());
    bytes.extend([0; 12]);
    bytes
}

#[test]
fn a_long_value_is_held_once_by_resp() {
    check(
        Dialect::Redis,
        &Exchange {
            store: format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${LEN}\r\n").into(),
            behind: b"\r\n",
            stored: line("+OK\r\n"),
            ask: b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".to_vec(),
            front: line(&format!("${LEN}\r\n")),
            end: b"\r\n",
        },
    );
}

#[test]
fn a_value_that_is_too_long_is_never_held_and_leaves_the_connection_in_step() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::tenon(&[]).expect("tenon starts");
    let allowed = peak(&server) + MORE;
    let too_long = LEN + 1;
    let too_large = line("SERVER_ERROR object too large for cache\r\n");
    let stored = [header(0x80, 1, 1, 8, 8 + 1 + too_long), vec![0; 8], b"k".to_vec()].concat();
    let mut refused = header(0x81, 1, 0, 0, "Too large.".len())[..12].to_vec();
    refused[7] = 3;
    let binary_version = (header(0x81, 0x0b, 0, 0, 0)[..8].to_vec(), 24);
    for (store, behind, refusal, next, answer) in [
        (format!("set k 0 0 {too_long}\r\n").into(), &b"\r\n"[..], &too_large, b"mn\r\n".to_vec(), line("MN\r\n")),
        (format!("ms k {too_long}\r\n").into(), b"\r\n", &too_large, b"mn\r\n".to_vec(), line("MN\r\n")),
        (stored, b"", &(refused, 24 + "Too large.".len()), header(0x80, 0x0b, 0, 0, 0), binary_version),
    ] {
        let mut stream = server.connect(Dialect::Memcache, PATIENCE).expect("connected");
        stream.write_all(&store).expect("sent");
        send_value(&mut stream);
        stream.write_all(b"x").expect("sent");
        stream.write_all(behind).expect("sent");
        stream.write_all(&next).expect("sent");
        expect(&mut stream, refusal);
        expect(&mut stream, &answer);
    }
    assert!(peak(&server) <= allowed, "refusing took {} bytes too many", peak(&server) - allowed);
}

#[test]
fn a_long_value_is_held_once_by_text() {
    check(
        Dialect::Memcache,
        &Exchange {
            store: format!("set k 0 0 {LEN}\r\n").into(),
            behind: b"\r\n",
            stored: line("STORED\r\n"),
            ask: b"get k\r\n".to_vec(),
            front: line(&format!("VALUE k 0 {LEN}\r\n")),
            end: b"\r\nEND\r\n",
        },
    );
}

#[test]
fn a_long_value_is_held_once_by_meta_commands() {
    check(
        Dialect::Memcache,
        &Exchange {
            store: format!("ms k {LEN}\r\n").into(),
            behind: b"\r\n",
            stored: line("HD\r\n"),
            ask: b"mg k v\r\n".to_vec(),
            front: line(&format!("VA {LEN}\r\n")),
            end: b"\r\n",
        },
    );
}

#[test]
fn a_long_value_is_held_once_by_the_binary_protocol() {
    let begin = |opcode, body_len, extras_len| header(0x81, opcode, 0, extras_len, body_len)[..12].to_vec();
    check(
        Dialect::Memcache,
        &Exchange {
            store: [header(0x80, 1, 1, 8, 8 + 1 + LEN), vec![0; 8], b"k".to_vec()].concat(),
            behind: b"",
            stored: (begin(1, 0, 0), 24),
            ask: [header(0x80, 0, 1, 0, 1), b"k".to_vec()].concat(),
            front: (begin(0, 4 + LEN, 4), 24 + 4),
            end: b"",
        },
    );
}
