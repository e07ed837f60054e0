//! How large a table is for so many elements. Knows no slots.

use crate::slab;

/// The smallest table: half of a cache line.
pub(super) const CAPACITY_MIN: u32 = 4;
/// The least that a table grows by.
const STEP_MIN: u32 = 2;
/// The least part of itself that a small table grows by, as a divisor; on average it is twice as much.
const STEP_PART: u32 = 16;
/// Tables of so few slots stay as they are until they are empty.
const SHRUNK_MIN: u32 = 8;
/// Slots behind the last home, in tables that are not small.
const SLACK: u32 = 12;
/// Up to here tables are small.
const SMALL_MAX: u32 = 64;

/// Slots behind the last home, the always-empty one included.
///
/// A small table has more elements than homes: whoever looks for one passes a few others, which lie in a cache line or
/// two, and hardly a slot stays empty. In a larger one, at the load of 15/16, an element lies 7.5 slots behind its home
/// on average, with a geometric tail.
pub(super) const fn slack(capacity: u32) -> u32 {
    let most = SLACK + capacity / 64;
    if capacity / 2 < most { capacity / 2 } else { most }
}

/// How many elements a table of this capacity takes before it grows.
pub(super) const fn load_max(capacity: u32) -> u32 {
    const SMALL: u32 = small_load_max(SMALL_MAX);
    if capacity <= SMALL_MAX {
        return small_load_max(capacity);
    }
    let homes = capacity - slack(capacity);
    let most = homes - homes / 16;
    if most < SMALL { SMALL } else { most }
}

/// The last slot stays empty, and some more, as not all can be used that are at the end.
const fn small_load_max(capacity: u32) -> u32 {
    capacity.saturating_sub(1) - capacity / 16
}

/// The capacity of a table that takes so many elements before it grows.
pub(super) const fn capacity_for(len: u32) -> u32 {
    let small = len as u64 * 16 / 15 + 3;
    // What `slack` takes of it, rounded up.
    let capacity = if small <= SMALL_MAX as u64 { small } else { (small + SLACK as u64) * 64 / 63 + 2 };
    if capacity > u32::MAX as u64 / 2 { u32::MAX / 2 } else { filled(capacity as u32) }
}

/// The capacity that follows `capacity` when it is full.
///
/// Small tables are blocks of the slab, which has classes for any step: they grow by an eighth on average, between a
/// sixteenth and three as `chance` (any evenly spread bits) has it. Many tables of equal size are filled at the same rate;
/// with steps of one length all would be full, slow to insert into, and grow at the same time, again and again. Sizes are
/// multiples of a grain: each size that is in use has pages of its own. Larger tables take the sizes that general
/// allocators have, four to a doubling.
pub(super) const fn grown(capacity: u32, chance: u8) -> u32 {
    if capacity < (slab::SLAB_MAX / 8) as u32 {
        let step = capacity / STEP_PART + capacity * chance as u32 / (STEP_PART / 2 * 256);
        // 16 sizes to a doubling, or fewer.
        let grain = (capacity / STEP_PART + 1).next_power_of_two() / 2;
        let grain = if grain < 1 { 1 } else { grain };
        let step = if step < STEP_MIN { STEP_MIN } else { step };
        return filled((capacity + step).next_multiple_of(grain));
    }
    let eighth = (capacity + 1).next_power_of_two() / 8;
    (capacity / eighth + 1) * eighth
}

/// The capacity for what is left in a table of this capacity, if that is worth moving it: a table that has shrunk takes
/// an eighth more elements before it grows, and loses a third before it shrinks again.
#[inline]
pub(super) const fn shrunk(capacity: u32, len: u32) -> Option<u32> {
    if capacity <= SHRUNK_MIN || len > load_max(capacity) / 8 * 5 {
        return None;
    }
    let less = capacity_for(len + len / 8);
    if less < capacity - capacity / 8 { Some(less) } else { None }
}

/// As many slots as there are in the block that this many take.
const fn filled(capacity: u32) -> u32 {
    let bytes = slab::rounded(capacity as usize * size_of::<*mut u8>());
    (bytes / size_of::<*mut u8>()) as u32
}

/// The chance of an average step.
pub(super) const CHANCE_EVEN: u8 = 1 << 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_table_takes_more() {
        for capacity in CAPACITY_MIN..10_000 {
            assert!(load_max(capacity) < capacity, "one slot of {capacity} stays empty");
            assert!(slack(capacity) < capacity);
            assert!(load_max(capacity) <= load_max(capacity + 1), "at {capacity}");
            for chance in [0, CHANCE_EVEN, u8::MAX] {
                assert!(grown(capacity, chance) > capacity);
            }
            assert!(load_max(capacity_for(capacity)) >= capacity, "room for {capacity}");
        }
    }
}
