//! One key with its value, in one allocation. Knows nothing of tables, shards or commands.
//!
//! ```text
//! +--------+----------+-------+---------+------------+-------------+-----+-------+
//! | header | deadline | CAS   | flags   | key length | members due | key | value |
//! | 8 B    | 8 B ?    | 8 B ? | 4 B ?   | 4 B ?      | 8 B ?       |     |       |
//! +--------+----------+-------+---------+------------+-------------+-----+-------+
//!            present only where the header says so
//! ```
//!
//! The value is the bytes of a short string, the packed elements of a small collection, the eight bytes of an integer,
//! or where its `Object` is (`place.rs`). Where members of a collection expire, the entry says when the first one does, so that
//! whoever finds the key sees with one look at the header whether anything is due.

mod change;
mod content;
mod copies;
mod header;
mod marks;
mod place;
mod shape;
#[cfg(test)]
mod tests;
mod view;

use crate::types::Object;
pub use content::{Meta, NewValue, ValueRef};
pub use copies::EntryCopies;
use header::{HEADER, Header, Kind, field};
pub use marks::Marks;
pub use place::Lent;
use place::ObjectPlace;
use shape::Shape;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use tenon_ds::hash_table::Pointer;
use tenon_ds::slab;

/// Strings from this length on are objects of their own, so that a reader can leave the lock with a reference.
pub const INLINE_LEN_MAX: usize = 16 * 1024 - 1;

/// Allocations of an object that is freed where it is overwritten.
const FREED_HERE_MAX: usize = 16;

/// The number of the slab's class (`slab::class_number`) that an entry with a key and a string of these lengths is in, if
/// it has neither expiry nor client flags nor CAS token.
pub fn class_of_string(key_len: usize, len: usize) -> usize {
    let value_len = if len > INLINE_LEN_MAX { size_of::<ObjectPlace>() } else { len };
    slab::class_number(HEADER + key_len + value_len)
}

/// The owner of one entry.
pub struct Entry(NonNull<u8>);

// SAFETY: an entry owns its allocation, which is not tied to a thread, and its object.
unsafe impl Send for Entry where Object: Send {}

/// A shared view of an entry in its table.
#[derive(Clone, Copy)]
pub struct EntryRef<'a>(NonNull<u8>, PhantomData<&'a Entry>);

/// An exclusive view of an entry in its table.
pub struct EntryMut<'a>(NonNull<u8>, PhantomData<&'a mut Entry>);

impl Entry {
    /// Makes an entry.
    ///
    /// # Panics
    /// When the key has 4 GiB or more.
    pub fn new(key: &[u8], value: NewValue<'_>, meta: &Meta) -> Entry {
        let value = match value {
            NewValue::Bytes(bytes) if bytes.len() > INLINE_LEN_MAX => NewValue::Object(Box::new(Object::string(bytes))),
            other => other,
        };
        let shape = Shape::of(key.len(), &value, meta);
        let entry = Entry(slab::alloc(shape.size()));
        let header = shape.header(meta.access).with_marks(meta.marks);
        // SAFETY: the block has the shape's size, which is where these fields, the key and the value end.
        unsafe {
            entry.0.cast::<Header>().write_unaligned(header);
            if header.has(field::LONG_KEY) {
                entry.0.add(header.offset_of(field::LONG_KEY)).cast::<u32>().write_unaligned(key.len() as u32);
            }
            entry.0.add(header.key_offset()).copy_from_nonoverlapping(NonNull::from_ref(key).cast(), key.len());
        }
        let mut view = EntryMut(entry.0, PhantomData);
        view.write_meta(meta);
        view.write_members_due(value.members_due_ms());
        // SAFETY: the value's place is not initialised, and the shape has the value's kind and length.
        unsafe { view.write_value(value) };
        entry
    }

    /// The same entry, of a short string that is longer by zero bytes: `len` bytes long.
    ///
    /// # Panics
    /// When it is no short string, or would be none, or shorter.
    pub fn grown(entry: EntryRef<'_>, len: usize) -> Entry {
        let (header, size) = (entry.header(), entry.size());
        assert!(header.kind() == Kind::Inline && (header.value_len()..=INLINE_LEN_MAX).contains(&len));
        let more = len - header.value_len();
        let block = slab::alloc(size + more);
        // SAFETY: the new block has room for all of the entry, which is plain bytes as no object is part of it, and for what
        // its value, the last in it, grows by.
        unsafe {
            block.copy_from_nonoverlapping(entry.0, size);
            block.add(size).write_bytes(0, more);
            block.cast::<Header>().write_unaligned(header.with_value_len(len));
        }
        Entry(block)
    }

    /// A view of the entry.
    pub fn view(&self) -> EntryRef<'_> {
        EntryRef(self.0, PhantomData)
    }

    /// The entry, to be changed.
    pub fn view_mut(&mut self) -> EntryMut<'_> {
        EntryMut(self.0, PhantomData)
    }

    /// The same entry in another block.
    pub fn moved(self) -> Entry {
        let this = ManuallyDrop::new(self);
        let size = EntryRef(this.0, PhantomData).size();
        let block = slab::alloc(size);
        // SAFETY: the new block has room for all of the entry, which is plain bytes; the old block is freed once, and
        // the object, if any, now belongs to the new entry.
        unsafe {
            block.copy_from_nonoverlapping(this.0, size);
            slab::free(this.0, size);
        }
        Entry(block)
    }

    /// Gives up the entry for its object, if that is what the value is.
    pub fn into_object(self) -> Option<Box<Object>> {
        let this = ManuallyDrop::new(self);
        let view = EntryRef(this.0, PhantomData);
        // SAFETY: the entry is not used after; its object, if any, is taken out exactly once.
        unsafe {
            let object = (view.header().kind() == Kind::Object).then(|| view.object_place().into_box());
            slab::free(this.0, view.size());
            object
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("key", &self.view().key()).field("value", &self.view().value()).finish()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let view = self.view();
        // SAFETY: the entry is going away: it gives its object up, if any, and the block is freed once.
        unsafe {
            if view.header().kind() == Kind::Object {
                view.object_place().discard();
            }
            slab::free(self.0, view.size());
        }
    }
}

// SAFETY: the address comes from the slab or the global allocator, which give user addresses below 2^47; views borrow
// the entry through the table.
unsafe impl Pointer for Entry {
    const COUNTS_SLOTS: bool = true;

    type Ref<'a> = EntryRef<'a>;
    type Mut<'a> = EntryMut<'a>;

    #[inline]
    fn into_raw(self) -> NonNull<u8> {
        ManuallyDrop::new(self).0
    }

    #[inline]
    unsafe fn from_raw(raw: NonNull<u8>) -> Entry {
        Entry(raw)
    }

    #[inline]
    unsafe fn as_ref<'a>(raw: NonNull<u8>) -> EntryRef<'a> {
        EntryRef(raw, PhantomData)
    }

    #[inline]
    unsafe fn as_mut<'a>(raw: NonNull<u8>) -> EntryMut<'a> {
        EntryMut(raw, PhantomData)
    }
}
