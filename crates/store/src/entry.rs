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
//! or the address of an `Object`. Where members of a collection expire, the entry says when the first one does, so that
//! whoever finds the key sees with one look at the header whether anything is due.

mod content;
mod header;
mod marks;
mod shape;
#[cfg(test)]
mod tests;

use crate::keyspace::is_past;
use crate::types::Object;
pub use content::{Meta, NewValue, ValueRef};
use header::{HEADER, Header, Kind, NO_CAS, NO_DEADLINE, field};
pub use marks::Marks;
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
    let value_len = if len > INLINE_LEN_MAX { size_of::<*mut Object>() } else { len };
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
            let object = (view.header().kind() == Kind::Object).then(|| Box::from_raw(view.object_address()));
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
        // SAFETY: the entry is going away: the object, if any, has no other owner, and the block is freed once.
        unsafe {
            if view.header().kind() == Kind::Object {
                drop(Box::from_raw(view.object_address()));
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

/// Copies of entries that are bytes and nothing else, to be read when their shard is no longer locked.
#[derive(Default)]
pub struct EntryCopies(Vec<u8>);

impl EntryCopies {
    /// No copies, with room for so many bytes.
    pub fn with_room_for(bytes: usize) -> EntryCopies {
        EntryCopies(Vec::with_capacity(bytes))
    }

    /// Bytes that there is room for.
    pub fn room(&self) -> usize {
        self.0.capacity()
    }

    /// Adds a copy of the entry, unless its value is an object; tells whether it did.
    pub fn push(&mut self, entry: EntryRef<'_>) -> bool {
        entry.copy_to(&mut self.0)
    }

    /// Bytes that the copies take.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Forgets them all and keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The entries, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = EntryRef<'_>> {
        let mut offset = 0;
        std::iter::from_fn(move || {
            (offset < self.0.len()).then(|| {
                // SAFETY: `push` alone adds bytes, whole entries, one behind the other.
                let (entry, end) = unsafe { EntryRef::in_copies(&self.0, offset) };
                offset = end;
                entry
            })
        })
    }
}

impl<'a> EntryRef<'a> {
    #[inline]
    fn header(self) -> Header {
        // SAFETY: every entry starts with its header.
        unsafe { self.0.cast::<Header>().read_unaligned() }
    }

    /// The bytes from `offset` on; both lie inside the entry.
    #[inline]
    unsafe fn bytes(self, offset: usize, len: usize) -> &'a [u8] {
        // SAFETY: the caller gives a range inside the initialised part of the entry, which lives for `'a`.
        unsafe { std::slice::from_raw_parts(self.0.add(offset).as_ptr(), len) }
    }

    #[inline]
    fn key_len(self) -> usize {
        let header = self.header();
        if header.has(field::LONG_KEY) {
            // SAFETY: the header says that the field is there.
            unsafe { self.0.add(header.offset_of(field::LONG_KEY)).cast::<u32>().read_unaligned() as usize }
        } else {
            header.short_key_len()
        }
    }

    /// The key.
    #[inline]
    pub fn key(self) -> &'a [u8] {
        let header = self.header();
        if header.fields() == 0 {
            // SAFETY: the key lies there when no field lies before it, and is not a long one then.
            return unsafe { self.bytes(HEADER, header.short_key_len()) };
        }
        // SAFETY: the key lies there, as the header says.
        unsafe { self.bytes(header.key_offset(), self.key_len()) }
    }

    #[inline]
    fn value_offset(self) -> usize {
        self.header().key_offset() + self.key_len()
    }

    fn object_address(self) -> *mut Object {
        debug_assert!(self.header().kind() == Kind::Object);
        // SAFETY: the value of this kind is the address that `Box::into_raw` gave.
        unsafe { self.0.add(self.value_offset()).cast::<*mut Object>().read_unaligned() }
    }

    /// The value.
    #[inline]
    pub fn value(self) -> ValueRef<'a> {
        let header = self.header();
        if header.is_plain() {
            // SAFETY: without fields the value lies behind header and key, and has the length that the header says.
            return ValueRef::Bytes(unsafe { self.bytes(HEADER + header.short_key_len(), header.plain_value_len()) });
        }
        // SAFETY: the value lies behind the key and has the kind that the header says.
        unsafe {
            match header.kind() {
                Kind::Inline => ValueRef::Bytes(self.bytes(self.value_offset(), header.value_len())),
                Kind::Int => ValueRef::Int(self.0.add(self.value_offset()).cast::<i64>().read_unaligned()),
                Kind::Object => ValueRef::Object(&*self.object_address()),
                Kind::List | Kind::Hash | Kind::Set | Kind::IntSet | Kind::Zset => {
                    let form = header.packed().expect("these kinds are the packed forms");
                    ValueRef::Packed(form, self.bytes(self.value_offset(), header.value_len()))
                }
            }
        }
    }

    /// When the key expires, in milliseconds since the UNIX epoch.
    #[inline]
    pub fn deadline_ms(self) -> Option<u64> {
        let header = self.header();
        if !header.has(field::DEADLINE) {
            return None;
        }
        // SAFETY: the header says that the field is there.
        let deadline = unsafe { self.0.add(header.offset_of(field::DEADLINE)).cast::<u64>().read_unaligned() };
        (deadline != NO_DEADLINE).then_some(deadline)
    }

    /// When the first member of the collection expires, in milliseconds since the UNIX epoch.
    pub fn members_due_ms(self) -> Option<u64> {
        let header = self.header();
        if !header.has(field::MEMBERS_DUE) {
            return None;
        }
        // SAFETY: the header says that the field is there.
        let due = unsafe { self.0.add(header.offset_of(field::MEMBERS_DUE)).cast::<u64>().read_unaligned() };
        (due != NO_DEADLINE).then_some(due)
    }

    /// When the key or the first member of it expires, in milliseconds since the UNIX epoch.
    #[inline]
    pub fn due_ms(self) -> Option<u64> {
        let header = self.header();
        match () {
            () if !header.has(field::DEADLINE | field::MEMBERS_DUE) => None,
            () if header.has(field::MEMBERS_DUE) => self.earlier_ms(),
            () => self.deadline_ms(),
        }
    }

    #[cold]
    fn earlier_ms(self) -> Option<u64> {
        [self.deadline_ms(), self.members_due_ms()].into_iter().flatten().min()
    }

    /// Whether nothing of the key is left at this time, if it has not been removed yet: its deadline is past, or that of
    /// each of its members.
    #[inline]
    pub fn is_past(self, now_ms: u64) -> bool {
        is_past(self.deadline_ms(), now_ms)
            || is_past(self.members_due_ms(), now_ms) && self.value().are_members_past(now_ms)
    }

    /// memcached's CAS token, if the item has one.
    pub fn cas(self) -> Option<u64> {
        let header = self.header();
        if !header.has(field::CAS) {
            return None;
        }
        // SAFETY: the header says that the field is there.
        let cas = unsafe { self.0.add(header.offset_of(field::CAS)).cast::<u64>().read_unaligned() };
        (cas != NO_CAS).then_some(cas)
    }

    /// memcached's client flags.
    #[inline]
    pub fn flags(self) -> u32 {
        let header = self.header();
        if !header.has(field::FLAGS) {
            return 0;
        }
        // SAFETY: the header says that the field is there.
        unsafe { self.0.add(header.offset_of(field::FLAGS)).cast::<u32>().read_unaligned() }
    }

    /// The access clock or frequency, 24 bits.
    #[inline]
    pub fn access(self) -> u32 {
        self.header().access()
    }

    /// What memcached's meta commands note of the value.
    #[inline]
    pub fn marks(self) -> Marks {
        self.header().marks()
    }

    /// Whether Redis would call the encoding of this short string raw, whatever its length.
    pub fn is_raw(self) -> bool {
        self.header().has(field::RAW)
    }

    /// The snapshot's bit: see `keyspace/snapshot.rs`.
    #[inline]
    pub fn snapshot_bit(self) -> bool {
        self.header().snapshot_bit()
    }

    /// Appends the entry's bytes to `copies`, unless its value is an object, which bytes cannot own; tells whether it did.
    fn copy_to(self, copies: &mut Vec<u8>) -> bool {
        let is_bytes = self.header().kind() != Kind::Object;
        if is_bytes {
            // SAFETY: an entry is as long as its size, and all of it is initialised.
            copies.extend_from_slice(unsafe { self.bytes(0, self.size()) });
        }
        is_bytes
    }

    /// The entry that `copies` hold from byte `offset` on, and where it ends.
    ///
    /// # Safety
    /// `copy_to` has written an entry there.
    unsafe fn in_copies(copies: &'a [u8], offset: usize) -> (EntryRef<'a>, usize) {
        let entry = EntryRef(NonNull::from_ref(&copies[offset..]).cast(), PhantomData);
        (entry, offset + entry.size())
    }

    /// All that is beside key and value.
    pub fn meta(self) -> Meta {
        let (deadline_ms, cas, flags) = (self.deadline_ms(), self.cas(), self.flags());
        Meta { deadline_ms, cas, flags, access: self.access(), marks: self.marks() }
    }

    /// Bytes that the entry asked for, a value's own object not counted.
    #[inline]
    fn size(self) -> usize {
        self.value_offset() + self.header().value_len()
    }

    /// Whether the entry lies in memory that is to be given back. Asked only of entries in tables: copies are in no block.
    #[inline]
    pub(crate) fn is_draining(self) -> bool {
        // SAFETY: the entry's block was allocated with this size.
        unsafe { slab::is_draining(self.0, self.size()) }
    }

    /// Whether the value is a string.
    pub fn is_string(self) -> bool {
        match self.value() {
            ValueRef::Bytes(_) | ValueRef::Int(_) | ValueRef::Object(Object::Shared(_) | Object::Rope(_)) => true,
            ValueRef::Packed(..) | ValueRef::Object(_) => false,
        }
    }

    /// About how many bytes the entry and its object take, in a bounded number of steps.
    pub fn rough_memory(self) -> usize {
        /// Steps beyond which allocations are counted and not looked at.
        const STEPS_MAX: usize = 16;
        /// Bytes that an element of a large collection takes at least.
        const ELEMENT: usize = 32;
        match self.value() {
            ValueRef::Object(object) if object.memory_steps() > STEPS_MAX => object.allocations() * ELEMENT,
            _ => self.memory(),
        }
    }

    /// The number of the slab's class that the entry is in (`slab::class_number`).
    pub fn size_class(self) -> usize {
        slab::class_number(self.size())
    }

    /// Bytes of memory that the entry and its object take.
    pub fn memory(self) -> usize {
        let object = match self.value() {
            ValueRef::Object(object) => object.memory(),
            ValueRef::Bytes(_) | ValueRef::Int(_) | ValueRef::Packed(..) => 0,
        };
        slab::rounded(self.size()) + object
    }
}

impl fmt::Debug for EntryRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryRef").field("key", &self.key()).field("value", &self.value()).finish()
    }
}

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

    /// The object, if the value is one.
    pub fn object(&mut self) -> Option<&mut Object> {
        // SAFETY: the object is owned by this entry, which is borrowed exclusively.
        (self.view().header().kind() == Kind::Object).then(|| unsafe { &mut *self.view().object_address() })
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

    fn write_meta(&mut self, meta: &Meta) {
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
        let old = (header.kind() == Kind::Object).then(|| self.view().object_address());
        // SAFETY: the value's place holds a value of this kind; a block of the same class has room for the new
        // length. The old object has no other owner once its address is overwritten.
        unsafe {
            self.write_value(value);
            if let Some(old) = old {
                drop(Box::from_raw(old));
            }
        }
        Ok(())
    }

    /// # Safety
    /// The header's kind and length are the value's, and the block has room for it. What is there is not dropped.
    unsafe fn write_value(&mut self, value: NewValue<'_>) {
        // SAFETY: as the function's contract says.
        unsafe {
            let place = self.0.add(self.view().value_offset());
            match value {
                NewValue::Bytes(bytes) | NewValue::Packed(_, bytes) => {
                    place.copy_from_nonoverlapping(NonNull::from_ref(bytes).cast(), bytes.len());
                }
                NewValue::Int(int) => place.cast::<i64>().write_unaligned(int),
                NewValue::Object(object) => place.cast::<*mut Object>().write_unaligned(Box::into_raw(object)),
            }
        }
    }
}
