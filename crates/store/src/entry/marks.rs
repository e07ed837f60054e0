//! What memcached's meta commands note of a value, in three bits of an entry's header. Knows no entry and no command.

/// Notes about a value; a set. Whoever sets a value takes them away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// None.
    pub const NONE: Marks = Marks(0);
    /// Somebody has read the value since it was set.
    pub const FETCHED: Marks = Marks(1 << 5);
    /// The value is to be replaced, and may be used until then.
    pub const STALE: Marks = Marks(1 << 6);
    /// Some client was told that it is the one to replace the value.
    pub const WON: Marks = Marks(1 << 7);

    /// Both sets together.
    #[must_use]
    pub const fn or(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    /// This set without what is in the other.
    #[must_use]
    pub const fn without(self, other: Marks) -> Marks {
        Marks(self.0 & !other.0)
    }

    /// Whether all of `other` are in the set.
    pub const fn has(self, other: Marks) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set as the bits that it has in a header.
    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    /// The set of these bits.
    pub(super) const fn from_bits(bits: u8) -> Marks {
        Marks(bits)
    }
}
