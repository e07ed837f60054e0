//! Replies into a connection's output, in RESP2 or RESP3. Knows no command.

use super::double::DoubleText;
use super::error::ProtocolError;
use crate::out::{Mark, OutBuf};
use bytes::Bytes;

/// The protocol version a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proto {
    /// What a client speaks that has not said `HELLO 3`.
    #[default]
    Resp2,
    /// The types of RESP3 are written as such.
    Resp3,
}

/// Writes replies; one that is an aggregate is followed by its elements.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut OutBuf,
    proto: Proto,
}

/// An aggregate whose number of elements is not known yet; to be handed to [`Reply::finish`].
#[derive(Debug)]
#[must_use = "the aggregate has no header before it is finished"]
pub struct Deferred {
    mark: Mark,
    sigil: u8,
    /// RESP elements for one of the caller's: 2 for a map in RESP2.
    factor: usize,
}

/// A value of at least this many bytes is sent from where it lies; below, copying it is cheaper than another piece.
pub const SHARED_MIN: usize = 16 << 10;

/// Longest header: sigil, 20 digits, CR LF.
const HEADER_MAX: usize = 23;

impl<'a> Reply<'a> {
    /// Writes to the end of `out`.
    #[inline]
    pub fn new(out: &'a mut OutBuf, proto: Proto) -> Reply<'a> {
        Reply { out, proto }
    }

    /// The protocol version that is written.
    #[inline]
    pub fn proto(&self) -> Proto {
        self.proto
    }

    /// The buffer that is written to.
    #[inline]
    pub fn out(&mut self) -> &mut OutBuf {
        self.out
    }

    /// `+text`; the text is the server's own and has no line end in it.
    #[inline]
    pub fn simple(&mut self, text: &str) {
        debug_assert!(!text.bytes().any(|byte| matches!(byte, b'\r' | b'\n')), "a simple string is one line");
        self.line(b'+', text.as_bytes());
    }

    /// `+OK`
    #[inline]
    pub fn ok(&mut self) {
        self.raw(b"+OK\r\n");
    }

    /// `-text`; the text starts with the error's code. Line ends around it are dropped, those in it become blanks.
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        let mut text = text.as_ref();
        while let [b'\r' | b'\n', rest @ ..] | [rest @ .., b'\r' | b'\n'] = text {
            text = rest;
        }
        let tail = self.out.tail();
        tail.reserve(text.len() + 3);
        tail.push(b'-');
        tail.extend(text.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        tail.extend_from_slice(b"\r\n");
    }

    /// The last reply of a connection whose stream is no RESP.
    pub fn protocol_error(&mut self, error: &ProtocolError) {
        let mut text = b"ERR ".to_vec();
        error.write_to(&mut text);
        self.error(text);
    }

    /// `:value`
    #[inline]
    pub fn int(&mut self, value: i64) {
        if let 0..=9 = value {
            self.out.tail().extend_from_slice(&[b':', b'0' + value as u8, b'\r', b'\n']);
        } else {
            self.line(b':', itoa::Buffer::new().format(value).as_bytes());
        }
    }

    /// A string of any bytes; they are copied.
    #[inline]
    pub fn bulk(&mut self, value: &[u8]) {
        let tail = self.out.tail_for(value.len() + HEADER_MAX + 2);
        write_header(tail, b'$', value.len());
        tail.extend_from_slice(value);
        tail.extend_from_slice(b"\r\n");
    }

    /// An integer as a string.
    #[inline]
    pub fn bulk_int(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// A string of any bytes; from [`SHARED_MIN`] on they are not copied.
    pub fn bulk_shared(&mut self, value: &Bytes) {
        if value.len() < SHARED_MIN {
            return self.bulk(value);
        }
        self.header(b'$', value.len());
        self.out.push_shared(value.clone());
        self.raw(b"\r\n");
    }

    /// A string of `len` bytes that lies in pieces; big ones are not copied.
    ///
    /// # Panics
    /// When the pieces are not `len` bytes together: the stream would be lost.
    pub fn bulk_pieces(&mut self, len: usize, pieces: impl IntoIterator<Item = Bytes>) {
        self.header(b'$', len);
        let mut written = 0;
        for piece in pieces {
            written += piece.len();
            if piece.len() < SHARED_MIN {
                self.raw(&piece);
            } else {
                self.out.push_shared(piece);
            }
        }
        assert_eq!(written, len, "the pieces of a value are as long as the value");
        self.raw(b"\r\n");
    }

    /// No value.
    #[inline]
    pub fn null(&mut self) {
        match self.proto {
            Proto::Resp2 => self.raw(b"$-1\r\n"),
            Proto::Resp3 => self.raw(b"_\r\n"),
        }
    }

    /// No array; differs from [`Reply::null`] in RESP2.
    pub fn null_array(&mut self) {
        match self.proto {
            Proto::Resp2 => self.raw(b"*-1\r\n"),
            Proto::Resp3 => self.raw(b"_\r\n"),
        }
    }

    /// An array: `len` elements follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.header(b'*', len);
    }

    /// A map: `pairs` times a key and a value follow.
    pub fn map(&mut self, pairs: usize) {
        match self.proto {
            Proto::Resp2 => self.header(b'*', pairs * 2),
            Proto::Resp3 => self.header(b'%', pairs),
        }
    }

    /// A set: `len` elements follow.
    pub fn set(&mut self, len: usize) {
        self.header(self.set_sigil(), len);
    }

    /// A message that answers no command: `len` elements follow.
    pub fn push(&mut self, len: usize) {
        match self.proto {
            Proto::Resp2 => self.header(b'*', len),
            Proto::Resp3 => self.header(b'>', len),
        }
    }

    /// Says something about the reply that comes next: `pairs` times a key and a value follow, then the reply.
    ///
    /// RESP2 has no such thing: then nothing is written, and the caller leaves out the pairs.
    #[must_use = "in RESP2 the pairs must be left out"]
    pub fn attribute(&mut self, pairs: usize) -> bool {
        let known = self.proto == Proto::Resp3;
        if known {
            self.header(b'|', pairs);
        }
        known
    }

    /// A double, in Redis' spelling.
    pub fn double(&mut self, value: f64) {
        let text = DoubleText::of(value);
        match self.proto {
            Proto::Resp2 => self.bulk(text.as_bytes()),
            Proto::Resp3 => self.line(b',', text.as_bytes()),
        }
    }

    /// A truth value; 1 or 0 in RESP2.
    pub fn boolean(&mut self, value: bool) {
        match (self.proto, value) {
            (Proto::Resp2, _) => self.int(value.into()),
            (Proto::Resp3, true) => self.raw(b"#t\r\n"),
            (Proto::Resp3, false) => self.raw(b"#f\r\n"),
        }
    }

    /// An integer of any size, given as its digits.
    pub fn big_number(&mut self, digits: &str) {
        debug_assert!(digits.strip_prefix('-').unwrap_or(digits).bytes().all(|byte| byte.is_ascii_digit()));
        match self.proto {
            Proto::Resp2 => self.bulk(digits.as_bytes()),
            Proto::Resp3 => self.line(b'(', digits.as_bytes()),
        }
    }

    /// Text that a human reads; `format` is `txt` or `mkd`.
    pub fn verbatim(&mut self, format: &[u8; 3], text: &[u8]) {
        match self.proto {
            Proto::Resp2 => self.bulk(text),
            Proto::Resp3 => {
                self.header(b'=', text.len() + 4);
                self.raw(format);
                self.raw(b":");
                self.raw(text);
                self.raw(b"\r\n");
            }
        }
    }

    /// Bytes that are RESP already.
    #[inline]
    pub fn raw(&mut self, resp: &[u8]) {
        self.out.tail_for(resp.len()).extend_from_slice(resp);
    }

    /// An array whose length is told to [`Reply::finish`] after its elements are written.
    pub fn array_deferred(&mut self) -> Deferred {
        Deferred { mark: self.out.mark(), sigil: b'*', factor: 1 }
    }

    /// A map whose number of pairs is told to [`Reply::finish`] after they are written.
    pub fn map_deferred(&mut self) -> Deferred {
        let (sigil, factor) = match self.proto {
            Proto::Resp2 => (b'*', 2),
            Proto::Resp3 => (b'%', 1),
        };
        Deferred { mark: self.out.mark(), sigil, factor }
    }

    /// A set whose length is told to [`Reply::finish`] after its elements are written.
    pub fn set_deferred(&mut self) -> Deferred {
        Deferred { mark: self.out.mark(), sigil: self.set_sigil(), factor: 1 }
    }

    /// Writes the header of a deferred aggregate of `len` elements, or pairs. Inner ones are finished first.
    pub fn finish(&mut self, deferred: Deferred, len: usize) {
        let mut header = Vec::with_capacity(HEADER_MAX);
        write_header(&mut header, deferred.sigil, len * deferred.factor);
        self.out.insert(deferred.mark, &header);
    }

    const fn set_sigil(&self) -> u8 {
        match self.proto {
            Proto::Resp2 => b'*',
            Proto::Resp3 => b'~',
        }
    }

    #[inline]
    fn header(&mut self, sigil: u8, count: usize) {
        write_header(self.out.tail(), sigil, count);
    }

    #[inline]
    fn line(&mut self, sigil: u8, text: &[u8]) {
        let tail = self.out.tail();
        tail.reserve(text.len() + 3);
        tail.push(sigil);
        tail.extend_from_slice(text);
        tail.extend_from_slice(b"\r\n");
    }
}

/// One or two digits are what nearly all counts have.
#[inline(always)]
fn write_header(tail: &mut Vec<u8>, sigil: u8, count: usize) {
    if count < 10 {
        tail.extend_from_slice(&[sigil, b'0' + count as u8, b'\r', b'\n']);
    } else if count < 100 {
        let (tens, ones) = (count as u8 / 10, count as u8 % 10);
        tail.extend_from_slice(&[sigil, b'0' + tens, b'0' + ones, b'\r', b'\n']);
    } else {
        write_long_header(tail, sigil, count);
    }
}

#[inline(never)]
fn write_long_header(tail: &mut Vec<u8>, sigil: u8, count: usize) {
    tail.push(sigil);
    tail.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
    tail.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(proto: Proto, write: impl FnOnce(&mut Reply)) -> Vec<u8> {
        let mut out = OutBuf::new();
        write(&mut Reply::new(&mut out, proto));
        out.take_joined()
    }

    #[track_caller]
    fn check(write: impl Fn(&mut Reply), resp2: &str, resp3: &str) {
        for (proto, expected) in [(Proto::Resp2, resp2), (Proto::Resp3, resp3)] {
            assert_eq!(written(proto, &write).escape_ascii().to_string(), expected.escape_default().to_string());
        }
    }

    #[track_caller]
    fn check_both(write: impl Fn(&mut Reply), expected: &str) {
        check(write, expected, expected);
    }

    #[test]
    fn types_of_both_versions() {
        check_both(|r| r.simple("OK"), "+OK\r\n");
        check_both(|r| r.error("ERR no"), "-ERR no\r\n");
        check_both(|r| r.error("\r\nERR a\r\nb\nc\r\n\r\n"), "-ERR a  b c\r\n");
        check_both(|r| r.error("\n"), "-\r\n");
        for value in [0, 7, 9, 10, -1, i64::MIN, i64::MAX] {
            check_both(|r| r.int(value), &format!(":{value}\r\n"));
            check_both(|r| r.bulk_int(value), &format!("${}\r\n{value}\r\n", value.to_string().len()));
        }
        for len in [0, 1, 9, 10, 99, 100, 101, 12345] {
            let value = "v".repeat(len);
            check_both(|r| r.bulk(value.as_bytes()), &format!("${len}\r\n{value}\r\n"));
            check_both(|r| r.array(len), &format!("*{len}\r\n"));
        }
    }

    #[test]
    fn types_that_resp2_lacks() {
        check(|r| r.null(), "$-1\r\n", "_\r\n");
        check(|r| r.null_array(), "*-1\r\n", "_\r\n");
        check(|r| r.map(6), "*12\r\n", "%6\r\n");
        check(|r| r.set(2), "*2\r\n", "~2\r\n");
        check(|r| r.push(3), "*3\r\n", ">3\r\n");
        check(|r| assert_eq!(r.attribute(1), r.proto() == Proto::Resp3), "", "|1\r\n");
        check(|r| r.double(3.1), "$3\r\n3.1\r\n", ",3.1\r\n");
        check(|r| r.double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n");
        check(|r| r.boolean(true), ":1\r\n", "#t\r\n");
        check(|r| r.boolean(false), ":0\r\n", "#f\r\n");
        check(
            |r| r.big_number("-12345678901234567890123"),
            "$24\r\n-12345678901234567890123\r\n",
            "(-12345678901234567890123\r\n",
        );
        check(|r| r.verbatim(b"txt", b"hi"), "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n");
    }

    #[test]
    fn protocol_errors_are_one_line() {
        check_both(
            |r| r.protocol_error(&ProtocolError::ExpectedDollar(b'\n')),
            "-ERR Protocol error: expected '$', got ' '\r\n",
        );
    }

    #[test]
    fn shared_values_are_the_same_bytes() {
        for len in [0, 3, SHARED_MIN - 1, SHARED_MIN, SHARED_MIN + 1] {
            let value = Bytes::from(vec![b'v'; len]);
            let expected = written(Proto::Resp2, |r| r.bulk(&value));
            assert_eq!(written(Proto::Resp2, |r| r.bulk_shared(&value)), expected);
            let (front, back) = (value.slice(..len / 3), value.slice(len / 3..));
            assert_eq!(written(Proto::Resp2, |r| r.bulk_pieces(len, [front, back])), expected);
        }
    }

    #[test]
    fn deferred_counts_find_their_place() {
        let big = Bytes::from(vec![b'v'; SHARED_MIN]);
        let body = written(Proto::Resp2, |r| r.bulk(&big));
        for (proto, map, set) in [(Proto::Resp2, "*4", "*1"), (Proto::Resp3, "%2", "~1")] {
            let got = written(proto, |r| {
                let outer = r.array_deferred();
                let inner = r.map_deferred();
                r.bulk_shared(&big);
                r.int(1);
                let set = r.set_deferred();
                r.bulk_shared(&big);
                r.finish(set, 1);
                r.int(2);
                r.finish(inner, 2);
                r.bulk_shared(&big);
                r.finish(outer, 2);
            });
            let expected: Vec<u8> = [
                format!("*2\r\n{map}\r\n").as_bytes(),
                &body,
                b":1\r\n",
                format!("{set}\r\n").as_bytes(),
                &body,
                b":2\r\n",
                &body,
            ]
            .concat();
            assert_eq!(got, expected);
        }
    }
}
