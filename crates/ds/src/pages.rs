//! Pages of the system: how they are had, and given back. Knows not what they are for.

#[cfg(all(target_os = "linux", not(miri)))]
use std::ptr;
#[cfg(all(target_os = "linux", not(miri)))]
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a page, as most systems have them. Where the system's own are longer (up to 64 KiB on 64-bit ARM and POWER), lengths
/// are still counted in these, and what is given back is the system's pages that lie within.
pub(crate) const PAGE: usize = 4 << 10;

/// Whether there are any to be had here.
pub(crate) const HAS_PAGES: bool = cfg!(all(target_os = "linux", not(miri)));

/// So many bytes of addresses, whose pages come, with zeros, when they are written to; `None`: there are none to be had.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn map(bytes: usize) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping at a place of the system's choice, which nobody has yet.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    (start != libc::MAP_FAILED).then(|| start.expose_provenance())
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn map(_bytes: usize) -> Option<usize> {
    None
}

/// Gives the pages of a range of addresses back; it reads as zeros from then on.
///
/// # Safety
/// The range is of what `map` gave, and nobody uses it.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) unsafe fn release(start: usize, bytes: usize) {
    // SAFETY: as the function's contract says.
    unsafe { release_by(start, bytes, page_of_system()) }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) unsafe fn release(_start: usize, _bytes: usize) {}

/// Tells the system that a range of addresses is not needed: what its pages within it have may be gone.
///
/// # Safety
/// The range is private memory of ours, and nobody uses what is in it.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) unsafe fn discard(start: *mut u8, bytes: usize) {
    let (first, len) = within(start.addr(), bytes, page_of_system());
    // SAFETY: as the function's contract says. Where it fails they stay, which costs memory and no more.
    _ = unsafe { libc::madvise(start.with_addr(first).cast(), len, libc::MADV_DONTNEED) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) unsafe fn discard(_start: *mut u8, _bytes: usize) {}

/// Bytes of the system's pages.
#[cfg(all(target_os = "linux", not(miri)))]
fn page_of_system() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    let known = SIZE.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: it looks a number up.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let size = usize::try_from(size).unwrap_or(0).max(PAGE);
    SIZE.store(size, Ordering::Relaxed);
    size
}

/// Where the whole pages of so many bytes that lie within a range of addresses begin, and their bytes.
#[cfg(all(target_os = "linux", not(miri)))]
fn within(start: usize, bytes: usize, page: usize) -> (usize, usize) {
    let first = start.next_multiple_of(page);
    let end = (start + bytes) / page * page;
    (first, end.saturating_sub(first))
}

/// As `release`, where the system's pages have so many bytes.
///
/// # Safety
/// As for `release`.
#[cfg(all(target_os = "linux", not(miri)))]
unsafe fn release_by(start: usize, bytes: usize, page: usize) {
    let (first, len) = within(start, bytes, page);
    let zero = |start: usize, bytes: usize| {
        // SAFETY: it is a part of the range, which is mapped and nobody's, as the function's contract says.
        unsafe { ptr::with_exposed_provenance_mut::<u8>(start).write_bytes(0, bytes) }
    };
    let pages = ptr::with_exposed_provenance_mut::<u8>(first);
    // SAFETY: as for `zero`.
    if len == 0 || unsafe { libc::madvise(pages.cast(), len, libc::MADV_DONTNEED) } != 0 {
        // They stay, then; but zeros are what the next owner may rely on.
        return zero(start, bytes);
    }
    // What is left at both ends are parts of pages.
    zero(start, first - start);
    zero(first + len, start + bytes - (first + len));
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn whole_pages_lie_within() {
        assert_eq!(within(4096, 8192, 4096), (4096, 8192));
        assert_eq!(within(4096, 8192, 65_536), (65_536, 0), "none is whole");
        assert_eq!(within(4096, 200_000, 65_536), (65_536, 131_072));
        assert_eq!(within(65_536, 131_072, 65_536), (65_536, 131_072));
        assert_eq!(within(100, 50, 4096), (4096, 0));
    }

    #[test]
    fn what_is_given_back_reads_as_zeros_whatever_pages_the_system_has() {
        let len = 64 * PAGE;
        let start = map(len + 16 * PAGE).expect("there is memory").next_multiple_of(16 * PAGE);
        let bytes = || {
            // SAFETY: the range was mapped, and belongs to this test alone.
            unsafe { std::slice::from_raw_parts_mut(ptr::with_exposed_provenance_mut::<u8>(start), len) }
        };
        for page in [PAGE, 4 * PAGE, 16 * PAGE] {
            for (from, to) in [(0, 64), (1, 63), (3, 5), (15, 33), (16, 17)] {
                bytes().fill(1);
                // SAFETY: the range is of what was mapped, and nobody uses it.
                unsafe { release_by(start + from * PAGE, (to - from) * PAGE, page) };
                let is_given_back = |at: usize| (from * PAGE..to * PAGE).contains(&at);
                let is_right = |(at, byte): (usize, &u8)| *byte == u8::from(!is_given_back(at));
                assert!(bytes().iter().enumerate().all(is_right), "pages of {page}, {from} to {to}");
            }
        }
    }
}
