//! The binary protocol: all opcodes, in requests that have the form of their kind and in such that have not. Answers are
//! compared byte for byte; of CAS tokens only whether there is one, and whether it is the key's last.

use crate::sides::{Side, Token, compare, item_data, sides};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{Read, Write};
use std::mem;
use tenon_testkit::random::Random;

const HEADER: usize = 24;
const BATCHES: usize = 4_000;
/// What the request has that shows that all before it were answered.
const LAST: u32 = 0xfeed_0000;

const NOOP: u8 = 0x0a;
const VERSION: u8 = 0x0b;
const STAT: u8 = 0x10;
const SETQ: u8 = 0x11;
const READS: [u8; 4] = [0x00, 0x09, 0x0c, 0x0d];
const WRITES: [u8; 6] = [0x01, 0x02, 0x03, 0x11, 0x12, 0x13];
const ADDITIONS: [u8; 4] = [0x0e, 0x0f, 0x19, 0x1a];
const COUNTERS: [u8; 4] = [0x05, 0x06, 0x15, 0x16];
const DELETIONS: [u8; 2] = [0x04, 0x14];
const TOUCHES: [u8; 5] = [0x1c, 0x1d, 0x1e, 0x23, 0x24];
const FLUSHES: [u8; 2] = [0x08, 0x18];
const ENDS: [u8; 2] = [0x07, 0x17];
/// What who one is is said with, where nobody is asked, and kinds that nobody knows.
const OTHERS: [u8; 14] = [0x20, 0x21, 0x22, 0x1b, 0x1f, 0x25, 0x26, 0x30, 0x31, 0x40, 0x7f, 0x80, 0xfe, 0xff];

/// None that ends while the test runs: never, later, and past.
const EXPTIMES: [u32; 7] = [0, 0, 1_000, 2_592_000, 2_592_001, 0x7fff_ffff, u32::MAX];

struct Request {
    opcode: u8,
    extras: Vec<u8>,
    key: Vec<u8>,
    data: Vec<u8>,
    token: Token,
}

impl Request {
    /// Behind a request of a kind that it does not know memcached passes over as many bytes as extras, key and data have,
    /// although it has extras and key already, and is out of step then.
    fn as_unknown(&mut self) {
        if OTHERS[3..].contains(&self.opcode) {
            self.extras.clear();
            self.key.clear();
        }
    }

    fn bytes(&self, cas: u64, opaque: u32) -> Vec<u8> {
        let body = self.extras.len() + self.key.len() + self.data.len();
        let mut out = vec![0x80, self.opcode];
        out.extend((self.key.len() as u16).to_be_bytes());
        out.extend([self.extras.len() as u8, 0, 0, 0]);
        out.extend((body as u32).to_be_bytes());
        out.extend(opaque.to_be_bytes());
        out.extend(cas.to_be_bytes());
        [&out[..], &self.extras, &self.key, &self.data].concat()
    }
}

fn key(random: &mut Random) -> Vec<u8> {
    match random.below(20) {
        0 => vec![b'k'; 250],
        1 => b"\0 \r\n\xff".to_vec(),
        2 => vec![0x80],
        _ => vec![random.of(b"abcdef")],
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { opcode, extras, key, data, token } = self;
        let [extras, key, data] = [extras, key, data].map(|bytes| bytes.escape_ascii());
        write!(f, "\n{opcode:#04x} [{extras}] [{key}] [{data}] {token:?}")
    }
}

/// A request that has the form of its kind.
fn well_formed(random: &mut Random) -> Request {
    let exptime = random.of(&EXPTIMES).to_be_bytes();
    let plain = |opcode, key| Request { opcode, extras: Vec::new(), key, data: Vec::new(), token: Token::Any };
    let mut request = match random.below(100) {
        0..20 => plain(random.of(&READS), key(random)),
        20..45 => {
            let flags = random.of(&[0, 1, 0xdead_beef, u32::MAX]).to_be_bytes();
            let extras = [flags, exptime].concat();
            Request { extras, data: item_data(random), ..plain(random.of(&WRITES), key(random)) }
        }
        45..58 => Request { data: item_data(random), ..plain(random.of(&ADDITIONS), key(random)) },
        58..78 => {
            let opcode = random.of(&COUNTERS);
            let largest = if matches!(opcode, 0x05 | 0x15) { 1u64 << 40 } else { u64::MAX };
            let delta = random.of(&[0, 1, 9, 1_000, largest]);
            let initial = random.of(&[0u64, 5, 10, 9_999_999_999]);
            let exptime = if random.one_in(3) { [0xff; 4] } else { exptime };
            let extras = [&delta.to_be_bytes()[..], &initial.to_be_bytes(), &exptime].concat();
            Request { extras, ..plain(opcode, key(random)) }
        }
        78..85 => plain(random.of(&DELETIONS), key(random)),
        85..95 => Request { extras: exptime.to_vec(), ..plain(random.of(&TOUCHES), key(random)) },
        95 => {
            let extras = if random.one_in(2) { vec![0; 4] } else { Vec::new() };
            Request { extras, ..plain(random.of(&FLUSHES), Vec::new()) }
        }
        96 => plain(STAT, b"nosuch".to_vec()),
        97 => {
            let mut request = plain(random.of(&OTHERS), key(random));
            request.data = item_data(random);
            request.as_unknown();
            request
        }
        98 => plain(random.of(&[NOOP, VERSION]), Vec::new()),
        _ => plain(random.of(&ENDS), Vec::new()),
    };
    request.token = random.of(&[Token::Any, Token::Any, Token::Any, Token::Last, Token::Last, Token::Wrong]);
    request
}

/// A request whose lengths agree with each other, and with its kind only by chance.
fn misshapen(random: &mut Random) -> Request {
    let mut request = well_formed(random);
    if request.opcode == STAT {
        // Without a key it is well formed, and answered with other figures.
        return request;
    }
    match random.below(5) {
        0 => {
            let len = random.of(&[0, 1, 3, 4, 5, 8, 12, 19, 20, 21, 24]);
            request.extras = random.bytes(len);
        }
        1 => request.key = Vec::new(),
        2 => request.key = vec![b'k'; 251],
        3 => request.data = item_data(random),
        _ => request.opcode = if random.one_in(2) { random.of(&OTHERS) } else { random.of(&[0x07, 0x0a, 0x0b, 0x17]) },
    }
    request.as_unknown();
    // Behind these memcached does not look for data, and takes it for the next request.
    if TOUCHES.contains(&request.opcode) {
        request.data.clear();
    }
    // Of a flush that is delayed memcached makes that items that were flushed before come back.
    if FLUSHES.contains(&request.opcode) {
        request.extras.fill(0);
    }
    request
}

/// Up to ten requests that are sent together. A number that becomes shorter keeps its length, filled up with blanks, but
/// not in memcached while anybody else holds the item, which depends on the moment. So keys that were `counted` are stored
/// anew before anything else, and in the batch that counts them their text is neither seen nor added to.
fn batch(random: &mut Random, counted: &mut BTreeSet<Vec<u8>>) -> Vec<Request> {
    let anew = |key| Request { opcode: SETQ, extras: vec![0; 8], key, data: item_data(random), token: Token::Any };
    let mut batch: Vec<Request> = mem::take(counted).into_iter().map(anew).collect();
    for _ in 0..1 + random.below(10) {
        let request = if random.one_in(40) { misshapen(random) } else { well_formed(random) };
        let shows_text = [&READS[..], &TOUCHES, &ADDITIONS].iter().any(|kind| kind.contains(&request.opcode));
        if shows_text && counted.contains(&request.key) {
            continue;
        }
        if COUNTERS.contains(&request.opcode) && (1..=250).contains(&request.key.len()) {
            counted.insert(request.key.clone());
        }
        batch.push(request);
    }
    batch
}

/// Sends the batch and gives what is answered, up to the last answer or the connection's end.
fn converse(side: &mut Side, batch: &[Request]) -> Vec<String> {
    let mut bytes = Vec::new();
    for (index, request) in batch.iter().enumerate() {
        bytes.extend(request.bytes(side.token(&request.key, request.token), index as u32));
    }
    let last = Request { opcode: NOOP, extras: Vec::new(), key: Vec::new(), data: Vec::new(), token: Token::Any };
    bytes.extend(last.bytes(0, LAST));
    side.stream.write_all(&bytes).expect("sent");
    let mut answers = Vec::new();
    loop {
        let mut header = [0; HEADER];
        if side.stream.read_exact(&mut header).is_err() {
            answers.push("closed".to_owned());
            side.reconnect();
            return answers;
        }
        let number = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let mut body = vec![0; number(8) as usize];
        side.stream.read_exact(&mut body).expect("the body is as long as its header says");
        if number(12) == LAST {
            return answers;
        }
        let request = &batch[number(12) as usize];
        let token = side.told(&request.key, u64::from_be_bytes(header[16..].try_into().expect("eight bytes")));
        if request.opcode == VERSION && header[6..8] == [0, 0] {
            header[8..12].fill(0);
            body.clear();
        }
        answers.push(format!("{} token: {token} {}", header[..16].escape_ascii(), body.escape_ascii()));
    }
}

#[test]
fn random_binary_requests_are_answered_as_memcached_answers_them() {
    let mut counted = BTreeSet::new();
    let compared = compare(0x7e40_0001, BATCHES, |random| batch(random, &mut counted), converse);
    let Some(answered) = compared else { return };
    // Quiet requests, and those behind an end, are not answered.
    assert!(answered > BATCHES * 2, "{answered} answers are too few to say anything");
}

#[test]
fn random_lengths_that_contradict_each_other_end_the_connection_as_with_memcached() {
    let Some(mut sides) = sides() else { return };
    let mut random = Random(0x7e40_0002);
    for number in 0..300 {
        let request = well_formed(&mut random);
        let mut bytes = request.bytes(0, 0);
        // A body shorter than key and extras.
        let (key_len, extras_len) = (1 + random.below(250) as u16, random.below(256) as u8);
        let body_len = random.below(usize::from(key_len) + usize::from(extras_len)) as u32;
        bytes[2..4].copy_from_slice(&key_len.to_be_bytes());
        bytes[4] = extras_len;
        bytes[8..12].copy_from_slice(&body_len.to_be_bytes());
        bytes.truncate(HEADER);
        // As much as the header announces, so that nothing is left unread when the connection ends.
        bytes.resize(HEADER + usize::from(key_len) + usize::from(extras_len), b'.');
        let answers = sides.each_mut().map(|side| {
            side.stream.write_all(&bytes).expect("sent");
            let mut answer = Vec::new();
            let _ = side.stream.read_to_end(&mut answer);
            side.reconnect();
            answer
        });
        let shown = answers.each_ref().map(|answer| answer.escape_ascii().to_string());
        assert_eq!(shown[0], shown[1], "number {number}, Tenon's answer on the left: {}", bytes.escape_ascii());
    }
}
