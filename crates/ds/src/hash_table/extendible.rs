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

use super::directory::{Directory, SEGMENT_LEN_MAX, Segment, prefix_of, tag_at};
use super::pointer::Pointer;
use super::table::{Search, Slot, TagTable};
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
    pub fn memory(&self) -> usize {
        match &self.root {
            Root::One(table) => table.memory(),
            Root::Many(directory) => {
                size_of::<Directory<P>>()
                    + directory.places.capacity() * size_of::<u32>()
                    + directory.segments.capacity() * size_of::<Segment<P>>()
                    + directory.segments.iter().map(|segment| segment.table.memory()).sum::<usize>()
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
            Ahead::Element => table.prefetch_element(tag),
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

#[cfg(test)]
mod tests {
    use super::super::directory::DEPTH_MAX;
    use super::*;
    use crate::blob::Blob;
    use std::collections::{BTreeSet, HashMap};

    /// Elements in a test that should have some tens of segments; fewer under Miri.
    const MANY: u64 = if cfg!(miri) { 8 } else { 40 } * SEGMENT_LEN_MAX as u64;

    #[test]
    fn what_is_asked_for_ahead_may_be_there_or_not() {
        let mut random = Random(9);
        let mut table: ExtendibleTable<Blob> = ExtendibleTable::new();
        for number in 0..MANY {
            // Of an empty table, of one of one segment, and of one of many.
            for hash in [random.next(), number.wrapping_mul(0x9E37_79B9_7F4A_7C15)] {
                table.prefetch(hash, Ahead::Slots);
                table.prefetch(hash, Ahead::Element);
            }
            let bytes = number.to_le_bytes();
            table.insert(number.wrapping_mul(0x9E37_79B9_7F4A_7C15), Blob::new(&bytes), |blob| {
                let bytes = blob.bytes().first_chunk().expect("eight bytes");
                u64::from_le_bytes(*bytes).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            });
        }
        assert_eq!(table.len() as u64, MANY);
    }

    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
            (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ mixed >> 31
        }
    }

    fn key_of(blob: crate::blob::BlobRef<'_>) -> u64 {
        u64::from_le_bytes(blob.bytes().try_into().unwrap())
    }

    fn good_hash(key: u64) -> u64 {
        Random(key).next()
    }

    /// Only a few different ones.
    fn bad_hash(key: u64) -> u64 {
        good_hash(key % 5)
    }

    /// A table of numbers, hashed in a way of its own.
    struct Numbers {
        table: ExtendibleTable<Blob>,
        hash: fn(u64) -> u64,
    }

    impl Numbers {
        fn new(hash: fn(u64) -> u64) -> Numbers {
            Numbers { table: ExtendibleTable::new(), hash }
        }

        fn of(hash: fn(u64) -> u64, keys: impl IntoIterator<Item = u64>) -> Numbers {
            let mut numbers = Numbers::new(hash);
            keys.into_iter().for_each(|key| {
                numbers.insert(key);
            });
            numbers
        }

        fn find(&self, key: u64) -> Option<Location> {
            self.table.find((self.hash)(key), |blob| key_of(blob) == key)
        }

        fn insert(&mut self, key: u64) -> Location {
            let hash = self.hash;
            let at = self.table.insert(hash(key), Blob::new(&key.to_le_bytes()), |blob| hash(key_of(blob)));
            assert_eq!(key_of(self.table.get(at)), key);
            at
        }

        fn remove(&mut self, key: u64) -> bool {
            let found = self.find(key);
            if let Some(at) = found {
                assert_eq!(key_of(self.table.remove(at).view()), key);
            }
            found.is_some()
        }

        fn check(&self) {
            let Root::Many(directory) = &self.table.root else { return };
            assert!(directory.segments.len() > 1);
            assert_eq!(directory.places.len(), 1 << directory.depth);
            assert_eq!(directory.segments.iter().map(|segment| segment.table.len()).sum::<usize>(), directory.len);
            let mut of_depth = [0; DEPTH_MAX as usize + 1];
            let mut places = 0;
            for (number, segment) in directory.segments.iter().enumerate() {
                of_depth[segment.depth as usize] += 1;
                let range = directory.places_of(segment);
                places += range.len();
                assert!(directory.places[range].iter().all(|&place| place as usize == number));
                assert!(segment.table.len() <= directory.len_bound as usize);
                for (slot, element) in segment.table.iter() {
                    let position = self.table.position((self.hash)(key_of(element)));
                    assert_eq!(prefix_of(position, segment.depth), segment.prefix as usize);
                    let tag = tag_at(position, segment.depth);
                    assert_eq!(segment.table.tag(slot), tag);
                }
            }
            assert_eq!((of_depth, places), (directory.of_depth, directory.places.len()));
        }
    }

    #[test]
    fn behaves_like_a_map() {
        for (hash, keys) in [(good_hash as fn(u64) -> u64, MANY), (bad_hash, MANY / 12)] {
            let mut numbers = Numbers::new(hash);
            let mut model: HashMap<u64, ()> = HashMap::new();
            let mut random = Random(keys);
            let rounds = if cfg!(miri) { 1 } else { 8 } * keys;
            for round in 0..rounds {
                // Grow for a while, then shrink, so that both directions are walked.
                let growing = round * 4 / rounds % 2 == 0;
                let key = random.next() % keys;
                assert_eq!(numbers.find(key).is_some(), model.contains_key(&key));
                if random.next() % 8 < if growing { 7 } else { 1 } {
                    if model.insert(key, ()).is_none() {
                        numbers.insert(key);
                    } else {
                        let at = numbers.find(key).unwrap();
                        let old = numbers.table.replace(at, Blob::new(&key.to_le_bytes()));
                        assert_eq!(key_of(old.view()), key);
                    }
                } else {
                    assert_eq!(numbers.remove(key), model.remove(&key).is_some());
                }
                assert_eq!(numbers.table.len(), model.len());
                if round % (rounds / if cfg!(miri) { 4 } else { 20 }) == 0 {
                    numbers.check();
                    let seen: BTreeSet<u64> = numbers.table.iter().map(key_of).collect();
                    assert_eq!(seen, model.keys().copied().collect());
                    let copied = numbers.table.copied(|blob| Blob::new(blob.bytes()));
                    assert_eq!(copied.iter().map(key_of).collect::<BTreeSet<u64>>(), seen);
                    assert_eq!(copied.len(), model.len());
                }
            }
            for key in 0..keys {
                assert_eq!(numbers.remove(key), model.remove(&key).is_some());
            }
            assert!(numbers.table.is_empty());
            assert_eq!(numbers.table.memory(), 0, "an empty table has no memory of its own");
        }
    }

    #[test]
    fn a_scan_meets_all_that_stays_while_the_table_grows_and_shrinks() {
        for (before, per_step) in [(MANY / 40, 40), (MANY, 90)] {
            let mut numbers = Numbers::of(good_hash, 0..before);
            let stay = MANY / 50;
            let (mut seen, mut cursor, mut step) = (Vec::new(), 0, 0);
            loop {
                cursor = numbers.table.scan(cursor, 10, |_, blob| seen.push(key_of(blob)));
                assert!(cursor < 1 << 48);
                if cursor == 0 {
                    break;
                }
                for key in step * per_step..(step + 1) * per_step {
                    match before < MANY {
                        true => drop(numbers.insert(before + key)),
                        false => drop(numbers.remove(stay + key)),
                    }
                }
                step += 1;
            }
            let twice = seen.len() - seen.iter().collect::<BTreeSet<_>>().len();
            assert!(twice <= seen.len() / 100, "{twice} of {} were seen twice", seen.len());
            assert!(before < MANY || numbers.table.len() < before as usize / 4, "the table has shrunk meanwhile");
            seen.retain(|&key| key < stay);
            seen.sort_unstable();
            seen.dedup();
            assert!(seen.iter().copied().eq(0..stay));
        }
    }

    #[test]
    fn cursors_that_were_never_given_out_do_no_harm() {
        for numbers in [Numbers::new(good_hash), Numbers::of(good_hash, 0..9), Numbers::of(good_hash, 0..MANY)] {
            for cursor in [1, 77, 1 << 47, (1 << 48) - 1, 1 << 48, u64::MAX] {
                let next = numbers.table.scan(cursor, 3, |_, _| ());
                assert!(next == 0 || next > cursor);
            }
        }
    }

    #[test]
    fn the_order_of_one_table_spreads_over_another() {
        let source = Numbers::of(good_hash, 0..MANY);
        let mut copy = Numbers::new(good_hash);
        let mut longest = 0;
        let mut cursor = 0;
        loop {
            let mut page = Vec::new();
            cursor = source.table.scan(cursor, 100, |_, blob| page.push(key_of(blob)));
            page.into_iter().for_each(|key| {
                copy.insert(key);
            });
            if let Root::Many(directory) = &copy.table.root {
                longest = longest.max(directory.len_bound as usize);
            }
            if cursor == 0 {
                break;
            }
        }
        assert!(longest <= SEGMENT_LEN_MAX, "a segment of {longest} could not be split");
    }

    #[test]
    fn samples_are_fair() {
        // Segments of unequal length: half of the keys of some are removed.
        let mut numbers = Numbers::of(good_hash, 0..3 * SEGMENT_LEN_MAX as u64);
        let mut random = Random(5);
        let Root::Many(directory) = &numbers.table.root else { unreachable!() };
        let gone: Vec<u64> = directory.segments[0].table.iter().map(|(_, blob)| key_of(blob)).collect();
        gone.iter().skip(1).step_by(2).for_each(|&key| assert!(numbers.remove(key)));
        let rounds = if cfg!(miri) { 4 } else { 100 } * numbers.table.len();
        let mut counts: HashMap<u64, u32> = HashMap::new();
        for _ in 0..rounds {
            let at = numbers.table.sample(|| random.next()).unwrap();
            *counts.entry(key_of(numbers.table.get(at))).or_default() += 1;
        }
        if !cfg!(miri) {
            let expected = rounds as f64 / numbers.table.len() as f64;
            let deviation = |key| (f64::from(counts[&key]) - expected).powi(2) / expected;
            let chi_squared: f64 = numbers.table.iter().map(|blob| deviation(key_of(blob))).sum();
            // Its mean is the number of elements, its deviation the root of twice that.
            let elements = numbers.table.len() as f64;
            assert!((chi_squared - elements).abs() < 6.0 * (2.0 * elements).sqrt(), "{chi_squared} of {elements}");
        }
        assert_eq!(Numbers::new(good_hash).table.sample(|| 1), None);
        // Where nearly all segments are empty, the counting takes over.
        let few = Numbers::of(bad_hash, 0..2 * SEGMENT_LEN_MAX as u64);
        for _ in 0..100 {
            assert!(few.table.sample(|| random.next()).is_some());
        }
    }

    #[test]
    fn memory_follows_the_elements() {
        let mut numbers = Numbers::new(good_hash);
        assert_eq!(size_of::<ExtendibleTable<Blob>>(), 32);
        for key in 0..MANY {
            numbers.insert(key);
            let bytes = numbers.table.memory() as f64 / numbers.table.len() as f64;
            assert!(cfg!(miri) || key < 2_000 || bytes < 12.5, "{bytes} bytes an element of {key}");
        }
        let full = numbers.table.memory();
        for key in 0..MANY - MANY / 50 {
            numbers.remove(key);
        }
        assert!(numbers.table.memory() < full / 10, "{} of {full} bytes are left", numbers.table.memory());
    }
}
