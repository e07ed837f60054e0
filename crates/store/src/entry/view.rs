//! An entry as a reader sees it.

use super::content::{Meta, ValueRef};
use super::header::{HEADER, Header, Kind, NO_CAS, NO_DEADLINE, field};
use super::marks::Marks;
use super::{EntryRef, Lent, ObjectPlace};
use crate::keyspace::is_past;
use crate::types::Object;
use std::fmt;
use std::sync::Arc;
use tenon_ds::looks::Looks;
use tenon_ds::slab;

impl<'a> EntryRef<'a> {
    #[inline]
    pub(super) fn header(self) -> Header {
        // SAFETY: every entry starts with its header.
        unsafe { self.0.cast::<Header>().read_unaligned() }
    }

    /// The bytes from `offset` on; both lie inside the entry.
    #[inline]
    pub(super) unsafe fn bytes(self, offset: usize, len: usize) -> &'a [u8] {
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
    pub(super) fn value_offset(self) -> usize {
        self.header().key_offset() + self.key_len()
    }

    pub(super) fn object_place(self) -> ObjectPlace {
        debug_assert!(self.header().kind() == Kind::Object);
        // SAFETY: that is the value of this kind.
        unsafe { self.0.add(self.value_offset()).cast::<ObjectPlace>().read_unaligned() }
    }

    /// Notes that somebody wants to change the value, and tells whether it is read without its shard meanwhile.
    pub fn awaits_readers(self) -> bool {
        // SAFETY: the object is owned by this entry, which is borrowed.
        self.header().kind() == Kind::Object && unsafe { self.object_place().awaits_readers() }
    }

    /// Whether the value is read without its shard.
    pub fn is_read(self) -> bool {
        // SAFETY: the object is owned by this entry, which is borrowed.
        self.header().kind() == Kind::Object && unsafe { self.object_place().is_read() }
    }

    /// Whether the value is still this, which was lent.
    pub fn has_lent(self, lent: &Arc<Lent>) -> bool {
        self.header().kind() == Kind::Object && self.object_place().is(lent)
    }

    /// The value.
    #[inline(always)]
    pub fn value(self) -> ValueRef<'a> {
        let header = self.header();
        if header.is_plain() {
            // SAFETY: without fields the value lies behind header and key, and has the length that the header says.
            return ValueRef::Bytes(unsafe { self.bytes(HEADER + header.short_key_len(), header.plain_value_len()) });
        }
        self.value_behind_fields()
    }

    /// The value of an entry with fields, or that is no plain string.
    #[inline(never)]
    fn value_behind_fields(self) -> ValueRef<'a> {
        let header = self.header();
        // SAFETY: the value lies behind the key and has the kind that the header says.
        unsafe {
            match header.kind() {
                Kind::Inline => ValueRef::Bytes(self.bytes(self.value_offset(), header.value_len())),
                Kind::Int => ValueRef::Int(self.0.add(self.value_offset()).cast::<i64>().read_unaligned()),
                Kind::Object => ValueRef::Object(self.object_place().get()),
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

    /// All that is beside key and value.
    pub fn meta(self) -> Meta {
        let (deadline_ms, cas, flags) = (self.deadline_ms(), self.cas(), self.flags());
        Meta { deadline_ms, cas, flags, access: self.access(), marks: self.marks() }
    }

    /// Bytes that the entry asked for, a value's own object not counted.
    #[inline]
    pub(super) fn size(self) -> usize {
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
        self.memory_of(Looks::FEW)
    }

    /// The number of the slab's class that the entry is in (`slab::class_number`).
    pub fn size_class(self) -> usize {
        slab::class_number(self.size())
    }

    /// Bytes of memory that the entry and its object take.
    pub fn memory(self) -> usize {
        self.memory_of(Looks::ALL)
    }

    fn memory_of(self, looks: Looks) -> usize {
        let object = match self.value() {
            ValueRef::Object(object) => object.memory(looks),
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
