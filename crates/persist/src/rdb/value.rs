//! A value on its way from a payload or a file into the store. Knows no form of writing.

use tenon_store::entry::NewValue;
use tenon_store::types::{Hash, List, Object, Rope, Set, Stream, Zset};
use tenon_wire::resp::number::parse_i64;

/// Longest text that is stored as an integer, in bytes: the sign and 19 digits.
const INT_LEN_MAX: usize = 20;

/// A value that was read; collections have elements.
#[derive(Debug)]
pub enum Value {
    /// A string.
    String(Vec<u8>),
    /// A long one that was compressed.
    Rope(Rope),
    /// A list.
    List(List),
    /// A hash.
    Hash(Hash),
    /// A set.
    Set(Set),
    /// A sorted set.
    Zset(Zset),
    /// A stream, the only one that may have no elements.
    Stream(Stream),
}

impl Value {
    /// Hands a string to `put` as it is to be stored: as a number, if it is one.
    pub fn store_string<R>(text: &[u8], put: impl FnOnce(NewValue<'_>) -> R) -> R {
        match parse_i64(text).filter(|_| text.len() <= INT_LEN_MAX) {
            Some(int) => put(NewValue::Int(int)),
            None => put(NewValue::Bytes(text)),
        }
    }

    /// Hands the value to `put` as it is to be stored: numbers and small collections lie in the entry.
    pub fn store<R>(self, put: impl FnOnce(NewValue<'_>) -> R) -> R {
        match self {
            Value::String(text) => Value::store_string(&text, put),
            Value::Rope(rope) => put(NewValue::Object(Box::new(Object::Rope(rope)))),
            Value::List(list) => NewValue::of_collection(list, put).0,
            Value::Hash(hash) => NewValue::of_collection(hash, put).0,
            Value::Set(set) => NewValue::of_collection(set, put).0,
            Value::Zset(zset) => NewValue::of_collection(zset, put).0,
            Value::Stream(stream) => NewValue::of_collection(stream, put).0,
        }
    }
}
