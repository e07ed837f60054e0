//! Pages of the system. Knows not what they are for.

#[cfg(all(target_os = "linux", not(miri)))]
use std::ptr;

/// Bytes of a page, or of as many as the machine's largest pages take.
pub(super) const PAGE: usize = if cfg!(target_arch = "x86_64") { 4 << 10 } else { 64 << 10 };

/// Whether there are any to be had here.
pub(super) const HAS_PAGES: bool = cfg!(all(target_os = "linux", not(miri)));

/// So many bytes of addresses, whose pages come, with zeros, when they are written to; `None`: there are none to be had.
#[cfg(all(target_os = "linux", not(miri)))]
pub(super) fn map(bytes: usize) -> Option<usize> {
    // More addresses than asked for, where pages are larger than the system's own: the rest is never touched.
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping at a place of the system's choice, which nobody has yet.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes + PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    (start != libc::MAP_FAILED).then(|| start.expose_provenance().next_multiple_of(PAGE))
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(super) fn map(_bytes: usize) -> Option<usize> {
    None
}

/// Gives the pages of a range of addresses back; it reads as zeros from then on.
///
/// # Safety
/// The range is whole pages that `map` gave, and nobody uses them.
#[cfg(all(target_os = "linux", not(miri)))]
pub(super) unsafe fn release(start: usize, bytes: usize) {
    let start = ptr::with_exposed_provenance_mut::<u8>(start);
    // SAFETY: the range is mapped and nobody's, as the function's contract says.
    unsafe {
        if libc::madvise(start.cast(), bytes, libc::MADV_DONTNEED) != 0 {
            // It stays, then; but zeros are what the next owner may rely on.
            ptr::write_bytes(start, 0, bytes);
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(super) unsafe fn release(_start: usize, _bytes: usize) {}
