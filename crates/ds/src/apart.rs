//! A value in cache lines of its own. Knows nothing of what it holds.

use std::ops::{Deref, DerefMut};

/// A value that is written so often, by one thread or by several, that what other threads read must not lie beside it:
/// each write would take that away from them.
///
/// Two lines of 64 bytes, as processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

impl<T> Deref for Apart<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Apart<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

const _: () = assert!(size_of::<[Apart<u8>; 2]>() == 256);
