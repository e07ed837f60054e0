//! Listpacks as Redis writes them (<https://github.com/antirez/listpack>), read without believing anything in them.
//! Knows no type of value.
//!
//! ```text
//! +-------+-------+---------+-----+---------+------+
//! | bytes | count | element | ... | element | 0xFF |    both numbers little endian; a count of 65,535 says nothing
//! | 4 B   | 2 B   |         |     |         |      |    elements: see `element.rs` of the crate `ds`
//! +-------+-------+---------+-----+---------+------+
//! ```

use super::DecodeError;
use super::elements::{self, Expected};
use tenon_ds::listpack;
use tenon_ds::packed::Item;

const HEADER: usize = 6;
const END: u8 = 0xFF;
const COUNT_UNKNOWN: u16 = u16::MAX;

/// Bytes before a string of 4 KiB and more.
const LONG_HEAD: usize = 5;
/// Bytes of head and string whose number Redis writes with one byte more than Valkey does from 9.1 on, and does not read with
/// one less.
const DISPUTED: [usize; 3] = [0x3fff, 0x1f_ffff, 0xfff_ffff];

/// Whether no listpack with this element is one to Redis and to Valkey alike.
pub(super) fn is_disputed(item: Item<'_>) -> bool {
    matches!(item, Item::Bytes(bytes) if DISPUTED.contains(&(LONG_HEAD + bytes.len())))
}

/// The listpack of these elements, as Redis has it.
pub(super) fn written(elements: listpack::Listpack<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(elements.redis_len());
    bytes.extend_from_slice(&(elements.redis_len() as u32).to_le_bytes());
    // The count and the elements.
    bytes.extend_from_slice(elements.bytes());
    bytes.push(END);
    bytes
}

/// A listpack of any number of elements on its way to Redis.
pub(super) struct Builder {
    bytes: Vec<u8>,
    count: usize,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder { bytes: vec![0; HEADER], count: 0 }
    }
}

impl Builder {
    /// Adds an element at the end.
    pub(super) fn push(&mut self, item: Item<'_>) {
        listpack::append(item, &mut self.bytes);
        self.count += 1;
    }

    /// The listpack.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(END);
        let len = u32::try_from(self.bytes.len()).expect("who asks for a listpack has looked how much goes into it");
        let count = u16::try_from(self.count).unwrap_or(COUNT_UNKNOWN);
        self.bytes[..4].copy_from_slice(&len.to_le_bytes());
        self.bytes[4..HEADER].copy_from_slice(&count.to_le_bytes());
        self.bytes
    }
}

/// The elements of a listpack, each of which may turn out to be wrong.
pub(super) struct Elements<'a> {
    /// What lies before the end's byte and is not read yet.
    left: &'a [u8],
    expected: Expected,
}

impl<'a> Elements<'a> {
    /// The elements of the listpack in these bytes.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Elements<'a>, DecodeError> {
        let wrong = DecodeError::malformed("a listpack has a wrong header");
        let ([a, b, c, d, e, f], elements) = bytes.split_first_chunk::<HEADER>().ok_or(wrong)?;
        if u32::from_le_bytes([*a, *b, *c, *d]) as usize != bytes.len() {
            return Err(wrong);
        }
        let count = u16::from_le_bytes([*e, *f]);
        let Some((&END, left)) = elements.split_last() else {
            return Err(DecodeError::malformed("a listpack has no end"));
        };
        Ok(Elements { left, expected: Expected((count != COUNT_UNKNOWN).then_some(count)) })
    }

    /// Where the next element of the listpack, which is this one, begins, if there is one.
    #[inline]
    pub(super) fn place(&self, listpack: &[u8]) -> Place {
        // Behind what is left is the end's byte. No listpack is longer than 32 bits tell.
        Place((listpack.len() - 1 - self.left.len()) as u32)
    }

    #[inline]
    fn read(&mut self) -> Option<Item<'a>> {
        let (front, item) = element(self.left)?;
        // Most are so short that both forms of their length are one byte.
        if front < 0x80 {
            self.left = self.left[front..].split_first().filter(|(back, _)| usize::from(**back) == front)?.1;
            return Some(item);
        }
        // Valkey from 9.1 on has no byte more for what is disputed.
        let back_lens = [listpack::back_len(front), listpack::back_len(front - 1)];
        let is_back = |back_len: &usize| {
            self.left.get(front..front + back_len).is_some_and(|back| listpack::is_back(front, back))
        };
        let back_len = back_lens.into_iter().find(is_back)?;
        self.left = &self.left[front + back_len..];
        Some(item)
    }
}

/// Where an element begins that was read.
#[derive(Clone, Copy)]
pub(super) struct Place(u32);

impl Place {
    /// The element in the listpack that it was read from.
    #[inline]
    pub(super) fn item(self, listpack: &[u8]) -> Item<'_> {
        element(&listpack[self.0 as usize..]).expect("it was read before").1
    }
}

/// Bytes of the head and payload that the bytes begin with, and what they are.
#[inline]
fn element(bytes: &[u8]) -> Option<(usize, Item<'_>)> {
    let head = *bytes.first()?;
    match head {
        0..0x80 => Some((1, Item::Int(head.into()))),
        0x80..0xC0 => elements::string(bytes, 1, (head & 0x3F).into()),
        0xC0..0xE0 => {
            let unsigned = i64::from(head & 0x1F) << 8 | i64::from(*bytes.get(1)?);
            Some((2, Item::Int(if unsigned < 1 << 12 { unsigned } else { unsigned - (1 << 13) })))
        }
        0xE0..0xF0 => elements::string(bytes, 2, usize::from(head & 0x0F) << 8 | usize::from(*bytes.get(1)?)),
        0xF0 => elements::string(bytes, 5, u32::from_le_bytes(*bytes.get(1..)?.first_chunk()?) as usize),
        0xF1 => elements::int(bytes, 2),
        0xF2 => elements::int(bytes, 3),
        0xF3 => elements::int(bytes, 4),
        0xF4 => elements::int(bytes, 8),
        _ => None,
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Item<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let is_there = self.expected.next(self.left)?;
        Some(is_there.and_then(|()| self.read().ok_or(DecodeError::malformed("a listpack has a wrong element"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_ds::listpack::ListpackBuf;

    fn samples() -> Vec<Vec<u8>> {
        let mut samples: Vec<Vec<u8>> = vec![b"".to_vec(), b"-0".to_vec(), vec![b'x'; 63], vec![b'x'; 64]];
        samples.extend([vec![b'y'; 4_095], vec![b'y'; 4_096], vec![b'z'; 70_000]]);
        for int in [0, 127, 128, -1, 4_095, -4_096, 4_096, 32_767, -32_769, 1 << 23, -(1 << 31), 1 << 40, i64::MIN] {
            samples.push(int.to_string().into_bytes());
        }
        samples
    }

    fn all(bytes: &[u8]) -> Result<Vec<Vec<u8>>, DecodeError> {
        Elements::new(bytes)?.map(|element| element.map(Item::to_vec)).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut own = ListpackBuf::new();
        samples().iter().for_each(|sample| own.push_back(Item::of(sample)));
        let mut bytes = written(own.view());
        assert_eq!(all(&bytes).unwrap(), samples());
        bytes[4..6].copy_from_slice(&[0xFF; 2]);
        assert_eq!(all(&bytes).unwrap(), samples(), "the count may be unknown");
    }

    #[test]
    fn what_is_disputed_is_read_in_both_forms() {
        for len in DISPUTED[..2].iter().map(|front| front - LONG_HEAD) {
            let mut own = ListpackBuf::new();
            let text = vec![b'x'; len];
            [&b"before"[..], &text, b"behind"].into_iter().for_each(|element| own.push_back(Item::of(element)));
            let bytes = written(own.view());
            let expected = [b"before".to_vec(), text, b"behind".to_vec()];
            assert_eq!(all(&bytes).unwrap(), expected);
            // Redis's begins with a byte of zero.
            let back = HEADER + 8 + LONG_HEAD + len;
            let mut of_valkey = bytes;
            assert_eq!((of_valkey.remove(back), of_valkey[back]), (0, 0xff));
            of_valkey[back] &= 0x7f;
            let total = of_valkey.len() as u32;
            of_valkey[..4].copy_from_slice(&total.to_le_bytes());
            assert_eq!(all(&of_valkey).unwrap(), expected);
            assert!(is_disputed(Item::Bytes(&expected[1])) && !is_disputed(Item::Bytes(&expected[1][1..])));
        }
    }

    #[test]
    fn every_wrong_byte_is_found_or_harmless() {
        let mut own = ListpackBuf::new();
        for sample in [&b"abc"[..], b"12", b"-500", b"70000", &[b'x'; 100], b"9223372036854775807"] {
            own.push_back(Item::of(sample));
        }
        let bytes = written(own.view());
        for at in 0..bytes.len() {
            assert!(all(&bytes[..at]).is_err());
            for wrong in [0, 1, 0x7F, 0x80, 0xC0, 0xE5, 0xF0, 0xF4, 0xFE, 0xFF] {
                let mut changed = bytes.clone();
                changed[at] = wrong;
                // Nothing panics; what is read all the same has as many elements.
                let is_count = (4..6).contains(&at);
                if let Ok(found) = all(&changed) {
                    assert!(found.len() == 6 || is_count, "byte {at} as {wrong:#x}");
                }
            }
        }
        // An element that reaches over the end's byte.
        assert!(all(&[9, 0, 0, 0, 1, 0, 0x82, b'a', 0xFF]).is_err());
        assert!(all(b"").is_err());
        assert_eq!(all(&[7, 0, 0, 0, 0, 0, 0xFF]), Ok(Vec::new()));
    }
}
