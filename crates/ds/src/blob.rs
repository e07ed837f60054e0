//! Elements of large collections, one allocation each behind a pointer of one word: a string, two strings, a number
//! with a string. Knows nothing of what they mean.
//!
//! ```text
//! Blob         | length | bytes |
//! PairBlob     | length | length | bytes | bytes |
//! ScoredBlob   | number, 8 B | length | bytes |
//!
//! length:  0x00..=0xfe       that many bytes
//!          0xff, 4 B         more, little endian
//! ```

use crate::hash_table::Pointer;
use crate::slab;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

const LONG: u8 = 0xff;

/// Bytes that a length takes.
#[inline]
const fn head_len(len: usize) -> usize {
    if len < LONG as usize { 1 } else { 5 }
}

/// Writes a length; gives the place behind it.
///
/// # Safety
/// There are `head_len(len)` bytes to write to.
#[inline]
unsafe fn write_head(place: NonNull<u8>, len: usize) -> NonNull<u8> {
    // SAFETY: as the function's contract says.
    unsafe {
        if len < LONG as usize {
            place.write(len as u8);
            place.add(1)
        } else {
            place.write(LONG);
            place.add(1).cast::<u32>().write_unaligned(len as u32);
            place.add(5)
        }
    }
}

/// Reads a length; gives it and the place behind it.
///
/// # Safety
/// `write_head` has written there.
#[inline]
unsafe fn read_head(place: NonNull<u8>) -> (usize, NonNull<u8>) {
    // SAFETY: as the function's contract says.
    unsafe {
        match place.read() {
            LONG => (place.add(1).cast::<u32>().read_unaligned() as usize, place.add(5)),
            len => (len.into(), place.add(1)),
        }
    }
}

/// Writes bytes; gives the place behind them.
///
/// # Safety
/// There are as many bytes to write to, which `bytes` does not overlap.
#[inline]
unsafe fn write_bytes(place: NonNull<u8>, bytes: &[u8]) -> NonNull<u8> {
    // SAFETY: as the function's contract says.
    unsafe {
        place.copy_from_nonoverlapping(NonNull::from_ref(bytes).cast(), bytes.len());
        place.add(bytes.len())
    }
}

/// # Safety
/// The bytes are initialised and nobody changes or frees them for `'a`.
#[inline]
unsafe fn slice<'a>(place: NonNull<u8>, len: usize) -> &'a [u8] {
    // SAFETY: as the function's contract says.
    unsafe { std::slice::from_raw_parts(place.as_ptr(), len) }
}

fn assert_fits(bytes: &[u8]) {
    assert!(u32::try_from(bytes.len()).is_ok(), "an element is shorter than 4 GiB");
}

/// What the three kinds have in common: the pointer and its owner, shared view and exclusive view.
macro_rules! pointers {
    ($owner:ident, $shared:ident, $exclusive:ident) => {
        // SAFETY: the blob owns its allocation, plain bytes that are tied to no thread.
        unsafe impl Send for $owner {}
        // SAFETY: a shared blob is only read.
        unsafe impl Sync for $owner {}

        impl $owner {
            /// A view of it.
            #[inline]
            pub fn view(&self) -> $shared<'_> {
                $shared(self.0, PhantomData)
            }
        }

        impl Drop for $owner {
            fn drop(&mut self) {
                let size = self.view().size();
                // SAFETY: the block came from `alloc` with a size of the same class, and is freed once.
                unsafe { slab::free(self.0, size) }
            }
        }

        impl fmt::Debug for $owner {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.view().fmt(f)
            }
        }

        // SAFETY: the address comes from the slab or the global allocator, which give user addresses below 2^47, and
        // is unique; views borrow the blob through the table.
        unsafe impl Pointer for $owner {
            type Ref<'a> = $shared<'a>;
            type Mut<'a> = $exclusive<'a>;

            #[inline]
            fn into_raw(self) -> NonNull<u8> {
                ManuallyDrop::new(self).0
            }

            #[inline]
            unsafe fn from_raw(raw: NonNull<u8>) -> $owner {
                $owner(raw)
            }

            #[inline]
            unsafe fn as_ref<'a>(raw: NonNull<u8>) -> $shared<'a> {
                $shared(raw, PhantomData)
            }

            #[inline]
            unsafe fn as_mut<'a>(raw: NonNull<u8>) -> $exclusive<'a> {
                $exclusive(raw, PhantomData)
            }
        }

        impl<'a> $shared<'a> {
            /// Bytes of memory.
            pub fn memory(self) -> usize {
                slab::rounded(self.size())
            }
        }

        impl $exclusive<'_> {
            /// A shared view of it.
            #[inline]
            pub fn view(&self) -> $shared<'_> {
                $shared(self.0, PhantomData)
            }
        }
    };
}

/// A string.
pub struct Blob(NonNull<u8>);

/// A string, for reading.
#[derive(Clone, Copy)]
pub struct BlobRef<'a>(NonNull<u8>, PhantomData<&'a Blob>);

/// A string, exclusively; there is nothing to change in it.
pub struct BlobMut<'a>(NonNull<u8>, PhantomData<&'a mut Blob>);

pointers!(Blob, BlobRef, BlobMut);

impl Blob {
    /// A copy of these bytes.
    ///
    /// # Panics
    /// When they are 4 GiB or more.
    pub fn new(bytes: &[u8]) -> Blob {
        assert_fits(bytes);
        let block = slab::alloc(head_len(bytes.len()) + bytes.len());
        // SAFETY: the block has room for length and bytes, and is nobody else's.
        unsafe { write_bytes(write_head(block, bytes.len()), bytes) };
        Blob(block)
    }
}

impl<'a> BlobRef<'a> {
    /// The string.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        // SAFETY: a blob is a length and as many bytes, which live and stay for `'a`.
        unsafe {
            let (len, place) = read_head(self.0);
            slice(place, len)
        }
    }

    fn size(self) -> usize {
        let len = self.bytes().len();
        head_len(len) + len
    }
}

impl fmt::Debug for BlobRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Blob").field(&self.bytes()).finish()
    }
}

/// Two strings.
pub struct PairBlob(NonNull<u8>);

/// Two strings, for reading.
#[derive(Clone, Copy)]
pub struct PairBlobRef<'a>(NonNull<u8>, PhantomData<&'a PairBlob>);

/// Two strings, the second to be changed.
pub struct PairBlobMut<'a>(NonNull<u8>, PhantomData<&'a mut PairBlob>);

pointers!(PairBlob, PairBlobRef, PairBlobMut);

impl PairBlob {
    /// A copy of these.
    ///
    /// # Panics
    /// When one of them has 4 GiB or more.
    pub fn new(first: &[u8], second: &[u8]) -> PairBlob {
        assert_fits(first);
        assert_fits(second);
        let block = slab::alloc(pair_size(first.len(), second.len()));
        // SAFETY: the block has room for lengths and strings, and is nobody else's.
        unsafe {
            let place = write_head(write_head(block, first.len()), second.len());
            write_bytes(write_bytes(place, first), second);
        }
        PairBlob(block)
    }
}

#[inline]
fn pair_size(first: usize, second: usize) -> usize {
    head_len(first) + head_len(second) + first + second
}

impl<'a> PairBlobRef<'a> {
    /// Both lengths and where the first string is; the second is behind it.
    #[inline]
    fn parts(self) -> (usize, usize, NonNull<u8>) {
        // SAFETY: a pair starts with two lengths.
        unsafe {
            let (first, place) = read_head(self.0);
            let (second, place) = read_head(place);
            (first, second, place)
        }
    }

    /// The first string.
    #[inline]
    pub fn first(self) -> &'a [u8] {
        let (first, _, place) = self.parts();
        // SAFETY: the first string is there, and lives and stays for `'a`.
        unsafe { slice(place, first) }
    }

    /// The second string.
    #[inline]
    pub fn second(self) -> &'a [u8] {
        let (first, second, place) = self.parts();
        // SAFETY: the second string is there, and lives and stays for `'a`.
        unsafe { slice(place.add(first), second) }
    }

    fn size(self) -> usize {
        let (first, second, _) = self.parts();
        pair_size(first, second)
    }
}

impl PairBlobMut<'_> {
    /// Gives the pair another second string where it is; tells whether that was possible: the block must fit it no less
    /// tightly than a new one would.
    pub fn try_set_second(&mut self, second: &[u8]) -> bool {
        let (first_len, old_len, _) = self.view().parts();
        let (old_size, size) = (pair_size(first_len, old_len), pair_size(first_len, second.len()));
        if head_len(second.len()) != head_len(old_len) || slab::rounded(size) != slab::rounded(old_size) {
            return false;
        }
        // SAFETY: the block has room for the new size, as both are of one class or equal; the lengths keep theirs, so
        // the first string stays where it is. The view is exclusive, so `second` is not of this block.
        unsafe {
            let place = write_head(self.0.add(head_len(first_len)), second.len());
            write_bytes(place.add(first_len), second);
        }
        true
    }
}

impl fmt::Debug for PairBlobRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PairBlob").field(&self.first()).field(&self.second()).finish()
    }
}

/// A number and a string.
pub struct ScoredBlob(NonNull<u8>);

/// A number and a string, for reading.
#[derive(Clone, Copy)]
pub struct ScoredBlobRef<'a>(NonNull<u8>, PhantomData<&'a ScoredBlob>);

/// A number, to be changed, and a string.
pub struct ScoredBlobMut<'a>(NonNull<u8>, PhantomData<&'a mut ScoredBlob>);

pointers!(ScoredBlob, ScoredBlobRef, ScoredBlobMut);

const SCORE: usize = size_of::<f64>();

impl ScoredBlob {
    /// The number and a copy of the string.
    ///
    /// # Panics
    /// When the string has 4 GiB or more.
    pub fn new(score: f64, bytes: &[u8]) -> ScoredBlob {
        assert_fits(bytes);
        let block = slab::alloc(SCORE + head_len(bytes.len()) + bytes.len());
        // SAFETY: the block has room for number, length and bytes, and is nobody else's.
        unsafe {
            block.cast::<f64>().write_unaligned(score);
            write_bytes(write_head(block.add(SCORE), bytes.len()), bytes);
        }
        ScoredBlob(block)
    }
}

impl<'a> ScoredBlobRef<'a> {
    /// Where the blob is: no two that live are at one address.
    #[inline]
    pub(crate) fn address(self) -> NonNull<u8> {
        self.0
    }

    /// The number.
    #[inline]
    pub fn score(self) -> f64 {
        // SAFETY: the blob starts with the number.
        unsafe { self.0.cast::<f64>().read_unaligned() }
    }

    /// The string.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        // SAFETY: length and bytes follow the number, and live and stay for `'a`.
        unsafe {
            let (len, place) = read_head(self.0.add(SCORE));
            slice(place, len)
        }
    }

    fn size(self) -> usize {
        let len = self.bytes().len();
        SCORE + head_len(len) + len
    }
}

impl ScoredBlobMut<'_> {
    /// Changes the number.
    #[inline]
    pub fn set_score(&mut self, score: f64) {
        // SAFETY: the blob starts with the number, and the view is exclusive.
        unsafe { self.0.cast::<f64>().write_unaligned(score) }
    }
}

impl fmt::Debug for ScoredBlobRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScoredBlob").field(&self.score()).field(&self.bytes()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENS: [usize; 10] = [0, 1, 3, 7, 11, 253, 254, 255, 256, 70_000];

    #[test]
    fn strings_come_back() {
        for len in LENS {
            let bytes = vec![b'x'; len];
            assert_eq!(Blob::new(&bytes).view().bytes(), bytes);
            let scored = ScoredBlob::new(-0.5, &bytes);
            assert_eq!((scored.view().score(), scored.view().bytes()), (-0.5, &bytes[..]));
            for other in LENS {
                let pair = PairBlob::new(&bytes, &vec![b'y'; other]);
                assert_eq!(pair.view().first(), bytes);
                assert_eq!(pair.view().second(), vec![b'y'; other]);
            }
        }
    }

    #[test]
    fn memory_is_the_length_and_little_more() {
        assert_eq!(Blob::new(b"0123456789").view().memory(), 12);
        assert_eq!(Blob::new(b"").view().memory(), 8);
        assert_eq!(PairBlob::new(b"field", b"value").view().memory(), 12);
        assert_eq!(ScoredBlob::new(0.0, b"0123456789").view().memory(), 20);
    }

    #[test]
    fn a_number_changes_where_it_is() {
        let scored = ScoredBlob::new(1.0, b"member");
        let raw = scored.into_raw();
        // SAFETY: the blob is live and has no other view; it is taken back once.
        let scored = unsafe {
            ScoredBlob::as_mut(raw).set_score(f64::INFINITY);
            ScoredBlob::from_raw(raw)
        };
        assert_eq!((scored.view().score(), scored.view().bytes()), (f64::INFINITY, &b"member"[..]));
    }

    #[test]
    fn a_second_string_changes_where_it_is_only_in_a_block_of_its_size() {
        let step = if cfg!(miri) { 37 } else { 1 };
        for before in (0..300).step_by(step) {
            for after in (0..300).step_by(step) {
                let (old, new) = (vec![b'o'; before], vec![b'n'; after]);
                let raw = PairBlob::new(b"field", &old).into_raw();
                // SAFETY: the blob is live and has no other view; it is taken back once.
                let (done, pair) = unsafe { (PairBlob::as_mut(raw).try_set_second(&new), PairBlob::from_raw(raw)) };
                assert_eq!(pair.view().first(), b"field");
                assert_eq!(pair.view().second(), if done { &new } else { &old });
                let same = |len| (PairBlob::new(b"field", &vec![0; len]).view().memory(), len < 255);
                assert_eq!(done, same(before) == same(after), "{before} to {after}");
            }
        }
    }
}
