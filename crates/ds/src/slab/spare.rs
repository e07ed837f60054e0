//! Spans that belong to nobody: where heaps get theirs from and where empty ones go. Of classes it knows only
//! how many spans each has.

use super::classes::CLASSES;
use super::poison;
use super::span::{CHUNK_BYTES, HEADER_BYTES, HEADERS_BYTES, SPAN_BYTES, SPANS_PER_CHUNK, Span, first_block, start_of};
use crate::pages::{PAGE, discard};
use std::alloc::{GlobalAlloc, Layout, System, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// How many empty spans keep their pages: a lone key that comes and goes empties that of its table and that of its entry,
/// and a script may have several such.
const READY_MAX: usize = 8;
/// How many bytes of them were in use, all together: those of a span, if all of it was.
const READY_BYTES_MAX: usize = SPAN_BYTES;

static SPARE_SPANS: Mutex<SpareSpans> = Mutex::new(SpareSpans { ready: Vec::new(), without_pages: Vec::new() });

struct SpareSpans {
    /// Some that were in use are kept with their pages, for what is freed and allocated in turn: the oldest first.
    ready: Vec<NonNull<Span>>,
    /// Of these the system has the pages: again, or still.
    without_pages: Vec<NonNull<Span>>,
}

fn spare_spans() -> MutexGuard<'static, SpareSpans> {
    SPARE_SPANS.lock().expect("no code panics while it holds the spare spans")
}

impl SpareSpans {
    /// Takes out the oldest of those that have their pages if they are too many, or have too many.
    fn surplus(&mut self) -> Option<NonNull<Span>> {
        // SAFETY: a span that was in use has its header still, and belongs to nobody else now.
        let bytes = |span: &NonNull<Span>| unsafe { touched(*span) as usize };
        let is_surplus = self.ready.len() > READY_MAX || self.ready.iter().map(bytes).sum::<usize>() > READY_BYTES_MAX;
        is_surplus.then(|| self.ready.remove(0))
    }
}

/// Up to where a span that was in use may have pages, in bytes from its start.
///
/// # Safety
/// The span was in use and is the caller's.
unsafe fn touched(span: NonNull<Span>) -> u32 {
    // SAFETY: as the function's contract says.
    unsafe { span.as_ref().bump.max(span.as_ref().kept) }
}

// SAFETY: spare spans belong to nobody; the mutex hands each to one taker.
unsafe impl Send for SpareSpans {}

/// How many spans are in use, by class. They come and go rarely enough for all threads to count together.
static SPANS: [AtomicUsize; CLASSES] = [const { AtomicUsize::new(0) }; CLASSES];

/// How many spans the class with this number has, in all threads.
pub fn class_spans(number: usize) -> usize {
    SPANS[number - 1].load(Ordering::Relaxed)
}

/// How many spans there are in use.
pub fn spans() -> usize {
    SPANS.iter().map(|spans| spans.load(Ordering::Relaxed)).sum()
}

/// A span that belongs to nobody, for blocks of this class: one of the spare ones, or of a new chunk. And up to where it
/// still has the pages of an earlier life.
pub(super) fn fresh_span(class: usize) -> (NonNull<Span>, u32) {
    SPANS[class].fetch_add(1, Ordering::Relaxed);
    let mut spare = spare_spans();
    if let Some(span) = spare.ready.pop() {
        // SAFETY: it was in use, and belongs to nobody else now.
        return (span, unsafe { touched(span) });
    }
    if let Some(span) = spare.without_pages.pop() {
        return (span, 0);
    }
    let layout = Layout::from_size_align(CHUNK_BYTES, CHUNK_BYTES).expect("both are powers of two");
    // SAFETY: the layout's size is not zero. The chunk is never given back whole; its spans are reused for good.
    let chunk = unsafe { System.alloc(layout) };
    let Some(chunk) = NonNull::new(chunk) else { handle_alloc_error(layout) };
    poison::forbid(chunk.as_ptr().wrapping_add(HEADERS_BYTES), CHUNK_BYTES - HEADERS_BYTES);
    // Pushed last to first, so that spans are taken in address order.
    for index in (1..SPANS_PER_CHUNK).rev() {
        // SAFETY: the offset lies inside the chunk.
        spare.without_pages.push(unsafe { chunk.add(index * HEADER_BYTES) }.cast());
    }
    (chunk.cast(), 0)
}

/// Gives an empty span of this class back for reuse by any heap and class.
pub(super) fn retire_span(span: NonNull<Span>, class: usize) {
    SPANS[class].fetch_sub(1, Ordering::Relaxed);
    let mut spare = spare_spans();
    spare.ready.push(span);
    while let Some(further) = spare.surplus() {
        drop(spare);
        release(further);
        spare = spare_spans();
    }
}

/// Gives back the pages of the empty spans that still have them: to be called now and then, so that a span whose blocks are
/// freed and allocated in turn keeps its pages meanwhile, and one that nobody needs does not.
pub fn release_ready() {
    loop {
        let ready = spare_spans().ready.pop();
        let Some(span) = ready else { return };
        release(span);
    }
}

/// Outside the lock, as the system takes a while over it.
fn release(span: NonNull<Span>) {
    release_pages(span.as_ptr(), first_block(span.as_ptr()));
    spare_spans().without_pages.push(span);
}

/// Tells the system that a span's contents are not needed from this byte on.
pub(super) fn release_pages(span: *mut Span, from: usize) {
    let keep = from.next_multiple_of(PAGE);
    let (start, len) = (start_of(span).wrapping_add(keep), SPAN_BYTES - keep);
    // SAFETY: this part of the span is memory of ours that holds nothing, and no header.
    unsafe { discard(start, len) };
}
