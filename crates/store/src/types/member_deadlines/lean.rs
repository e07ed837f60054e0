//! Vectors that are never half empty: they grow by an eighth, and give back what they do not need. Doubled, one of random
//! length would be a third empty.

/// Room beside what is there, as a part of it.
const ROOM: usize = 8;

/// Makes room for so many more values.
pub(super) fn make_room<T>(values: &mut Vec<T>, more: usize) {
    if values.capacity() - values.len() < more {
        values.reserve_exact(more + values.len() / ROOM);
    }
}

/// Gives memory back when half of it is not needed.
pub(super) fn fit<T>(values: &mut Vec<T>) {
    if values.len() < values.capacity() / 2 {
        values.shrink_to(values.len() + values.len() / ROOM);
    }
}
