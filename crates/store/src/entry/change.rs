//! What is changed of an entry where it lies.

use super::content::{Meta, NewValue, ValueRef};
use super::header::{HEADER, Header, Kind, NO_CAS, NO_DEADLINE, field};
use super::marks::Marks;
use super::place::{Lent, ObjectPlace};
use super::{EntryMut, EntryRef, FREED_HERE_MAX, INLINE_LEN_MAX};
use crate::types::Object;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use tenon_ds::slab;

impl<'a> EntryMut<'a> {
    /// The shared view.
    #[inline]
    pub fn view(&self) -> EntryRef<'_> {
        EntryRef(self.0, PhantomData)
    }

    #[inline]
    fn set_header(&mut self, header: Header) {
        // SAFETY: every entry starts with its header.
        unsafe { self.0.cast::<Header>().write_unaligned(header) }
    }

    /// Sets the access clock or frequency, of which 24 bits are kept.
    #[inline]
    pub fn set_access(&mut self, access: u32) {
        self.set_header(self.view().header().with_access(access));
    }

    /// Sets the access clock or frequency, and marks the item as fetched.
    #[inline]
    pub fn fetched(&mut self, access: u32) {
        let header = self.view().header();
        let fetched = header.fetched(access);
        // The clock counts seconds: most reads of a busy key find both set, and leave its cache line clean.
        if header != fetched {
            self.set_header(fetched);
        }
    }

    /// Sets the snapshot's bit: see `keyspace/snapshot.rs`.
    #[inline]
    pub fn set_snapshot_bit(&mut self, bit: bool) {
        let header = self.view().header();
        if header.snapshot_bit() != bit {
            self.set_header(header.with_snapshot_bit(bit));
        }
    }

    /// Sets what memcached's meta commands note of the value.
    pub fn set_marks(&mut self, marks: Marks) {
        self.set_header(self.view().header().with_marks(marks));
    }

    /// Notes that the short string was changed since it was set. The next value that is set takes the note away.
    pub fn mark_raw(&mut self) {
        self.set_header(self.view().header().raw());
    }

    /// Takes the CAS token away, as the value has changed; the next client that asks gets a new one.
    #[inline]
    pub fn clear_cas(&mut self) {
        let header = self.view().header();
        if header.has(field::CAS) {
            // SAFETY: the header says that the field is there.
            unsafe { self.0.add(header.offset_of(field::CAS)).cast::<u64>().write_unaligned(NO_CAS) }
        }
    }

    /// The integer, to be changed where it is.
    #[inline]
    pub fn set_int(&mut self, value: i64) {
        assert!(self.view().header().kind() == Kind::Int, "only an integer becomes another in place");
        let offset = self.view().value_offset();
        // SAFETY: the value of this kind is eight bytes behind the key.
        unsafe { self.0.add(offset).cast::<i64>().write_unaligned(value) }
    }

    /// The object, if the value is one, to be changed: what was lent is taken back or copied.
    pub fn object(&mut self) -> Option<&mut Object> {
        if self.view().header().kind() != Kind::Object {
            return None;
        }
        // SAFETY: the object is owned by this entry, which is borrowed exclusively.
        match unsafe { self.view().object_place().own() } {
            Some(object) => Some(object),
            None => Some(self.take_back()),
        }
    }

    #[cold]
    fn take_back(&mut self) -> &mut Object {
        // SAFETY: the value is an object, which is owned by this entry, and its new address is put down before anybody looks.
        unsafe {
            let object = self.view().object_place().into_box();
            self.write_value(NewValue::Object(object));
            self.view().object_place().own().expect("it was taken back")
        }
    }

    /// Lends the object, if the value is one: whoever gets it may read it when the entry's shard is free. `None` also while
    /// somebody waits for those who read it already, as more would keep him waiting.
    pub fn lend(&mut self) -> Option<Arc<Lent>> {
        if self.view().header().kind() != Kind::Object {
            return None;
        }
        // SAFETY: the object is owned by this entry, which is borrowed exclusively, and its new address is put down.
        unsafe {
            let (place, lent) = self.view().object_place().lend();
            self.0.add(self.view().value_offset()).cast::<ObjectPlace>().write_unaligned(place);
            lent
        }
    }

    /// The bytes of a short string, to be changed where they are.
    pub fn inline_bytes(&mut self) -> Option<&mut [u8]> {
        let header = self.view().header();
        if header.kind() != Kind::Inline {
            return None;
        }
        let offset = self.view().value_offset();
        // SAFETY: the value of this kind is that many bytes behind the key, borrowed exclusively.
        Some(unsafe { std::slice::from_raw_parts_mut(self.0.add(offset).as_ptr(), header.value_len()) })
    }

    /// Whether `meta` can be written without moving the entry.
    fn has_room_for(&self, meta: &Meta) -> bool {
        let header = self.view().header();
        (meta.deadline_ms.is_none() || header.has(field::DEADLINE))
            && (meta.cas.is_none() || header.has(field::CAS))
            && (meta.flags == 0 || header.has(field::FLAGS))
    }

    /// Writes `meta` where the entry has the fields for it; tells whether it did.
    pub fn try_set_meta(&mut self, meta: &Meta) -> bool {
        let fits = self.has_room_for(meta);
        if fits {
            self.write_meta(meta);
            self.set_header(self.view().header().with_access(meta.access).with_marks(meta.marks));
        }
        fits
    }

    pub(super) fn write_meta(&mut self, meta: &Meta) {
        let header = self.view().header();
        // SAFETY: each field is written only where the header says that it is there.
        unsafe {
            if header.has(field::DEADLINE) {
                let deadline = meta.deadline_ms.map_or(NO_DEADLINE, |ms| ms.min(NO_DEADLINE - 1));
                self.0.add(header.offset_of(field::DEADLINE)).cast::<u64>().write_unaligned(deadline);
            }
            if header.has(field::CAS) {
                let cas = meta.cas.unwrap_or(NO_CAS);
                self.0.add(header.offset_of(field::CAS)).cast::<u64>().write_unaligned(cas);
            }
            if header.has(field::FLAGS) {
                self.0.add(header.offset_of(field::FLAGS)).cast::<u32>().write_unaligned(meta.flags);
            }
        }
    }

    /// Writes when the first member expires, where the entry has the field for it; tells whether it has, or needs none.
    pub fn write_members_due(&mut self, due_ms: Option<u64>) -> bool {
        let header = self.view().header();
        if !header.has(field::MEMBERS_DUE) {
            return due_ms.is_none();
        }
        let due_ms = due_ms.unwrap_or(NO_DEADLINE);
        // SAFETY: the header says that the field is there.
        unsafe { self.0.add(header.offset_of(field::MEMBERS_DUE)).cast::<u64>().write_unaligned(due_ms) };
        true
    }

    /// Writes a short string over one of the same length in an entry that has nothing beside key and value; tells whether
    /// it is such. It is what [`EntryMut::try_overwrite`] does, for the case that is most frequent by far.
    #[inline(always)]
    pub fn try_write_over(&mut self, bytes: &[u8], access: u32) -> bool {
        let header = self.view().header();
        let fits = header.is_plain() && bytes.len() == header.plain_value_len();
        if fits {
            self.set_header(header.with_access(access).with_marks(Marks::NONE));
            // SAFETY: without fields the value lies behind header and key, and it is as long as the new one, which is
            // not part of the entry: that is borrowed exclusively.
            unsafe {
                let place = self.0.add(HEADER + header.short_key_len());
                place.copy_from_nonoverlapping(NonNull::from_ref(bytes).cast(), bytes.len());
            }
        }
        fits
    }

    /// Whether the block of an entry whose value is its own bytes has room for so many of them.
    #[inline]
    fn has_block_for(&self, value_len: usize) -> bool {
        let old_len = self.view().header().value_len();
        value_len <= INLINE_LEN_MAX
            && (value_len == old_len || {
                let size = self.view().size();
                slab::rounded(size - old_len + value_len) == slab::rounded(size) && size <= slab::SLAB_MAX
            })
    }

    /// Makes a short string longer by zero bytes, up to `len`, where the entry's block has room; tells whether it has. What
    /// else the entry says of it stays.
    pub fn try_grow(&mut self, len: usize) -> bool {
        let header = self.view().header();
        let old_len = header.value_len();
        let fits = header.kind() == Kind::Inline && old_len <= len && self.has_block_for(len);
        if fits {
            self.set_header(header.with_value_len(len));
            // SAFETY: a block of the same class has room for the new length, and the value is the last in it.
            unsafe { self.0.add(self.view().value_offset() + old_len).write_bytes(0, len - old_len) };
        }
        fits
    }

    /// Writes value and `meta` where they are when they fit the entry's block; gives the value back when not.
    pub fn try_overwrite<'v>(&mut self, value: NewValue<'v>, meta: &Meta) -> Result<(), NewValue<'v>> {
        if let NewValue::Bytes(bytes) = value
            && (meta.deadline_ms, meta.cas, meta.flags, meta.marks) == (None, None, 0, Marks::NONE)
            && self.try_write_over(bytes, meta.access)
        {
            return Ok(());
        }
        let header = self.view().header();
        let fits = match &value {
            NewValue::Bytes(bytes) => header.kind() == Kind::Inline && self.has_block_for(bytes.len()),
            NewValue::Packed(form, bytes) => header.is_packed(*form) && self.has_block_for(bytes.len()),
            NewValue::Int(_) => header.kind() == Kind::Int,
            // An object of many allocations is handed out instead, so that it can be freed when no shard is locked.
            NewValue::Object(_) => {
                matches!(self.view().value(), ValueRef::Object(old) if old.allocations() <= FREED_HERE_MAX)
            }
        };
        if !fits || !self.has_room_for(meta) || !self.write_members_due(value.members_due_ms()) {
            return Err(value);
        }
        if let NewValue::Bytes(bytes) | NewValue::Packed(_, bytes) = &value {
            self.set_header(header.with_value_len(bytes.len()));
        }
        self.write_meta(meta);
        self.set_header(self.view().header().with_access(meta.access).with_marks(meta.marks));
        let old = (header.kind() == Kind::Object).then(|| self.view().object_place());
        // SAFETY: the value's place holds a value of this kind; a block of the same class has room for the new
        // length. The old object is given up where its address is overwritten.
        unsafe {
            self.write_value(value);
            if let Some(old) = old {
                old.discard();
            }
        }
        Ok(())
    }

    /// # Safety
    /// The header's kind and length are the value's, and the block has room for it. What is there is not dropped.
    pub(super) unsafe fn write_value(&mut self, value: NewValue<'_>) {
        // SAFETY: as the function's contract says.
        unsafe {
            let place = self.0.add(self.view().value_offset());
            match value {
                NewValue::Bytes(bytes) | NewValue::Packed(_, bytes) => {
                    place.copy_from_nonoverlapping(NonNull::from_ref(bytes).cast(), bytes.len());
                }
                NewValue::Int(int) => place.cast::<i64>().write_unaligned(int),
                NewValue::Object(object) => place.cast::<ObjectPlace>().write_unaligned(ObjectPlace::of(object)),
            }
        }
    }
}
