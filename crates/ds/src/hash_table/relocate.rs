//! Moving a table and its elements out of memory that is to be given back. Knows not why it is.

use super::pointer::{ADDRESS_MASK, Pointer, address_of};
use super::table::TagTable;
use crate::slab;

impl<P: Pointer> TagTable<P> {
    /// Moves the slots out of memory that is to be given back.
    pub fn relocate_slots(&mut self) {
        let bytes = self.capacity as usize * size_of::<*mut u8>();
        // SAFETY: the slots are a block of this size when there are any.
        if self.capacity > 0 && unsafe { slab::is_draining(self.slots.cast(), bytes) } {
            self.resize(self.capacity);
        }
    }

    /// Moves the elements that `should_move` names out of memory that is to be given back.
    pub fn relocate_elements(
        &mut self,
        mut should_move: impl FnMut(P::Ref<'_>) -> bool,
        mut moved: impl FnMut(P) -> P,
    ) {
        for index in 0..self.capacity {
            let word = self.read(index);
            // SAFETY: a non-null slot holds a live element of this table, borrowed through `self`.
            let stays = word.is_null()
                || unsafe { !slab::may_be_draining(address_of(word)) || !should_move(P::as_ref(address_of(word))) };
            if stays {
                continue;
            }
            // Should `moved` panic, the hole closes: the element is lost, the others are still found.
            let hole = Hole { table: self, index };
            // SAFETY: the hole closes or is filled, so the slot's word is not used again and this is its only owner.
            let address = moved(unsafe { P::from_raw(address_of(word)) }).into_raw().as_ptr();
            assert!(address.addr() <= ADDRESS_MASK, "user addresses have 47 bits");
            hole.fill(address.map_addr(|a| a | word.addr() & !ADDRESS_MASK));
        }
    }
}

/// A slot whose element is out for a moment; when nothing comes back, the slot goes.
struct Hole<'a, P: Pointer> {
    table: &'a mut TagTable<P>,
    index: u32,
}

impl<P: Pointer> Hole<'_, P> {
    fn fill(self, word: *mut u8) {
        self.table.write(self.index, word);
        std::mem::forget(self);
    }
}

impl<P: Pointer> Drop for Hole<'_, P> {
    fn drop(&mut self) {
        self.table.close(self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::NonNull;

    /// Few tags: long runs, in which a gap would hide what lies behind it.
    fn tag_for(key: u64) -> u16 {
        (key % 20 * 3_000) as u16
    }

    /// An element in a block of the slab, so that draining names it.
    struct Blocky(NonNull<u8>);

    const BLOCKY_BYTES: usize = 8_000;

    impl Blocky {
        fn new(key: u64) -> Blocky {
            let block = slab::alloc(BLOCKY_BYTES);
            // SAFETY: the block has room for a key.
            unsafe { block.cast::<u64>().write(key) };
            Blocky(block)
        }
    }

    impl Drop for Blocky {
        fn drop(&mut self) {
            // SAFETY: the block came from `alloc` with this size and has no other owner.
            unsafe { slab::free(self.0, BLOCKY_BYTES) };
        }
    }

    // SAFETY: a block's address is unique and below 2^48; views borrow the key.
    unsafe impl Pointer for Blocky {
        type Ref<'a> = &'a u64;
        type Mut<'a> = &'a mut u64;

        fn into_raw(self) -> NonNull<u8> {
            std::mem::ManuallyDrop::new(self).0
        }
        unsafe fn from_raw(raw: NonNull<u8>) -> Blocky {
            Blocky(raw)
        }
        unsafe fn as_ref<'a>(raw: NonNull<u8>) -> &'a u64 {
            // SAFETY: a live element starts with its key, aligned to eight as its size is.
            unsafe { raw.cast().as_ref() }
        }
        unsafe fn as_mut<'a>(raw: NonNull<u8>) -> &'a mut u64 {
            // SAFETY: a live element starts with its key, aligned to eight as its size is.
            unsafe { raw.cast().as_mut() }
        }
    }

    /// A table of which little is left, in memory that is being given back; the keys in it.
    fn sparse_table() -> (TagTable<Blocky>, Vec<u64>) {
        let mut table: TagTable<Blocky> = TagTable::new();
        let keys = 0..if cfg!(miri) { 100 } else { 2_000 };
        for key in keys.clone() {
            table.insert(tag_for(key), Blocky::new(key));
        }
        let (go, stay): (Vec<u64>, Vec<u64>) = keys.partition(|key| key % 4 > 0);
        for key in go {
            let slot = table.find(tag_for(key), |it| *it == key).unwrap();
            table.remove(slot);
        }
        assert!(slab::start_draining(usize::MAX));
        (table, stay)
    }

    fn check_keys(table: &TagTable<Blocky>, mut keys: Vec<u64>) {
        assert_eq!(table.len(), keys.len());
        keys.retain(|&key| table.find(tag_for(key), |it| *it == key).is_none());
        assert_eq!(keys, [0; 0], "all are found");
    }

    #[test]
    fn relocation_empties_what_drains_and_keeps_all() {
        let check = || {
            let (mut table, keys) = sparse_table();
            let before = slab::waste();
            let mut moves = 0;
            table.relocate_slots();
            table.relocate_elements(
                |_| true,
                |old| {
                    moves += 1;
                    // SAFETY: the element is live.
                    Blocky::new(unsafe { *Blocky::as_ref(old.0) })
                },
            );
            slab::stop_draining();
            assert!(moves > 0);
            assert!(slab::waste() < before / 2, "{} of {before} bytes are still waste", slab::waste());
            check_keys(&table, keys);
        };
        std::thread::spawn(check).join().unwrap();
    }

    #[test]
    fn a_panic_while_an_element_moves_loses_only_that_element() {
        let check = || {
            let (mut table, mut keys) = sparse_table();
            let mut moves = 0;
            let mut lost = None;
            let relocation = std::panic::AssertUnwindSafe(|| {
                table.relocate_elements(
                    |_| true,
                    |old| {
                        moves += 1;
                        // SAFETY: the element is live.
                        let key = unsafe { *Blocky::as_ref(old.0) };
                        if moves == 5 {
                            lost = Some(key);
                            // Unlike `panic!` this prints nothing.
                            std::panic::resume_unwind(Box::new(()));
                        }
                        Blocky::new(key)
                    },
                );
            });
            assert!(std::panic::catch_unwind(relocation).is_err());
            slab::stop_draining();
            keys.retain(|&key| Some(key) != lost);
            check_keys(&table, keys);
        };
        std::thread::spawn(check).join().unwrap();
    }
}
