//! What one thread gives out blocks from: its spans, by class, and the stack of what others have freed. Knows not
//! which thread it belongs to.

use super::classes::{CLASSES, class_size};
use super::span::{
    SPAN_BYTES, Span, first_block, follow_hint, link, next_of, set_hint, set_next, span_of, start_of, unlink,
};
use super::spare::{fresh_span, retire_span};
use crate::apart::Apart;
use std::cell::{Cell, UnsafeCell};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Blocks that are taken back in one go: each may be a miss of the caches or two, so it is some ten microseconds.
const DRAIN_STEP: usize = 64;
/// How many are taken back in search of one of a class, or of spans that have got empty.
pub(super) const DRAIN_MAX: usize = 512;

pub(super) struct Heap {
    /// Spans with room, by class. Touched by the owning thread only.
    pub(super) bins: UnsafeCell<[*mut Span; CLASSES]>,
    /// Spans that are to be emptied. Touched by the owning thread only.
    pub(super) draining: UnsafeCell<*mut Span>,
    /// The class of which spans are marked first the next time. Touched by the owning thread only.
    pub(super) drains_from: Cell<usize>,
    /// Whether spans were marked to be emptied. Touched by the owning thread only.
    pub(super) drains: Cell<bool>,
    /// Bytes of blocks that are free but were in use before: they take memory for nothing. Only the owning thread changes
    /// it, any may look.
    waste: AtomicUsize,
    /// Blocks that other threads have freed: apart from what the owner writes for each block.
    remote: Apart<AtomicPtr<u8>>,
    /// What was taken of `remote` and has not been put back yet. Touched by the owning thread only.
    taken: Cell<*mut u8>,
    /// Whether a thread has the heap.
    owned: AtomicBool,
}

// SAFETY: `bins`, `draining`, `drains_from`, `drains` and `taken` are touched only by the thread that has set `owned`; the others are atomic.
unsafe impl Sync for Heap {}
// SAFETY: a heap has no tie to the thread that made it; ownership is handed on through `owned`.
unsafe impl Send for Heap {}

impl Heap {
    /// An empty heap that the caller owns.
    pub(super) fn new() -> Heap {
        Heap {
            bins: UnsafeCell::new([ptr::null_mut(); CLASSES]),
            draining: UnsafeCell::new(ptr::null_mut()),
            drains_from: Cell::new(0),
            drains: Cell::new(false),
            waste: AtomicUsize::new(0),
            remote: Apart(AtomicPtr::new(ptr::null_mut())),
            taken: Cell::new(ptr::null_mut()),
            owned: AtomicBool::new(true),
        }
    }

    /// Makes the caller the heap's owner if it has none; tells whether it did.
    pub(super) fn try_own(&self) -> bool {
        !self.owned.load(Ordering::Relaxed)
            && self.owned.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Ends the caller's ownership; what it did to the heap is seen by the next owner.
    pub(super) fn disown(&self) {
        self.owned.store(false, Ordering::Release);
    }

    /// Bytes of freed blocks whose memory is still taken.
    #[inline]
    pub(super) fn waste(&self) -> usize {
        self.waste.load(Ordering::Relaxed)
    }

    /// The owner alone calls it, so that it is a plain store.
    #[inline]
    fn set_waste(&self, bytes: usize) {
        self.waste.store(bytes, Ordering::Relaxed);
    }

    /// Takes a block out of a span with room.
    ///
    /// # Safety
    /// The caller owns the heap; `span` is in its list and has room.
    #[inline]
    pub(super) unsafe fn take_block(&self, span: *mut Span) -> NonNull<u8> {
        // SAFETY: as the function's contract says; a listed span has a free block or room behind `bump`.
        unsafe {
            let block_bytes = (*span).block_bytes;
            let block = if (*span).free.is_null() {
                let block = start_of(span).add((*span).bump as usize);
                (*span).bump += block_bytes;
                block
            } else {
                let block = (*span).free;
                (*span).free = next_of(block);
                self.set_waste(self.waste() - block_bytes as usize);
                block
            };
            (*span).used += 1;
            if (*span).free.is_null() && (*span).bump + block_bytes > SPAN_BYTES as u32 {
                self.unlist(span);
            }
            NonNull::new_unchecked(block)
        }
    }

    /// Puts a block back into its span.
    ///
    /// # Safety
    /// The caller owns the heap, which owns the span, which the block is of.
    #[inline]
    pub(super) unsafe fn put_block(&self, span: *mut Span, block: *mut u8) {
        // SAFETY: as the function's contract says.
        unsafe {
            set_next(block, (*span).free);
            (*span).free = block;
            (*span).used -= 1;
            self.set_waste(self.waste() + (*span).block_bytes as usize);
            let draining = (*span).draining.load(Ordering::Relaxed);
            if !(*span).listed && !draining {
                self.list(span);
            }
            // Empty spans go at once: as tables grow they leave one class after another, all shards at a time.
            if (*span).used == 0 {
                let head = if draining { self.draining.get() } else { self.bin(span) };
                unlink(head, span);
                self.set_waste(self.waste() - ((*span).bump as usize - first_block(span)));
                retire_span(NonNull::new_unchecked(span), (*span).class as usize);
            }
        }
    }

    /// Hands a free block of one of this heap's spans to whoever owns the heap.
    ///
    /// # Safety
    /// The block is free and the caller's, and of blocks of this length.
    pub(super) unsafe fn push_remote(&self, block: *mut u8, block_bytes: u32) {
        // SAFETY: as the function's contract says.
        unsafe { set_hint(block, block_bytes) };
        let mut head = self.remote.load(Ordering::Relaxed);
        loop {
            // SAFETY: the block is free and ours until the exchange succeeds.
            unsafe { set_next(block, head) };
            match self.remote.compare_exchange_weak(head, block, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Whether other threads have freed blocks that the heap has not taken back yet.
    ///
    /// # Safety
    /// The caller owns the heap.
    pub(super) unsafe fn has_remote(&self) -> bool {
        !self.taken.get().is_null() || self.is_given_blocks()
    }

    /// Whether other threads have freed blocks since the owner has last looked; whoever owns the heap.
    pub(super) fn is_given_blocks(&self) -> bool {
        !self.remote.load(Ordering::Relaxed).is_null()
    }

    /// Takes back what other threads have freed, at most so many blocks.
    ///
    /// # Safety
    /// The caller owns the heap.
    pub(super) unsafe fn drain_remote(&self, blocks_max: usize) {
        let mut block = self.taken.get();
        for _ in 0..blocks_max {
            if block.is_null() {
                if !self.is_given_blocks() {
                    break;
                }
                block = self.remote.swap(ptr::null_mut(), Ordering::Acquire);
            }
            // SAFETY: the blocks on the stack are free and of this heap's spans; `next` is read before the block is
            // put back. The block's own pointer reaches its span: it kept the provenance that `alloc` gave it.
            unsafe {
                let next = next_of(block);
                let span = span_of(block);
                follow_hint(block, (*span).block_bytes);
                self.put_block(span, block);
                block = next;
            }
        }
        self.taken.set(block);
    }

    /// # Safety
    /// The caller owns the heap.
    #[cold]
    pub(super) unsafe fn span_with_room(&self, class: usize) -> *mut Span {
        // SAFETY: the caller owns the heap, and a fresh span is ours alone.
        unsafe {
            // As few as it takes: whoever allocates waits for it. What is not of this class is left for `collect`.
            for _ in 0..DRAIN_MAX / DRAIN_STEP {
                self.drain_remote(DRAIN_STEP);
                let span = (*self.bins.get())[class];
                if !span.is_null() {
                    return span;
                }
                if !self.has_remote() {
                    break;
                }
            }
            let (span, kept) = fresh_span(class);
            let span = span.as_ptr();
            span.write(Span {
                heap: self,
                free: ptr::null_mut(),
                next: ptr::null_mut(),
                prev: ptr::null_mut(),
                block_bytes: class_size(class) as u32,
                class: class as u16,
                used: 0,
                bump: first_block(span) as u32,
                kept,
                listed: false,
                draining: AtomicBool::new(false),
            });
            self.list(span);
            span
        }
    }

    /// The list of spans with room that the span is or would be in.
    ///
    /// # Safety
    /// The caller owns the heap and the span.
    pub(super) unsafe fn bin(&self, span: *mut Span) -> *mut *mut Span {
        // SAFETY: as the function's contract says; the class is that of a bin.
        unsafe { self.bins.get().cast::<*mut Span>().add((*span).class as usize) }
    }

    /// # Safety
    /// The caller owns the heap and the span, which is in no list.
    pub(super) unsafe fn list(&self, span: *mut Span) {
        // SAFETY: as the function's contract says.
        unsafe {
            link(self.bin(span), span);
            (*span).listed = true;
        }
    }

    /// # Safety
    /// The caller owns the heap and the listed span.
    pub(super) unsafe fn unlist(&self, span: *mut Span) {
        // SAFETY: as the function's contract says.
        unsafe {
            unlink(self.bin(span), span);
            (*span).listed = false;
        }
    }
}
