//! Memory that lies in a file of the machine's memory, so that what a killed process has put there can be looked at by the
//! next one. Knows not what lies in it.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of the first page, which are its owner's as words.
pub const WORDS_LEN: usize = 4096;
const PAGE: usize = 4096;

/// A piece of memory that several may have at once: it is written by atomics only, or by who knows that nobody else is at the
/// same place.
#[derive(Debug)]
pub struct Region {
    at: NonNull<u8>,
    len: usize,
    is_mapped: bool,
    /// Somebody has what lies behind the words.
    is_lent: AtomicBool,
}

/// What lies behind a region's words, for one at a time.
#[derive(Debug)]
pub(crate) struct Lease(Arc<Region>);

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.is_lent.store(false, Ordering::Release);
    }
}

// SAFETY: it is plain memory that nobody but its owner frees; who writes to it answers for that.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps the first `len` bytes of a file, shared with all who map it. The file must keep its length as long as this lives: who
    /// touches what is gone is ended by the system. So it is to lie where nobody else writes.
    ///
    /// # Errors
    /// When the file is shorter, or the system has no room for it.
    ///
    /// # Panics
    /// When it is too short for the words.
    pub fn map(file: &File, len: usize) -> io::Result<Region> {
        assert!(len >= WORDS_LEN, "the words have a page");
        if file.metadata()?.len() < len as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Region::mapped(len, libc::MAP_SHARED, file.as_raw_fd())
    }

    /// As much memory of this process alone, all zeros. It comes from the system as it is touched, and does not count as allocated.
    ///
    /// # Panics
    /// When it is too short for the words.
    pub fn private(len: usize) -> Region {
        assert!(len >= WORDS_LEN, "the words have a page");
        let mapped =
            if cfg!(miri) { None } else { Region::mapped(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1).ok() };
        mapped.unwrap_or_else(|| Region::zeroed(len))
    }

    fn mapped(len: usize, flags: libc::c_int, file: libc::c_int) -> io::Result<Region> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a mapping at an address that the system chooses touches nothing that is there.
        let at = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, file, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Region { at, len, is_mapped: true, is_lent: AtomicBool::new(false) })
    }

    /// As much memory of this process, allocated, all zeros.
    ///
    /// # Panics
    /// When it is too short for the words.
    pub fn zeroed(len: usize) -> Region {
        assert!(len >= WORDS_LEN, "the words have a page");
        // SAFETY: it has a size.
        let at = unsafe { alloc_zeroed(Region::layout(len)) };
        let Some(at) = NonNull::new(at) else { handle_alloc_error(Region::layout(len)) };
        Region { at, len, is_mapped: false, is_lent: AtomicBool::new(false) }
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, PAGE).expect("it is no longer than memory is")
    }

    /// Its bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes, which none is without.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The words of the first page, for whatever its owner wants to find there.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: there is a page at least, aligned as pages are; any bits are words, and whoever has the region writes them as
        // atomics only.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr().cast(), WORDS_LEN / size_of::<AtomicU64>()) }
    }

    /// Takes what lies behind the words, unless somebody has it.
    pub(crate) fn lend(self: &Arc<Region>) -> Option<Lease> {
        (!self.is_lent.swap(true, Ordering::Acquire)).then(|| Lease(Arc::clone(self)))
    }

    /// Address of what lies behind the words, at so many bytes from the start.
    ///
    /// # Panics
    /// When `len` bytes from there on are not all in it, or some are words.
    pub(crate) fn place(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(offset >= WORDS_LEN && offset + len <= self.len);
        // SAFETY: it lies within.
        unsafe { self.at.add(offset) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.is_mapped {
            // SAFETY: this is what was mapped, and whoever had a place in it had the region, too.
            unsafe { libc::munmap(self.at.as_ptr().cast(), self.len) };
        } else {
            // SAFETY: it was allocated so.
            unsafe { dealloc(self.at.as_ptr(), Region::layout(self.len)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_there_for_all_who_have_it() {
        let region = Region::private(WORDS_LEN + 1);
        assert_eq!((region.words().len(), region.len(), region.is_empty()), (512, 4097, false));
        region.words()[511].store(7, Ordering::Relaxed);
        assert_eq!(region.words()[511].load(Ordering::Relaxed), 7);
        assert_eq!(region.place(WORDS_LEN, 1).as_ptr() as usize - region.words().as_ptr() as usize, WORDS_LEN);
    }

    #[test]
    fn what_lies_behind_the_words_is_lent_to_one_at_a_time() {
        let region = Arc::new(Region::zeroed(WORDS_LEN));
        let lease = region.lend();
        assert!(lease.is_some() && region.lend().is_none());
        drop(lease);
        assert!(region.lend().is_some());
    }

    #[test]
    #[cfg(not(miri))]
    fn what_is_mapped_is_the_files() {
        let path = std::env::temp_dir().join(format!("tenon-region-{}", std::process::id()));
        let file =
            File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("it can be made");
        assert!(Region::map(&file, 2 * WORDS_LEN).is_err(), "nothing is there yet");
        file.set_len(2 * WORDS_LEN as u64).expect("there is room");
        let [one, other] = [(); 2].map(|()| Region::map(&file, 2 * WORDS_LEN).expect("it is long enough"));
        one.words()[3].store(0x6e6f_6e65_745f_5f5f, Ordering::Relaxed);
        assert_eq!(other.words()[3].load(Ordering::Relaxed), 0x6e6f_6e65_745f_5f5f);
        drop(one);
        drop(other);
        let bytes = std::fs::read(&path).expect("it is there");
        assert_eq!(bytes[24..32], 0x6e6f_6e65_745f_5f5fu64.to_ne_bytes());
        std::fs::remove_file(&path).expect("it is there");
    }
}
