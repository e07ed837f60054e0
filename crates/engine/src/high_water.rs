//! When a table that had many elements is made smaller. Knows no table.

use std::collections::VecDeque;

/// Room for so many elements is always kept.
const KEPT: usize = 32;
/// A table that had so many times as many elements is made smaller, to twice as many as it has: what that takes, those that went
/// have paid for.
const BEFORE_MAX: usize = 8;

/// The most elements of a table since it was made smaller. What a hash table itself says of its room falls with each element that
/// goes.
#[derive(Debug, Default)]
pub(crate) struct HighWater(usize);

impl HighWater {
    /// Notes how many elements there are, after some have come.
    pub(crate) fn rise(&mut self, len: usize) {
        self.0 = self.0.max(len);
    }

    /// Room for how many is enough, of a table that had many more than it has now that some have gone.
    pub(crate) fn fall(&mut self, len: usize) -> Option<usize> {
        let wanted = (2 * len).max(KEPT);
        let had_many = self.0 / BEFORE_MAX >= len && self.0 > wanted;
        had_many.then(|| {
            self.0 = wanted;
            wanted
        })
    }

    /// Keeps the first `len` elements of a queue, and little room beside theirs.
    pub(crate) fn truncate<T>(&mut self, queue: &mut VecDeque<T>, len: usize) {
        self.rise(queue.len());
        queue.truncate(len);
        if let Some(room) = self.fall(queue.len()) {
            queue.shrink_to(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_made_smaller_when_an_eighth_is_left_and_seldom() {
        let mut most = HighWater::default();
        let mut rooms = Vec::new();
        most.rise(10_000);
        for len in (0..10_000).rev() {
            rooms.extend(most.fall(len).map(|room| (len, room)));
        }
        assert_eq!(rooms, [(1_250, 2_500), (312, 624), (78, 156), (19, 38), (4, 32)]);
        most.rise(32);
        assert_eq!(most.fall(0), None, "so many are always kept");
        most.rise(33);
        assert_eq!((most.fall(5), most.fall(4), most.fall(0)), (None, Some(32), None));
    }
}
