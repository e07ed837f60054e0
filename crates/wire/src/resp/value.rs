//! Replies as a client reads them: RESP2 and RESP3 values. For clients and tests; the server does not use it.

use super::error::ProtocolError;
use super::number::parse_i64;
use memchr::memchr;

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `+`
    Simple(Vec<u8>),
    /// `-`, or RESP3's `!`
    Error(Vec<u8>),
    /// `:`
    Int(i64),
    /// `$`
    Bulk(Vec<u8>),
    /// RESP2's `$-1`
    NullBulk,
    /// RESP2's `*-1`
    NullArray,
    /// RESP3's `_`
    Null,
    /// `*`
    Array(Vec<Value>),
    /// RESP3's `%`
    Map(Vec<(Value, Value)>),
    /// RESP3's `~`
    Set(Vec<Value>),
    /// RESP3's `>`
    Push(Vec<Value>),
    /// RESP3's `|`, and the value it is about.
    Attribute(Vec<(Value, Value)>, Box<Value>),
    /// RESP3's `,`
    Double(f64),
    /// RESP3's `#`
    Boolean(bool),
    /// RESP3's `(`: its digits
    BigNumber(Vec<u8>),
    /// RESP3's `=`
    Verbatim {
        /// `txt` or `mkd`.
        format: [u8; 3],
        /// The text itself.
        text: Vec<u8>,
    },
}

/// How much a server may send.
#[derive(Clone, Debug)]
pub struct ValueLimits {
    /// Deepest nesting; a value in no aggregate has depth 0.
    pub depth_max: usize,
    /// Longest string in bytes.
    pub bulk_len_max: usize,
    /// Most elements of one aggregate.
    pub count_max: usize,
    /// Longest line in bytes: a simple string, an error, a number.
    pub line_max: usize,
}

impl Default for ValueLimits {
    fn default() -> ValueLimits {
        ValueLimits { depth_max: 64, bulk_len_max: 512 << 20, count_max: i32::MAX as usize, line_max: 1 << 20 }
    }
}

/// Reads values one after another; resumes where it stopped when one is incomplete.
///
/// It first walks to the value's end without keeping anything, so that nothing is allocated for what only was
/// announced, and then builds the value.
#[derive(Debug, Default)]
pub struct ValueDecoder {
    /// How far the walk came, from the value's first byte.
    pos: usize,
    /// How many bytes behind `pos` hold no line end.
    scanned: usize,
    /// Elements that are still to come, of each aggregate around the current place.
    open: Vec<usize>,
}

impl ValueDecoder {
    /// A decoder at the start of a stream; allocates nothing.
    pub const fn new() -> ValueDecoder {
        ValueDecoder { pos: 0, scanned: 0, open: Vec::new() }
    }

    /// The value at the start of `buf` and its length in bytes, or nothing while it is incomplete; then the next
    /// call's `buf` starts with the same bytes.
    ///
    /// # Errors
    /// When the bytes are no RESP, or more than the limits allow; the decoder is of no use then.
    pub fn next(&mut self, buf: &[u8], limits: &ValueLimits) -> Result<Option<(Value, usize)>, ProtocolError> {
        loop {
            let Some((head, next)) = read_head(buf, self.pos, &mut self.scanned, limits)? else { return Ok(None) };
            let elements = match head {
                Head::Leaf => 0,
                Head::Text { len, .. } => {
                    let ready = buf.len() - next;
                    if ready < len || ready - len < 2 {
                        return Ok(None);
                    }
                    if &buf[next + len..][..2] != b"\r\n" {
                        return Err(ProtocolError::InvalidValue);
                    }
                    self.pos = next + len + 2;
                    self.scanned = 0;
                    if self.close() {
                        return self.build(buf).map(Some);
                    }
                    continue;
                }
                Head::Aggregate { elements, .. } => elements,
            };
            self.pos = next;
            self.scanned = 0;
            if elements > 0 {
                if self.open.len() == limits.depth_max {
                    return Err(ProtocolError::NestedTooDeep);
                }
                self.open.push(elements);
            } else if self.close() {
                return self.build(buf).map(Some);
            }
        }
    }

    /// Counts an element as done, and all aggregates that end with it; tells whether the whole value is done.
    fn close(&mut self) -> bool {
        while let Some(missing) = self.open.last_mut() {
            *missing -= 1;
            if *missing > 0 {
                return false;
            }
            self.open.pop();
        }
        true
    }

    fn build(&mut self, buf: &[u8]) -> Result<(Value, usize), ProtocolError> {
        let end = std::mem::take(&mut self.pos);
        let mut at = 0;
        let value = build(&buf[..end], &mut at)?;
        debug_assert_eq!(at, end);
        Ok((value, end))
    }
}

impl Value {
    /// The value at the start of `buf` and its length in bytes, or nothing when it is incomplete.
    ///
    /// # Errors
    /// When the bytes are no RESP, or more than the default limits allow.
    pub fn decode(buf: &[u8]) -> Result<Option<(Value, usize)>, ProtocolError> {
        ValueDecoder::new().next(buf, &ValueLimits::default())
    }
}

/// What the first line of a value says.
enum Head {
    /// The line is the value.
    Leaf,
    /// `len` bytes and CR LF follow.
    Text { sigil: u8, len: usize },
    /// So many values follow.
    Aggregate { sigil: u8, elements: usize },
}

/// The value's first line, and the position behind it.
fn read_head(
    buf: &[u8],
    at: usize,
    scanned: &mut usize,
    limits: &ValueLimits,
) -> Result<Option<(Head, usize)>, ProtocolError> {
    let line = &buf[at..];
    let line = &line[..line.len().min(limits.line_max.saturating_add(2))];
    let Some(found) = memchr(b'\n', &line[*scanned..]) else {
        *scanned = line.len();
        return if line.len() > limits.line_max.saturating_add(1) {
            Err(ProtocolError::InvalidValue)
        } else {
            Ok(None)
        };
    };
    let found = *scanned + found;
    let line = line[..found].strip_suffix(b"\r").ok_or(ProtocolError::InvalidValue)?;
    Ok(Some((parse_head(line, limits)?, at + found + 1)))
}

fn parse_head(line: &[u8], limits: &ValueLimits) -> Result<Head, ProtocolError> {
    let (&sigil, rest) = line.split_first().ok_or(ProtocolError::InvalidValue)?;
    let count = |max: usize, error| match parse_i64(rest).map(usize::try_from) {
        Some(Ok(count)) if count <= max => Ok(count),
        _ => Err(error),
    };
    match sigil {
        b'$' | b'*' if rest == b"-1" => Ok(Head::Leaf),
        b'$' | b'!' | b'=' => {
            let len = count(limits.bulk_len_max, ProtocolError::InvalidBulkLength)?;
            if sigil == b'=' && len < 4 {
                return Err(ProtocolError::InvalidBulkLength);
            }
            Ok(Head::Text { sigil, len })
        }
        b'*' | b'~' | b'>' | b'%' | b'|' => {
            let count = count(limits.count_max, ProtocolError::InvalidMultibulkLength)?;
            let elements = match sigil {
                b'%' => count.checked_mul(2),
                b'|' => count.checked_mul(2).and_then(|elements| elements.checked_add(1)),
                _ => Some(count),
            };
            Ok(Head::Aggregate { sigil, elements: elements.ok_or(ProtocolError::InvalidMultibulkLength)? })
        }
        b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => {
            leaf(line)?;
            Ok(Head::Leaf)
        }
        other => Err(ProtocolError::UnknownType(other)),
    }
}

/// A value of one line.
fn leaf(line: &[u8]) -> Result<Value, ProtocolError> {
    let rest = &line[1..];
    let value = match line[0] {
        b'+' => Some(Value::Simple(rest.to_vec())),
        b'-' => Some(Value::Error(rest.to_vec())),
        b':' => parse_i64(rest).map(Value::Int),
        b'$' => Some(Value::NullBulk),
        b'*' => Some(Value::NullArray),
        b'_' => rest.is_empty().then_some(Value::Null),
        b'#' => match rest {
            b"t" => Some(Value::Boolean(true)),
            b"f" => Some(Value::Boolean(false)),
            _ => None,
        },
        b',' => std::str::from_utf8(rest).ok().and_then(|text| text.parse().ok()).map(Value::Double),
        b'(' => {
            let digits = rest.strip_prefix(b"-").unwrap_or(rest);
            let good = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
            good.then(|| Value::BigNumber(rest.to_vec()))
        }
        _ => None,
    };
    value.ok_or(ProtocolError::InvalidValue)
}

/// Builds the value at `at` of a buffer that was walked before, and moves `at` behind it.
///
/// Recurses; the walk has bounded the depth.
fn build(buf: &[u8], at: &mut usize) -> Result<Value, ProtocolError> {
    let unlimited =
        ValueLimits { depth_max: usize::MAX, bulk_len_max: usize::MAX, count_max: usize::MAX, line_max: usize::MAX };
    let start = *at;
    let (head, next) = read_head(buf, start, &mut 0, &unlimited)?.ok_or(ProtocolError::InvalidValue)?;
    *at = next;
    match head {
        Head::Leaf => leaf(&buf[start..next - 2]),
        Head::Text { sigil, len } => {
            let text = &buf[next..next + len];
            *at = next + len + 2;
            Ok(match sigil {
                b'!' => Value::Error(text.to_vec()),
                b'=' => Value::Verbatim { format: [text[0], text[1], text[2]], text: text[4..].to_vec() },
                _ => Value::Bulk(text.to_vec()),
            })
        }
        Head::Aggregate { sigil, elements } => match sigil {
            b'%' => Ok(Value::Map(pairs(buf, at, elements / 2)?)),
            b'|' => Ok(Value::Attribute(pairs(buf, at, elements / 2)?, Box::new(build(buf, at)?))),
            _ => {
                let values = (0..elements).map(|_| build(buf, at)).collect::<Result<_, _>>()?;
                Ok(match sigil {
                    b'~' => Value::Set(values),
                    b'>' => Value::Push(values),
                    _ => Value::Array(values),
                })
            }
        },
    }
}

fn pairs(buf: &[u8], at: &mut usize, count: usize) -> Result<Vec<(Value, Value)>, ProtocolError> {
    (0..count).map(|_| Ok((build(buf, at)?, build(buf, at)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, expected: Value) {
        let whole = Value::decode(input.as_bytes());
        assert_eq!(whole, Ok(Some((expected.clone(), input.len()))), "{input:?}");
        // Byte by byte, with more behind it: the same.
        let mut decoder = ValueDecoder::new();
        for cut in 0..input.len() {
            assert_eq!(decoder.next(&input.as_bytes()[..cut], &ValueLimits::default()), Ok(None), "{input:?} {cut}");
        }
        let longer = format!("{input}:1\r\n");
        let got = decoder.next(longer.as_bytes(), &ValueLimits::default());
        assert_eq!(got, Ok(Some((expected, input.len()))));
        let got = decoder.next(&longer.as_bytes()[input.len()..], &ValueLimits::default());
        assert_eq!(got, Ok(Some((Value::Int(1), 4))), "the decoder is ready for the next value");
    }

    #[test]
    fn every_type() {
        let bulk = |text: &str| Value::Bulk(text.into());
        check("+OK\r\n", Value::Simple(b"OK".to_vec()));
        check("-ERR x\r\n", Value::Error(b"ERR x".to_vec()));
        check("!5\r\nERR\r\n\r\n", Value::Error(b"ERR\r\n".to_vec()));
        check(":-12\r\n", Value::Int(-12));
        check("$3\r\na\r\n\r\n", bulk("a\r\n"));
        check("$0\r\n\r\n", bulk(""));
        check("$-1\r\n", Value::NullBulk);
        check("*-1\r\n", Value::NullArray);
        check("_\r\n", Value::Null);
        check("*0\r\n", Value::Array(vec![]));
        check("*2\r\n*1\r\n$1\r\na\r\n*0\r\n", Value::Array(vec![Value::Array(vec![bulk("a")]), Value::Array(vec![])]));
        check("%1\r\n+k\r\n%0\r\n", Value::Map(vec![(Value::Simple(b"k".to_vec()), Value::Map(vec![]))]));
        check("~1\r\n:1\r\n", Value::Set(vec![Value::Int(1)]));
        check(">1\r\n:1\r\n", Value::Push(vec![Value::Int(1)]));
        check(
            "|1\r\n:1\r\n:2\r\n:3\r\n",
            Value::Attribute(vec![(Value::Int(1), Value::Int(2))], Box::new(Value::Int(3))),
        );
        check("|0\r\n:3\r\n", Value::Attribute(vec![], Box::new(Value::Int(3))));
        check(",3.1\r\n", Value::Double(3.1));
        check(",-inf\r\n", Value::Double(f64::NEG_INFINITY));
        check("#t\r\n", Value::Boolean(true));
        check("(-123456789012345678901\r\n", Value::BigNumber(b"-123456789012345678901".to_vec()));
        check("=6\r\ntxt:hi\r\n", Value::Verbatim { format: *b"txt", text: b"hi".to_vec() });
    }

    #[test]
    fn errors() {
        use ProtocolError::*;
        let cases = [
            ("x\r\n", UnknownType(b'x')),
            ("\r\n", InvalidValue),
            (":1\n", InvalidValue),
            (":1x\r\n", InvalidValue),
            (":\r\n", InvalidValue),
            ("_x\r\n", InvalidValue),
            ("#x\r\n", InvalidValue),
            (",x\r\n", InvalidValue),
            ("(1x\r\n", InvalidValue),
            ("$1\r\nabc", InvalidValue),
            ("$-2\r\n", InvalidBulkLength),
            ("$536870913\r\n", InvalidBulkLength),
            ("=3\r\ntxt\r\n", InvalidBulkLength),
            ("*-2\r\n", InvalidMultibulkLength),
            ("%-1\r\n", InvalidMultibulkLength),
            ("%9223372036854775807\r\n", InvalidMultibulkLength),
        ];
        for (input, expected) in cases {
            assert_eq!(Value::decode(input.as_bytes()), Err(expected), "{input:?}");
        }
        assert_eq!(Value::decode("*1\r\n".repeat(64).as_bytes()), Ok(None));
        assert_eq!(Value::decode("*1\r\n".repeat(65).as_bytes()), Err(NestedTooDeep));
        let limits = ValueLimits { line_max: 4, ..ValueLimits::default() };
        assert_eq!(ValueDecoder::new().next(b"+abcd", &limits), Ok(None));
        assert_eq!(ValueDecoder::new().next(b"+abc\r\n", &limits), Ok(Some((Value::Simple(b"abc".to_vec()), 6))));
        assert_eq!(ValueDecoder::new().next(b"+abcde", &limits), Err(InvalidValue));
    }
}
