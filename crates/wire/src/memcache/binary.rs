//! Requests of memcached's binary protocol out of a client's bytes, and the headers of their answers
//! (<https://github.com/memcached/memcached/wiki/BinaryProtocolRevamped>). Knows no store.
//!
//! ```text
//!  0       1        2             4         5      6       8         12      16    24
//! +-------+--------+-------------+---------+------+-------+---------+-------+-----+--------+-----+------+
//! | magic | opcode | key length  | extras  | type | zero, | body    | opaque| CAS | extras | key | data |
//! |       |        |             | length  |      | status| length  |       |     |        |     |      |
//! +-------+--------+-------------+---------+------+-------+---------+-------+-----+--------+-----+------+
//! ```

mod answer;
mod frame;

use super::decode::Limits;
use super::line::KEY_MAX;
use super::request::ArithmeticVerb;
use crate::span::Span;
pub use answer::{AnswerFront, write_head, write_status};
use frame::Frame;

/// The first byte of every request. No line of the text protocol begins with it.
pub const REQUEST_MAGIC: u8 = 0x80;
/// Bytes that each request and each answer begins with.
pub const HEADER: usize = 24;
/// Bytes of the longest name of a way to say who one is; memcached's `MAX_SASL_MECH_LEN`.
const MECHANISM_MAX: usize = 32;
/// Bytes of the longest thing that a client may say about who it is.
const CREDENTIALS_MAX: usize = 4096;

/// What an answer says of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    /// It is done.
    Done = 0,
    /// There is no such item.
    NotFound = 1,
    /// There is such an item, or it has changed since its CAS token was given out.
    Exists = 2,
    /// The data is longer than the server takes.
    TooLarge = 3,
    /// The request has not the form of its kind.
    Invalid = 4,
    /// There is nothing to add to.
    NotStored = 5,
    /// A counter's value is no number.
    NonNumeric = 6,
    /// The client has not said who it is, or nobody is who it says.
    AuthError = 0x20,
    /// There is more to be said about who the client is.
    AuthContinue = 0x21,
    /// There is no such kind of request.
    Unknown = 0x81,
    /// Memory is used up, and nothing can be evicted.
    OutOfMemory = 0x82,
    /// It can be done later.
    NotNow = 0x86,
}

impl Status {
    /// What memcached 1.6 says of it, where it says nothing more special.
    pub const fn text(self) -> &'static str {
        match self {
            Status::Done => "",
            Status::NotFound => "Not found",
            Status::Exists => "Data exists for key.",
            Status::TooLarge => "Too large.",
            Status::Invalid => "Invalid arguments",
            Status::NotStored => "Not stored.",
            Status::NonNumeric => "Non-numeric server-side value for incr or decr",
            Status::AuthError => "Auth failure.",
            Status::AuthContinue => "",
            Status::Unknown => "Unknown command",
            Status::OutOfMemory => "Out of memory",
            Status::NotNow => "Temporary failure",
        }
    }
}

/// Which of the writes it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryStore {
    /// Whether there is an item or not.
    Set,
    /// Only when there is none.
    Add,
    /// Only when there is one.
    Replace,
    /// Behind the data that is there.
    Append,
    /// Before the data that is there.
    Prepend,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryCommand {
    /// The item.
    Get {
        /// Up to 250 bytes.
        key: Span,
        /// Whether the answer has the key.
        with_key: bool,
        /// The new expiry, as the client gave it.
        exptime: Option<u32>,
    },
    /// A new expiry.
    Touch {
        /// Up to 250 bytes.
        key: Span,
        /// As the client gave it.
        exptime: u32,
    },
    /// A write.
    Store {
        /// Which of the writes.
        verb: BinaryStore,
        /// Up to 250 bytes.
        key: Span,
        /// The client's own.
        flags: u32,
        /// As the client gave it.
        exptime: u32,
        /// The data.
        data: Span,
    },
    /// Counting.
    Arithmetic {
        /// Which way.
        verb: ArithmeticVerb,
        /// Up to 250 bytes.
        key: Span,
        /// By how much.
        delta: u64,
        /// Where a counter begins that is not there, and its expiry, if it is to be made.
        initial: Option<(u64, u32)>,
    },
    /// The item's removal.
    Delete {
        /// Up to 250 bytes.
        key: Span,
    },
    /// That all items go.
    Flush {
        /// When, as the client gave it; nothing for now.
        exptime: Option<u32>,
    },
    /// Nothing but an answer.
    Noop,
    /// The server's version.
    Version,
    /// The connection's end.
    Quit,
    /// Statistics.
    Stat {
        /// Which ones; empty for the general ones.
        group: Span,
    },
    /// The ways there are to say who one is.
    SaslMechanisms,
    /// Who the client is.
    Sasl {
        /// Whether the conversation goes on with it, instead of beginning.
        is_step: bool,
        /// In which way, up to 32 bytes.
        mechanism: Span,
        /// What it says.
        data: Span,
    },
}

/// What all requests have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BinaryHead {
    /// The kind, as the client said it.
    pub opcode: u8,
    /// Only what cannot be expected is to be answered.
    pub quiet: bool,
    /// To be given back.
    pub opaque: u32,
    /// The token that the item must have; 0 for any.
    pub cas: u64,
}

/// What the decoder made of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryStep {
    /// A request is complete, the next one starts at `end`.
    Request {
        /// What all requests have.
        head: BinaryHead,
        /// What it asks for.
        command: BinaryCommand,
        /// Position behind it.
        end: usize,
    },
    /// A request is refused: to be answered, then on from `end`.
    Refused {
        /// What all requests have.
        head: BinaryHead,
        /// Why.
        status: Status,
        /// The write that it was and its key, where it was refused for its length or for lack of memory.
        write: Option<(BinaryStore, Span)>,
        /// Whether the connection is to be closed then, as nobody knows where the next request would begin.
        closes: bool,
        /// Position behind what was read of it.
        end: usize,
    },
    /// Nothing to run and nothing to answer up to `end`: the rest of something refused.
    Skip {
        /// Position behind it.
        end: usize,
    },
    /// The request is not complete. Keep everything from its start, and call again with at least one byte more.
    Incomplete,
    /// The next `len` bytes of the stream, from position `at` of the buffer, are the data: big argument 0.
    ///
    /// The caller takes them out of the stream, keeps what lies before `at` from the request's start, and calls
    /// [`BinaryDecoder::big_taken`].
    Big {
        /// Length of the data in bytes, of which fewer are in the buffer.
        len: usize,
        /// Position of its first byte.
        at: usize,
    },
    /// No request begins with such a byte: the connection is to be closed.
    NoRequest,
}

impl BinaryStep {
    /// The item under this key must go: a set that failed may not leave the old value behind, as in memcached.
    pub fn stale_key(&self) -> Option<Span> {
        match *self {
            BinaryStep::Refused { write: Some((BinaryStore::Set, key)), .. } => Some(key),
            _ => None,
        }
    }
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A request; with `taken` the caller holds its data.
    Request { taken: bool },
    /// So many bytes of a refused request.
    Rest { len: usize },
}

/// Reads requests one after another.
#[derive(Clone, Debug)]
pub struct BinaryDecoder {
    state: State,
    /// Bytes of the next request's data that the caller had and has let go.
    let_go: usize,
}

impl Default for BinaryDecoder {
    fn default() -> BinaryDecoder {
        BinaryDecoder::new()
    }
}

impl BinaryDecoder {
    /// A decoder at the start of a stream.
    pub const fn new() -> BinaryDecoder {
        BinaryDecoder { state: State::Request { taken: false }, let_go: 0 }
    }

    /// Whether part of a request was read and its rest is awaited.
    pub fn is_inside_request(&self) -> bool {
        self.state != State::Request { taken: false }
    }

    /// Whether what comes next belongs to a request that was refused.
    pub fn is_skipping(&self) -> bool {
        matches!(self.state, State::Rest { .. })
    }

    /// Tells that the caller holds the data that was asked for.
    pub fn big_taken(&mut self) {
        self.state = State::Request { taken: true };
    }

    /// Tells that the caller has let go of the first `come` bytes of the data that was asked for: the request is to be refused.
    pub fn big_let_go(&mut self, come: usize) {
        self.let_go = come;
    }

    /// Reads one request from `buf[start..]`; spans count from the start of `buf`.
    ///
    /// After [`BinaryStep::Incomplete`] and [`BinaryStep::Big`] the next call must begin with the same request's bytes:
    /// they may have moved, `start` says where to.
    pub fn next(&mut self, buf: &[u8], start: usize, limits: &Limits) -> BinaryStep {
        let input = &buf[start..];
        let taken = match self.state {
            State::Request { taken } => taken,
            State::Rest { len } => return self.skip(buf, start, len),
        };
        if input.first().is_some_and(|&magic| magic != REQUEST_MAGIC) {
            return BinaryStep::NoRequest;
        }
        let Some(header) = input.first_chunk::<HEADER>() else { return BinaryStep::Incomplete };
        let frame = Frame::of(header);
        let key_at = HEADER + frame.extras_len;
        let refused = |status, end| BinaryStep::Refused { head: frame.head, status, write: None, closes: true, end };
        let data_len = frame.body_len.checked_sub(frame.extras_len + frame.key_len);
        if frame.key_len > KEY_MAX {
            // No memory for what ends the connection.
            return refused(data_len.map_or(Status::Unknown, |_| Status::Invalid), start + HEADER);
        }
        // Memcached looks at nothing before extras and key are there.
        let Some(front) = input.get(..key_at + frame.key_len) else { return BinaryStep::Incomplete };
        let Some(data_len) = data_len else { return refused(Status::Unknown, start + front.len()) };
        let key = Span::bytes(start + key_at, frame.key_len);
        let at = start + front.len();
        let (head, command) = match frame.command(&front[HEADER..key_at], key, data_len, limits.sasl) {
            Ok(found) => found,
            // Of a kind that nobody knows at least the length is known.
            Err(Status::Unknown) => return self.refuse(frame.head, Status::Unknown, None, data_len, at),
            Err(status) => return refused(status, at),
        };
        let (verb, flags, exptime) = match command {
            BinaryCommand::Store { verb, flags, exptime, .. } => (verb, flags, exptime),
            BinaryCommand::Sasl { is_step, mechanism, .. } => {
                return self.read_credentials(buf, head, is_step, mechanism, data_len, at);
            }
            _ => return BinaryStep::Request { head, command, end: at },
        };
        // The limit may have been lowered since the data was taken out of the stream: there is nothing left to pass over.
        let let_go = std::mem::take(&mut self.let_go);
        if !taken && let_go == 0 && data_len > limits.value_max {
            return self.refuse(head, Status::TooLarge, Some((verb, key)), data_len, at);
        }
        let (data, len) = if taken { (Span::big(0), 0) } else { (Span::bytes(at, data_len), data_len) };
        if buf.len() - at < len {
            if let_go > 0 || !limits.keeps(len) {
                return self.refuse(head, Status::OutOfMemory, Some((verb, key)), len - let_go, at);
            }
            return if len >= limits.big_min { BinaryStep::Big { len, at } } else { BinaryStep::Incomplete };
        }
        self.state = State::Request { taken: false };
        let command = BinaryCommand::Store { verb, key, flags, exptime, data };
        BinaryStep::Request { head, command, end: at + len }
    }

    /// What a client says about who it is, `len` bytes from `at` on.
    fn read_credentials(
        &mut self,
        buf: &[u8],
        head: BinaryHead,
        is_step: bool,
        mechanism: Span,
        len: usize,
        at: usize,
    ) -> BinaryStep {
        let is_long = mechanism.in_input().is_none_or(|(_, len)| len > MECHANISM_MAX);
        if is_long || len > CREDENTIALS_MAX {
            // Nobody's password is that long; memcached reads it all to find the same.
            let status = if is_long { Status::Invalid } else { Status::AuthError };
            return self.refuse(head, status, None, len, at);
        }
        if buf.len() - at < len {
            return BinaryStep::Incomplete;
        }
        let command = BinaryCommand::Sasl { is_step, mechanism, data: Span::bytes(at, len) };
        BinaryStep::Request { head, command, end: at + len }
    }

    /// Refuses a request of whose body `rest` bytes follow `at`.
    fn refuse(
        &mut self,
        head: BinaryHead,
        status: Status,
        write: Option<(BinaryStore, Span)>,
        rest: usize,
        at: usize,
    ) -> BinaryStep {
        if rest > 0 {
            self.state = State::Rest { len: rest };
        }
        BinaryStep::Refused { head, status, write, closes: false, end: at }
    }

    fn skip(&mut self, buf: &[u8], start: usize, len: usize) -> BinaryStep {
        let skipped = len.min(buf.len() - start);
        if skipped == 0 {
            return BinaryStep::Incomplete;
        }
        self.state = if skipped == len { State::Request { taken: false } } else { State::Rest { len: len - skipped } };
        BinaryStep::Skip { end: start + skipped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a request.
    fn packet(opcode: u8, extras: &[u8], key: &[u8], data: &[u8], opaque: u32, cas: u64) -> Vec<u8> {
        let mut out = vec![REQUEST_MAGIC, opcode];
        out.extend((key.len() as u16).to_be_bytes());
        out.extend([extras.len() as u8, 0, 0, 0]);
        out.extend(((extras.len() + key.len() + data.len()) as u32).to_be_bytes());
        out.extend(opaque.to_be_bytes());
        out.extend(cas.to_be_bytes());
        [&out, extras, key, data].concat()
    }

    fn next(bytes: &[u8]) -> BinaryStep {
        let limits = Limits { value_max: 100, big_min: 20, ..Limits::default() };
        BinaryDecoder::new().next(bytes, 0, &limits)
    }

    #[test]
    fn reads_every_kind() {
        let extras = [&7u64.to_be_bytes()[..], &9u64.to_be_bytes(), &30u32.to_be_bytes()].concat();
        let never = [&extras[..16], &u32::MAX.to_be_bytes()].concat();
        let key = Span::bytes(44, 1);
        let counting = |initial| BinaryCommand::Arithmetic { verb: ArithmeticVerb::Decr, key, delta: 7, initial };
        for (opcode, extras, is_quiet, expected) in
            [(6, &extras, false, counting(Some((9, 30)))), (0x16, &never, true, counting(None))]
        {
            let bytes = packet(opcode, extras, b"k", b"", 5, 6);
            let BinaryStep::Request { head, command, end } = next(&bytes) else { panic!("{opcode}") };
            assert_eq!((head, end), (BinaryHead { opcode, quiet: is_quiet, opaque: 5, cas: 6 }, bytes.len()));
            assert_eq!(command, expected);
        }
        type Kind<'a> = (&'a [u8], &'a [u8], &'a [u8], &'a [u8]);
        let kinds: &[Kind<'_>] = &[
            (&[0x00, 0x09, 0x0c, 0x0d, 0x04, 0x14], b"", b"k", b""),
            (&[0x01, 0x02, 0x03, 0x11, 0x12, 0x13], b"12345678", b"k", b"data"),
            (&[0x0e, 0x0f, 0x19, 0x1a], b"", b"k", b"data"),
            (&[0x1c, 0x1d, 0x1e, 0x23, 0x24], b"1234", b"k", b""),
            (&[0x08, 0x18], b"1234", b"", b""),
            (&[0x07, 0x08, 0x0a, 0x0b, 0x10, 0x17, 0x18], b"", b"", b""),
            (&[0x10], b"", b"items", b""),
        ];
        for &(opcodes, extras, key, data) in kinds {
            for &opcode in opcodes {
                let bytes = packet(opcode, extras, key, data, 1, 2);
                let step = next(&bytes);
                let is_whole = |step| matches!(step, BinaryStep::Request { end, .. } if end == bytes.len());
                assert!(is_whole(step), "{opcode:#x}: {step:?}");
                for len in 0..bytes.len() {
                    assert_eq!(next(&bytes[..len]), BinaryStep::Incomplete, "{opcode:#x} of {len} bytes");
                }
                // Whatever has not the form of its kind ends the connection.
                let longer = packet(opcode, &[extras, b"!"].concat(), key, data, 1, 2);
                let step = next(&longer);
                let is_refused = matches!(step, BinaryStep::Refused { status: Status::Invalid, closes: true, .. });
                assert!(is_refused, "{opcode:#x}: {step:?}");
            }
        }
    }

    #[test]
    fn what_is_refused_leaves_the_stream_in_step() {
        let limits = Limits { value_max: 10, big_min: 20, ..Limits::default() };
        for (bytes, status, write) in [
            (
                packet(1, b"12345678", b"k", &[0; 11], 1, 2),
                Status::TooLarge,
                Some((BinaryStore::Set, Span::bytes(32, 1))),
            ),
            (
                packet(2, b"12345678", b"k", &[0; 11], 1, 2),
                Status::TooLarge,
                Some((BinaryStore::Add, Span::bytes(32, 1))),
            ),
            (packet(0x1b, b"1234", b"", b"", 1, 2), Status::Unknown, None),
            (packet(0x99, b"1234", b"key", b"data", 1, 2), Status::Unknown, None),
        ] {
            let mut decoder = BinaryDecoder::new();
            let BinaryStep::Refused { status: got, write: got_write, closes: false, end, .. } =
                decoder.next(&bytes, 0, &limits)
            else {
                panic!("{bytes:?} is not refused");
            };
            assert_eq!((got, got_write), (status, write));
            let mut at = end;
            while at < bytes.len() {
                // In pieces of up to three bytes.
                let BinaryStep::Skip { end } = decoder.next(&bytes[..bytes.len().min(at + 3)], at, &limits) else {
                    panic!("the rest of {bytes:?} is not skipped");
                };
                at = end;
            }
            assert!(!decoder.is_inside_request());
        }
    }

    #[test]
    fn lengths_that_cannot_be_end_the_connection() {
        let mut short = packet(0, b"", b"key", b"", 1, 2);
        short[11] = 2;
        assert!(matches!(next(&short), BinaryStep::Refused { status: Status::Unknown, closes: true, .. }));
        let long = packet(0, b"", &[b'k'; 251], b"", 1, 2);
        assert!(matches!(next(&long), BinaryStep::Refused { status: Status::Invalid, closes: true, .. }));
        // Its extras and key are not awaited.
        assert!(matches!(next(&long[..HEADER]), BinaryStep::Refused { status: Status::Invalid, closes: true, .. }));
        let mut huge = packet(0x0e, b"", b"k", b"", 1, 2);
        huge[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(matches!(next(&huge), BinaryStep::Refused { status: Status::TooLarge, closes: false, .. }));
        assert_eq!(next(b"\x81"), BinaryStep::NoRequest);
        assert_eq!(next(b"get k"), BinaryStep::NoRequest);
    }

    #[test]
    fn long_data_is_left_to_the_caller() {
        let bytes = packet(1, b"12345678", b"k", &[b'd'; 30], 1, 2);
        let limits = Limits { big_min: 20, ..Limits::default() };
        let mut decoder = BinaryDecoder::new();
        assert_eq!(decoder.next(&bytes[..40], 0, &limits), BinaryStep::Big { len: 30, at: 33 });
        decoder.big_taken();
        let step = decoder.next(&bytes[..33], 0, &limits);
        let BinaryStep::Request { command: BinaryCommand::Store { data, .. }, end: 33, .. } = step else {
            panic!("{step:?}");
        };
        assert!(data.is_big() && !decoder.is_inside_request());
    }

    #[test]
    fn a_limit_that_is_lowered_during_an_upload_is_for_the_next() {
        let bytes = packet(1, b"12345678", b"k", &[b'd'; 30], 1, 2);
        let limits = |value_max| Limits { value_max, big_min: 20, ..Limits::default() };
        let mut decoder = BinaryDecoder::new();
        assert_eq!(decoder.next(&bytes[..33], 0, &limits(30)), BinaryStep::Big { len: 30, at: 33 });
        decoder.big_taken();
        assert!(matches!(decoder.next(&bytes[..33], 0, &limits(10)), BinaryStep::Request { end: 33, .. }));
        let step = decoder.next(&bytes, 0, &limits(10));
        assert!(matches!(step, BinaryStep::Refused { status: Status::TooLarge, end: 33, .. }), "{step:?}");
    }
}
