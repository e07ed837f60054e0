//! The segments of a large table and the directory that finds them by the first bits of a position. Knows no hash.

use super::divide::Side;
use super::pointer::Pointer;
use super::table::{Slot, TagTable};
use std::ops::Range;

/// Elements in a segment when it splits; few under Miri, which could not make many segments otherwise.
pub(super) const SEGMENT_LEN_MAX: usize = if cfg!(miri) { 32 } else { 1_024 };
/// A segment of fewer elements looks whether it can join its neighbour.
const LONELY_LEN: usize = SEGMENT_LEN_MAX / 4;
/// The most elements that two segments have when they join: half of what would split them again.
const JOINED_LEN_MAX: usize = SEGMENT_LEN_MAX / 2;
/// The directory doubles only when it then has so many elements for each of its places. Hashes that are spread have
/// about five hundred; for others it would grow without end, and their segments grow instead.
const PLACE_LEN_MIN: usize = SEGMENT_LEN_MAX / 16;
/// The most bits that choose a segment.
pub(super) const DEPTH_MAX: u8 = 28;

/// Segments and the way to them.
pub(super) struct Directory<P: Pointer> {
    /// Numbers of segments.
    pub(super) places: Vec<u32>,
    pub(super) segments: Vec<Segment<P>>,
    /// How many bits of a position choose a place.
    pub(super) depth: u8,
    /// Elements in all segments.
    pub(super) len: usize,
    /// What no segment's length has ever exceeded.
    pub(super) len_bound: u32,
    /// How many segments there are of each depth.
    pub(super) of_depth: [u32; DEPTH_MAX as usize + 1],
}

/// The elements whose positions begin alike.
pub(super) struct Segment<P: Pointer> {
    pub(super) table: TagTable<P>,
    /// The first `depth` bits of its positions.
    pub(super) prefix: u32,
    pub(super) depth: u8,
}

/// The first `depth` bits of a position.
#[inline]
pub(super) fn prefix_of(position: u64, depth: u8) -> usize {
    ((position >> 1) >> (63 - depth)) as usize
}

/// The tag of a position in a segment of this depth.
#[inline]
pub(super) fn tag_at(position: u64, depth: u8) -> u16 {
    ((position << depth) >> 48) as u16
}

impl<P: Pointer> Directory<P> {
    /// A directory of one segment.
    pub(super) fn of_one(table: TagTable<P>) -> Directory<P> {
        let mut of_depth = [0; DEPTH_MAX as usize + 1];
        of_depth[0] = 1;
        let (len, len_bound) = (table.len(), SEGMENT_LEN_MAX.max(table.len()) as u32);
        let segments = vec![Segment { table, prefix: 0, depth: 0 }];
        Directory { places: vec![0], segments, depth: 0, len, len_bound, of_depth }
    }

    /// The number of the segment of a position.
    #[inline]
    pub(super) fn number_of(&self, position: u64) -> u32 {
        self.places[prefix_of(position, self.depth)]
    }

    /// Adds an element; `position_of` gives the position of any.
    pub(super) fn insert(&mut self, position: u64, element: P, position_of: impl Fn(P::Ref<'_>) -> u64) -> (u32, Slot) {
        let mut number = self.number_of(position);
        while self.segments[number as usize].table.len() >= SEGMENT_LEN_MAX && self.split(number, &position_of) {
            number = self.number_of(position);
        }
        let segment = &mut self.segments[number as usize];
        let slot = segment.table.insert(tag_at(position, segment.depth), element);
        self.len += 1;
        self.len_bound = self.len_bound.max(segment.table.len() as u32);
        (number, slot)
    }

    /// Splits a segment; tells whether it could be.
    fn split(&mut self, number: u32, position_of: impl Fn(P::Ref<'_>) -> u64) -> bool {
        let Segment { prefix, depth, .. } = self.segments[number as usize];
        if depth == self.depth {
            if depth == DEPTH_MAX || PLACE_LEN_MIN << (depth + 1) > self.len {
                return false;
            }
            self.places = self.places.iter().flat_map(|&place| [place; 2]).collect();
            self.depth += 1;
        }
        let table = std::mem::take(&mut self.segments[number as usize].table);
        let [low, high] = table.divide(|element| {
            let position = position_of(element);
            let side = if prefix_of(position, depth + 1) & 1 == 0 { Side::Low } else { Side::High };
            (side, tag_at(position, depth + 1))
        });
        let upper = self.segments.len() as u32;
        let (prefix, depth) = (prefix << 1, depth + 1);
        self.segments[number as usize] = Segment { table: low, prefix, depth };
        self.segments.push(Segment { table: high, prefix: prefix | 1, depth });
        self.point_to(upper);
        self.of_depth[depth as usize - 1] -= 1;
        self.of_depth[depth as usize] += 2;
        true
    }

    /// The places of a segment.
    pub(super) fn places_of(&self, segment: &Segment<P>) -> Range<usize> {
        let spare = self.depth - segment.depth;
        let first = (segment.prefix as usize) << spare;
        first..first + (1 << spare)
    }

    /// Writes a segment's number into its places.
    fn point_to(&mut self, number: u32) {
        let places = self.places_of(&self.segments[number as usize]);
        self.places[places].fill(number);
    }

    /// Joins a segment with its neighbour when there is little in both.
    pub(super) fn join_if_lonely(&mut self, number: u32) {
        let Segment { ref table, prefix, depth } = self.segments[number as usize];
        if table.len() >= LONELY_LEN || depth == 0 {
            return;
        }
        let other = self.places[((prefix ^ 1) as usize) << (self.depth - depth)];
        let neighbour = &self.segments[other as usize];
        if neighbour.depth != depth || table.len() + neighbour.table.len() > JOINED_LEN_MAX {
            return;
        }
        let own = std::mem::take(&mut self.segments[number as usize].table);
        let others = std::mem::take(&mut self.segments[other as usize].table);
        let (low, high) = if prefix & 1 == 0 { (own, others) } else { (others, own) };
        let (prefix, depth) = (prefix >> 1, depth - 1);
        self.segments[number as usize] = Segment { table: TagTable::join(low, high), prefix, depth };
        self.point_to(number);
        self.of_depth[depth as usize + 1] -= 2;
        self.of_depth[depth as usize] += 1;
        self.segments.swap_remove(other as usize);
        if (other as usize) < self.segments.len() {
            // The last segment has this number now.
            self.point_to(other);
        }
        self.shrink();
    }

    /// Gives back what directory and list of segments have in excess, but for a level: the next split should not need
    /// it again at once.
    fn shrink(&mut self) {
        while self.depth > 0 && self.of_depth[self.depth as usize - 1..=self.depth as usize] == [0, 0] {
            self.places = self.places.iter().copied().step_by(2).collect();
            self.depth -= 1;
        }
        if self.segments.capacity() > 4 * self.segments.len() {
            self.segments.shrink_to(2 * self.segments.len());
        }
    }
}
