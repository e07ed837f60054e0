//! Spans that belong to nobody: where heaps get theirs from and where empty ones go. Knows no classes.

use super::span::{CHUNK_BYTES, HEADER_BYTES, SPAN_BYTES, SPANS_PER_CHUNK, Span, first_block, start_of};
use std::alloc::{GlobalAlloc, Layout, System, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Mutex;

/// Empty spans that are kept ready; the pages of further ones go back to the system.
const SPARE_SPANS_MAX: usize = 1;

static SPARE_SPANS: Mutex<SpareSpans> = Mutex::new(SpareSpans { spans: Vec::new() });

struct SpareSpans {
    spans: Vec<NonNull<Span>>,
}

// SAFETY: spare spans belong to nobody; the mutex hands each to one taker.
unsafe impl Send for SpareSpans {}

/// A span that belongs to nobody, from the spare ones or from a new chunk.
pub(super) fn fresh_span() -> NonNull<Span> {
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
pub(super) fn retire_span(span: *mut Span) {
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
