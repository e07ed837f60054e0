//! memcached's binary protocol: the same requests to Tenon and to memcached, whose answers must be the same. CAS tokens are
//! compared by whether there is one.
#![allow(missing_docs)]

use std::io::{Read, Write};
use tenon_client::Stream;
use tenon_testkit::oracle::oracle;
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

const HEADER: usize = 24;

const GET: u8 = 0x00;
const SET: u8 = 0x01;
const ADD: u8 = 0x02;
const REPLACE: u8 = 0x03;
const DELETE: u8 = 0x04;
const INCREMENT: u8 = 0x05;
const DECREMENT: u8 = 0x06;
const QUIT: u8 = 0x07;
const FLUSH: u8 = 0x08;
const GETQ: u8 = 0x09;
const NOOP: u8 = 0x0a;
const GETK: u8 = 0x0c;
const GETKQ: u8 = 0x0d;
const APPEND: u8 = 0x0e;
const PREPEND: u8 = 0x0f;
const STAT: u8 = 0x10;
const SETQ: u8 = 0x11;
const ADDQ: u8 = 0x12;
const REPLACEQ: u8 = 0x13;
const DELETEQ: u8 = 0x14;
const INCREMENTQ: u8 = 0x15;
const DECREMENTQ: u8 = 0x16;
const QUITQ: u8 = 0x17;
const FLUSHQ: u8 = 0x18;
const APPENDQ: u8 = 0x19;
const PREPENDQ: u8 = 0x1a;
const VERBOSITY: u8 = 0x1b;
const TOUCH: u8 = 0x1c;
const GAT: u8 = 0x1d;
const GATQ: u8 = 0x1e;
const SASL_LIST: u8 = 0x20;
const SASL_AUTH: u8 = 0x21;
const GATK: u8 = 0x23;
const GATKQ: u8 = 0x24;

/// A request. Its token is 0, or the last one that the server has told.
struct Request {
    opcode: u8,
    extras: Vec<u8>,
    key: Vec<u8>,
    data: Vec<u8>,
    opaque: u32,
    with_cas: Option<fn(u64) -> u64>,
}

fn request(opcode: u8, extras: &[u8], key: &[u8], data: &[u8]) -> Request {
    let opaque = u32::from(opcode) << 8 | 7;
    Request { opcode, extras: extras.into(), key: key.into(), data: data.into(), opaque, with_cas: None }
}

impl Request {
    fn cas(self, change: fn(u64) -> u64) -> Request {
        Request { with_cas: Some(change), ..self }
    }

    fn bytes(&self, last_cas: u64) -> Vec<u8> {
        let body = self.extras.len() + self.key.len() + self.data.len();
        let mut out = vec![0x80, self.opcode];
        out.extend((self.key.len() as u16).to_be_bytes());
        out.extend([self.extras.len() as u8, 0, 0, 0]);
        out.extend((body as u32).to_be_bytes());
        out.extend(self.opaque.to_be_bytes());
        out.extend(self.with_cas.map_or(0, |change| change(last_cas)).to_be_bytes());
        [&out[..], &self.extras, &self.key, &self.data].concat()
    }
}

/// Flags and expiry of a write.
fn item(flags: u32, exptime: u32) -> Vec<u8> {
    [flags.to_be_bytes(), exptime.to_be_bytes()].concat()
}

/// The extras of counting.
fn counting(delta: u64, initial: u64, exptime: u32) -> Vec<u8> {
    [&delta.to_be_bytes()[..], &initial.to_be_bytes(), &exptime.to_be_bytes()].concat()
}

/// One side of the comparison.
struct Side {
    server: Server,
    stream: Stream,
    last_cas: u64,
}

impl Side {
    fn new(server: Server) -> Side {
        let stream = server.connect(Dialect::Memcache, PATIENCE).expect("connected");
        Side { server, stream, last_cas: 0 }
    }

    /// Sends bytes and a request that is always answered; gives what comes up to that answer, or up to the end.
    fn converse(&mut self, bytes: &[u8]) -> Vec<String> {
        let noop = Request { opaque: 0xfeed, ..request(NOOP, b"", b"", b"") };
        // A server that has closed meanwhile is no failure; what it said is read next.
        let _ = self.stream.write_all(&[bytes, &noop.bytes(0)].concat());
        let mut answers = Vec::new();
        loop {
            let mut header = [0; HEADER];
            if self.stream.read_exact(&mut header).is_err() {
                answers.push("closed".to_owned());
                self.stream = self.server.connect(Dialect::Memcache, PATIENCE).expect("connected");
                return answers;
            }
            let number = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"));
            let mut body = vec![0; number(8) as usize];
            self.stream.read_exact(&mut body).expect("the body is as long as its header says");
            if number(12) == 0xfeed {
                return answers;
            }
            let cas = u64::from_be_bytes(header[16..].try_into().expect("eight bytes"));
            if cas != 0 {
                self.last_cas = cas;
            }
            let front = header[..16].escape_ascii();
            answers.push(format!("{front} {} {}", if cas == 0 { "no token" } else { "token" }, body.escape_ascii()));
        }
    }
}

/// Both sides; no test without memcached.
fn sides() -> Option<[Side; 2]> {
    let memcached = oracle(Dialect::Memcache, &[])?;
    let tenon = Server::tenon(&[("max-value-size", "1mb")]).expect("tenon starts");
    Some([Side::new(tenon), Side::new(memcached)])
}

#[track_caller]
fn check(sides: &mut [Side; 2], requests: &[Request]) {
    let answers = sides.each_mut().map(|side| {
        let bytes: Vec<u8> = requests.iter().flat_map(|request| request.bytes(side.last_cas)).collect();
        side.converse(&bytes)
    });
    assert_eq!(answers[0], answers[1], "Tenon's answers on the left, memcached's on the right");
}

#[test]
fn requests_are_answered_as_memcached_answers_them() {
    let Some(mut sides) = sides() else { return };
    let sides = &mut sides;
    let same = |cas| cas;
    let other = |cas| cas + 1000;
    let plain = item(0, 0);
    // Writes and reads.
    check(sides, &[request(SET, &item(5, 0), b"a", b"hello"), request(GET, b"", b"a", b"")]);
    check(sides, &[request(GETK, b"", b"a", b""), request(GETQ, b"", b"a", b""), request(GETKQ, b"", b"a", b"")]);
    for opcode in [GET, GETK, GETQ, GETKQ, DELETE, DELETEQ] {
        check(sides, &[request(opcode, b"", b"nosuch", b"")]);
    }
    for opcode in [SETQ, ADDQ, REPLACEQ, ADD, REPLACE] {
        check(sides, &[request(opcode, &item(9, 0), b"q", b"data"), request(GET, b"", b"q", b"")]);
        check(sides, &[request(opcode, &item(9, 0), opcode.to_be_bytes().as_slice(), b"data")]);
    }
    check(sides, &[request(SET, &plain, b"empty", b""), request(GET, b"", b"empty", b"")]);
    check(sides, &[request(SET, &plain, b"large", &[b'l'; 100_000]), request(GET, b"", b"large", b"")]);
    check(sides, &[request(SET, &plain, &[b'k'; 250], b"x"), request(GETK, b"", &[b'k'; 250], b"")]);
    check(sides, &[request(SET, &item(0, 0x7fff_ffff), b"late", b"x"), request(GET, b"", b"late", b"")]);
    // Adding.
    for opcode in [APPEND, PREPEND, APPENDQ, PREPENDQ] {
        check(sides, &[request(opcode, b"", b"a", b"+"), request(GET, b"", b"a", b"")]);
        check(sides, &[request(opcode, b"", b"nosuch", b"+")]);
        check(sides, &[request(opcode, b"", b"a", b"+").cas(other)]);
        check(sides, &[request(GET, b"", b"a", b"")]);
        check(sides, &[request(opcode, b"", b"a", b"-").cas(same), request(GET, b"", b"a", b"")]);
    }
    // CAS.
    for opcode in [SET, ADD, REPLACE, SETQ, ADDQ, REPLACEQ] {
        check(sides, &[request(GET, b"", b"a", b"")]);
        check(sides, &[request(opcode, &plain, b"a", b"1").cas(other)]);
        check(sides, &[request(opcode, &plain, b"a", b"2").cas(same), request(GET, b"", b"a", b"")]);
        check(sides, &[request(opcode, &plain, b"nosuch", b"2").cas(same)]);
    }
    check(sides, &[request(GET, b"", b"a", b"")]);
    check(sides, &[request(DELETE, b"", b"a", b"").cas(other)]);
    check(sides, &[request(DELETE, b"", b"a", b"").cas(same)]);
    check(
        sides,
        &[request(DELETE, b"", b"q", b""), request(DELETEQ, b"", b"large", b""), request(GET, b"", b"large", b"")],
    );
    // Counters.
    for opcode in [INCREMENT, DECREMENT, INCREMENTQ, DECREMENTQ] {
        let key = [b'n', opcode];
        check(sides, &[request(opcode, &counting(1, 5, u32::MAX), &key, b"")]);
        check(sides, &[request(opcode, &counting(1, 5, 0), &key, b""), request(GET, b"", &key, b"")]);
        check(sides, &[request(opcode, &counting(3, 5, 0), &key, b""), request(GET, b"", &key, b"")]);
        check(sides, &[request(opcode, &counting(u64::MAX, 5, 0), &key, b""), request(GET, b"", &key, b"")]);
        check(sides, &[request(opcode, &counting(1, 5, 0), &key, b"").cas(other)]);
        check(sides, &[request(GET, b"", &key, b"")]);
        check(sides, &[request(opcode, &counting(1, 5, 0), &key, b"").cas(same)]);
        check(sides, &[request(opcode, &counting(1, 5, 0), b"empty", b"")]);
        check(sides, &[request(opcode, &counting(1, 5, 0), &[250; 250], b"")]);
    }
    // Expiry.
    for opcode in [TOUCH, GAT, GATQ, GATK, GATKQ] {
        check(sides, &[request(SET, &item(3, 0), b"t", b"x"), request(opcode, &100u32.to_be_bytes(), b"t", b"")]);
        check(sides, &[request(opcode, &100u32.to_be_bytes(), b"nosuch", b"")]);
        check(sides, &[request(opcode, &(31u32 * 86_400).to_be_bytes(), b"t", b""), request(GET, b"", b"t", b"")]);
    }
    check(sides, &[request(SET, &item(0, 31 * 86_400), b"past", b"x"), request(GET, b"", b"past", b"")]);
    // The server.
    check(sides, &[request(NOOP, b"", b"", b"")]);
    check(sides, &[request(STAT, b"", b"nosuch", b""), request(STAT, b"", b"reset", b"")]);
    check(sides, &[request(FLUSH, b"", b"", b""), request(GET, b"", b"empty", b"")]);
    check(sides, &[request(FLUSH, &0u32.to_be_bytes(), b"", b""), request(FLUSHQ, b"", b"", b"")]);
    check(sides, &[request(SASL_LIST, b"", b"", b""), request(NOOP, b"", b"", b"")]);
    check(sides, &[request(SASL_AUTH, b"", b"PLAIN", b"\0user\0secret")]);
    for opcode in [VERBOSITY, 0x1f, 0x25, 0x50, 0xff] {
        check(sides, &[request(opcode, b"", b"", b""), request(GETK, b"", b"a", b"")]);
    }
    // Ends.
    check(sides, &[request(QUIT, b"", b"", b""), request(SET, &plain, b"behind", b"x")]);
    check(sides, &[request(QUITQ, b"", b"", b""), request(SET, &plain, b"behind", b"x")]);
    check(sides, &[request(GET, b"", b"behind", b"")]);
}

#[test]
fn what_has_not_the_form_of_its_kind_is_refused_as_memcached_refuses_it() {
    let Some(mut sides) = sides() else { return };
    let sides = &mut sides;
    check(sides, &[request(SET, &item(0, 0), b"kept", b"10")]);
    let shapes: [(&[u8], &[u8], &[u8]); 6] = [
        (b"", b"", b""),
        (b"", b"kept", b""),
        (b"1234", b"", b""),
        (b"12345678", b"", b"x"),
        (b"123", b"kept", b""),
        (b"", &[b'k'; 251], b""),
    ];
    for opcode in 0..=0x24 {
        for (extras, key, data) in shapes {
            // What is well formed has its place above; a first byte of data that is no request ends it here and there.
            let whole = match opcode {
                GET | GETQ | GETK | GETKQ | DELETE | DELETEQ | APPEND | PREPEND | APPENDQ | PREPENDQ => (0, true),
                NOOP | 0x0b | QUIT | QUITQ => (0, false),
                FLUSH | FLUSHQ => (if extras.len() == 4 { 4 } else { 0 }, false),
                STAT => (0, !key.is_empty()),
                SASL_LIST | SASL_AUTH | 0x22 | VERBOSITY | 0x1f => continue,
                _ => (usize::MAX, true),
            };
            if (extras.len(), !key.is_empty()) == whole && key.len() <= 250 {
                continue;
            }
            check(sides, &[request(opcode, extras, key, data)]);
        }
    }
    check(sides, &[request(GET, b"", b"kept", b"")]);
    // Lengths that cannot be.
    for (at, value) in [(11, 3), (2, 255), (4, 200)] {
        let mut bytes = request(GET, b"", b"kept", b"").bytes(0);
        bytes[at] = value;
        bytes.resize(70_000, b'.');
        // Whether the error arrives before the reset, as bytes are left unread, is chance.
        let answers = sides.each_mut().map(|side| side.converse(&bytes));
        assert_eq!(answers.each_ref().map(|answers| answers.last().map(String::as_str)), [Some("closed"); 2]);
    }
    // CVE-2016-8704 to 8706: adding and authenticating with lengths near the end of the numbers.
    for (opcode, extras_len, key_len, body_len) in
        [(APPEND, 0, 250, u32::MAX), (PREPENDQ, 0, 4, 0x8000_0000), (SET, 8, 250, u32::MAX), (ADD, 8, 1, 0xffff_fff0)]
    {
        let mut bytes = request(opcode, &vec![0; extras_len], &vec![b'k'; key_len], b"").bytes(0);
        bytes[8..12].copy_from_slice(&body_len.to_be_bytes());
        let mut stream = sides[0].server.connect(Dialect::Memcache, PATIENCE).expect("connected");
        stream.write_all(&bytes).expect("sent");
        let mut answer = [0; HEADER];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer[6..8], [0, 3], "the data is too large");
    }
    check(sides, &[request(GET, b"", b"kept", b"")]);
    // Another magic, once the protocol is chosen.
    for magic in [0x81, b'g', 0] {
        let mut bytes = request(GET, b"", b"kept", b"").bytes(0);
        bytes[0] = magic;
        let whole = [request(NOOP, b"", b"", b"").bytes(0), bytes].concat();
        let answers = sides.each_mut().map(|side| side.converse(&whole));
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0].last().map(String::as_str), Some("closed"));
    }
    // Data over the limit is passed over, and the old value is gone.
    let large = vec![b'l'; 2 << 20];
    check(sides, &[request(SET, &item(0, 0), b"kept", &large), request(GET, b"", b"kept", b"")]);
    check(sides, &[request(ADD, &item(0, 0), b"kept", &large), request(SETQ, &item(0, 0), b"kept", &large)]);
    check(sides, &[request(APPEND, b"", b"kept", &large), request(GET, b"", b"kept", b"")]);
}

#[test]
fn long_data_arrives_in_pieces_and_quiet_requests_keep_their_order() {
    let Some(mut sides) = sides() else { return };
    let data: Vec<u8> = (0..900_000).map(|n| (n / 7) as u8).collect();
    let requests = [
        request(SETQ, &item(1, 0), b"a", &data),
        request(GETKQ, b"", b"nosuch", b""),
        request(GETKQ, b"", b"a", b""),
        request(APPENDQ, b"", b"a", &data[..100_000]),
        request(GET, b"", b"a", b""),
    ];
    let bytes: Vec<u8> = requests.iter().flat_map(|request| request.bytes(0)).collect();
    let answers = sides.each_mut().map(|side| {
        let (front, rest) = bytes.split_at(bytes.len() - 1);
        for piece in front.chunks(70_001) {
            side.stream.write_all(piece).expect("sent");
        }
        side.converse(rest)
    });
    assert_eq!(answers[0].len(), 2);
    assert!(answers[0] == answers[1], "a long item came back otherwise");
}
