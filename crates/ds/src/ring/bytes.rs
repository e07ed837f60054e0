//! The memory of the ring, which several threads write to at different places. Knows no block and no position.

use super::placed::Placed;
use super::sync::UnsafeCell;
#[cfg(not(all(test, loom)))]
use crate::{hash_table::prefetch_to_write, region::Region};
#[cfg(not(all(test, loom)))]
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Bytes {
    cells: Placed<[UnsafeCell<u8>]>,
}

// SAFETY: plain bytes; `write` and `read` leave it to their callers that nobody writes what another reads or writes.
unsafe impl Sync for Bytes {}
// SAFETY: plain bytes.
unsafe impl Send for Bytes {}

#[cfg(not(all(test, loom)))]
impl Bytes {
    #[cfg(test)]
    pub(super) fn new(len: usize) -> Bytes {
        // Zeroed memory of this size comes from the system as it is touched.
        let zeroed = Box::<[u8]>::into_raw(vec![0; len].into_boxed_slice());
        // SAFETY: a cell has the layout of what it holds, and the box was just taken apart.
        Bytes { cells: Placed::boxed(unsafe { Box::from_raw(zeroed as *mut [UnsafeCell<u8>]) }) }
    }

    /// So many bytes that lie in a region, so many from its start.
    ///
    /// # Safety
    /// Nobody else who has the region may write to them but as a ring does.
    pub(super) unsafe fn in_region(region: &Arc<Region>, offset: usize, len: usize) -> Bytes {
        // SAFETY: any bits are bytes; the rest is as the caller says.
        Bytes { cells: unsafe { Placed::slice_in_region(region, offset, len) } }
    }

    /// Copies bytes in.
    ///
    /// # Safety
    /// Nobody else may read or write these places meanwhile.
    #[inline]
    pub(super) unsafe fn write(&self, at: usize, bytes: &[u8]) {
        let cells = &self.cells[at..at + bytes.len()];
        // SAFETY: the cells are as many as the bytes, and the caller has them to itself; the bytes are no cells of
        // ours, as nobody could hold a reference to those.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), UnsafeCell::raw_get(cells.as_ptr()), bytes.len()) };
    }

    /// Asks the processor for the cache line of a place, to write to it.
    #[inline(always)]
    pub(super) fn prepare(&self, at: usize) {
        prefetch_to_write(UnsafeCell::raw_get(&raw const self.cells[at]));
    }

    /// The bytes at these places.
    ///
    /// # Safety
    /// Nobody may write them as long as they are borrowed.
    pub(super) unsafe fn read(&self, at: usize, len: usize) -> &[u8] {
        let cells = &self.cells[at..at + len];
        // SAFETY: the cells are initialised, and nobody writes them meanwhile, as the caller promises.
        unsafe { std::slice::from_raw_parts(UnsafeCell::raw_get(cells.as_ptr()), len) }
    }
}

#[cfg(all(test, loom))]
impl Bytes {
    pub(super) fn new(len: usize) -> Bytes {
        Bytes { cells: Placed::boxed((0..len).map(|_| UnsafeCell::new(0)).collect()) }
    }

    pub(super) fn prepare(&self, _at: usize) {}

    /// Copies bytes in.
    ///
    /// # Safety
    /// Nobody else may read or write these places meanwhile.
    pub(super) unsafe fn write(&self, at: usize, bytes: &[u8]) {
        for (cell, byte) in self.cells[at..].iter().zip(bytes) {
            // SAFETY: loom looks whether somebody else has the cell.
            cell.with_mut(|cell| unsafe { *cell = *byte });
        }
    }

    /// The bytes at these places.
    ///
    /// # Safety
    /// Nobody may write them as long as they are borrowed.
    pub(super) unsafe fn read(&self, at: usize, len: usize) -> &[u8] {
        // SAFETY: loom looks whether somebody has the cell to write to it.
        let bytes: Vec<u8> = self.cells[at..at + len].iter().map(|cell| cell.with(|cell| unsafe { *cell })).collect();
        bytes.leak()
    }
}
