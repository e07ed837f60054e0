//! Giving out blocks and taking them back. Knows not how heaps keep their spans.

use super::classes::{SLAB_MAX, class_of, rounded};
use super::lease::{HEAP, collect_idle, own_heap};
use super::poison;
use super::span::span_of;
use crate::memory;
use std::alloc::{Layout, handle_alloc_error};
use std::ptr::{self, NonNull};

/// A block of at least `size` bytes, uninitialised; aligned to eight when `size` is a multiple of eight, else to four.
///
/// # Panics
/// When `size` is 0. Running out of memory ends the process, as for any Rust allocation.
#[inline]
pub fn alloc(size: usize) -> NonNull<u8> {
    assert!(size > 0, "a block has at least one byte");
    if size > SLAB_MAX {
        return alloc_large(size);
    }
    let class = class_of(poison::asked_for(size));
    let heap = own_heap();
    // SAFETY: this thread owns `heap`, so nobody else touches `bins` or the spans listed there.
    unsafe {
        let mut span = (*heap.bins.get())[class];
        if span.is_null() {
            span = heap.span_with_room(class);
        }
        memory::count((*span).block_bytes as isize);
        let block = heap.take_block(span);
        poison::allow(block.as_ptr(), rounded(size));
        block
    }
}

/// Gives back a block that `alloc(size)` has given.
///
/// # Safety
/// `block` came from `alloc` with the same `size`, is not in use any more, and is freed once. Its provenance still
/// covers its whole span: it is the pointer that `alloc` returned or derived from it by arithmetic only.
#[inline]
pub unsafe fn free(block: NonNull<u8>, size: usize) {
    if size > SLAB_MAX {
        // SAFETY: passed on from the caller.
        return unsafe { free_large(block, size) };
    }
    let span = span_of(block.as_ptr());
    let block = block.as_ptr();
    // SAFETY: the block lies in a live span, whose `heap`, `class` and `block_bytes` do not change while blocks of it
    // are in use; the rest of the span is touched by the owner only.
    unsafe {
        debug_assert_eq!((*span).class as usize, class_of(poison::asked_for(size)));
        poison::forbid(block, (*span).block_bytes as usize);
        memory::count(-((*span).block_bytes as isize));
        let owner = (*span).heap;
        if ptr::eq(owner, HEAP.get()) {
            (*owner).put_block(span, block)
        } else {
            (*owner).push_remote(block, (*span).block_bytes)
        }
    }
}

/// Takes back what other threads have freed of this thread's blocks and of ended threads', so that empty spans can be
/// reused or released.
pub fn collect() {
    while collect_some(usize::MAX) {}
}

/// Takes back a part of that: at most so many blocks of each thread's. Tells whether something is left.
pub fn collect_some(blocks_max: usize) -> bool {
    let heap = own_heap();
    // SAFETY: this thread owns its heap.
    let is_left = unsafe {
        heap.drain_remote(blocks_max);
        heap.has_remote()
    };
    collect_idle(blocks_max) || is_left
}

fn layout_of(size: usize) -> Layout {
    Layout::from_size_align(size, 8).expect("sizes are bounded far below isize::MAX")
}

#[cold]
fn alloc_large(size: usize) -> NonNull<u8> {
    let layout = layout_of(size);
    // SAFETY: the layout's size is not zero.
    NonNull::new(unsafe { std::alloc::alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}

#[cold]
unsafe fn free_large(block: NonNull<u8>, size: usize) {
    // SAFETY: `alloc_large` has allocated the block with the same layout.
    unsafe { std::alloc::dealloc(block.as_ptr(), layout_of(size)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// # Safety
    /// The block is live and has `size` initialised bytes.
    unsafe fn assert_filled(block: NonNull<u8>, size: usize, fill: u8) {
        // SAFETY: as the function's contract says.
        let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr(), size) };
        // One comparison of memory, which Miri does in one step.
        assert!(bytes == vec![fill; size], "a block was overwritten");
    }

    #[test]
    fn blocks_do_not_overlap_and_are_reused() {
        let sizes = [8, 24, 56, 1024, 1500, 4096, 32_768, 40_000];
        let rounds = if cfg!(miri) { 40 } else { 3_000 };
        let mut blocks = Vec::new();
        let mut random = 12345u64;
        for round in 0..rounds {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if random >> 62 == 0 && !blocks.is_empty() {
                let (block, size, fill): (NonNull<u8>, usize, u8) =
                    blocks.swap_remove((random >> 33) as usize % blocks.len());
                // SAFETY: the block is live, was filled whole, and is freed once.
                unsafe {
                    assert_filled(block, size, fill);
                    free(block, size);
                }
            } else {
                let size = sizes[(random >> 33) as usize % sizes.len()];
                let block = alloc(size);
                // SAFETY: the block has at least `size` bytes.
                unsafe { block.write_bytes(round as u8, size) };
                blocks.push((block, size, round as u8));
            }
        }
        for (block, size, fill) in blocks {
            // SAFETY: as above.
            unsafe {
                assert_filled(block, size, fill);
                free(block, size);
            }
        }
    }
}
