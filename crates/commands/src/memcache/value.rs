//! An item's data on its way into the store, and its length on the way out. Knows no verb.

use bytes::Bytes;
use tenon_engine::args::BigArg;
use tenon_engine::store::entry::{NewValue, ValueRef};
use tenon_engine::store::types::{Object, Rope};
use tenon_engine::wire::resp::number::parse_i64;

/// The longest decimal form of an i64, in bytes.
const INT_LEN_MAX: usize = 20;

/// Data that a client has sent.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// In its input.
    Bytes(&'a [u8]),
    /// Taken out of the stream in chunks. What is taken from it is not there any more.
    Big(&'a BigArg),
}

impl<'a> Data<'a> {
    /// Length in bytes.
    pub(super) fn len(self) -> usize {
        match self {
            Data::Bytes(bytes) => bytes.len(),
            Data::Big(big) => big.len(),
        }
    }

    /// The value to store.
    #[inline]
    pub(super) fn to_value(self) -> NewValue<'a> {
        match self {
            Data::Bytes(bytes) => value_of(bytes),
            Data::Big(big) => object_of(big.take()),
        }
    }

    /// The data in chunks.
    pub(super) fn to_rope(self) -> Rope {
        match self {
            Data::Bytes(bytes) => Rope::from(bytes),
            Data::Big(big) => big.take(),
        }
    }
}

/// The value for a string: a number where it is the decimal form of one.
#[inline]
pub(super) fn value_of(bytes: &[u8]) -> NewValue<'_> {
    match bytes.first() {
        Some(b'0'..=b'9' | b'-') if bytes.len() <= INT_LEN_MAX => match parse_i64(bytes) {
            Some(int) => NewValue::Int(int),
            None => NewValue::Bytes(bytes),
        },
        _ => NewValue::Bytes(bytes),
    }
}

/// The value for a long string in chunks.
pub(super) fn object_of(rope: Rope) -> NewValue<'static> {
    NewValue::Object(Box::new(Object::from_rope(rope)))
}

/// The pieces of a stored string, in order.
pub(super) fn pieces<'a>(value: ValueRef<'a>, digits: &'a mut itoa::Buffer) -> Vec<&'a [u8]> {
    match value {
        ValueRef::Bytes(bytes) => vec![bytes],
        ValueRef::Int(int) => vec![digits.format(int).as_bytes()],
        ValueRef::Object(Object::Shared(bytes)) => vec![&bytes[..]],
        ValueRef::Object(Object::Rope(rope)) => rope.slices().collect(),
    }
}

/// The length of a stored string in bytes.
pub(super) fn len_of(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Bytes(bytes) => bytes.len(),
        ValueRef::Int(int) => itoa::Buffer::new().format(int).len(),
        ValueRef::Object(Object::Shared(bytes)) => bytes.len(),
        ValueRef::Object(Object::Rope(rope)) => rope.len(),
    }
}

/// Adds data at the end of a long string where it is; nothing that is there moves, or only once.
pub(super) fn extend(object: &mut Object, data: Data<'_>) {
    if let Object::Shared(bytes) = object {
        // Readers may hold the bytes. In chunks, the next addition copies nothing.
        *object = Object::Rope(Rope::from(&bytes[..]));
    }
    let Object::Rope(rope) = object else { unreachable!("the one other kind was just replaced") };
    match data {
        Data::Bytes(bytes) => rope.append(bytes),
        Data::Big(big) => big.take().slices().for_each(|bytes| rope.append(bytes)),
    }
}

/// The pieces of a long string that go out by reference.
pub(super) fn shared_pieces(object: &Object) -> impl Iterator<Item = Bytes> + '_ {
    let (whole, rope) = match object {
        Object::Shared(bytes) => (Some(bytes.clone()), None),
        Object::Rope(rope) => (None, Some(rope)),
    };
    whole.into_iter().chain(rope.into_iter().flat_map(|rope| rope.range(0, rope.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_spelling_of_a_number_is_one() {
        for text in ["0", "-1", "9223372036854775807", "-9223372036854775808"] {
            assert!(matches!(value_of(text.as_bytes()), NewValue::Int(int) if int.to_string() == text), "{text}");
        }
        for text in ["", "-", "05", "-0", "+5", " 5", "5 ", "18446744073709551615", "x"] {
            assert!(matches!(value_of(text.as_bytes()), NewValue::Bytes(bytes) if bytes == text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_long_string_grows_at_its_end() {
        let mut object = Object::Shared(Bytes::from(vec![b'a'; 20_000]));
        extend(&mut object, Data::Bytes(b"bc"));
        extend(&mut object, Data::Big(&BigArg::new(Rope::from(&[b'd'; 300_000][..]))));
        let mut expected = vec![b'a'; 20_000];
        expected.extend_from_slice(b"bc");
        expected.extend_from_slice(&[b'd'; 300_000]);
        assert_eq!(len_of(ValueRef::Object(&object)), expected.len());
        assert_eq!(shared_pieces(&object).collect::<Vec<_>>().concat(), expected);
        assert_eq!(pieces(ValueRef::Object(&object), &mut itoa::Buffer::new()).concat(), expected);
    }
}
