//! The table. Knows nothing of what its elements hold.

#[cfg(test)]
mod tests;

use super::divide::word_of;
use super::pointer::{ADDRESS_MASK, Pointer, TAG_SHIFT, address_of, prefetch, tag_of};
use super::size::{CAPACITY_MIN, CHANCE_EVEN, capacity_for, grown, load_max, shrunk, slack};
use crate::{memory, slab};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// Where an element lies now. Any insertion or removal makes it stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(pub(super) u32);

impl Slot {
    /// No slot of any table.
    pub const NOWHERE: Slot = Slot(u32::MAX);
}

/// How many slots ahead of the one that a scan looks at the element is asked for: the elements lie scattered, and what is
/// done with each is shorter than a cache miss.
const SCAN_AHEAD: u32 = 8;

/// Where a table's slots were when it was asked: good for prefetching without a look at the table itself. When they have
/// moved since, the prefetch is wasted and nothing worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The address of the first slot.
    pub address: usize,
    /// How many slots are homes.
    pub homes: u32,
}

impl Place {
    /// Starts loading the memory that a search for `tag` looks at first.
    #[inline]
    pub fn prefetch(self, tag: u16) {
        let home = (u64::from(tag) * u64::from(self.homes)) >> 16;
        let address = self.address.wrapping_add(home as usize * size_of::<*mut u8>());
        prefetch(ptr::without_provenance(address));
        // An element lies some slots behind its home.
        prefetch(ptr::without_provenance(address.wrapping_add(64)));
    }
}

/// A search that waits for nothing until it must, so that several can be under way.
pub struct Search<'a, P: Pointer> {
    table: &'a TagTable<P>,
    tag: u16,
    index: u32,
}

impl<'a, P: Pointer> Search<'a, P> {
    /// Begins it, and starts loading the slots.
    #[inline]
    pub(super) fn of(table: &'a TagTable<P>, tag: u16) -> Search<'a, P> {
        table.place().prefetch(tag);
        Search { table, tag, index: 0 }
    }

    /// Goes through the slots, which have had time to arrive, and starts loading the element that they name.
    #[inline]
    pub fn go_on(&mut self) {
        self.index = self.table.first_from(self.tag);
        self.table.prefetch_tagged(self.index, self.tag);
    }

    /// Whether there is an element that `is_it` accepts; to be asked after `go_on`, when that has had time to arrive.
    #[inline]
    pub fn is_there(self, is_it: impl FnMut(P::Ref<'_>) -> bool) -> bool {
        self.table.find_word_from(self.index, self.tag, is_it).is_some()
    }
}

/// The table. An empty one has no memory of its own.
pub struct TagTable<P: Pointer> {
    pub(super) slots: NonNull<*mut u8>,
    /// Slots, the slack and the last, empty one included; 0 while nothing is allocated.
    pub(super) capacity: u32,
    /// How many slots are homes.
    homes: u32,
    len: u32,
    owns: PhantomData<P>,
}

// SAFETY: the table owns its elements; nothing in it is tied to a thread.
unsafe impl<P: Pointer + Send> Send for TagTable<P> {}
// SAFETY: a shared table is only read, and gives out shared views of its elements alone.
unsafe impl<P: Pointer + Sync> Sync for TagTable<P> {}

/// What an empty table probes: one slot that is always empty.
static EMPTY: EmptySlot = EmptySlot(ptr::null_mut());

#[repr(transparent)]
struct EmptySlot(*mut u8);

// SAFETY: the slot is null and never written.
unsafe impl Sync for EmptySlot {}

impl<P: Pointer> TagTable<P> {
    /// An empty table.
    pub const fn new() -> TagTable<P> {
        TagTable { slots: NonNull::from_ref(&EMPTY.0), capacity: 0, homes: 0, len: 0, owns: PhantomData }
    }

    /// Elements in the table.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is no element.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory that the slots take.
    pub fn memory(&self) -> usize {
        if self.capacity == 0 { 0 } else { slab::rounded(self.capacity as usize * size_of::<*mut u8>()) }
    }

    /// Slots there are.
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    #[inline]
    fn home(&self, tag: u16) -> u32 {
        ((u64::from(tag) * u64::from(self.homes)) >> 16) as u32
    }

    #[inline]
    pub(super) fn read(&self, index: u32) -> *mut u8 {
        debug_assert!(index < self.capacity.max(1));
        // SAFETY: the index is below the capacity (1 for the static empty slot).
        unsafe { *self.slots.as_ptr().add(index as usize) }
    }

    #[inline]
    pub(super) fn write(&mut self, index: u32, word: *mut u8) {
        assert!(index < self.capacity, "only allocated slots are written");
        // SAFETY: the index is below the capacity, so the slot is allocated and not the static one.
        unsafe { *self.slots.as_ptr().add(index as usize) = word }
    }

    /// Where the slots are now.
    #[inline]
    pub fn place(&self) -> Place {
        Place { address: self.slots.addr().get(), homes: self.homes }
    }

    /// Starts loading the first element that has `tag`; to be called when the slots have had time to arrive. Gives the slot,
    /// with which [`TagTable::find_near`] need not look for it again.
    #[inline]
    pub fn prefetch_element(&self, tag: u16) -> Slot {
        let index = self.first_from(tag);
        self.prefetch_tagged(index, tag);
        Slot(index)
    }

    /// Starts loading the element in a slot if it has `tag`.
    #[inline]
    fn prefetch_tagged(&self, index: u32, tag: u16) {
        let word = self.read(index);
        if tag_of(word) == tag {
            prefetch(word.map_addr(|a| a & ADDRESS_MASK));
        }
    }

    /// The first slot from the tag's home on that is empty or holds this tag or a larger one.
    #[inline]
    fn first_from(&self, tag: u16) -> u32 {
        // One comparison a slot: less one, an empty one is larger than all others.
        let least = ((tag as usize) << TAG_SHIFT).saturating_sub(1);
        let mut index = self.home(tag);
        while self.read(index).addr().wrapping_sub(1) < least {
            index += 1;
        }
        index
    }

    /// The slot of the element that has `tag` and that `is_it` accepts.
    #[inline]
    pub fn find(&self, tag: u16, is_it: impl FnMut(P::Ref<'_>) -> bool) -> Option<Slot> {
        self.find_word(tag, is_it).map(|(slot, _)| slot)
    }

    /// The element that has `tag` and that `is_it` accepts, and its slot.
    #[inline]
    pub fn find_element(&self, tag: u16, is_it: impl FnMut(P::Ref<'_>) -> bool) -> Option<(Slot, P::Ref<'_>)> {
        let (slot, word) = self.find_word(tag, is_it)?;
        // SAFETY: `find_word` gives a live element of this table, borrowed through `self`.
        Some((slot, unsafe { P::as_ref(address_of(word)) }))
    }

    #[inline]
    fn find_word(&self, tag: u16, is_it: impl FnMut(P::Ref<'_>) -> bool) -> Option<(Slot, *mut u8)> {
        self.find_word_from(self.first_from(tag), tag, is_it)
    }

    #[inline]
    fn find_word_from(
        &self,
        mut index: u32,
        tag: u16,
        mut is_it: impl FnMut(P::Ref<'_>) -> bool,
    ) -> Option<(Slot, *mut u8)> {
        loop {
            let word = self.read(index);
            if word.is_null() || tag_of(word) > tag {
                return None;
            }
            // SAFETY: a non-null slot holds a live element of this table, borrowed through `self`.
            if is_it(unsafe { P::as_ref(address_of(word)) }) {
                return Some((Slot(index), word));
            }
            index += 1;
        }
    }

    /// What [`TagTable::find_element_mut`] gives, which is nearly always in the slot `near`, where
    /// [`TagTable::prefetch_element`] has seen it: others are looked at only where it is not there any more.
    #[inline(always)]
    pub fn find_near(
        &mut self,
        near: Slot,
        tag: u16,
        mut is_it: impl FnMut(P::Ref<'_>) -> bool,
    ) -> Option<(Slot, P::Mut<'_>)> {
        if near.0 < self.capacity {
            let word = self.read(near.0);
            // SAFETY: a non-null slot below the capacity holds a live element of this table, borrowed exclusively through
            // `self`; the shared view of it ends with the call.
            if !word.is_null() && tag_of(word) == tag && is_it(unsafe { P::as_ref(address_of(word)) }) {
                // SAFETY: the same, and no other view of it is left.
                return Some((near, unsafe { P::as_mut(address_of(word)) }));
            }
        }
        self.find_anywhere(tag, is_it)
    }

    #[inline(never)]
    fn find_anywhere(&mut self, tag: u16, is_it: impl FnMut(P::Ref<'_>) -> bool) -> Option<(Slot, P::Mut<'_>)> {
        self.find_element_mut(tag, is_it)
    }

    /// The element that has `tag` and that `is_it` accepts, exclusively, and its slot.
    #[inline]
    pub fn find_element_mut(&mut self, tag: u16, is_it: impl FnMut(P::Ref<'_>) -> bool) -> Option<(Slot, P::Mut<'_>)> {
        let (slot, word) = self.find_word(tag, is_it)?;
        // SAFETY: `find_word` gives a live element of this table, borrowed exclusively through `self`.
        Some((slot, unsafe { P::as_mut(address_of(word)) }))
    }

    /// The element in a slot.
    #[inline]
    pub fn get(&self, slot: Slot) -> P::Ref<'_> {
        // SAFETY: `occupied` gives a live element of this table, borrowed through `self`.
        unsafe { P::as_ref(address_of(self.occupied(slot))) }
    }

    /// The element in a slot, exclusively.
    #[inline]
    pub fn get_mut(&mut self, slot: Slot) -> P::Mut<'_> {
        // SAFETY: `occupied` gives a live element of this table, borrowed exclusively through `self`.
        unsafe { P::as_mut(address_of(self.occupied(slot))) }
    }

    /// The tag of the element in a slot.
    #[inline]
    pub fn tag(&self, slot: Slot) -> u16 {
        tag_of(self.occupied(slot))
    }

    #[inline]
    fn occupied(&self, slot: Slot) -> *mut u8 {
        assert!(slot.0 < self.capacity, "the slot is of this table");
        let word = self.read(slot.0);
        assert!(!word.is_null(), "the slot is not stale");
        word
    }

    /// Makes the table as large at once as it has to be for so many elements in all.
    pub fn reserve(&mut self, len: u32) {
        let capacity = capacity_for(len);
        if len > self.len && capacity > self.capacity {
            self.resize(capacity);
        }
    }

    /// Adds an element. The caller has seen to it that its key is not there yet.
    pub fn insert(&mut self, tag: u16, element: P) -> Slot {
        self.insert_address(tag, element.into_raw().as_ptr())
    }

    /// Adds the element at an address that `into_raw` gave.
    #[inline]
    pub(super) fn insert_address(&mut self, tag: u16, address: *mut u8) -> Slot {
        if self.len >= load_max(self.capacity) {
            self.resize(grown(self.capacity, tag as u8).max(CAPACITY_MIN));
        }
        let word = word_of(tag, address);
        loop {
            if let Some(index) = self.put(tag, word) {
                self.len += 1;
                return Slot(index);
            }
            self.resize(grown(self.capacity, tag as u8));
        }
    }

    /// The slot of this index, if there is one and it is occupied.
    #[inline]
    pub(super) fn slot_at(&self, index: u32) -> Option<Slot> {
        (index < self.capacity && !self.read(index).is_null()).then_some(Slot(index))
    }

    /// Puts a word where the order wants it; `None` when the slack is used up.
    fn put(&mut self, tag: u16, word: *mut u8) -> Option<u32> {
        let mut at = self.first_from(tag);
        while !self.read(at).is_null() && tag_of(self.read(at)) <= tag {
            at += 1;
        }
        let mut gap = at;
        while !self.read(gap).is_null() {
            gap += 1;
        }
        if gap + 1 >= self.capacity {
            return None;
        }
        // SAFETY: `at <= gap < capacity - 1`: both ranges lie inside the slots.
        unsafe {
            let from = self.slots.as_ptr().add(at as usize);
            ptr::copy(from, from.add(1), (gap - at) as usize);
        }
        self.write(at, word);
        Some(at)
    }

    /// Exchanges the element in a slot for another with the same tag.
    pub fn replace(&mut self, slot: Slot, element: P) -> P {
        let old = self.occupied(slot);
        let word = element.into_raw().as_ptr();
        assert!(word.addr() <= ADDRESS_MASK, "user addresses have 47 bits");
        self.write(slot.0, word.map_addr(|a| a | old.addr() & !ADDRESS_MASK));
        // SAFETY: the old element has left the table, so this is its only owner.
        unsafe { P::from_raw(address_of(old)) }
    }

    /// Takes an element out.
    pub fn remove(&mut self, slot: Slot) -> P {
        let word = self.occupied(slot);
        self.close(slot.0);
        if self.len == 0 {
            self.release();
        } else if let Some(capacity) = shrunk(self.capacity, self.len) {
            self.resize(capacity);
        }
        // SAFETY: the element has left the table, so this is its only owner.
        unsafe { P::from_raw(address_of(word)) }
    }

    /// Drops the word in a slot and moves up what lies behind it and not at its home.
    #[inline]
    pub(super) fn close(&mut self, index: u32) {
        let mut end = index + 1;
        while !self.read(end).is_null() && self.home(tag_of(self.read(end))) < end {
            end += 1;
        }
        // SAFETY: `index < end <= capacity - 1`: both ranges lie inside the slots.
        unsafe {
            let to = self.slots.as_ptr().add(index as usize);
            ptr::copy(to.add(1), to, (end - index - 1) as usize);
        }
        self.write(end - 1, ptr::null_mut());
        self.len -= 1;
    }

    /// Calls `visit` for the elements with tags from `from` on, in the order of tags, until at least `count` are
    /// visited; all elements of one tag are visited together. Gives the tag to go on from, `None` at the end.
    pub fn scan<'a>(&'a self, from: u16, count: usize, mut visit: impl FnMut(Slot, P::Ref<'a>)) -> Option<u16> {
        let mut index = self.home(from);
        let mut visited = 0;
        let mut last = None;
        while index < self.capacity {
            self.prefetch_ahead(index);
            let word = self.read(index);
            if !word.is_null() && tag_of(word) >= from {
                let tag = tag_of(word);
                if visited >= count && last != Some(tag) {
                    return Some(tag);
                }
                last = Some(tag);
                visited += 1;
                // SAFETY: a non-null slot holds a live element of this table, borrowed through `self`.
                visit(Slot(index), unsafe { P::as_ref(address_of(word)) });
            }
            index += 1;
        }
        None
    }

    /// Starts loading the element that who goes over all slots comes to some slots after this one.
    #[inline]
    pub(super) fn prefetch_ahead(&self, index: u32) {
        if index + SCAN_AHEAD < self.capacity {
            prefetch(self.read(index + SCAN_AHEAD).map_addr(|address| address & ADDRESS_MASK));
        }
    }

    /// The slots of the elements that have `tag`.
    pub fn slots_of_tag(&self, tag: u16) -> impl Iterator<Item = Slot> + '_ {
        (self.home(tag)..self.capacity)
            .map(|index| (index, self.read(index)))
            .take_while(move |(_, word)| !word.is_null() && tag_of(*word) <= tag)
            .filter(move |(_, word)| tag_of(*word) == tag)
            .map(|(index, _)| Slot(index))
    }

    /// The occupied slots in the order of their tags, from a tag on.
    pub fn slots_from(&self, tag: u16) -> impl Iterator<Item = Slot> + '_ {
        (self.home(tag)..self.capacity)
            .map(|index| (index, self.read(index)))
            .filter(move |(_, word)| !word.is_null() && tag_of(*word) >= tag)
            .map(|(index, _)| Slot(index))
    }

    /// The first occupied slot at or behind a random position, wrapping at the end; `None` when empty. Elements lie in
    /// the order of their hashes, so this is as good as any other.
    pub fn sample(&self, random: u32) -> Option<Slot> {
        let start = ((u64::from(random) * u64::from(self.capacity)) >> 32) as u32;
        (start..self.capacity).chain(0..start).find(|&index| !self.read(index).is_null()).map(Slot)
    }

    /// Starts loading the element in a slot.
    #[inline]
    pub fn prefetch_slot(&self, slot: Slot) {
        prefetch(self.read(slot.0).map_addr(|address| address & ADDRESS_MASK));
    }

    /// Moves the elements into a table of `capacity` slots, or of more if they do not fit.
    pub(super) fn resize(&mut self, mut capacity: u32) {
        loop {
            if let Some(mut table) = self.rebuilt(capacity) {
                std::mem::swap(self, &mut table);
                // The elements live on in the new table; the old one has only memory to give back.
                table.len = 0;
                table.release();
                return;
            }
            capacity = grown(capacity, CHANCE_EVEN);
        }
    }

    /// A table of `capacity` slots that holds the words of this one; `None` when they do not fit. Until it takes this
    /// one's place it must not be dropped with its elements.
    fn rebuilt(&self, capacity: u32) -> Option<TagTable<P>> {
        let mut table = TagTable::<P>::with_capacity(capacity);
        let mut next = 0;
        for index in 0..self.capacity {
            let word = self.read(index);
            if word.is_null() {
                continue;
            }
            let at = table.home(tag_of(word)).max(next);
            if at + 1 >= capacity {
                table.release();
                return None;
            }
            table.write(at, word);
            next = at + 1;
        }
        table.len = self.len;
        Some(table)
    }

    pub(super) fn with_capacity(capacity: u32) -> TagTable<P> {
        let bytes = capacity as usize * size_of::<*mut u8>();
        let slots: NonNull<*mut u8> = slab::alloc(bytes).cast();
        // SAFETY: the block has room for `capacity` words; all-zero words are null pointers.
        unsafe { slots.write_bytes(0, capacity as usize) };
        if P::COUNTS_SLOTS {
            memory::count_slots(slab::rounded(bytes) as isize);
        }
        TagTable { slots, capacity, homes: capacity - slack(capacity), len: 0, owns: PhantomData }
    }

    /// Gives the slots' memory back; the elements are no concern of this.
    pub(super) fn release(&mut self) {
        if self.capacity > 0 {
            let bytes = self.capacity as usize * size_of::<*mut u8>();
            // SAFETY: `with_capacity` has allocated the slots with the same size, and they are not used after.
            unsafe { slab::free(self.slots.cast(), bytes) };
            if P::COUNTS_SLOTS {
                memory::count_slots(-(slab::rounded(bytes) as isize));
            }
        }
        self.slots = NonNull::from_ref(&EMPTY.0);
        self.capacity = 0;
        self.homes = 0;
    }
}

impl<P: Pointer> Default for TagTable<P> {
    fn default() -> TagTable<P> {
        TagTable::new()
    }
}
