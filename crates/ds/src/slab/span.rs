//! A span: its header, the way from a block to it, and the lists that it and its blocks are in. Knows no thread.

use super::heap::Heap;
use super::poison;
use crate::hash_table::prefetch_to_write;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::AtomicBool;

/// Bytes of a span.
pub const SPAN_BYTES: usize = 256 * 1024;
pub(super) const CHUNK_BYTES: usize = 4 * 1024 * 1024;
pub(super) const HEADER_BYTES: usize = 64;
pub(super) const SPANS_PER_CHUNK: usize = CHUNK_BYTES / SPAN_BYTES;
/// What the headers take of a chunk's first span.
pub(super) const HEADERS_BYTES: usize = SPANS_PER_CHUNK * HEADER_BYTES;

const _: () = assert!(size_of::<Span>() <= HEADER_BYTES);

/// The next of a list of free blocks, whose address is written at the start of each.
///
/// # Safety
/// The block is free and in a list.
#[inline]
pub(super) unsafe fn next_of(block: *mut u8) -> *mut u8 {
    // SAFETY: a free block holds the next one's address; blocks need not be aligned to eight.
    unsafe {
        poison::allow(block, size_of::<*mut u8>());
        let next = block.cast::<*mut u8>().read_unaligned();
        poison::forbid(block, size_of::<*mut u8>());
        next
    }
}

/// # Safety
/// The block is free and the caller's.
#[inline]
pub(super) unsafe fn set_next(block: *mut u8, next: *mut u8) {
    // SAFETY: a block has room for an address; blocks need not be aligned to eight.
    unsafe {
        poison::allow(block, size_of::<*mut u8>());
        block.cast::<*mut u8>().write_unaligned(next);
        poison::forbid(block, size_of::<*mut u8>());
    }
}

/// How many blocks behind one the one lies that its hint names.
const HINT_AHEAD: usize = 8;
/// A free block as long as this holds a hint behind the next one's address.
const HINTED_MIN: u32 = 2 * size_of::<*mut u8>() as u32;

thread_local! {
    /// The blocks that this thread has freed last for others, and how many it has.
    static FREED_LAST: ([Cell<*mut u8>; HINT_AHEAD], Cell<usize>) =
        const { ([const { Cell::new(ptr::null_mut()) }; HINT_AHEAD], Cell::new(0)) };
}

/// Writes into a block of this length, which is about to join a list, the address of one that joined the list some places
/// before it, or some other list: whoever walks the list asks for that, as it would wait for each block otherwise.
///
/// # Safety
/// The block is free and the caller's.
#[inline]
pub(super) unsafe fn set_hint(block: *mut u8, block_bytes: u32) {
    if block_bytes < HINTED_MIN {
        return;
    }
    // A thread that is torn down gives no good hints.
    let earlier = FREED_LAST.try_with(|(blocks, count)| {
        let at = count.replace(count.get().wrapping_add(1));
        blocks[at % HINT_AHEAD].replace(block)
    });
    // SAFETY: the block has room for two addresses; blocks need not be aligned to eight.
    unsafe {
        poison::allow(block, HINTED_MIN as usize);
        block.cast::<*mut u8>().add(1).write_unaligned(earlier.unwrap_or(ptr::null_mut()));
        poison::forbid(block, HINTED_MIN as usize);
    }
}

/// Asks for the block that the hint of this one names.
///
/// # Safety
/// The block, of this length, is free and in a list, and had its hint set.
#[inline]
pub(super) unsafe fn follow_hint(block: *mut u8, block_bytes: u32) {
    if block_bytes < HINTED_MIN {
        return;
    }
    // SAFETY: as above; `set_hint` has written there.
    let hint = unsafe {
        poison::allow(block, HINTED_MIN as usize);
        let hint = block.cast::<*mut u8>().add(1).read_unaligned();
        poison::forbid(block, HINTED_MIN as usize);
        hint
    };
    prefetch_to_write(hint);
}

pub(super) struct Span {
    pub(super) heap: *const Heap,
    pub(super) free: *mut u8,
    pub(super) next: *mut Span,
    pub(super) prev: *mut Span,
    pub(super) block_bytes: u32,
    pub(super) class: u16,
    pub(super) used: u16,
    /// Where the never-used part starts, in bytes from the span's start.
    pub(super) bump: u32,
    /// Up to where it has pages from an earlier life, in bytes from the span's start; 0: it was fresh, or gave them back.
    pub(super) kept: u32,
    /// Whether the span is in its heap's list of spans with room.
    pub(super) listed: bool,
    /// Whether the span is in its heap's list of spans to be emptied. Any thread may ask.
    pub(super) draining: AtomicBool,
}

/// The header of the span that a block is in.
#[inline]
pub(super) fn span_of(block: *mut u8) -> *mut Span {
    let header = |a: usize| (a & !(CHUNK_BYTES - 1)) + a % CHUNK_BYTES / SPAN_BYTES * HEADER_BYTES;
    block.map_addr(header).cast()
}

/// Where a span's memory starts.
#[inline]
pub(super) fn start_of(span: *mut Span) -> *mut u8 {
    let start = |a: usize| (a & !(CHUNK_BYTES - 1)) + a % CHUNK_BYTES / HEADER_BYTES * SPAN_BYTES;
    span.cast::<u8>().map_addr(start)
}

/// Where a span's first block lies, in bytes from its start.
#[inline]
pub(super) fn first_block(span: *mut Span) -> usize {
    if span.addr().is_multiple_of(CHUNK_BYTES) { HEADERS_BYTES } else { 0 }
}

/// # Safety
/// The list and the span, which is in no list, are the caller's.
pub(super) unsafe fn link(head: *mut *mut Span, span: *mut Span) {
    // SAFETY: as the function's contract says; spans in a list are live.
    unsafe {
        (*span).prev = ptr::null_mut();
        (*span).next = *head;
        if !(*head).is_null() {
            (**head).prev = span;
        }
        *head = span;
    }
}

/// # Safety
/// The list and the span, which is in it, are the caller's.
pub(super) unsafe fn unlink(head: *mut *mut Span, span: *mut Span) {
    // SAFETY: as the function's contract says; neighbours in the list are live.
    unsafe {
        let (prev, next) = ((*span).prev, (*span).next);
        if prev.is_null() {
            *head = next;
        } else {
            (*prev).next = next;
        }
        if !next.is_null() {
            (*next).prev = prev;
        }
        (*span).next = ptr::null_mut();
        (*span).prev = ptr::null_mut();
    }
}
