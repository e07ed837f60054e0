//! The fields, lengths and size of an entry, from what it is to hold. Knows no memory.

use super::header::{Header, Kind, SHORT_KEY_MAX, field};
use super::{Meta, NewValue};

/// The fields, lengths and size of an entry that is to be made.
pub(super) struct Shape {
    kind: Kind,
    fields: u8,
    key_len: usize,
    value_len: usize,
    members_expire: bool,
}

impl Shape {
    pub(super) fn of(key_len: usize, value: &NewValue<'_>, meta: &Meta) -> Shape {
        let (kind, value_len, members_expire) = match value {
            NewValue::Bytes(bytes) => (Kind::Inline, bytes.len(), false),
            NewValue::Int(_) => (Kind::Int, 8, false),
            NewValue::Packed(form, bytes) => (Kind::from(form.kind), bytes.len(), form.has_deadlines),
            NewValue::Object(_) => (Kind::Object, 8, false),
        };
        let mut fields = 0;
        if meta.deadline_ms.is_some() {
            fields |= field::DEADLINE;
        }
        if meta.cas.is_some() {
            fields |= field::CAS;
        }
        if meta.flags != 0 {
            fields |= field::FLAGS;
        }
        if value.members_due_ms().is_some() {
            fields |= field::MEMBERS_DUE;
        }
        if key_len > SHORT_KEY_MAX {
            // Here and not when it is written: dropping a half-made entry would free whatever its bytes say.
            assert!(u32::try_from(key_len).is_ok(), "a key is shorter than 4 GiB");
            fields |= field::LONG_KEY;
        }
        Shape { kind, fields, key_len, value_len, members_expire }
    }

    pub(super) fn header(&self, access: u32) -> Header {
        let header = Header::new(self.kind, self.fields, self.key_len, self.value_len, access);
        header.with_members_expire(self.members_expire)
    }

    pub(super) fn size(&self) -> usize {
        self.header(0).key_offset() + self.key_len + self.value_len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "shorter than 4 GiB")]
    fn a_key_that_is_too_long_is_refused_before_anything_is_made() {
        Shape::of(1 << 32, &NewValue::Int(1), &Meta::default());
    }
}
