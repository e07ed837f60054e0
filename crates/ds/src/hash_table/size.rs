//! How large a table is for so many elements. Knows no slots.

use crate::slab;

/// The smallest table: seven homes' worth of one cache line.
pub(super) const CAPACITY_MIN: u32 = 8;

/// Slots behind the last home, the always-empty one included.
pub(super) const fn slack(capacity: u32) -> u32 {
    // At a load of 7/8 an element lies 3.5 slots behind its home on average, with a geometric tail.
    if capacity <= CAPACITY_MIN { 4 } else { 8 + capacity / 64 }
}

/// How many elements a table of `homes` takes before it grows.
pub(super) const fn load_max(homes: u32) -> u32 {
    homes - homes / 8
}

/// The capacity of a table that takes so many elements before it grows.
pub(super) const fn capacity_for(len: u32) -> u32 {
    let homes = len as u64 * 8 / 7 + 2;
    // What `slack` takes of it, rounded up.
    let capacity = (homes + 8) * 64 / 63 + 2;
    if capacity > u32::MAX as u64 / 2 { u32::MAX / 2 } else { (capacity as u32 + 7) & !7 }
}

/// The capacity that follows `capacity` when it is full.
///
/// Small tables are blocks of the slab, which has classes for any step: they grow by an eighth on average, between a
/// sixteenth and three as `chance` (any evenly spread bits) has it. Many tables of equal size are filled at the same
/// rate; with steps of one length all would be full, slow to insert into, and grow at the same time, again and again.
/// Larger ones take the sizes that general allocators have, four to a doubling.
pub(super) const fn grown(capacity: u32, chance: u8) -> u32 {
    if capacity < 64 {
        let next = capacity + capacity / 4 + 2;
        return (next + 7) & !7;
    }
    if capacity < (slab::SLAB_MAX / 8) as u32 {
        let step = capacity / 16 + capacity * chance as u32 / (8 * 256);
        return (capacity + step + 7) & !7;
    }
    let eighth = (capacity + 1).next_power_of_two() / 8;
    (capacity / eighth + 1) * eighth
}

/// The chance of an average step.
pub(super) const CHANCE_EVEN: u8 = 1 << 7;
