//! Freeing a table with its elements. Knows not what they are.

use super::pointer::{Pointer, address_of};
use super::table::{Slot, TagTable};
use crate::progress;

/// So many slots ahead elements are asked for: who frees one reads its length from it.
const AHEAD: u32 = 8;

impl<P: Pointer> Drop for TagTable<P> {
    fn drop(&mut self) {
        if !self.is_empty() {
            progress::count(self.len());
            for index in 0..self.capacity {
                self.prefetch_slot(Slot((index + AHEAD).min(self.capacity - 1)));
                let word = self.read(index);
                if !word.is_null() {
                    // SAFETY: the element leaves the table with it, so this is its only owner.
                    drop(unsafe { P::from_raw(address_of(word)) });
                }
            }
        }
        self.release();
    }
}
