//! Up to where a list is one listpack, and up to where a node of a longer one is filled; Redis's rules. Knows no
//! setting's name.

use tenon_ds::listpack::{COUNT_MAX, Listpack};
use tenon_ds::quicklist::NodeLimits;

/// Bytes of a node that is limited by its elements.
const SAFETY_BYTES: usize = 8 * 1024;
/// Bytes of a node for the settings -1 to -5.
const BYTES: [usize; 5] = [4 * 1024, 8 * 1024, 16 * 1024, 32 * 1024, 64 * 1024];
/// The largest number of elements that the setting can ask for.
const FILL_MAX: i32 = (1 << 15) - 1;

/// The limits of a list's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLimits {
    /// Those of one node.
    pub(super) node: NodeLimits,
    /// What a list of one node must not exceed to become one listpack again: bytes and elements.
    whole: (usize, usize),
}

impl ListLimits {
    /// The limits that `list-max-listpack-size` stands for: bytes from -1 (4 KiB) to -5 (64 KiB), or elements. A string
    /// from `alone_from` bytes on has a node of its own in any case.
    #[inline]
    pub fn new(setting: i32, alone_from: usize) -> ListLimits {
        match setting {
            0.. => {
                let count = setting.clamp(1, FILL_MAX) as usize;
                let node = NodeLimits { bytes: SAFETY_BYTES, count, alone_from };
                ListLimits { node, whole: (usize::MAX, count) }
            }
            _ => {
                let bytes = BYTES[(-1 - setting.max(-5)) as usize];
                let node = NodeLimits { bytes, count: usize::MAX, alone_from };
                ListLimits { node, whole: (bytes, usize::MAX) }
            }
        }
    }

    /// Whether a listpack is no longer one once these are added: elements and the bytes of their strings.
    pub(super) fn end_listpack(&self, listpack: Listpack<'_>, added: usize, added_bytes: usize) -> bool {
        let count = listpack.len() + added;
        // Redis counts the bytes of the strings only; the listpack's own count must not overflow for that.
        self.node.are_exceeded_by(listpack.redis_len() + added_bytes, count) || count > COUNT_MAX
    }

    /// Whether a list of one node that has lost elements is one listpack again: with half of what a node may have, so
    /// that it does not change form with every element.
    pub(super) fn make_listpack(&self, only_node: Listpack<'_>) -> bool {
        only_node.redis_len() <= self.whole.0 / 2 && only_node.len() <= self.whole.1 / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_stand_for_bytes_or_elements() {
        for (setting, bytes, count) in [
            (-1, 4_096, usize::MAX),
            (-2, 8_192, usize::MAX),
            (-5, 65_536, usize::MAX),
            (-100, 65_536, usize::MAX),
            (i32::MIN, 65_536, usize::MAX),
            (0, 8_192, 1),
            (1, 8_192, 1),
            (128, 8_192, 128),
            (i32::MAX, 8_192, 32_767),
        ] {
            let NodeLimits { bytes: found_bytes, count: found_count, .. } = ListLimits::new(setting, usize::MAX).node;
            assert_eq!((found_bytes, found_count), (bytes, count), "{setting}");
        }
    }
}
