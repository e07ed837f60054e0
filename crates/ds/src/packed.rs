//! A short sequence of strings and integers in one run of bytes, the form of small collections. Knows nothing of what
//! the elements mean, and bounds nothing: whoever holds it converts it when it grows long.
//!
//! ```text
//! +---------+---------+---------+-----
//! | count   | element | element | ...
//! | 2 B, LE |         |         |
//! +---------+---------+---------+-----
//!
//! element:  0x00..=0xbf            that many bytes of a string follow
//!           0xc0..=0xdf, 1 B       low 5 bits and the byte: length of a string, 192 and more (to 8,383)
//!           0xe0, 4 B              length of a string, little endian
//!           0xe0 + n, n = 1..=8    an integer in n bytes, little endian, its sign extended
//!           0xe9..=0xff            the integers 0 to 22
//! ```
//!
//! A string that is the one decimal form of an i64 is always kept as the integer, so equal elements have equal bytes.

mod find;
mod places;

pub use find::Found;
pub use places::{Places, REACH};

use std::ops::Range;

/// Bytes before the first element.
pub const HEADER: usize = 2;
/// A sequence of so many bytes grows by an eighth when it has to: doubled, it would be half empty.
const LONG_RUN: usize = 1_024;
/// The most elements that one sequence can count.
pub const COUNT_MAX: usize = u16::MAX as usize;

const SHORT_MAX: usize = 0xbf;
const MIDDLE: u8 = 0xc0;
const MIDDLE_MIN: usize = SHORT_MAX + 1;
const MIDDLE_MAX: usize = MIDDLE_MIN + 0x1fff;
const LONG: u8 = 0xe0;
const TINY: u8 = 0xe9;
const TINY_MAX: i64 = (0xff - TINY) as i64;

/// An element as it is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item<'a> {
    /// A string that is not the decimal form of an i64.
    Bytes(&'a [u8]),
    /// The string that is the decimal form of this number.
    Int(i64),
}

/// Room for the decimal form of any i64.
pub type IntText = itoa::Buffer;

impl<'a> Item<'a> {
    /// The element for a string.
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Item<'a> {
        match canonical_int(bytes) {
            Some(int) => Item::Int(int),
            None => Item::Bytes(bytes),
        }
    }

    /// The element as a string; `room` holds the digits of a number.
    #[inline]
    pub fn as_bytes<'b>(self, room: &'b mut IntText) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Item::Bytes(bytes) => bytes,
            Item::Int(int) => room.format(int).as_bytes(),
        }
    }

    /// The element as a string of its own.
    pub fn to_vec(self) -> Vec<u8> {
        self.as_bytes(&mut IntText::new()).to_vec()
    }

    /// Length of the string in bytes.
    #[inline]
    pub fn len(self) -> usize {
        self.as_bytes(&mut IntText::new()).len()
    }

    /// Whether it is the empty string.
    pub fn is_empty(self) -> bool {
        matches!(self, Item::Bytes([]))
    }

    /// Bytes that the element takes in a sequence.
    #[inline]
    pub fn packed_len(self) -> usize {
        match self {
            Item::Bytes(bytes) => match bytes.len() {
                ..=SHORT_MAX => 1 + bytes.len(),
                MIDDLE_MIN..=MIDDLE_MAX => 2 + bytes.len(),
                _ => 5 + bytes.len(),
            },
            Item::Int(0..=TINY_MAX) => 1,
            Item::Int(int) => 1 + int_width(int),
        }
    }

    /// Writes the element behind bytes that are no sequence of this module's; [`element_at`] reads it there.
    #[inline]
    pub fn append_to(self, bytes: &mut Vec<u8>) {
        if let Item::Bytes(short) = self
            && short.len() <= SHORT_MAX
        {
            bytes.push(short.len() as u8);
            bytes.extend_from_slice(short);
            return;
        }
        let at = bytes.len();
        bytes.resize(at + self.packed_len(), 0);
        self.write(&mut bytes[at..]);
    }

    /// Writes the element into `place`, which is as long as `packed_len` says.
    fn write(self, place: &mut [u8]) {
        match self {
            Item::Bytes(bytes) => {
                let head = place.len() - bytes.len();
                match head {
                    1 => place[0] = bytes.len() as u8,
                    2 => {
                        let rest = bytes.len() - MIDDLE_MIN;
                        place[0] = MIDDLE | (rest >> 8) as u8;
                        place[1] = rest as u8;
                    }
                    _ => {
                        let len = u32::try_from(bytes.len()).expect("an element is shorter than 4 GiB");
                        place[0] = LONG;
                        place[1..5].copy_from_slice(&len.to_le_bytes());
                    }
                }
                place[head..].copy_from_slice(bytes);
            }
            Item::Int(int @ 0..=TINY_MAX) => place[0] = TINY + int as u8,
            Item::Int(int) => {
                let width = place.len() - 1;
                place[0] = LONG + width as u8;
                place[1..].copy_from_slice(&int.to_le_bytes()[..width]);
            }
        }
    }
}

/// Bytes that an integer takes without its needless sign bytes.
fn int_width(int: i64) -> usize {
    let significant = 65 - (int ^ (int >> 63)).leading_zeros() as usize;
    significant.div_ceil(8).max(1)
}

/// The number whose one decimal form this is.
#[inline]
pub fn canonical_int(bytes: &[u8]) -> Option<i64> {
    let (digits, negative) = match bytes {
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    if digits.is_empty() || digits.len() > 19 || (digits[0] == b'0' && bytes.len() > 1) {
        return None;
    }
    let mut magnitude: u64 = 0;
    for &digit in digits {
        let value = digit.wrapping_sub(b'0');
        if value > 9 {
            return None;
        }
        // Nineteen digits stay below 10^19, which u64 holds.
        magnitude = magnitude * 10 + u64::from(value);
    }
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// An element and the bytes that it takes in its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// Where it starts.
    pub at: usize,
    /// Where the next one starts.
    pub end: usize,
    /// What it is.
    pub item: Item<'a>,
}

/// The element at byte `at`, where [`Item::append_to`] has written it.
#[inline]
pub fn element_at(bytes: &[u8], at: usize) -> Element<'_> {
    Packed(bytes).at(at)
}

/// A sequence, for reading.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a>(&'a [u8]);

impl<'a> Packed<'a> {
    /// The sequence in these bytes, which this module has written.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Packed<'a> {
        debug_assert!(bytes.len() >= HEADER);
        Packed(bytes)
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

    /// The bytes of the whole sequence.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// The element that starts at byte `at`.
    #[inline]
    pub fn at(self, at: usize) -> Element<'a> {
        let (head, len) = match self.0[at] {
            short @ 0..MIDDLE => (1, short.into()),
            middle @ MIDDLE..LONG => (2, MIDDLE_MIN + (usize::from(middle & 0x1f) << 8 | usize::from(self.0[at + 1]))),
            LONG => {
                let len = [self.0[at + 1], self.0[at + 2], self.0[at + 3], self.0[at + 4]];
                (5, u32::from_le_bytes(len) as usize)
            }
            tiny @ TINY.. => return Element { at, end: at + 1, item: Item::Int((tiny - TINY).into()) },
            int => {
                let end = at + 1 + usize::from(int - LONG);
                let bytes = &self.0[at + 1..end];
                let sign = if bytes[bytes.len() - 1] & 0x80 == 0 { 0 } else { 0xff };
                let mut wide = [sign; 8];
                wide[..bytes.len()].copy_from_slice(bytes);
                return Element { at, end, item: Item::Int(i64::from_le_bytes(wide)) };
            }
        };
        let end = at + head + len;
        Element { at, end, item: Item::Bytes(&self.0[at + head..end]) }
    }

    /// The elements in order.
    #[inline]
    pub fn iter(self) -> Elements<'a> {
        Elements { packed: self, at: HEADER }
    }

    /// The elements from the one that starts at byte `at` on.
    #[inline]
    pub fn iter_from(self, at: usize) -> Elements<'a> {
        Elements { packed: self, at }
    }

    /// The element of this index.
    pub fn get(self, index: usize) -> Option<Element<'a>> {
        self.iter().nth(index)
    }
}

/// The elements of a sequence in order.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    packed: Packed<'a>,
    at: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        if self.at >= self.packed.0.len() {
            return None;
        }
        let element = self.packed.at(self.at);
        self.at = element.end;
        Some(element)
    }
}

/// A sequence, to be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedBuf(Vec<u8>);

impl Default for PackedBuf {
    fn default() -> PackedBuf {
        PackedBuf::new()
    }
}

impl PackedBuf {
    /// An empty sequence.
    pub fn new() -> PackedBuf {
        PackedBuf(vec![0; HEADER])
    }

    /// The sequence in these bytes, which this module has written; no bytes at all are an empty sequence.
    pub fn from_bytes(mut bytes: Vec<u8>) -> PackedBuf {
        if bytes.is_empty() {
            bytes.resize(HEADER, 0);
        }
        PackedBuf(bytes)
    }

    /// The bytes of the whole sequence.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The sequence, for reading.
    #[inline]
    pub fn view(&self) -> Packed<'_> {
        Packed::new(&self.0)
    }

    /// How many elements there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.view().is_empty()
    }

    /// Bytes that the whole sequence takes.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.0.len()
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.0.capacity()
    }

    /// Gives back the allocation's room beside what it holds.
    pub fn fit(&mut self) {
        self.0.shrink_to_fit();
    }

    /// Adds an element at the end.
    ///
    /// # Panics
    /// When there are `COUNT_MAX` elements.
    #[inline]
    pub fn push(&mut self, item: Item<'_>) {
        self.make_room(item.packed_len());
        item.append_to(&mut self.0);
        self.count_changed(1);
    }

    /// Adds an element before the one that starts at byte `at`, or at the end.
    ///
    /// # Panics
    /// When there are `COUNT_MAX` elements.
    pub fn insert(&mut self, at: usize, item: Item<'_>) {
        self.splice(at..at, item);
        self.count_changed(1);
    }

    /// Puts an element in the place of the one that takes the bytes `range`.
    pub fn replace(&mut self, range: Range<usize>, item: Item<'_>) {
        self.splice(range, item);
    }

    /// Takes out the `count` elements that take the bytes `range`.
    pub fn remove(&mut self, range: Range<usize>, count: usize) {
        self.0.copy_within(range.end.., range.start);
        self.0.truncate(self.0.len() - range.len());
        self.count_changed(-(count as isize));
    }

    /// Takes out all elements.
    pub fn clear(&mut self) {
        self.0.truncate(HEADER);
        self.0.fill(0);
    }

    fn splice(&mut self, range: Range<usize>, item: Item<'_>) {
        let len = item.packed_len();
        let old_len = self.0.len();
        if len > range.len() {
            let more = len - range.len();
            self.make_room(more);
            self.0.resize(old_len + more, 0);
        }
        self.0.copy_within(range.end..old_len, range.start + len);
        self.0.truncate(old_len + len - range.len());
        item.write(&mut self.0[range.start..range.start + len]);
    }

    /// Sees to it that a long sequence does not double when so many bytes are added.
    #[inline]
    fn make_room(&mut self, more: usize) {
        let len = self.0.len();
        if len >= LONG_RUN && len + more > self.0.capacity() {
            self.0.reserve_exact(more + len / 8);
        }
    }

    fn count_changed(&mut self, by: isize) {
        let count = self.len().checked_add_signed(by).expect("only elements that are there are removed");
        let count = u16::try_from(count).expect("a sequence is converted before it has too many elements to count");
        self.0[..HEADER].copy_from_slice(&count.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Vec<u8>> {
        let mut samples: Vec<Vec<u8>> =
            vec![b"".to_vec(), b"-0".to_vec(), b"007".to_vec(), b"+1".to_vec(), b"-".to_vec()];
        for int in [0, 22, 23, -1, 127, 128, -128, -129, 32_767, -32_769, 1 << 23, 1 << 31, 1 << 40, i64::MAX, i64::MIN]
        {
            samples.push(int.to_string().into_bytes());
        }
        samples.push(b"9223372036854775808".to_vec());
        samples.push(b"-9223372036854775809".to_vec());
        samples.push(b"99999999999999999999".to_vec());
        for len in [1, SHORT_MAX, MIDDLE_MIN, MIDDLE_MAX, MIDDLE_MAX + 1, 70_000] {
            samples.push(vec![b'x'; len]);
        }
        samples
    }

    #[test]
    fn gives_back_what_was_put_in() {
        let mut packed = PackedBuf::new();
        for sample in samples() {
            let before = packed.byte_len();
            packed.push(Item::of(&sample));
            assert_eq!(packed.byte_len() - before, Item::of(&sample).packed_len());
        }
        let read: Vec<_> = packed.view().iter().map(|element| element.item.to_vec()).collect();
        assert_eq!(read, samples());
        assert_eq!(packed.len(), read.len());
        for (index, sample) in samples().iter().enumerate() {
            assert_eq!(packed.view().get(index).map(|element| element.item), Some(Item::of(sample)));
        }
    }

    #[test]
    fn integers_take_no_more_bytes_than_they_need() {
        for (int, len) in [(0, 1), (22, 1), (23, 2), (-1, 2), (127, 2), (128, 3), (-128, 2), (-129, 3), (i64::MIN, 9)] {
            assert_eq!(Item::Int(int).packed_len(), len, "{int}");
        }
        assert_eq!(Item::of(b"-5"), Item::Int(-5));
        assert_eq!(Item::of(b"-0"), Item::Bytes(b"-0"));
    }

    #[test]
    fn changes_agree_with_a_vector() {
        let samples = samples();
        let mut model: Vec<Vec<u8>> = Vec::new();
        let mut packed = PackedBuf::new();
        let mut random = 7u64;
        for _ in 0..if cfg!(miri) { 50 } else { 3_000 } {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let sample = &samples[(random >> 33) as usize % samples.len()];
            let index = (random >> 40) as usize % (model.len() + 1);
            let element = packed.view().get(index);
            match ((random >> 60) % 3, element) {
                (0, Some(element)) => {
                    let range = element.at..element.end;
                    packed.replace(range, Item::of(sample));
                    model[index] = sample.clone();
                }
                (1, Some(element)) => {
                    let range = element.at..element.end;
                    packed.remove(range, 1);
                    model.remove(index);
                }
                (_, element) => {
                    let at = element.map_or(packed.byte_len(), |element| element.at);
                    packed.insert(at, Item::of(sample));
                    model.insert(index, sample.clone());
                }
            }
            if model.len() > 40 {
                packed.clear();
                model.clear();
            }
            let read: Vec<_> = packed.view().iter().map(|element| element.item.to_vec()).collect();
            assert_eq!(read, model);
        }
    }
}
