//! A listpack, for reading.
//!
//! ```text
//! +---------+---------+---------+-----
//! | count   | element | element | ...
//! | 2 B, LE |         |         |
//! +---------+---------+---------+-----
//! ```
//!
//! Redis has the length of the whole before the count and a byte behind the last element; whoever holds these bytes
//! knows how many they are.

use super::element::{self, Element};
use crate::packed::Item;

/// Bytes before the first element.
pub const HEADER: usize = 2;
/// The most elements that one listpack can count.
pub const COUNT_MAX: usize = u16::MAX as usize;
/// Bytes of Redis's listpack beside the elements.
const REDIS_HEADER_AND_END: usize = 7;

/// An end of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where the first element is.
    Front,
    /// Where the last element is.
    Back,
}

/// A listpack, for reading.
#[derive(Clone, Copy, Debug)]
pub struct Listpack<'a>(&'a [u8]);

impl<'a> Listpack<'a> {
    /// The listpack in these bytes, which this module has written.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Listpack<'a> {
        debug_assert!(bytes.len() >= HEADER);
        Listpack(bytes)
    }

    /// How many elements there are.
    #[inline]
    pub fn len(self) -> usize {
        u16::from_le_bytes([self.0[0], self.0[1]]).into()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The bytes of the whole listpack.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Bytes that Redis's listpack of these elements has, by which its settings limit it.
    #[inline]
    pub fn redis_len(self) -> usize {
        self.0.len() - HEADER + REDIS_HEADER_AND_END
    }

    /// The element that starts at byte `at`.
    #[inline]
    pub fn at(self, at: usize) -> Element<'a> {
        element::read(self.0, at)
    }

    /// The element that ends where byte `end` begins.
    #[inline]
    pub fn before(self, end: usize) -> Element<'a> {
        element::read(self.0, element::start_of_previous(self.0, end))
    }

    /// The first or the last element.
    #[inline]
    pub fn end(self, end: End) -> Option<Element<'a>> {
        (!self.is_empty()).then(|| match end {
            End::Front => self.at(HEADER),
            End::Back => self.before(self.0.len()),
        })
    }

    /// The elements in order, from either end.
    #[inline]
    pub fn iter(self) -> Iter<'a> {
        Iter { bytes: self.0, at: HEADER, end: self.0.len(), left: self.len() }
    }

    /// The elements from this index on; it is looked for from the nearer end.
    pub fn iter_from(self, index: usize) -> Iter<'a> {
        Iter { bytes: self.0, at: self.offset_of(index), end: self.0.len(), left: self.len().saturating_sub(index) }
    }

    /// The elements before this index, which is looked for from the nearer end.
    pub fn iter_until(self, index: usize) -> Iter<'a> {
        Iter { bytes: self.0, at: HEADER, end: self.offset_of(index), left: index.min(self.len()) }
    }

    /// Where the element of this index starts: the end of the bytes for one past the last.
    pub fn offset_of(self, index: usize) -> usize {
        let len = self.len();
        if index <= len / 2 {
            let mut elements = self.iter();
            for _ in 0..index {
                elements.next();
            }
            return elements.at;
        }
        let mut at = self.0.len();
        for _ in index..len {
            at = element::start_of_previous(self.0, at);
        }
        at
    }

    /// The element of this index, looked for from the nearer end.
    pub fn get(self, index: usize) -> Option<Element<'a>> {
        (index < self.len()).then(|| self.at(self.offset_of(index)))
    }
}

/// The elements of a listpack, from either end.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
    left: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        self.left = self.left.checked_sub(1)?;
        let element = element::read(self.bytes, self.at);
        self.at = element.end;
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for Iter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.end = element::start_of_previous(self.bytes, self.end);
        Some(element::read(self.bytes, self.end))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> Iter<'a> {
    /// Goes towards an end until behind the next element that is equal to `wanted`, over `at_most` elements; gives how many
    /// others lay before it.
    pub fn find_next(&mut self, wanted: Item<'_>, towards: End, at_most: usize) -> Option<usize> {
        let most = self.left.min(at_most);
        match towards {
            End::Back => (0..most).find(|_| self.next_is(wanted)),
            End::Front => (0..most).find(|_| self.next_back().is_some_and(|element| element.item == wanted)),
        }
    }

    /// Goes over the next element, of which there is one, and tells whether it is equal to `wanted`.
    #[inline]
    fn next_is(&mut self, wanted: Item<'_>) -> bool {
        let Some(short) = element::short_string(self.bytes, self.at) else {
            return self.next().is_some_and(|element| element.item == wanted);
        };
        self.left -= 1;
        self.at += element::SHORT_STRING_AROUND + short.len();
        // Names mostly differ at their ends, if at all in length.
        matches!(wanted, Item::Bytes(wanted) if wanted.len() == short.len() && wanted.last() == short.last() && wanted == short)
    }

    /// What is left, without the places.
    pub fn items(self) -> impl DoubleEndedIterator<Item = Item<'a>> + ExactSizeIterator {
        self.map(|element| element.item)
    }
}
