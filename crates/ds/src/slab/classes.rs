//! Which sizes of blocks there are, and which class a size falls into. Knows no memory.

use super::span::SPAN_BYTES;

/// Classes of 4, 8, ... 1,024 bytes, of which the first is never used.
pub(super) const FINE_CLASSES: usize = 256;
pub(super) const FINE_STEP: usize = 4;
pub(super) const FINE_MAX: usize = FINE_CLASSES * FINE_STEP;
/// A free block holds the address of the next one.
pub(super) const BLOCK_MIN: usize = size_of::<*mut u8>();
/// Above `FINE_MAX`, one class for each number of blocks in a span, from this one down to `COARSE_BLOCKS_MIN`.
pub(super) const COARSE_BLOCKS_MAX: usize = SPAN_BYTES / (FINE_MAX + 8);
pub(super) const COARSE_BLOCKS_MIN: usize = 8;
pub(super) const CLASSES: usize = FINE_CLASSES + COARSE_BLOCKS_MAX - COARSE_BLOCKS_MIN + 1;

/// The largest block that comes from a span; larger ones come from the global allocator.
pub const SLAB_MAX: usize = coarse_size(COARSE_BLOCKS_MIN);

const _: () = assert!(SLAB_MAX == 32 * 1024);

pub(super) const fn coarse_size(blocks: usize) -> usize {
    (SPAN_BYTES / blocks) & !7
}

/// The class of a block of `size` bytes, `1..=SLAB_MAX`.
#[inline]
pub(super) const fn class_of(size: usize) -> usize {
    debug_assert!(0 < size && size <= SLAB_MAX);
    if size <= FINE_MAX {
        (if size < BLOCK_MIN { BLOCK_MIN } else { size } - 1) / FINE_STEP
    } else {
        // As many blocks as fit when each has `size` bytes; all of them rounded to eight still fit.
        let blocks = SPAN_BYTES / size.next_multiple_of(8);
        FINE_CLASSES + COARSE_BLOCKS_MAX - blocks
    }
}

pub(super) const fn class_size(class: usize) -> usize {
    if class < FINE_CLASSES { (class + 1) * FINE_STEP } else { coarse_size(COARSE_BLOCKS_MAX - (class - FINE_CLASSES)) }
}

/// Bytes that a block asked for with `size` really has.
#[inline]
pub const fn rounded(size: usize) -> usize {
    if size <= FINE_MAX {
        (if size < BLOCK_MIN { BLOCK_MIN } else { size }).next_multiple_of(FINE_STEP)
    } else if size <= SLAB_MAX {
        class_size(class_of(size))
    } else {
        size
    }
}

/// Bytes of a block of the class with this number.
pub fn class_bytes(number: usize) -> usize {
    class_size(number - 1)
}

/// The number of the class that a block of `size` bytes is in, counted from 1; 0 for those that are in none.
pub const fn class_number(size: usize) -> usize {
    if size <= SLAB_MAX { class_of(size) + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_sizes() {
        // Under Miri a few: there is no unsafe code here.
        for size in (1..=SLAB_MAX).step_by(if cfg!(miri) { 61 } else { 1 }) {
            let class = class_of(size);
            let room = class_size(class);
            assert!(room >= size, "{size} in a block of {room}");
            assert_eq!(room % FINE_STEP, 0);
            assert!(!size.is_multiple_of(8) || room.is_multiple_of(8), "{size} wants to be aligned to eight");
            assert_eq!(class_of(room), class, "{size} and its rounded size {room} differ in class");
            assert_eq!(rounded(size), room);
            assert_eq!(class_bytes(class_number(size)), room);
            assert!(size <= BLOCK_MIN || class_size(class - 1) < size, "{size} would fit a smaller class");
            assert!(room <= FINE_MAX || room - size <= room / COARSE_BLOCKS_MIN);
        }
    }
}
