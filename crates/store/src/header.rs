//! The first word of an entry: what kind of value it has, which fields follow, and how long key and value are. Knows no
//! memory.
//!
//! ```text
//! 63      48 47         24 23     16 15      8 7       0
//! | value    | access     | key     | fields   | kind    |
//! | length   | clock      | length  |          |         |
//! ```

/// Bytes of the header.
pub(crate) const HEADER: usize = 8;
/// The longest key whose length fits the header.
pub(crate) const SHORT_KEY_MAX: usize = 255;
/// Strings from this length on are objects of their own, so that a reader can leave the lock with a reference.
pub const INLINE_LEN_MAX: usize = 16 * 1024 - 1;

/// The bits of the header that say which fields follow, and one for the snapshot.
pub(crate) mod field {
    pub const DEADLINE: u8 = 1;
    pub const CAS: u8 = 2;
    pub const FLAGS: u8 = 4;
    pub const LONG_KEY: u8 = 8;
    /// The bit behind the last field.
    pub const END: u8 = 16;
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Inline = 0,
    Int = 1,
    Object = 2,
}

/// The header's word, taken apart and put together by shifts.
#[derive(Clone, Copy)]
pub(crate) struct Header(u64);

impl Header {
    pub(crate) fn new(kind: Kind, fields: u8, key_len: usize, value_len: usize, access: u32) -> Header {
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
    pub(crate) fn kind(self) -> Kind {
        match self.0 as u8 {
            0 => Kind::Inline,
            1 => Kind::Int,
            _ => Kind::Object,
        }
    }

    #[inline]
    pub(crate) fn fields(self) -> u8 {
        (self.0 >> 8) as u8
    }

    #[inline]
    pub(crate) fn has(self, field: u8) -> bool {
        self.fields() & field != 0
    }

    #[inline]
    pub(crate) fn access(self) -> u32 {
        (self.0 >> 24) as u32 & 0xff_ffff
    }

    #[inline]
    pub(crate) fn value_len(self) -> usize {
        match self.kind() {
            Kind::Inline => (self.0 >> 48) as usize,
            Kind::Int | Kind::Object => 8,
        }
    }

    /// Where the field begins, which the header must have; the fields are in the order of their bits.
    #[inline]
    pub(crate) fn offset_of(self, wanted: u8) -> usize {
        let before = self.fields() & (wanted - 1);
        let eights = (before & (field::DEADLINE | field::CAS)).count_ones();
        let fours = (before & (field::FLAGS | field::LONG_KEY)).count_ones();
        HEADER + eights as usize * 8 + fours as usize * 4
    }

    #[inline]
    pub(crate) fn key_offset(self) -> usize {
        // Most entries have no field but perhaps a deadline.
        if self.fields() == 0 { HEADER } else { self.offset_of(field::END) }
    }

    /// The length of a key that is not long.
    #[inline]
    pub(crate) fn short_key_len(self) -> usize {
        (self.0 >> 16) as u8 as usize
    }

    /// Whether this is the header of a short string without any field: what most entries are.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        self.0 as u16 == Kind::Inline as u16
    }

    /// The same with the length of a short string.
    #[inline]
    pub(crate) fn with_value_len(self, len: usize) -> Header {
        debug_assert!(len <= INLINE_LEN_MAX);
        Header(self.0 & !(0xffff << 48) | (len as u64) << 48)
    }

    #[inline]
    pub(crate) fn with_access(self, access: u32) -> Header {
        Header(self.0 & !(0xff_ffff << 24) | u64::from(access & 0xff_ffff) << 24)
    }
}
