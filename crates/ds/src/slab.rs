//! Small blocks in size classes of four bytes, for entries and tables. Knows nothing of what the blocks hold.
//!
//! General allocators round 56 bytes up to 64 and 1,030 up to 1,280; with a header of eight bytes on an entry, that
//! rounding would be most of what a key costs. Here a class exists for every multiple of four up to 1 KiB, and above
//! it one for every number of blocks that fit a span.
//!
//! ```text
//! chunk (4 MiB, aligned to 4 MiB, from the system)
//! +---------+---------+-- ... --+---------+
//! | span 0  | span 1  |         | span 15 |   256 KiB each: all blocks of one class, one owning heap
//! +---------+---------+-- ... --+---------+
//! span 0:  [ header 0 ][ header 1 ] ... [ header 15 ][ block ][ block ] ...       64 bytes a header
//! others:  [ block ][ block ] ...
//!
//! so a block's address, with its low 22 bits cleared, is that of its chunk, and bits 18 to 21 choose the header.
//! ```
//!
//! Where blocks of a class were freed here and there, their spans stay although little of them is used. Such spans can
//! be drained: they give out no more blocks, and whoever owns the blocks moves those that `is_draining` names.
//!
//! Every thread has a heap. A block that another thread frees goes onto its owner's `remote` stack (push one, take
//! all: no ABA), which the owner empties when it needs memory or calls `collect`. The heap of a thread that ended is
//! given to the next thread that starts.

use crate::memory;
use std::alloc::{GlobalAlloc, Layout, System, handle_alloc_error};
use std::cell::{Cell, UnsafeCell};
use std::ptr::{self, NonNull};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

const SPAN_BYTES: usize = 256 * 1024;
const CHUNK_BYTES: usize = 4 * 1024 * 1024;
const HEADER_BYTES: usize = 64;
const SPANS_PER_CHUNK: usize = CHUNK_BYTES / SPAN_BYTES;
/// What the headers take of a chunk's first span.
const HEADERS_BYTES: usize = SPANS_PER_CHUNK * HEADER_BYTES;

/// Classes of 4, 8, ... 1,024 bytes, of which the first is never used.
const FINE_CLASSES: usize = 256;
const FINE_STEP: usize = 4;
const FINE_MAX: usize = FINE_CLASSES * FINE_STEP;
/// A free block holds the address of the next one.
const BLOCK_MIN: usize = size_of::<*mut u8>();
/// Above `FINE_MAX`, one class for each number of blocks in a span, from this one down to `COARSE_BLOCKS_MIN`.
const COARSE_BLOCKS_MAX: usize = SPAN_BYTES / (FINE_MAX + 8);
const COARSE_BLOCKS_MIN: usize = 8;
const CLASSES: usize = FINE_CLASSES + COARSE_BLOCKS_MAX - COARSE_BLOCKS_MIN + 1;

/// The largest block that comes from a span; larger ones come from the global allocator.
pub const SLAB_MAX: usize = coarse_size(COARSE_BLOCKS_MIN);

/// Empty spans that are kept ready; the pages of further ones go back to the system.
const SPARE_SPANS_MAX: usize = 1;

const _: () = assert!(size_of::<Span>() <= HEADER_BYTES);
const _: () = assert!(SLAB_MAX == 32 * 1024);

const fn coarse_size(blocks: usize) -> usize {
    (SPAN_BYTES / blocks) & !7
}

/// The class of a block of `size` bytes, `1..=SLAB_MAX`.
#[inline]
fn class_of(size: usize) -> usize {
    debug_assert!(0 < size && size <= SLAB_MAX);
    if size <= FINE_MAX {
        (size.max(BLOCK_MIN) - 1) / FINE_STEP
    } else {
        // As many blocks as fit when each has `size` bytes; all of them rounded to eight still fit.
        let blocks = SPAN_BYTES / size.next_multiple_of(8);
        FINE_CLASSES + COARSE_BLOCKS_MAX - blocks
    }
}

fn class_size(class: usize) -> usize {
    if class < FINE_CLASSES { (class + 1) * FINE_STEP } else { coarse_size(COARSE_BLOCKS_MAX - (class - FINE_CLASSES)) }
}

/// Bytes that a block asked for with `size` really has.
#[inline]
pub fn rounded(size: usize) -> usize {
    if size <= FINE_MAX {
        size.max(BLOCK_MIN).next_multiple_of(FINE_STEP)
    } else if size <= SLAB_MAX {
        class_size(class_of(size))
    } else {
        size
    }
}

/// The next of a list of free blocks, whose address is written at the start of each.
///
/// # Safety
/// The block is free and in a list.
#[inline]
unsafe fn next_of(block: *mut u8) -> *mut u8 {
    // SAFETY: a free block holds the next one's address; blocks need not be aligned to eight.
    unsafe { block.cast::<*mut u8>().read_unaligned() }
}

/// # Safety
/// The block is free and the caller's.
#[inline]
unsafe fn set_next(block: *mut u8, next: *mut u8) {
    // SAFETY: a block has room for an address; blocks need not be aligned to eight.
    unsafe { block.cast::<*mut u8>().write_unaligned(next) }
}

struct Span {
    heap: *const Heap,
    free: *mut u8,
    next: *mut Span,
    prev: *mut Span,
    block_bytes: u32,
    class: u16,
    used: u16,
    /// Where the never-used part starts, in bytes from the span's start.
    bump: u32,
    /// Whether the span is in its heap's list of spans with room.
    listed: bool,
    /// Whether the span is in its heap's list of spans to be emptied. Any thread may ask.
    draining: AtomicBool,
}

/// The header of the span that a block is in.
#[inline]
fn span_of(block: *mut u8) -> *mut Span {
    let header = |a: usize| (a & !(CHUNK_BYTES - 1)) + a % CHUNK_BYTES / SPAN_BYTES * HEADER_BYTES;
    block.map_addr(header).cast()
}

/// Where a span's memory starts.
#[inline]
fn start_of(span: *mut Span) -> *mut u8 {
    let start = |a: usize| (a & !(CHUNK_BYTES - 1)) + a % CHUNK_BYTES / HEADER_BYTES * SPAN_BYTES;
    span.cast::<u8>().map_addr(start)
}

/// Where a span's first block lies, in bytes from its start.
#[inline]
fn first_block(span: *mut Span) -> usize {
    if span.addr().is_multiple_of(CHUNK_BYTES) { HEADERS_BYTES } else { 0 }
}

struct Heap {
    /// Spans with room, by class. Touched by the owning thread only.
    bins: UnsafeCell<[*mut Span; CLASSES]>,
    /// Spans that are to be emptied. Touched by the owning thread only.
    draining: UnsafeCell<*mut Span>,
    /// Bytes of blocks that are free but were in use before: they take memory for nothing. Owning thread only.
    waste: Cell<usize>,
    /// Blocks that other threads have freed.
    remote: AtomicPtr<u8>,
    owned: AtomicBool,
}

// SAFETY: `bins`, `draining` and `waste` are touched only by the thread that has set `owned`; `remote` is atomic.
unsafe impl Sync for Heap {}
// SAFETY: a heap has no tie to the thread that made it; ownership is handed on through `owned`.
unsafe impl Send for Heap {}

static HEAPS: Mutex<Vec<&'static Heap>> = Mutex::new(Vec::new());
static SPARE_SPANS: Mutex<SpareSpans> = Mutex::new(SpareSpans { spans: Vec::new() });

struct SpareSpans {
    spans: Vec<NonNull<Span>>,
}

// SAFETY: spare spans belong to nobody; the mutex hands each to one taker.
unsafe impl Send for SpareSpans {}

/// Which spans may be draining: a bit for each, by its address. Bits of spans that no longer are stay set until no
/// heap drains any; whoever finds one asks `is_draining`.
static MAY_DRAIN: [AtomicU64; FILTER_WORDS] = [const { AtomicU64::new(0) }; FILTER_WORDS];
/// Heaps that have draining spans.
static DRAINING_HEAPS: AtomicUsize = AtomicUsize::new(0);
/// As many bits as there are spans in 4 GiB: two spans share a bit only when they lie so far apart.
const FILTER_WORDS: usize = 256;

/// The word and bit of the filter for the span that an address lies in.
#[inline]
fn filter_bit(address: usize) -> (usize, u64) {
    let span = address / SPAN_BYTES;
    (span / 64 % FILTER_WORDS, 1 << (span % 64))
}

thread_local! {
    static HEAP: Cell<*const Heap> = const { Cell::new(ptr::null()) };
    static LEASE: Lease = const { Lease };
}

/// Gives the thread's heap back when the thread ends.
struct Lease;

impl Drop for Lease {
    fn drop(&mut self) {
        let heap = HEAP.replace(ptr::null());
        if !heap.is_null() {
            // SAFETY: heaps are leaked, so the pointer stays valid.
            unsafe { (*heap).owned.store(false, Ordering::Release) };
        }
    }
}

#[inline]
fn own_heap() -> &'static Heap {
    let heap = HEAP.get();
    // SAFETY: heaps are leaked, so a non-null pointer stays valid.
    if heap.is_null() { lease_heap() } else { unsafe { &*heap } }
}

#[cold]
fn lease_heap() -> &'static Heap {
    let mut heaps = HEAPS.lock().expect("no code panics while it holds the list of heaps");
    let idle = heaps
        .iter()
        .find(|h| h.owned.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok())
        .copied();
    let heap = idle.unwrap_or_else(|| {
        let heap: &'static Heap = Box::leak(Box::new(Heap {
            bins: UnsafeCell::new([ptr::null_mut(); CLASSES]),
            draining: UnsafeCell::new(ptr::null_mut()),
            waste: Cell::new(0),
            remote: AtomicPtr::new(ptr::null_mut()),
            owned: AtomicBool::new(true),
        }));
        heaps.push(heap);
        heap
    });
    HEAP.set(heap);
    // While the thread is torn down the lease is gone; such a heap then stays leased for good, which is harmless.
    let _ = LEASE.try_with(|_| ());
    heap
}

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
    let class = class_of(size);
    let heap = own_heap();
    // SAFETY: this thread owns `heap`, so nobody else touches `bins` or the spans listed there.
    unsafe {
        let mut span = (*heap.bins.get())[class];
        if span.is_null() {
            span = heap.span_with_room(class);
        }
        memory::count((*span).block_bytes as isize);
        heap.take_block(span)
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
        debug_assert_eq!((*span).class as usize, class_of(size));
        memory::count(-((*span).block_bytes as isize));
        let owner = (*span).heap;
        if ptr::eq(owner, HEAP.get()) { (*owner).put_block(span, block) } else { (*owner).push_remote(block) }
    }
}

/// Takes back what other threads have freed of this thread's blocks, so that empty spans can be reused or released.
pub fn collect() {
    // SAFETY: this thread owns its heap.
    unsafe { own_heap().drain_remote() }
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

impl Heap {
    /// Takes a block out of a span with room.
    ///
    /// # Safety
    /// The caller owns the heap; `span` is in its list and has room.
    #[inline]
    unsafe fn take_block(&self, span: *mut Span) -> NonNull<u8> {
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
                self.waste.set(self.waste.get() - block_bytes as usize);
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
    unsafe fn put_block(&self, span: *mut Span, block: *mut u8) {
        // SAFETY: as the function's contract says.
        unsafe {
            set_next(block, (*span).free);
            (*span).free = block;
            (*span).used -= 1;
            self.waste.set(self.waste.get() + (*span).block_bytes as usize);
            let draining = (*span).draining.load(Ordering::Relaxed);
            if !(*span).listed && !draining {
                self.list(span);
            }
            // Empty spans go at once: as tables grow they leave one class after another, all shards at a time.
            if (*span).used == 0 {
                let head = if draining { self.draining.get() } else { self.bin(span) };
                unlink(head, span);
                self.waste.set(self.waste.get() - ((*span).bump as usize - first_block(span)));
                retire_span(span);
            }
        }
    }

    fn push_remote(&self, block: *mut u8) {
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

    /// # Safety
    /// The caller owns the heap.
    unsafe fn drain_remote(&self) {
        if self.remote.load(Ordering::Relaxed).is_null() {
            return;
        }
        let mut block = self.remote.swap(ptr::null_mut(), Ordering::Acquire);
        while !block.is_null() {
            // SAFETY: the blocks on the stack are free and of this heap's spans; `next` is read before the block is
            // put back. The block's own pointer reaches its span: it kept the provenance that `alloc` gave it.
            unsafe {
                let next = next_of(block);
                let span = span_of(block);
                self.put_block(span, block);
                block = next;
            }
        }
    }

    /// # Safety
    /// The caller owns the heap.
    #[cold]
    unsafe fn span_with_room(&self, class: usize) -> *mut Span {
        // SAFETY: the caller owns the heap, and a fresh span is ours alone.
        unsafe {
            self.drain_remote();
            let span = (*self.bins.get())[class];
            if !span.is_null() {
                return span;
            }
            let span = fresh_span().as_ptr();
            span.write(Span {
                heap: self,
                free: ptr::null_mut(),
                next: ptr::null_mut(),
                prev: ptr::null_mut(),
                block_bytes: class_size(class) as u32,
                class: class as u16,
                used: 0,
                bump: first_block(span) as u32,
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
    unsafe fn bin(&self, span: *mut Span) -> *mut *mut Span {
        // SAFETY: as the function's contract says; the class is that of a bin.
        unsafe { self.bins.get().cast::<*mut Span>().add((*span).class as usize) }
    }

    /// # Safety
    /// The caller owns the heap and the span, which is in no list.
    unsafe fn list(&self, span: *mut Span) {
        // SAFETY: as the function's contract says.
        unsafe {
            link(self.bin(span), span);
            (*span).listed = true;
        }
    }

    /// # Safety
    /// The caller owns the heap and the listed span.
    unsafe fn unlist(&self, span: *mut Span) {
        // SAFETY: as the function's contract says.
        unsafe {
            unlink(self.bin(span), span);
            (*span).listed = false;
        }
    }

    /// Marks the little-used spans of a class; tells whether there are any.
    ///
    /// # Safety
    /// The caller owns the heap.
    unsafe fn drain_class(&self, class: usize) -> bool {
        let is_sparse = |span: *mut Span| {
            // SAFETY: only live spans of this heap are passed.
            let (used, bump, block) =
                unsafe { ((*span).used as usize, (*span).bump as usize, (*span).block_bytes as usize) };
            used * block * 8 <= (bump - first_block(span)) * 7 && bump + block > SPAN_BYTES
        };
        // SAFETY: the caller owns the heap; spans in its lists are live.
        unsafe {
            let (mut spans, mut blocks) = (0, 0);
            let mut span = (*self.bins.get())[class];
            while !span.is_null() {
                if is_sparse(span) {
                    spans += 1;
                    blocks += (*span).used as usize;
                }
                span = (*span).next;
            }
            // At least a span must be won when the blocks are packed anew.
            let needed = blocks.div_ceil((SPAN_BYTES - HEADERS_BYTES) / class_size(class));
            if spans <= needed {
                return false;
            }
            let mut span = (*self.bins.get())[class];
            while !span.is_null() {
                let next = (*span).next;
                if is_sparse(span) {
                    self.unlist(span);
                    link(self.draining.get(), span);
                    (*span).draining.store(true, Ordering::Relaxed);
                    let (word, bit) = filter_bit(start_of(span).addr());
                    MAY_DRAIN[word].fetch_or(bit, Ordering::Relaxed);
                }
                span = next;
            }
            true
        }
    }
}

/// # Safety
/// The list and the span, which is in no list, are the caller's.
unsafe fn link(head: *mut *mut Span, span: *mut Span) {
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
unsafe fn unlink(head: *mut *mut Span, span: *mut Span) {
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

/// Bytes of this thread's freed blocks whose memory is still taken.
pub fn waste() -> usize {
    own_heap().waste.get()
}

/// Marks this thread's spans of which little is used, so that they give out no more blocks; tells whether there are
/// any. Their blocks should then be moved by whoever owns them.
pub fn start_draining() -> bool {
    let heap = own_heap();
    // SAFETY: this thread owns its heap.
    unsafe {
        heap.drain_remote();
        DRAINING_HEAPS.fetch_add(1, Ordering::Relaxed);
        let any = (0..CLASSES).fold(false, |any, class| heap.drain_class(class) || any);
        if !any {
            DRAINING_HEAPS.fetch_sub(1, Ordering::Relaxed);
        }
        any
    }
}

/// Ends what `start_draining` has started: spans that are still not empty give out blocks again.
pub fn stop_draining() {
    let heap = own_heap();
    // SAFETY: this thread owns its heap, and the spans in its lists are live.
    unsafe {
        heap.drain_remote();
        while !(*heap.draining.get()).is_null() {
            let span = *heap.draining.get();
            unlink(heap.draining.get(), span);
            (*span).draining.store(false, Ordering::Relaxed);
            heap.list(span);
        }
    }
    if DRAINING_HEAPS.fetch_sub(1, Ordering::Relaxed) == 1 {
        // A heap that starts just now may lose a bit: what it would have won then waits for its next turn.
        MAY_DRAIN.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

/// Whether the block at this address may have to be moved: a look that reads neither block nor span.
#[inline]
pub fn may_be_draining(block: NonNull<u8>) -> bool {
    let (word, bit) = filter_bit(block.addr().get());
    MAY_DRAIN[word].load(Ordering::Relaxed) & bit != 0
}

/// Whether a block should be moved: to a new one that is filled and used instead, so that this one can be freed.
///
/// # Safety
/// `block` came from `alloc` with the same `size`, is in use, and its provenance covers its whole span.
#[inline]
pub unsafe fn is_draining(block: NonNull<u8>, size: usize) -> bool {
    if size > SLAB_MAX {
        return false;
    }
    let span = span_of(block.as_ptr());
    // SAFETY: the block lies in a live span; the flag is atomic.
    unsafe { (*span).draining.load(Ordering::Relaxed) }
}

/// A span that belongs to nobody, from the spare ones or from a new chunk.
fn fresh_span() -> NonNull<Span> {
    let mut spare = SPARE_SPANS.lock().expect("no code panics while it holds the spare spans");
    if let Some(span) = spare.spans.pop() {
        return span;
    }
    let layout = Layout::from_size_align(CHUNK_BYTES, CHUNK_BYTES).expect("both are powers of two");
    // SAFETY: the layout's size is not zero. The chunk is never given back whole; its spans are reused for good.
    let chunk = unsafe { System.alloc(layout) };
    let Some(chunk) = NonNull::new(chunk) else { handle_alloc_error(layout) };
    // Pushed last to first, so that spans are taken in address order.
    for index in (1..SPANS_PER_CHUNK).rev() {
        // SAFETY: the offset lies inside the chunk.
        spare.spans.push(unsafe { chunk.add(index * HEADER_BYTES) }.cast());
    }
    chunk.cast()
}

/// Gives an empty span back for reuse by any heap and class.
fn retire_span(span: *mut Span) {
    let mut spare = SPARE_SPANS.lock().expect("no code panics while it holds the spare spans");
    if spare.spans.len() >= SPARE_SPANS_MAX {
        release_pages(span);
    }
    spare.spans.extend(NonNull::new(span));
}

/// Tells the system that a span's contents are not needed. Headers stay.
fn release_pages(span: *mut Span) {
    const PAGE: usize = 4096;
    let keep = first_block(span).next_multiple_of(PAGE);
    #[cfg(all(target_os = "linux", not(miri)))]
    // SAFETY: this part of the span is memory of ours that holds nothing; it reads as zeros afterwards.
    unsafe {
        libc::madvise(start_of(span).add(keep).cast(), SPAN_BYTES - keep, libc::MADV_DONTNEED);
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = keep;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_sizes() {
        for size in 1..=SLAB_MAX {
            let class = class_of(size);
            let room = class_size(class);
            assert!(room >= size, "{size} in a block of {room}");
            assert_eq!(room % FINE_STEP, 0);
            assert!(size % 8 != 0 || room % 8 == 0, "{size} wants to be aligned to eight");
            assert_eq!(class_of(room), class, "{size} and its rounded size {room} differ in class");
            assert_eq!(rounded(size), room);
            assert!(size <= BLOCK_MIN || class_size(class - 1) < size, "{size} would fit a smaller class");
            assert!(room <= FINE_MAX || room - size <= room / COARSE_BLOCKS_MIN);
        }
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
                    assert!((0..size).all(|i| *block.as_ptr().add(i) == fill), "a block was overwritten");
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
                assert!((0..size).all(|i| *block.as_ptr().add(i) == fill), "a block was overwritten");
                free(block, size);
            }
        }
    }

    #[test]
    fn sparse_spans_can_be_emptied() {
        // On a thread of its own: the heap's other spans are out of the way.
        let check = || {
            let size = if cfg!(miri) { 30_000 } else { 4_000 };
            let count = 6 * (SPAN_BYTES / size);
            let mut blocks: Vec<NonNull<u8>> = (0..count).map(|_| alloc(size)).collect();
            let mut index = 0;
            blocks.retain(|&block| {
                index += 1;
                let keep = index % 4 == 0;
                if !keep {
                    // SAFETY: the block is live and freed once.
                    unsafe { free(block, size) };
                }
                keep
            });
            let before = waste();
            assert!(before > count / 2 * size, "{before}");
            assert!(start_draining());
            for block in &mut blocks {
                // SAFETY: the block is live; the old one is freed once and not used after.
                unsafe {
                    if is_draining(*block, size) {
                        let moved = alloc(size);
                        assert!(!is_draining(moved, size), "a span that is emptied gives out no blocks");
                        free(*block, size);
                        *block = moved;
                    }
                }
            }
            stop_draining();
            assert_eq!(waste(), 0);
            assert!(!start_draining(), "nothing is left to win");
            for block in blocks {
                // SAFETY: as above.
                unsafe { free(block, size) };
            }
            assert_eq!(waste(), 0);
        };
        std::thread::spawn(check).join().unwrap();
    }

    #[test]
    fn spans_that_stay_in_use_are_used_again() {
        let check = || {
            let size = 30_000;
            let blocks: Vec<NonNull<u8>> = (0..24).map(|_| alloc(size)).collect();
            let (stay, go): (Vec<_>, Vec<_>) = blocks.into_iter().enumerate().partition(|(index, _)| index % 4 == 0);
            for (_, block) in go {
                // SAFETY: the block is live and freed once.
                unsafe { free(block, size) };
            }
            assert!(start_draining());
            stop_draining();
            let before = waste();
            let again: Vec<NonNull<u8>> = (0..18).map(|_| alloc(size)).collect();
            assert!(waste() < before, "the spans give out blocks again");
            for block in stay.into_iter().map(|(_, block)| block).chain(again) {
                // SAFETY: as above.
                unsafe { free(block, size) };
            }
        };
        std::thread::spawn(check).join().unwrap();
    }

    #[test]
    fn blocks_freed_by_another_thread_come_back() {
        let count = if cfg!(miri) { 20 } else { 5_000 };
        struct Blocks(Vec<NonNull<u8>>);
        // SAFETY: the blocks are plain memory that nobody else refers to.
        unsafe impl Send for Blocks {}
        for _ in 0..3 {
            let blocks = Blocks((0..count).map(|_| alloc(4000)).collect());
            let first = blocks.0.iter().map(|b| b.addr()).min().unwrap();
            std::thread::spawn(move || {
                let blocks = blocks;
                for block in blocks.0 {
                    // SAFETY: the blocks are live and freed once.
                    unsafe { free(block, 4000) };
                }
            })
            .join()
            .unwrap();
            collect();
            let again: Vec<_> = (0..count).map(|_| alloc(4000)).collect();
            assert!(cfg!(miri) || again.iter().any(|b| b.addr() == first), "nothing was reused");
            for block in again {
                // SAFETY: as above.
                unsafe { free(block, 4000) };
            }
        }
    }
}
