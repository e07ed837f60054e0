//! Where a ring's parts lie: in a region, or in boxes of their own where loom is to see each of them. Knows not what they mean.

use crate::region::Region;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// A part of a ring.
#[derive(Debug)]
pub(super) struct Placed<T: ?Sized> {
    at: NonNull<T>,
    /// What it lies in, if that is not a box of its own.
    region: Option<Arc<Region>>,
}

// SAFETY: it is a `T` that is shared or given away as a `T` would be; a region is both.
unsafe impl<T: ?Sized + Send + Sync> Send for Placed<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for Placed<T> {}

impl<T: ?Sized> Placed<T> {
    /// In a box of its own.
    #[cfg(test)]
    pub(super) fn boxed(own: Box<T>) -> Placed<T> {
        Placed { at: NonNull::from(Box::leak(own)), region: None }
    }
}

#[cfg(not(all(test, loom)))]
impl<T> Placed<T> {
    /// One that lies in a region, so many bytes from its start.
    ///
    /// # Safety
    /// Any bits there must be a `T`, and whoever else has the region must write to them as `T` allows it.
    ///
    /// # Panics
    /// When it does not lie in the region, or not as a `T` is aligned.
    pub(super) unsafe fn in_region(region: &Arc<Region>, offset: usize) -> Placed<T> {
        let at = region.place(offset, size_of::<T>()).cast::<T>();
        assert!(at.is_aligned());
        Placed { at, region: Some(Arc::clone(region)) }
    }
}

#[cfg(not(all(test, loom)))]
impl<T> Placed<[T]> {
    /// So many of them that lie in a region, so many bytes from its start.
    ///
    /// # Safety
    /// As of one.
    ///
    /// # Panics
    /// As of one.
    pub(super) unsafe fn slice_in_region(region: &Arc<Region>, offset: usize, len: usize) -> Placed<[T]> {
        let at = region.place(offset, len * size_of::<T>()).cast::<T>();
        assert!(at.is_aligned());
        Placed { at: NonNull::slice_from_raw_parts(at, len), region: Some(Arc::clone(region)) }
    }
}

impl<T: ?Sized> Deref for Placed<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: it is in its box, or in the region that is kept, and never borrowed but as shared.
        unsafe { self.at.as_ref() }
    }
}

impl<T: ?Sized> Drop for Placed<T> {
    fn drop(&mut self) {
        if self.region.is_none() {
            // SAFETY: the box was given away when it was made, and this is its only owner.
            drop(unsafe { Box::from_raw(self.at.as_ptr()) });
        }
    }
}
