//! Copies of entries for readers without a lock.

use super::EntryRef;
use super::header::Kind;
use std::marker::PhantomData;
use std::ptr::NonNull;

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
}
