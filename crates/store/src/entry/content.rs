//! What an entry holds, before it is made and as it is read. Knows no bytes.

use super::Marks;
use crate::types::{Collection, DeadlinesRef, Object, PACKED_INLINE_MAX, PackedDeadlines, PackedForm};

/// What is to be stored.
#[derive(Debug)]
pub enum NewValue<'a> {
    /// A string; short ones are copied into the entry, long ones into an object.
    Bytes(&'a [u8]),
    /// A string that is the decimal form of this number.
    Int(i64),
    /// A small collection in its packed form, at most `INLINE_LEN_MAX` bytes of it.
    Packed(PackedForm, &'a [u8]),
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
    Packed(PackedForm, &'a [u8]),
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
    /// Hands a collection to `put` as it is to be stored: packed while it is small, otherwise as an object. Gives what that
    /// gives, and the packed bytes' allocation to be used again.
    #[inline]
    pub fn of_collection<T: Collection, R>(collection: T, put: impl FnOnce(NewValue<'_>) -> R) -> (R, Option<Vec<u8>>) {
        if collection.packs_into(PACKED_INLINE_MAX) {
            let (result, bytes) = collection.pack(|form, bytes| put(NewValue::Packed(form, bytes)));
            (result, Some(bytes))
        } else {
            (put(NewValue::Object(Box::new(collection.into_object()))), None)
        }
    }

    /// When the first member of a collection expires, in milliseconds since the UNIX epoch.
    #[inline]
    pub fn members_due_ms(&self) -> Option<u64> {
        match self {
            NewValue::Object(object) => object.members_due_ms(),
            NewValue::Packed(form, bytes) => PackedDeadlines::of_packed(*form, bytes)?.next_ms(),
            NewValue::Bytes(_) | NewValue::Int(_) => None,
        }
    }

    /// Whether it is a collection of which a member expires.
    pub fn has_expiring_members(&self) -> bool {
        match self {
            NewValue::Object(object) => object.deadlines().is_some(),
            NewValue::Packed(form, _) => form.has_deadlines,
            NewValue::Bytes(_) | NewValue::Int(_) => false,
        }
    }
}

impl<'a> ValueRef<'a> {
    /// The collection of this type that the value is, for reading; `None` when it is something else.
    #[inline]
    pub fn collection<T: Collection>(self) -> Option<T::View<'a>> {
        match self {
            ValueRef::Packed(form, bytes) => T::view_packed(form, bytes),
            ValueRef::Object(object) => T::of_object(object).map(T::view),
            ValueRef::Bytes(_) | ValueRef::Int(_) => None,
        }
    }

    /// The deadlines of a collection's members, if any has one.
    pub fn deadlines(self) -> Option<DeadlinesRef<'a>> {
        match self {
            ValueRef::Object(object) => object.deadlines(),
            ValueRef::Packed(form, bytes) => PackedDeadlines::of_packed(form, bytes).map(DeadlinesRef::Packed),
            ValueRef::Bytes(_) | ValueRef::Int(_) => None,
        }
    }

    /// When the first member of a collection expires, or what a stream remembers, in milliseconds since the UNIX epoch.
    pub fn members_due_ms(self) -> Option<u64> {
        match self {
            ValueRef::Object(object) => object.members_due_ms(),
            _ => self.deadlines().and_then(DeadlinesRef::next_ms),
        }
    }

    /// Whether it is a collection of which the deadlines of all members are past.
    pub fn are_members_past(self, now_ms: u64) -> bool {
        match self {
            ValueRef::Object(object) => object.is_past(now_ms),
            ValueRef::Packed(form, bytes) => {
                PackedDeadlines::of_packed(form, bytes).is_some_and(|deadlines| deadlines.are_all_past(now_ms))
            }
            ValueRef::Bytes(_) | ValueRef::Int(_) => false,
        }
    }
}
