//! Looks for an element in a sequence: by its bytes, as they would lie there, without reading the others. Knows no
//! more of elements than where each ends.

use super::{Element, HEADER, Item, LONG, MIDDLE, Packed, SHORT_MAX, TINY, TINY_MAX, int_width};

/// An element found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// How many groups lie before its own.
    pub index: usize,
    /// The element.
    pub element: Element<'a>,
}

impl<'a> Packed<'a> {
    /// The first element that equals `wanted` among the first ones of groups of `GROUP` elements each (1: among all).
    #[inline]
    pub fn find<const GROUP: usize>(self, wanted: Item<'_>) -> Option<Found<'a>> {
        let digits;
        let (head, rest) = match wanted {
            Item::Bytes(bytes) if bytes.len() <= SHORT_MAX => (bytes.len() as u8, bytes),
            Item::Bytes(_) => return self.find_long::<GROUP>(wanted),
            Item::Int(int @ 0..=TINY_MAX) => (TINY + int as u8, &[][..]),
            Item::Int(int) => {
                let width = int_width(int);
                digits = int.to_le_bytes();
                (LONG + width as u8, &digits[..width])
            }
        };
        // Names mostly differ at their ends, if at all in length.
        if let Some(end) = rest.last_chunk::<8>() {
            let end = u64::from_le_bytes(*end);
            let is_end = |last: &[u8]| last.last_chunk().is_some_and(|last| u64::from_le_bytes(*last) == end);
            self.find_bytes::<GROUP>(head, rest, is_end)
        } else {
            self.find_bytes::<GROUP>(head, rest, |_| true)
        }
    }

    /// Looks for the element that is these bytes: the first one says how long the others are. `may_be` tells quickly
    /// of most bytes that they are others.
    #[inline(always)]
    fn find_bytes<const GROUP: usize>(
        self,
        head: u8,
        rest: &[u8],
        may_be: impl Fn(&[u8]) -> bool,
    ) -> Option<Found<'a>> {
        let bytes = self.bytes();
        let (mut at, mut index) = (HEADER, 0);
        while let Some((&first, behind)) = bytes.get(at..).and_then(<[u8]>::split_first) {
            if first == head
                && let Some(here) = behind.get(..rest.len())
                && may_be(here)
                && here.iter().eq(rest)
            {
                return Some(Found { index, element: self.at(at) });
            }
            at = self.end_of(at, first);
            for _ in 1..GROUP {
                at = self.end_of(at, bytes[at]);
            }
            index += 1;
        }
        None
    }

    #[cold]
    fn find_long<const GROUP: usize>(self, wanted: Item<'_>) -> Option<Found<'a>> {
        let found = self.iter().step_by(GROUP).enumerate().find(|(_, element)| element.item == wanted);
        found.map(|(index, element)| Found { index, element })
    }

    /// Where the element that starts at byte `at` ends.
    #[inline(always)]
    pub fn end_at(self, at: usize) -> usize {
        self.end_of(at, self.bytes()[at])
    }

    /// The element that starts at byte `at`, if it is an integer that needs no second look, and where it ends.
    #[inline(always)]
    pub fn quick_int_at(self, at: usize) -> Option<(i64, usize)> {
        let (&first, behind) = self.bytes().get(at..)?.split_first()?;
        if first >= TINY {
            return Some(((first - TINY).into(), at + 1));
        }
        // All eight bytes that it could have are read; what is not its own is shifted out, and the sign in.
        let wide = i64::from_le_bytes(*behind.first_chunk::<8>()?);
        match usize::from(first).checked_sub(LONG.into()) {
            Some(width @ 1..) => Some((wide << (64 - 8 * width) >> (64 - 8 * width), at + 1 + width)),
            Some(0) | None => None,
        }
    }

    /// Where the element at `at` ends, whose first byte is `first`.
    #[inline(always)]
    fn end_of(self, at: usize, first: u8) -> usize {
        match first {
            short @ 0..MIDDLE => at + 1 + usize::from(short),
            tiny if tiny >= TINY => at + 1,
            int if int > LONG => at + 1 + usize::from(int - LONG),
            _ => self.at(at).end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::PackedBuf;

    /// Strings and integers of every form, many of which begin or end alike.
    fn words() -> Vec<Vec<u8>> {
        let mut words: Vec<Vec<u8>> = Vec::new();
        for len in [0, 1, 2, 7, 8, 9, 20, SHORT_MAX, SHORT_MAX + 1, 9_000] {
            for (first, last) in [(b'a', b'a'), (b'a', b'b'), (b'b', b'a')] {
                let mut word = vec![b'x'; len];
                if let Some(byte) = word.first_mut() {
                    *byte = first;
                }
                if let Some(byte) = word.last_mut() {
                    *byte = last;
                }
                words.push(word);
            }
        }
        words.extend([0, 1, 22, 23, 200, -1, 70_000, 1 << 40, i64::MIN].map(|int: i64| int.to_string().into_bytes()));
        words.sort();
        words.dedup();
        words
    }

    fn check<const GROUP: usize>(words: &[Vec<u8>]) {
        let mut packed = PackedBuf::new();
        // Alone each third word is left out; in groups the others stand at every place.
        for (number, word) in words.iter().chain(&words[1..]).chain(&words[2..]).enumerate() {
            if number % 3 != 0 || GROUP > 1 {
                packed.push(Item::of(word));
            }
        }
        while !packed.len().is_multiple_of(GROUP) {
            packed.push(Item::Int(7));
        }
        let packed = packed.view();
        for word in words {
            let wanted = Item::of(word);
            let read = packed.iter().step_by(GROUP).enumerate().find(|(_, element)| element.item == wanted);
            let found = packed.find::<GROUP>(wanted).map(|found| (found.index, found.element));
            assert_eq!(found, read, "{wanted:?} in groups of {GROUP}");
        }
    }

    #[test]
    fn quick_looks_see_what_reading_sees() {
        let mut packed = PackedBuf::new();
        let around = |bit: u32| [1 << bit, -(1 << bit), (1 << bit) - 1, !(1 << bit)].map(|int: i64| int.to_string());
        let ints = (0..63).flat_map(around);
        let words: Vec<Vec<u8>> = words().into_iter().chain(ints.map(String::into_bytes)).collect();
        words.iter().for_each(|word| packed.push(Item::of(word)));
        let packed = packed.view();
        let mut quick = 0;
        for element in packed.iter() {
            assert_eq!(packed.end_at(element.at), element.end);
            if let Some((int, end)) = packed.quick_int_at(element.at) {
                assert_eq!((Item::Int(int), end), (element.item, element.end));
                quick += 1;
            }
        }
        let all = packed.iter().filter(|element| matches!(element.item, Item::Int(_))).count();
        assert!((all - 2..=all).contains(&quick), "{quick} of {all}: the last ones may be too near to the end");
        assert_eq!(packed.quick_int_at(packed.bytes().len()), None);
    }

    #[test]
    fn finds_what_reading_finds() {
        check::<1>(&words());
        check::<2>(&words());
        check::<3>(&words());
        assert_eq!(PackedBuf::new().view().find::<2>(Item::Int(7)), None);
    }
}
