//! A table for any number of elements that never moves more than a thousand of them at once: extendible hashing
//! (Fagin, Nievergelt, Pippenger and Strong, 1979). Knows nothing of what its elements hold, nor how they are hashed.
//!
//! ```text
//! position of an element: its hash, mixed with the table's own number
//! 63         64-d                                      0
//! +-----------+--------------+--------------------------+      d: depth of the segment
//! | segment   | tag, 16 bits | not used                 |
//! +-----------+--------------+--------------------------+
//!
//! directory, 2^depth places        segments: a TagTable each
//! 00 ------------------------> [ depth 2, positions 00... ]
//! 01 ------------------------> [ depth 2, positions 01... ]
//! 10 ---+--------------------> [ depth 1, positions 1...  ]
//! 11 ---+
//! ```
//!
//! A segment that is full splits in two; when it had the directory's depth, the directory of numbers doubles first. Two
//! neighbours of which little is left join. A table of one segment has no directory.
//!
//! The elements lie in the order of their positions, whatever the segments are: a place in a scan is a position.

#[cfg(test)]
mod tests;

use super::directory::{Directory, SEGMENT_LEN_MAX, Segment, prefix_of, tag_at};
use super::pointer::Pointer;
use super::table::{Search, Slot, TagTable};
use crate::looks::Looks;
use crate::progress;
use std::sync::atomic::{AtomicU64, Ordering};

/// A cursor is the first 48 bits of a position: depth and tag are no more, and any client's number can hold them.
const CURSOR_SHIFT: u32 = 16;
/// How often a sample may fall between the elements before they are counted off, which is as fair and slower.
const SAMPLE_TRIES: u32 = 64;

/// Where an element lies now. Any insertion or removal makes it stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    segment: u32,
    slot: Slot,
}

/// What a search reads one after the other, and can be asked for before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// The slots that it begins with.
    Slots,
    /// The first element that it compares; to be asked for when the slots have had time to arrive.
    Element,
}

/// The table. An empty one has no memory of its own.
///
/// Hashes have 64 bits, all of them good, and are seeded where others choose the elements.
pub struct ExtendibleTable<P: Pointer> {
    /// Odd, and another for each table: else the elements of one, added in its order to another, would all fall into the
    /// same part of that.
    salt: u64,
    root: Root<P>,
}

enum Root<P: Pointer> {
    One(TagTable<P>),
    Many(Box<Directory<P>>),
}

/// The next table's number before it is mixed.
static NEXT_SALT: AtomicU64 = AtomicU64::new(1);

fn next_salt() -> u64 {
    // SplitMix64 (Steele, Lea and Flood, 2014).
    let mut mixed = NEXT_SALT.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ mixed >> 31) | 1
}

/// A number below `bound` from 32 random bits.
#[inline]
fn below(random: u32, bound: u32) -> u32 {
    ((u64::from(random) * u64::from(bound)) >> 32) as u32
}

impl<P: Pointer> ExtendibleTable<P> {
    /// An empty table.
    pub fn new() -> ExtendibleTable<P> {
        ExtendibleTable { salt: next_salt(), root: Root::One(TagTable::new()) }
    }

    /// An empty table in which elements lie in the same order as in this one: a cursor of a scan of this one is one of it, once it
    /// has the same elements.
    pub fn emptied(&self) -> ExtendibleTable<P> {
        ExtendibleTable { salt: self.salt, root: Root::One(TagTable::new()) }
    }

    /// Elements in the table.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.root {
            Root::One(table) => table.len(),
            Root::Many(directory) => directory.len,
        }
    }

    /// Whether there is no element.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory beside the table itself and the elements.
    pub fn memory(&self, looks: Looks) -> usize {
        match &self.root {
            Root::One(table) => table.memory(),
            Root::Many(directory) => {
                size_of::<Directory<P>>()
                    + directory.places.capacity() * size_of::<u32>()
                    + directory.segments.capacity() * size_of::<Segment<P>>()
                    + looks.sum(directory.segments.len(), |number, _| directory.segments[number].table.memory())
            }
        }
    }

    #[inline]
    fn position(&self, hash: u64) -> u64 {
        hash.wrapping_mul(self.salt)
    }

    #[inline]
    fn table(&self, segment: u32) -> &TagTable<P> {
        match &self.root {
            Root::One(table) => table,
            Root::Many(directory) => &directory.segments[segment as usize].table,
        }
    }

    #[inline]
    fn table_mut(&mut self, segment: u32) -> &mut TagTable<P> {
        match &mut self.root {
            Root::One(table) => table,
            Root::Many(directory) => &mut directory.segments[segment as usize].table,
        }
    }

    /// Where the element is that has this hash and that `is_it` accepts.
    #[inline]
    pub fn find(&self, hash: u64, is_it: impl FnMut(P::Ref<'_>) -> bool) -> Option<Location> {
        let position = self.position(hash);
        match &self.root {
            Root::One(table) => table.find(tag_at(position, 0), is_it).map(|slot| Location { segment: 0, slot }),
            Root::Many(directory) => {
                progress::count(1);
                let number = directory.number_of(position);
                let segment = &directory.segments[number as usize];
                let slot = segment.table.find(tag_at(position, segment.depth), is_it)?;
                Some(Location { segment: number, slot })
            }
        }
    }

    /// Begins a search for this hash. Several that go on together do not wait for one another's memory.
    #[inline]
    pub fn begin_search(&self, hash: u64) -> Search<'_, P> {
        let (table, tag) = self.table_and_tag(hash);
        Search::of(table, tag)
    }

    /// Starts loading a part of what a search for this hash reads.
    #[inline]
    pub fn prefetch(&self, hash: u64, ahead: Ahead) {
        let (table, tag) = self.table_and_tag(hash);
        match ahead {
            Ahead::Slots => table.place().prefetch(tag),
            Ahead::Element => _ = table.prefetch_element(tag),
        }
    }

    /// The element at a location.
    #[inline]
    pub fn get(&self, at: Location) -> P::Ref<'_> {
        self.table(at.segment).get(at.slot)
    }

    /// The element at a location, exclusively.
    #[inline]
    pub fn get_mut(&mut self, at: Location) -> P::Mut<'_> {
        self.table_mut(at.segment).get_mut(at.slot)
    }

    /// Adds an element. The caller has seen to it that its key is not there yet. `hash_of` gives the hash of any
    /// element, as it was when that was added.
    pub fn insert(&mut self, hash: u64, element: P, hash_of: impl Fn(P::Ref<'_>) -> u64) -> Location {
        let position = self.position(hash);
        if let Root::One(table) = &mut self.root {
            if table.len() < SEGMENT_LEN_MAX {
                return Location { segment: 0, slot: table.insert(tag_at(position, 0), element) };
            }
            self.root = Root::Many(Box::new(Directory::of_one(std::mem::take(table))));
        }
        let salt = self.salt;
        match &mut self.root {
            Root::One(_) => unreachable!("a full table has become a directory"),
            Root::Many(directory) => {
                progress::count(1);
                let position_of = |element: P::Ref<'_>| hash_of(element).wrapping_mul(salt);
                let (segment, slot) = directory.insert(position, element, position_of);
                Location { segment, slot }
            }
        }
    }

    /// Exchanges the element at a location for another with the same hash.
    pub fn replace(&mut self, at: Location, element: P) -> P {
        self.table_mut(at.segment).replace(at.slot, element)
    }

    /// Takes an element out.
    pub fn remove(&mut self, at: Location) -> P {
        let element = self.table_mut(at.segment).remove(at.slot);
        if let Root::Many(directory) = &mut self.root {
            directory.len -= 1;
            directory.join_if_lonely(at.segment);
            if let [only] = &mut directory.segments[..] {
                self.root = Root::One(std::mem::take(&mut only.table));
            }
        }
        element
    }

    /// The elements, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = P::Ref<'_>> {
        let (one, many) = match &self.root {
            Root::One(table) => (Some(table), None),
            Root::Many(directory) => (None, Some(directory.segments.iter().map(|segment| &segment.table))),
        };
        let counted = many.into_iter().flatten().inspect(|table| progress::count(table.len()));
        one.into_iter().chain(counted).flat_map(|table| table.iter().map(|(_, element)| element))
    }

    /// Calls `visit` for the elements from a cursor on until at least `count` are visited; gives the cursor to go on
    /// from, 0 at the end. A scan starts at 0.
    ///
    /// An element that is in the table from a scan's first step to its last is visited. It is visited twice only where
    /// segments joined between two steps just where the scan was. A cursor that was never given out does no harm.
    pub fn scan<'a>(&'a self, cursor: u64, count: usize, mut visit: impl FnMut(Location, P::Ref<'a>)) -> u64 {
        if cursor >> (64 - CURSOR_SHIFT) != 0 {
            return 0;
        }
        let count = count.max(1);
        let mut position = cursor << CURSOR_SHIFT;
        let mut visited = 0;
        while visited < count {
            let (segment, table, depth) = self.segment_at(position);
            let left = count - visited;
            progress::count(left.min(table.len()));
            let next = table.scan(tag_at(position, depth), left, |slot, element| {
                visited += 1;
                visit(Location { segment, slot }, element);
            });
            let prefix = prefix_of(position, depth) as u64;
            position = match next {
                Some(tag) => (prefix << 1 << (63 - depth)) | u64::from(tag) << (48 - depth),
                // The next segment starts there; behind the last one there is nothing.
                None if prefix + 1 == 1 << depth => return 0,
                None => (prefix + 1) << (64 - depth),
            };
        }
        position >> CURSOR_SHIFT
    }

    /// The table that an element of this hash would be in, and its tag there.
    #[inline]
    fn table_and_tag(&self, hash: u64) -> (&TagTable<P>, u16) {
        let position = self.position(hash);
        let (_, table, depth) = self.segment_at(position);
        (table, tag_at(position, depth))
    }

    /// The segment of a position: its number, its table and its depth.
    fn segment_at(&self, position: u64) -> (u32, &TagTable<P>, u8) {
        match &self.root {
            Root::One(table) => (0, table, 0),
            Root::Many(directory) => {
                let number = directory.number_of(position);
                let segment = &directory.segments[number as usize];
                (number, &segment.table, segment.depth)
            }
        }
    }

    /// Some element, each as likely as any other; `None` when there is none. `random` gives random numbers.
    pub fn sample(&self, mut random: impl FnMut() -> u64) -> Option<Location> {
        if self.is_empty() {
            return None;
        }
        let Root::Many(directory) = &self.root else {
            return Some(Location { segment: 0, slot: sample_of(self.table(0), &mut random) });
        };
        progress::count(1);
        // A segment is taken as often as it has elements: one that is drawn is kept with a chance of length to bound.
        for _ in 0..SAMPLE_TRIES {
            let draw = random();
            let number = below((draw >> 32) as u32, directory.segments.len() as u32);
            let table = &directory.segments[number as usize].table;
            if (below(draw as u32, directory.len_bound) as usize) < table.len() {
                return Some(Location { segment: number, slot: sample_of(table, &mut random) });
            }
        }
        let mut left = ((u128::from(random()) * directory.len as u128) >> 64) as usize;
        for (number, segment) in directory.segments.iter().enumerate() {
            if left < segment.table.len() {
                return Some(Location { segment: number as u32, slot: sample_of(&segment.table, &mut random) });
            }
            left -= segment.table.len();
        }
        unreachable!("the lengths of the segments are the table's together");
    }

    /// A table of the same elements, each copied.
    pub fn copied(&self, mut copy: impl FnMut(P::Ref<'_>) -> P) -> ExtendibleTable<P> {
        let root = match &self.root {
            Root::One(table) => Root::One(table.copied(copy)),
            Root::Many(directory) => {
                let copied = |segment: &Segment<P>| {
                    progress::count(segment.table.len());
                    Segment { table: segment.table.copied(&mut copy), ..*segment }
                };
                Root::Many(Box::new(Directory {
                    places: directory.places.clone(),
                    segments: directory.segments.iter().map(copied).collect(),
                    ..**directory
                }))
            }
        };
        ExtendibleTable { salt: self.salt, root }
    }
}

/// Some slot of a table that is not empty, each occupied one as likely as any other.
fn sample_of<P: Pointer>(table: &TagTable<P>, random: &mut impl FnMut() -> u64) -> Slot {
    for _ in 0..SAMPLE_TRIES {
        if let Some(slot) = table.slot_at(below(random() as u32, table.capacity)) {
            return slot;
        }
    }
    let nth = below(random() as u32, table.len() as u32);
    table.iter().nth(nth as usize).expect("the number is below the table's length").0
}

impl<P: Pointer> Default for ExtendibleTable<P> {
    fn default() -> ExtendibleTable<P> {
        ExtendibleTable::new()
    }
}

impl<P: Pointer> std::fmt::Debug for ExtendibleTable<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExtendibleTable").field("len", &self.len()).finish_non_exhaustive()
    }
}
