//! Changing a string where it is: growing it and writing into it. Knows no command and no limit of its length.

use super::{Deadline, KeyCx};
use crate::string::{self, Text};
use tenon_store::Slot;
use tenon_store::entry::{INLINE_LEN_MAX, Marks, NewValue, ValueRef};
use tenon_store::types::{Object, Rope};

impl KeyCx<'_> {
    /// Adds text at the end of the string in a slot; deadline and flags stay. A long string's bytes are not moved.
    ///
    /// # Panics
    /// When the key holds no string: [`KeyCx::string`] tells.
    pub fn append(&mut self, slot: Slot, tail: Text<'_>) {
        let value = self.string(slot).expect("the key holds a string");
        if let ValueRef::Object(_) = value {
            self.change_object(slot, |object| {
                let rope = object.as_rope().expect("the object is a string");
                tail.for_each_slice(|slice| rope.append(slice));
            });
            return;
        }
        let before = string::len(value);
        let len = before + tail.len();
        if let ValueRef::Bytes(_) = value
            && len <= INLINE_LEN_MAX
        {
            self.grow(slot, len, |text| {
                let mut at = before;
                tail.for_each_slice(|slice| {
                    text[at..at + slice.len()].copy_from_slice(slice);
                    at += slice.len();
                });
            });
        } else if len <= INLINE_LEN_MAX {
            let mut joined = Vec::with_capacity(len);
            string::for_each_slice(value, |slice| joined.extend_from_slice(slice));
            tail.for_each_slice(|slice| joined.extend_from_slice(slice));
            self.rewrite(slot, NewValue::Bytes(&joined));
            self.mark_raw(slot);
        } else {
            let mut rope = Rope::new();
            string::for_each_slice(value, |slice| rope.append(slice));
            tail.for_each_slice(|slice| rope.append(slice));
            self.rewrite(slot, NewValue::Object(Box::new(Object::Rope(rope))));
        }
    }

    /// Adds text before the short string in a slot where that stays one, and is too long for a number, which are kept as such;
    /// tells whether it did. Deadline and flags stay.
    pub fn prepend_short(&mut self, slot: Slot, head: &[u8]) -> bool {
        /// More bytes than a number has, and than a string that Redis does not call raw.
        const LEN_MIN: usize = 64;
        let ValueRef::Bytes(value) = self.entry(slot).value() else { return false };
        let (before, len) = (value.len(), value.len() + head.len());
        if before < LEN_MIN || len > INLINE_LEN_MAX {
            return false;
        }
        self.grow(slot, len, |text| {
            text.copy_within(..before, head.len());
            text[..head.len()].copy_from_slice(head);
        });
        true
    }

    /// Makes the short string in a slot longer, so that it has `len` bytes, and has `fill` write into it: nothing is made of it
    /// beside the entry, and as a rule that stays where it is, as its block has room for a few bytes more.
    fn grow(&mut self, slot: Slot, len: usize, fill: impl FnOnce(&mut [u8])) {
        let access = self.access_of_stored(slot);
        self.keyspace_mut().grow(slot, len);
        let mut entry = self.entry_mut(slot);
        fill(entry.inline_bytes().expect("the value is a short string"));
        entry.set_access(access);
        entry.set_marks(Marks::NONE);
        entry.clear_cas();
        entry.mark_raw();
        self.changed();
    }

    /// Writes text into the string in a slot from byte `offset` on, which grows with zero bytes as far as needed;
    /// deadline and flags stay. Gives the new length in bytes.
    ///
    /// # Panics
    /// When the key holds no string: [`KeyCx::string`] tells.
    pub fn write_at(&mut self, slot: Slot, offset: usize, text: Text<'_>) -> usize {
        let value = self.string(slot).expect("the key holds a string");
        let before = string::len(value);
        let len = before.max(offset + text.len());
        match (value, text) {
            (ValueRef::Bytes(_), Text::Bytes(bytes)) if len == before => {
                let end = offset + bytes.len();
                let done = self.change_inline(slot, |place| place[offset..end].copy_from_slice(bytes));
                debug_assert!(done, "the value is a short string");
                self.mark_raw(slot);
            }
            (ValueRef::Object(_), text) => self.change_object(slot, |object| {
                let was_shared = matches!(object, Object::Shared(_));
                let rope = object.as_rope().expect("the object is a string");
                write_into(rope, offset, &text);
                if was_shared {
                    // Still in one chunk, it can go on leaving the lock as a reference.
                    *object = Object::from_rope(std::mem::take(rope));
                }
            }),
            (ValueRef::Bytes(_), Text::Bytes(bytes)) if len <= INLINE_LEN_MAX => {
                self.grow(slot, len, |place| place[offset..offset + bytes.len()].copy_from_slice(bytes));
            }
            (_, Text::Bytes(bytes)) if len <= INLINE_LEN_MAX => {
                let mut whole = string::to_vec(value);
                whole.resize(len, 0);
                whole[offset..offset + bytes.len()].copy_from_slice(bytes);
                self.rewrite(slot, NewValue::Bytes(&whole));
                self.mark_raw(slot);
            }
            (_, text) => {
                let mut rope = Rope::new();
                string::for_each_slice(value, |slice| rope.append(slice));
                write_into(&mut rope, offset, &text);
                self.rewrite(slot, NewValue::Object(Box::new(Object::from_rope(rope))));
            }
        }
        len
    }

    /// Stores text behind `offset` zero bytes as a new key.
    pub fn create_at(&mut self, offset: usize, text: &Text<'_>) {
        let len = offset + text.len();
        if len <= INLINE_LEN_MAX {
            let mut bytes = Vec::with_capacity(len);
            bytes.resize(offset, 0);
            text.for_each_slice(|slice| bytes.extend_from_slice(slice));
            self.store_raw(None, NewValue::Bytes(&bytes), Deadline::Clear);
        } else {
            let mut rope = Rope::new();
            write_into(&mut rope, offset, text);
            self.store_raw(None, NewValue::Object(Box::new(Object::from_rope(rope))), Deadline::Clear);
        }
    }

    /// Stores a string that no client has sent as it is: unlike one that is set it is never an integer, and Redis calls
    /// its encoding raw however short it is. memcached's flags go back to 0.
    pub fn store_raw(&mut self, slot: Option<Slot>, value: NewValue<'_>, deadline: Deadline) {
        self.store(slot, value, deadline, 0, None);
        let slot = slot.or_else(|| self.find());
        // A deadline in the past leaves nothing to mark.
        if let Some(slot) = slot {
            self.mark_raw(slot);
        }
    }
}

/// Writes text into a rope from byte `offset` on.
fn write_into(rope: &mut Rope, offset: usize, text: &Text<'_>) {
    let mut at = offset;
    text.for_each_slice(|slice| {
        rope.write_at(at, slice);
        at += slice.len();
    });
}
