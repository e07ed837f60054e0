//! The first word of an entry: what kind of value it has, which fields follow, and the lengths that fit. Knows no
//! memory.

use super::{INLINE_LEN_MAX, Marks};
use crate::types::{PackedForm, PackedKind};

/// Bytes of the header itself.
pub(super) const HEADER: usize = 8;
/// The longest key whose length fits the header.
pub(super) const SHORT_KEY_MAX: usize = 255;
/// The bits of the header that say which fields follow, and one for the snapshot.
pub(super) mod field {
    pub const DEADLINE: u8 = 1;
    pub const CAS: u8 = 2;
    pub const FLAGS: u8 = 4;
    pub const LONG_KEY: u8 = 8;
    pub const MEMBERS_DUE: u8 = 16;
    /// The bit behind the last field.
    pub const END: u8 = 32;
    /// No field follows: what it means is the keyspace's matter (`keyspace/snapshot.rs`).
    pub const SNAPSHOT: u8 = 64;
    /// No field follows: a short string that was changed since it was set, or made by anything but SET.
    pub const RAW: u8 = 128;
}

/// The bits of the first byte that tell the kind; the uppermost three are [`super::Marks`].
const KIND: u64 = 0x07;
/// The bit of the first byte that says that deadlines of members lie behind packed elements.
const MEMBERS_EXPIRE: u64 = 0x08;
/// The marks of an item, in the first byte.
const MARKS: u64 = 0xe0;
/// The kind and the fields: nothing of them for a plain entry, whatever its marks and its snapshot bit.
const SHAPE: u64 = (!field::SNAPSHOT as u64) << 8 | MEMBERS_EXPIRE | KIND;

/// A deadline that means there is none: the field stays when a deadline is taken away, as it often comes back.
pub(super) const NO_DEADLINE: u64 = u64::MAX;
/// A CAS token that means there is none: the item has changed since a client asked for its token.
pub(super) const NO_CAS: u64 = 0;

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// The bytes of a short string.
    Inline = 0,
    /// The eight bytes of an integer.
    Int = 1,
    /// The address of an object.
    Object = 2,
    /// The packed elements of a small collection, one kind for each form.
    List = 3,
    Hash = 4,
    Set = 5,
    IntSet = 6,
    Zset = 7,
}

impl Kind {
    /// Whether the value is bytes of the entry itself, as many as the header says.
    #[inline]
    pub(super) fn is_inline(self) -> bool {
        !matches!(self, Kind::Int | Kind::Object)
    }

    /// The form of the elements of a small collection.
    fn packed(self) -> Option<PackedKind> {
        match self {
            Kind::Inline | Kind::Int | Kind::Object => None,
            Kind::List => Some(PackedKind::List),
            Kind::Hash => Some(PackedKind::Hash),
            Kind::Set => Some(PackedKind::Set),
            Kind::IntSet => Some(PackedKind::IntSet),
            Kind::Zset => Some(PackedKind::Zset),
        }
    }
}

impl From<PackedKind> for Kind {
    fn from(packed: PackedKind) -> Kind {
        match packed {
            PackedKind::List => Kind::List,
            PackedKind::Hash => Kind::Hash,
            PackedKind::Set => Kind::Set,
            PackedKind::IntSet => Kind::IntSet,
            PackedKind::Zset => Kind::Zset,
        }
    }
}

/// The header's word, taken apart and put together by shifts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Header(u64);

impl Header {
    pub(super) fn new(kind: Kind, fields: u8, key_len: usize, value_len: usize, access: u32) -> Header {
        debug_assert!(value_len <= INLINE_LEN_MAX);
        let key_len = if fields & field::LONG_KEY != 0 { 0 } else { key_len as u64 };
        Header(
            kind as u64
                | u64::from(fields) << 8
                | key_len << 16
                | u64::from(access & 0xff_ffff) << 24
                | (value_len as u64) << 48,
        )
    }

    #[inline]
    pub(super) fn kind(self) -> Kind {
        match self.0 & KIND {
            0 => Kind::Inline,
            1 => Kind::Int,
            2 => Kind::Object,
            3 => Kind::List,
            4 => Kind::Hash,
            5 => Kind::Set,
            6 => Kind::IntSet,
            _ => Kind::Zset,
        }
    }

    /// The form of a small collection.
    pub(super) fn packed(self) -> Option<PackedForm> {
        let kind = self.kind().packed()?;
        Some(PackedForm { kind, has_deadlines: self.0 & MEMBERS_EXPIRE != 0 })
    }

    /// Whether the value is a small collection of this form.
    #[inline]
    pub(super) fn is_packed(self, form: PackedForm) -> bool {
        let members_expire = if form.has_deadlines { MEMBERS_EXPIRE } else { 0 };
        self.0 & (MEMBERS_EXPIRE | KIND) == members_expire | Kind::from(form.kind) as u64
    }

    /// The same with deadlines of members behind packed elements, or without.
    pub(super) fn with_members_expire(self, members_expire: bool) -> Header {
        Header(if members_expire { self.0 | MEMBERS_EXPIRE } else { self.0 & !MEMBERS_EXPIRE })
    }

    /// The bits of the fields, without the snapshot's.
    #[inline]
    pub(super) fn fields(self) -> u8 {
        (self.0 >> 8) as u8 & !field::SNAPSHOT
    }

    /// The snapshot's bit.
    #[inline]
    pub(super) fn snapshot_bit(self) -> bool {
        (self.0 >> 8) as u8 & field::SNAPSHOT != 0
    }

    /// The same with this bit for the snapshot.
    #[inline]
    pub(super) fn with_snapshot_bit(self, bit: bool) -> Header {
        const BIT: u64 = (field::SNAPSHOT as u64) << 8;
        Header(if bit { self.0 | BIT } else { self.0 & !BIT })
    }

    /// Whether the field is there, or any of several.
    #[inline]
    pub(super) fn has(self, field: u8) -> bool {
        self.fields() & field != 0
    }

    #[inline]
    pub(super) fn access(self) -> u32 {
        (self.0 >> 24) as u32 & 0xff_ffff
    }

    #[inline]
    pub(super) fn value_len(self) -> usize {
        if self.kind().is_inline() { (self.0 >> 48) as usize } else { 8 }
    }

    /// Where the field begins, which the header must have; the fields are in the order of their bits.
    #[inline]
    pub(super) fn offset_of(self, wanted: u8) -> usize {
        let before = self.fields() & (wanted - 1);
        let eights = (before & (field::DEADLINE | field::CAS | field::MEMBERS_DUE)).count_ones();
        let fours = (before & (field::FLAGS | field::LONG_KEY)).count_ones();
        HEADER + eights as usize * 8 + fours as usize * 4
    }

    #[inline]
    pub(super) fn key_offset(self) -> usize {
        // Most entries have no field but perhaps a deadline.
        if self.fields() == 0 { HEADER } else { self.offset_of(field::END) }
    }

    /// The length of a key that is not long.
    #[inline]
    pub(super) fn short_key_len(self) -> usize {
        (self.0 >> 16) as u8 as usize
    }

    /// Whether this is the header of a short string with nothing beside key and value: what most entries are.
    #[inline]
    pub(super) fn is_plain(self) -> bool {
        self.0 & SHAPE == Kind::Inline as u64
    }

    /// The length of the value where the header is plain.
    #[inline]
    pub(super) fn plain_value_len(self) -> usize {
        debug_assert!(self.is_plain());
        (self.0 >> 48) as usize
    }

    /// The same with other bits for the access, of which 24 are kept.
    #[inline]
    pub(super) fn with_access(self, access: u32) -> Header {
        Header(self.0 & !(0xff_ffff << 24) | u64::from(access & 0xff_ffff) << 24)
    }

    #[inline]
    pub(super) fn marks(self) -> Marks {
        Marks::from_bits((self.0 & MARKS) as u8)
    }

    /// The same with these marks and no others.
    #[inline]
    pub(super) fn with_marks(self, marks: Marks) -> Header {
        Header(self.0 & !MARKS | u64::from(marks.bits()))
    }

    /// The same with other bits for the access, marked as fetched.
    #[inline]
    pub(super) fn fetched(self, access: u32) -> Header {
        Header(self.with_access(access).0 | u64::from(Marks::FETCHED.bits()))
    }

    /// The same with the length of a new value, which is as it was set.
    #[inline]
    pub(super) fn with_value_len(self, len: usize) -> Header {
        debug_assert!(len <= INLINE_LEN_MAX);
        Header(self.0 & !(0xffff << 48 | u64::from(field::RAW) << 8) | (len as u64) << 48)
    }

    /// The same with the note that the short string was changed since it was set.
    #[inline]
    pub(super) fn raw(self) -> Header {
        Header(self.0 | u64::from(field::RAW) << 8)
    }
}
