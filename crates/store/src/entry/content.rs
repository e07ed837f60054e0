//! What an entry holds, before it is made and as it is read. Knows no bytes.

use super::Marks;
use crate::types::{MemberDeadlines, Object, PackedKind};

/// What is to be stored.
#[derive(Debug)]
pub enum NewValue<'a> {
    /// A string; short ones are copied into the entry, long ones into an object.
    Bytes(&'a [u8]),
    /// A string that is the decimal form of this number.
    Int(i64),
    /// A small collection in its packed form, at most `INLINE_LEN_MAX` bytes of it.
    Packed(PackedKind, &'a [u8]),
    /// Any other value, or a string that already is an object.
    Object(Box<Object>),
}

/// A value as it is stored.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// A short string.
    Bytes(&'a [u8]),
    /// A string that is the decimal form of this number.
    Int(i64),
    /// A small collection in its packed form.
    Packed(PackedKind, &'a [u8]),
    /// A long string or a large collection.
    Object(&'a Object),
}

/// What an entry says of its key beside the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// When the key expires, in milliseconds since the UNIX epoch.
    pub deadline_ms: Option<u64>,
    /// memcached's CAS token, on items that were asked for it.
    pub cas: Option<u64>,
    /// memcached's client flags.
    pub flags: u32,
    /// The access clock or frequency of the eviction policy, 24 bits.
    pub access: u32,
    /// What memcached's meta commands note of the value; a value that is set has none.
    pub marks: Marks,
}

impl NewValue<'_> {
    /// When the first member of a collection expires, in milliseconds since the UNIX epoch.
    pub(super) fn members_due_ms(&self) -> Option<u64> {
        match self {
            NewValue::Object(object) => object.members_due_ms(),
            NewValue::Bytes(_) | NewValue::Int(_) | NewValue::Packed(..) => None,
        }
    }
}

impl<'a> ValueRef<'a> {
    /// The deadlines of a collection's members, if any has one.
    pub fn deadlines(self) -> Option<&'a MemberDeadlines> {
        match self {
            ValueRef::Object(object) => object.deadlines(),
            ValueRef::Bytes(_) | ValueRef::Int(_) | ValueRef::Packed(..) => None,
        }
    }
}
