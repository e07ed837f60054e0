//! Dividing a table into two, joining two into one, copying one: by tags and whole words. Knows not why.

use super::pointer::{ADDRESS_MASK, Pointer, TAG_SHIFT, address_of, prefetch, tag_of};
use super::size::{CAPACITY_MIN, CHANCE_EVEN, grown, load_max};
use super::table::{Slot, TagTable};
use std::mem::ManuallyDrop;

/// Which of two tables an element belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The first.
    Low,
    /// The second.
    High,
}

/// How many elements ahead are asked for while a table is divided: enough for the memory to answer meanwhile.
const AHEAD: u32 = 12;

impl<P: Pointer> TagTable<P> {
    /// An empty table with room for so many elements.
    pub(super) fn with_room(len: usize) -> TagTable<P> {
        if len == 0 {
            return TagTable::new();
        }
        let mut capacity = CAPACITY_MIN;
        while (load_max(capacity) as usize) < len {
            capacity = grown(capacity, CHANCE_EVEN);
        }
        TagTable::with_capacity(capacity)
    }

    /// Divides the table: `place` says which side each element goes to, and its tag there. Should `place` panic, the
    /// elements that it has not seen are leaked.
    pub(super) fn divide(self, mut place: impl FnMut(P::Ref<'_>) -> (Side, u16)) -> [TagTable<P>; 2] {
        let mut old = ManuallyDrop::new(self);
        let mut low = TagTable::with_room(old.len() / 2);
        let mut high = TagTable::with_room(old.len() / 2);
        for index in 0..old.capacity {
            if index + AHEAD < old.capacity {
                prefetch(old.read(index + AHEAD).map_addr(|address| address & ADDRESS_MASK));
            }
            let word = old.read(index);
            if word.is_null() {
                continue;
            }
            // SAFETY: a non-null slot holds a live element, whose owner here is this table until the word is put into
            // one of the others.
            let (side, tag) = place(unsafe { P::as_ref(address_of(word)) });
            match side {
                Side::Low => low.insert_word(tag, word),
                Side::High => high.insert_word(tag, word),
            };
        }
        old.release();
        [low, high]
    }

    /// Joins two tables: the tags lose their last bit and get a first one, 0 for `low` and 1 for `high`, so all keep
    /// their order.
    pub(super) fn join(low: TagTable<P>, high: TagTable<P>) -> TagTable<P> {
        let mut joined = TagTable::with_room(low.len() + high.len());
        for (table, first_bit) in [(low, 0), (high, 1 << 15)] {
            let mut old = ManuallyDrop::new(table);
            for index in 0..old.capacity {
                let word = old.read(index);
                if !word.is_null() {
                    joined.insert_word(first_bit | tag_of(word) >> 1, word);
                }
            }
            old.release();
        }
        joined
    }

    /// A table of the same shape with a copy of each element.
    pub(super) fn copied(&self, mut copy: impl FnMut(P::Ref<'_>) -> P) -> TagTable<P> {
        let mut table = TagTable::with_room(self.len());
        for (slot, element) in self.iter() {
            table.insert(self.tag(slot), copy(element));
        }
        table
    }

    /// The elements in the order of their tags.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, P::Ref<'_>)> {
        (0..self.capacity).filter_map(|index| {
            self.prefetch_ahead(index);
            let slot = self.slot_at(index)?;
            Some((slot, self.get(slot)))
        })
    }

    /// Takes a word of another table in, which gives it up.
    pub(super) fn insert_word(&mut self, tag: u16, word: *mut u8) -> Slot {
        self.insert_address(tag, word.map_addr(|address| address & ADDRESS_MASK))
    }
}

/// The word for an element at `address`.
#[inline]
pub(super) fn word_of(tag: u16, address: *mut u8) -> *mut u8 {
    assert!(address.addr() <= ADDRESS_MASK, "user addresses have 47 bits");
    address.map_addr(|address| address | usize::from(tag) << TAG_SHIFT)
}
