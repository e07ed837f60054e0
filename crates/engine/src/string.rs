//! Strings as values: from an argument into the store, and out of it as a number, a length or bytes. Knows no key and
//! no command.

use crate::args::Args;
use std::ops::Range;
use tenon_store::entry::{INLINE_LEN_MAX, NewValue, ValueRef};
use tenon_store::types::{Object, Rope};
use tenon_wire::resp::number::parse_i64;

/// Longest text that is stored as an integer, in bytes: the sign and 19 digits.
const INT_LEN_MAX: usize = 20;

/// Longest number of memcached's, in bytes: 64 bits without a sign.
const COUNTER_LEN_MAX: usize = 20;

/// A string on its way into the store.
#[derive(Debug)]
pub enum Text<'a> {
    /// A short one, or one that lies in the client's bytes.
    Bytes(&'a [u8]),
    /// A long one, in the chunks that it arrived in.
    Rope(Rope),
}

impl<'a> Text<'a> {
    /// Argument `index`. A long one is moved out of the arguments: this is for a command that is about to store it.
    #[inline(always)]
    pub fn of_arg(args: &Args<'a>, index: usize) -> Text<'a> {
        match args.in_input(index) {
            Some(bytes) => Text::Bytes(bytes),
            None => Text::of_arg_elsewhere(args, index),
        }
    }

    #[cold]
    fn of_arg_elsewhere(args: &Args<'a>, index: usize) -> Text<'a> {
        match args.big(index) {
            Some(big) if big.len() > INLINE_LEN_MAX => Text::Rope(big.take()),
            _ => Text::Bytes(args.get(index)),
        }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Text::Bytes(bytes) => bytes.len(),
            Text::Rope(rope) => rope.len(),
        }
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value to be stored: an integer when the text is the one decimal form of an i64, as in Redis.
    #[inline(always)]
    pub fn into_value(self) -> NewValue<'a> {
        match self {
            Text::Bytes(bytes) => match encoded_int(bytes) {
                Some(int) => NewValue::Int(int),
                None => NewValue::Bytes(bytes),
            },
            Text::Rope(rope) => NewValue::Object(Box::new(Object::from_rope(rope))),
        }
    }

    /// The slices that make up the text, in order.
    pub fn for_each_slice(&self, mut visit: impl FnMut(&[u8])) {
        match self {
            Text::Bytes(bytes) => visit(bytes),
            Text::Rope(rope) => rope.slices().for_each(visit),
        }
    }
}

#[inline(always)]
fn encoded_int(bytes: &[u8]) -> Option<i64> {
    // Most texts that are no number differ in their first byte.
    if bytes.len() > INT_LEN_MAX || !matches!(bytes.first(), Some(b'0'..=b'9' | b'-')) {
        return None;
    }
    parse_i64(bytes)
}

/// The integer that a stored string is, in the one decimal form that Redis takes.
#[inline]
pub fn integer(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int(int) => Some(int),
        ValueRef::Bytes(bytes) => parse_i64(bytes),
        ValueRef::Object(_) | ValueRef::Packed(..) => None,
    }
}

/// A number's text without the blanks that memcached's `decr` has left behind it, which makes no text shorter. What `decr` cannot
/// have written is given as it is.
pub fn without_blanks(text: &[u8]) -> &[u8] {
    let [.., b' '] = text else { return text };
    let number = text.trim_ascii_end();
    let is_number = match number {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let are_blanks = text[number.len()..].iter().all(|&byte| byte == b' ');
    if is_number && are_blanks && text.len() <= COUNTER_LEN_MAX { number } else { text }
}

/// Length of a stored string in bytes.
pub fn len(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Int(int) => itoa::Buffer::new().format(int).len(),
        ValueRef::Bytes(bytes) => bytes.len(),
        ValueRef::Object(Object::Shared(bytes)) => bytes.len(),
        ValueRef::Object(Object::Rope(rope)) => rope.len(),
        ValueRef::Packed(..) | ValueRef::Object(_) => no_string(),
    }
}

/// Calls `visit` with the slices that make up a stored string, in order.
pub fn for_each_slice(value: ValueRef<'_>, mut visit: impl FnMut(&[u8])) {
    match value {
        ValueRef::Int(int) => visit(itoa::Buffer::new().format(int).as_bytes()),
        ValueRef::Bytes(bytes) => visit(bytes),
        ValueRef::Object(Object::Shared(bytes)) => visit(bytes),
        ValueRef::Object(Object::Rope(rope)) => rope.slices().for_each(visit),
        ValueRef::Packed(..) | ValueRef::Object(_) => no_string(),
    }
}

/// The slices that make up the bytes of `range` of a stored string, in order. An integer's digits are written into
/// `digits`.
///
/// # Panics
/// When the range does not lie inside the string.
pub fn slices_in<'a>(
    value: ValueRef<'a>,
    range: Range<usize>,
    digits: &'a mut itoa::Buffer,
) -> impl Iterator<Item = &'a [u8]> {
    let (piece, rope) = match value {
        ValueRef::Int(int) => (Some(digits.format(int).as_bytes()), None),
        ValueRef::Bytes(bytes) => (Some(bytes), None),
        ValueRef::Object(Object::Shared(bytes)) => (Some(&bytes[..]), None),
        ValueRef::Object(Object::Rope(rope)) => (None, Some(rope)),
        ValueRef::Packed(..) | ValueRef::Object(_) => no_string(),
    };
    let piece = piece.map(|piece| &piece[range.clone()]);
    piece.into_iter().chain(rope.into_iter().flat_map(move |rope| rope.slices_in(range.clone())))
}

/// Byte `index` of a stored string, if it is so long.
pub fn byte_at(value: ValueRef<'_>, index: usize) -> Option<u8> {
    if index >= len(value) {
        return None;
    }
    let mut digits = itoa::Buffer::new();
    slices_in(value, index..index + 1, &mut digits).next().map(|slice| slice[0])
}

/// A stored string in one piece of its own.
pub fn to_vec(value: ValueRef<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len(value));
    for_each_slice(value, |slice| bytes.extend_from_slice(slice));
    bytes
}

/// What the functions on strings answer to a collection, which none of their callers gives them:
/// [`KeyCx::string`](crate::context::KeyCx::string) tells them apart.
#[cold]
pub fn no_string() -> ! {
    panic!("the value is a collection where only a string can be")
}

/// Whether a stored string is these bytes.
pub fn equals(value: ValueRef<'_>, bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let mut equal = len(value) == bytes.len();
    for_each_slice(value, |slice| {
        if equal {
            let (now, later) = rest.split_at(slice.len());
            equal = now == slice;
            rest = later;
        }
    });
    equal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{BigArg, OwnedArgs};
    use bytes::Bytes;
    use tenon_store::types::CHUNK_LEN;
    use tenon_wire::Span;

    #[test]
    fn only_the_one_spelling_becomes_an_integer() {
        for text in ["0", "7", "-7", "9223372036854775807", "-9223372036854775808"] {
            let value = Text::Bytes(text.as_bytes()).into_value();
            assert!(matches!(value, NewValue::Int(int) if int.to_string() == text), "{text}");
        }
        for text in ["", "-", "-0", "+5", " 5", "5 ", "05", "1e3", "x", "9223372036854775808", "-9223372036854775809"] {
            assert!(matches!(Text::Bytes(text.as_bytes()).into_value(), NewValue::Bytes(_)), "{text:?}");
        }
    }

    #[test]
    fn long_arguments_are_moved_and_short_ones_are_not() {
        for (len, moved) in [(1, false), (INLINE_LEN_MAX, false), (INLINE_LEN_MAX + 1, true), (CHUNK_LEN * 2, true)] {
            let bigs = [BigArg::new(Rope::from(&vec![b'1'; len][..]))];
            let spans = [Span::big(0)];
            let args = Args::new(&spans, b"", b"", &bigs);
            let text = Text::of_arg(&args, 0);
            assert_eq!((text.len(), matches!(text, Text::Rope(_))), (len, moved));
            assert_eq!(matches!(text.into_value(), NewValue::Object(_)), moved);
        }
        let owned = OwnedArgs::new(["12"]);
        assert!(matches!(Text::of_arg(&owned.view(), 0).into_value(), NewValue::Int(12)));
    }

    #[test]
    fn every_kind_reads_as_its_bytes() {
        let long = vec![b'v'; CHUNK_LEN * 2 + 7];
        let shared = Object::Shared(Bytes::from(long[..CHUNK_LEN].to_vec()));
        let rope = Object::Rope(Rope::from(&long[..]));
        let kinds: [(ValueRef<'_>, &[u8]); 5] = [
            (ValueRef::Int(-120), b"-120"),
            (ValueRef::Bytes(b"abc"), b"abc"),
            (ValueRef::Bytes(b""), b""),
            (ValueRef::Object(&shared), &long[..CHUNK_LEN]),
            (ValueRef::Object(&rope), &long),
        ];
        for (value, bytes) in kinds {
            assert_eq!((len(value), to_vec(value)), (bytes.len(), bytes.to_vec()));
            for range in [0..0, 0..bytes.len(), bytes.len() / 3..bytes.len() / 2, bytes.len()..bytes.len()] {
                let slices = slices_in(value, range.clone(), &mut itoa::Buffer::new()).collect::<Vec<_>>().concat();
                assert_eq!(slices, bytes[range]);
            }
            for index in [0, bytes.len() / 2, bytes.len().saturating_sub(1), bytes.len(), usize::MAX] {
                assert_eq!(byte_at(value, index), bytes.get(index).copied());
            }
            assert!(equals(value, bytes));
            assert!(!equals(value, &[bytes, b"x"].concat()));
            if let Some((last, rest)) = bytes.split_last() {
                assert!(!equals(value, &[rest, &[last ^ 1]].concat()));
            }
        }
        assert_eq!(integer(ValueRef::Bytes(b"-120")), Some(-120));
        assert_eq!(integer(ValueRef::Bytes(b" 1")), None);
        assert_eq!(integer(ValueRef::Object(&shared)), None);
    }
}
