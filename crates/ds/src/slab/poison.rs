//! Telling AddressSanitizer which bytes of spans are in use: to it a chunk is one block. Nothing at all where the build
//! has no `--cfg sanitized="address"`. Knows no heap.

/// Where a block begins and ends for AddressSanitizer: what eight bytes it looks at together are one block's.
#[cfg(sanitized = "address")]
const GRANULE: usize = 8;

#[cfg(sanitized = "address")]
unsafe extern "C" {
    fn __asan_poison_memory_region(start: *const u8, bytes: usize);
    fn __asan_unpoison_memory_region(start: *const u8, bytes: usize);
}

/// The size that a block of `size` bytes is asked for with.
#[inline(always)]
pub(super) fn asked_for(size: usize) -> usize {
    #[cfg(sanitized = "address")]
    let size = size.next_multiple_of(GRANULE);
    size
}

/// Says that nobody may read or write these bytes.
#[inline(always)]
pub(super) fn forbid(start: *const u8, bytes: usize) {
    #[cfg(sanitized = "address")]
    // SAFETY: the sanitizer notes it, and touches none of the bytes.
    unsafe {
        __asan_poison_memory_region(start, bytes)
    }
    #[cfg(not(sanitized = "address"))]
    let _ = (start, bytes);
}

/// Says that these bytes may be read and written.
#[inline(always)]
pub(super) fn allow(start: *const u8, bytes: usize) {
    #[cfg(sanitized = "address")]
    // SAFETY: the sanitizer notes it, and touches none of the bytes.
    unsafe {
        __asan_unpoison_memory_region(start, bytes)
    }
    #[cfg(not(sanitized = "address"))]
    let _ = (start, bytes);
}
