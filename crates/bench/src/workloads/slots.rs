//! Which node of a cluster has a key, by Redis's slots. Knows no socket.

use crate::key::Key;
use std::ops::Range;

/// Slots in all.
const SLOTS: usize = 16_384;

/// One of several nodes that the slots are divided over evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its place among them.
    pub index: usize,
    /// How many there are.
    pub count: usize,
}

impl Node {
    /// Its slots.
    pub fn slots(self) -> Range<usize> {
        let begin = |index: usize| SLOTS * index / self.count;
        begin(self.index)..begin(self.index + 1)
    }

    /// Whether it has the plain key of this number.
    #[inline]
    pub fn has(self, number: u64) -> bool {
        self.slots().contains(&slot(&Key::plain(number)))
    }
}

/// A key's slot; for keys without braces.
fn slot(key: &[u8]) -> usize {
    usize::from(key.iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 })
    })) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        // CLUSTER KEYSLOT of Redis 7.0.15.
        assert_eq!((slot(b"123456789"), slot(b"foo"), slot(b"bar")), (12739, 12182, 5061));
    }

    #[test]
    fn every_key_has_one_node() {
        let nodes = [0, 1, 2].map(|index| Node { index, count: 3 });
        assert_eq!((nodes[0].slots().start, nodes[2].slots().end), (0, SLOTS));
        for number in 0..1_000 {
            assert_eq!(nodes.iter().filter(|node| node.has(number)).count(), 1);
        }
        assert!((0..100).all(|number| Node { index: 0, count: 1 }.has(number)));
    }
}
