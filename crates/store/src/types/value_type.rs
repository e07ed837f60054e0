//! The types of values as clients name them. Knows no encoding beyond which type it belongs to.

use super::{Object, PackedKind};
use crate::entry::ValueRef;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// A string, whatever is written in it.
    String,
    /// A list.
    List,
    /// A set.
    Set,
    /// A sorted set.
    Zset,
    /// A hash.
    Hash,
    /// A stream.
    Stream,
}

impl ValueType {
    /// Every type.
    pub const ALL: [ValueType; 6] =
        [ValueType::String, ValueType::List, ValueType::Set, ValueType::Zset, ValueType::Hash, ValueType::Stream];

    /// The name that TYPE gives and SCAN takes.
    pub fn name(self) -> &'static str {
        match self {
            ValueType::String => "string",
            ValueType::List => "list",
            ValueType::Set => "set",
            ValueType::Zset => "zset",
            ValueType::Hash => "hash",
            ValueType::Stream => "stream",
        }
    }

    /// The type of a value.
    pub fn of(value: ValueRef<'_>) -> ValueType {
        match value {
            ValueRef::Bytes(_) | ValueRef::Int(_) | ValueRef::Object(Object::Shared(_) | Object::Rope(_)) => {
                ValueType::String
            }
            ValueRef::Packed(form, _) => match form.kind {
                PackedKind::List => ValueType::List,
                PackedKind::Hash => ValueType::Hash,
                PackedKind::Set | PackedKind::IntSet => ValueType::Set,
                PackedKind::Zset => ValueType::Zset,
            },
            ValueRef::Object(Object::List(_)) => ValueType::List,
            ValueRef::Object(Object::Hash(_)) => ValueType::Hash,
            ValueRef::Object(Object::Set(_)) => ValueType::Set,
            ValueRef::Object(Object::Zset(_)) => ValueType::Zset,
            ValueRef::Object(Object::Stream(_)) => ValueType::Stream,
        }
    }
}
