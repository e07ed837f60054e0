//! A small set of integers, in ascending order and all of one width. Knows nothing of other members.
//!
//! ```text
//! +-------+---------+---------+-----
//! | width | integer | integer | ...     an empty set may have no bytes at all
//! | 1 B   | width B | width B |
//! +-------+---------+---------+-----
//!
//! width: 1, 2, 4 or 8; integers are little endian
//! ```

/// Bytes before the first integer.
const HEADER: usize = 1;

/// A set of integers, for reading.
#[derive(Clone, Copy, Debug)]
pub struct IntSetRef<'a>(&'a [u8]);

/// A set of integers, to be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntSet(Vec<u8>);

/// The least width that holds a number.
fn width_of(value: i64) -> usize {
    if i8::try_from(value).is_ok() {
        1
    } else if i16::try_from(value).is_ok() {
        2
    } else if i32::try_from(value).is_ok() {
        4
    } else {
        8
    }
}

/// Where a value is among ascending integers, or where it would be.
#[inline]
fn find_in<const WIDTH: usize>(
    integers: &[[u8; WIDTH]],
    value: i64,
    read: impl Fn([u8; WIDTH]) -> i64,
) -> Result<usize, usize> {
    // In their order is how they mostly come.
    if integers.last().is_none_or(|bytes| read(*bytes) < value) {
        return Err(integers.len());
    }
    let index = integers.partition_point(|bytes| read(*bytes) < value);
    let is_there = integers.get(index).is_some_and(|bytes| read(*bytes) == value);
    if is_there { Ok(index) } else { Err(index) }
}

impl<'a> IntSetRef<'a> {
    /// The set in these bytes, which this module has written.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> IntSetRef<'a> {
        IntSetRef(bytes)
    }

    /// Bytes of each integer: 1, 2, 4 or 8.
    #[inline]
    pub fn width(self) -> usize {
        self.0.first().map_or(1, |&width| width.into())
    }

    /// How many integers there are.
    #[inline]
    pub fn len(self) -> usize {
        self.0.len().saturating_sub(HEADER) / self.width()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.len() <= HEADER
    }

    /// The integer of this index in ascending order.
    ///
    /// # Panics
    /// When there are not so many.
    #[inline]
    pub fn get(self, index: usize) -> i64 {
        let width = self.width();
        let bytes = &self.0[HEADER + index * width..][..width];
        match *bytes {
            [a] => (a as i8).into(),
            [a, b] => i16::from_le_bytes([a, b]).into(),
            [a, b, c, d] => i32::from_le_bytes([a, b, c, d]).into(),
            _ => i64::from_le_bytes(bytes.try_into().expect("the widest integers have eight bytes")),
        }
    }

    /// Where the integer is, or where it would be.
    ///
    /// # Errors
    /// When it is not there; the index is the one it would have.
    #[inline]
    pub fn find(self, value: i64) -> Result<usize, usize> {
        let bytes = self.0.get(HEADER..).unwrap_or_default();
        match self.width() {
            1 => find_in(bytes.as_chunks().0, value, |bytes| i8::from_le_bytes(bytes).into()),
            2 => find_in(bytes.as_chunks().0, value, |bytes| i16::from_le_bytes(bytes).into()),
            4 => find_in(bytes.as_chunks().0, value, |bytes| i32::from_le_bytes(bytes).into()),
            _ => find_in(bytes.as_chunks().0, value, i64::from_le_bytes),
        }
    }

    /// Whether the integer is there.
    #[inline]
    pub fn contains(self, value: i64) -> bool {
        self.find(value).is_ok()
    }

    /// The integers in ascending order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = i64> + use<'a> {
        (0..self.len()).map(move |index| self.get(index))
    }
}

impl IntSet {
    /// The set in these bytes, which this module has written; no bytes at all are an empty set.
    pub fn from_bytes(bytes: Vec<u8>) -> IntSet {
        IntSet(bytes)
    }

    /// The set of these integers, which are in ascending order and all different.
    pub fn from_ascending(ints: impl ExactSizeIterator<Item = i64> + DoubleEndedIterator + Clone) -> IntSet {
        debug_assert!(ints.clone().is_sorted_by(|one, next| one < next));
        // The widest are at the ends.
        let ends = [ints.clone().next(), ints.clone().next_back()];
        let Some(width) = ends.into_iter().flatten().map(width_of).max() else { return IntSet::default() };
        let mut bytes = Vec::with_capacity(HEADER + width * ints.len());
        bytes.push(width as u8);
        match width {
            1 => bytes.extend(ints.map(|int| int as u8)),
            2 => ints.for_each(|int| bytes.extend_from_slice(&(int as i16).to_le_bytes())),
            4 => ints.for_each(|int| bytes.extend_from_slice(&(int as i32).to_le_bytes())),
            _ => ints.for_each(|int| bytes.extend_from_slice(&int.to_le_bytes())),
        }
        IntSet(bytes)
    }

    /// The bytes of the set.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The bytes of the set.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The set, for reading.
    #[inline]
    pub fn view(&self) -> IntSetRef<'_> {
        IntSetRef(&self.0)
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.0.capacity()
    }

    /// Gives back the allocation's room beside what it holds.
    pub(super) fn fit(&mut self) {
        self.0.shrink_to_fit();
    }

    /// Adds an integer; tells whether it is new.
    pub fn add(&mut self, value: i64) -> bool {
        let Err(index) = self.view().find(value) else { return false };
        let width = width_of(value);
        if self.0.is_empty() {
            self.0.push(width as u8);
        } else if width > self.view().width() {
            self.widen(width);
        }
        let width = self.view().width();
        let (at, end) = (HEADER + index * width, self.0.len());
        self.0.resize(end + width, 0);
        self.0.copy_within(at..end, at + width);
        self.0[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        true
    }

    /// Takes out the integer of this index.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn remove(&mut self, index: usize) {
        let width = self.view().width();
        let at = HEADER + index * width;
        self.0.copy_within(at + width.., at);
        self.0.truncate(self.0.len() - width);
        if self.view().is_empty() {
            // The next integer chooses the width.
            self.0.clear();
        }
    }

    fn widen(&mut self, width: usize) {
        let mut wide = Vec::with_capacity(HEADER + (self.view().len() + 1) * width);
        wide.push(width as u8);
        self.view().iter().for_each(|value| wide.extend_from_slice(&value.to_le_bytes()[..width]));
        self.0 = wide;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn behaves_like_a_sorted_set() {
        let samples: Vec<i64> = [0, 1, -1, 127, 128, -128, -129, 32_767, 32_768, -32_769, 1 << 31, -(1 << 31) - 1]
            .into_iter()
            .chain([i64::MAX, i64::MIN, 1 << 40])
            .chain(-20..20)
            .collect();
        let mut random = 11u64;
        for _ in 0..if cfg!(miri) { 1 } else { 60 } {
            let (mut set, mut model) = (IntSet::default(), BTreeSet::new());
            for _ in 0..100 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let value = samples[(random >> 33) as usize % samples.len()];
                if random >> 62 == 0 {
                    let found = set.view().find(value);
                    assert_eq!(found.is_ok(), model.remove(&value));
                    found.into_iter().for_each(|index| set.remove(index));
                } else {
                    assert_eq!(set.add(value), model.insert(value));
                }
                assert!(set.view().iter().eq(model.iter().copied()));
                let least = IntSet::from_ascending(model.iter().copied().collect::<Vec<_>>().into_iter());
                assert!(least.view().iter().eq(model.iter().copied()));
                assert!(least.view().width() <= set.view().width(), "no integer may be left that needs the width");
                assert_eq!((set.view().len(), set.view().is_empty()), (model.len(), model.is_empty()));
            }
        }
    }

    #[test]
    fn integers_are_as_wide_as_the_widest() {
        let mut set = IntSet::default();
        for (value, bytes) in [(5, 2), (-128, 3), (300, 7), (7, 9), (70_000, 21), (1 << 40, 49)] {
            assert!(set.add(value));
            assert_eq!(set.bytes().len(), bytes, "{value}");
        }
    }
}
