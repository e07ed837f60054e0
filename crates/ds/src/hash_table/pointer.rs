//! What a table keeps: the words in its slots and the owners they stand for. Knows no table.

use std::ptr::NonNull;

pub(super) const TAG_SHIFT: u32 = 48;
pub(super) const ADDRESS_MASK: usize = (1 << TAG_SHIFT) - 1;

/// A pointer-sized owner of one element, which a `TagTable` can keep as a bare address.
///
/// # Safety
/// `into_raw` gives an address below 2^48 that is unique among live elements, `from_raw` gives back the same owner,
/// and `as_ref` and `as_mut` are valid while the owner is in the table and not moved out.
pub unsafe trait Pointer {
    /// Whether the slots of a table with them are counted apart ([`crate::memory::slots`]).
    const COUNTS_SLOTS: bool = false;

    /// A shared view of the element.
    type Ref<'a>
    where
        Self: 'a;
    /// An exclusive view of the element.
    type Mut<'a>
    where
        Self: 'a;

    /// Gives the element up as an address.
    fn into_raw(self) -> NonNull<u8>;

    /// Takes the element back.
    ///
    /// # Safety
    /// `raw` came from `into_raw`, and nobody else takes it back.
    unsafe fn from_raw(raw: NonNull<u8>) -> Self;

    /// Views the element where it is.
    ///
    /// # Safety
    /// `raw` came from `into_raw`, and for `'a` nobody takes it back or has an exclusive view.
    unsafe fn as_ref<'a>(raw: NonNull<u8>) -> Self::Ref<'a>
    where
        Self: 'a;

    /// Views the element where it is, exclusively.
    ///
    /// # Safety
    /// `raw` came from `into_raw`, and for `'a` nobody takes it back or has another view.
    unsafe fn as_mut<'a>(raw: NonNull<u8>) -> Self::Mut<'a>
    where
        Self: 'a;
}

#[inline]
pub(super) fn tag_of(word: *mut u8) -> u16 {
    (word.addr() >> TAG_SHIFT) as u16
}

/// # Safety
/// `word` is an occupied slot.
#[inline]
pub(super) unsafe fn address_of(word: *mut u8) -> NonNull<u8> {
    // SAFETY: an occupied slot's address is not null.
    unsafe { NonNull::new_unchecked(word.map_addr(|a| a & ADDRESS_MASK)) }
}

/// Asks the processor to load the cache line at `address`; any address will do.
#[inline]
pub fn prefetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch reads nothing that the program can see and never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// As [`prefetch`], for a line that is to be written to.
#[inline(always)]
pub fn prefetch_to_write(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction changes nothing that the program can see and never faults; a processor without it takes it
    // for none.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
