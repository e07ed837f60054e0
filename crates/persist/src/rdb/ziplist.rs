//! Ziplists, which small collections were until Redis 7.0, read without believing anything in them. Knows no type of
//! value.
//!
//! ```text
//! +-------+------+-------+-------+-----+-------+------+
//! | bytes | tail | count | entry | ... | entry | 0xFF |    numbers little endian; the tail is where the last entry
//! | 4 B   | 4 B  | 2 B   |       |     |       |      |    starts; a count of 65,535 says nothing
//! +-------+------+-------+-------+-----+-------+------+
//!
//! entry:     the length of the entry before it in one byte, or behind 0xFE in four; an encoding; a payload
//! encoding:  00xxxxxx                   a string of so many bytes
//!            01xxxxxx, 1 B              a string, big endian
//!            10......, 4 B              a string, big endian
//!            0xC0, 0xD0, 0xE0           an integer of 2, 4 or 8 bytes, little endian
//!            0xF0, 0xFE                 an integer of 3 bytes or 1
//!            0xF1 to 0xFD               the integers 0 to 12
//! ```

use super::DecodeError;
use super::elements::{self, Expected};
use tenon_ds::packed::Item;

const HEADER: usize = 10;
const END: u8 = 0xFF;
const COUNT_UNKNOWN: u16 = u16::MAX;
const LONG_PREVIOUS: u8 = 0xFE;

/// The entries of a ziplist, each of which may turn out to be wrong.
pub(super) struct Entries<'a> {
    /// Everything but the end's byte.
    bytes: &'a [u8],
    at: usize,
    /// Bytes of the entry before.
    previous: usize,
    tail: usize,
    expected: Expected,
}

impl<'a> Entries<'a> {
    /// The entries of the ziplist in these bytes.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Entries<'a>, DecodeError> {
        let wrong = DecodeError::malformed("a ziplist has a wrong header");
        let (len, rest) = bytes.split_first_chunk().ok_or(wrong)?;
        let (tail, rest) = rest.split_first_chunk().ok_or(wrong)?;
        let (count, rest) = rest.split_first_chunk().ok_or(wrong)?;
        if u32::from_le_bytes(*len) as usize != bytes.len() {
            return Err(wrong);
        }
        let (Some(&END), Some((_, bytes))) = (rest.last(), bytes.split_last()) else {
            return Err(DecodeError::malformed("a ziplist has no end"));
        };
        let count = u16::from_le_bytes(*count);
        Ok(Entries {
            bytes,
            at: HEADER,
            previous: 0,
            tail: u32::from_le_bytes(*tail) as usize,
            expected: Expected((count != COUNT_UNKNOWN).then_some(count)),
        })
    }

    fn read(&mut self) -> Option<Item<'a>> {
        let bytes = self.bytes.get(self.at..)?;
        let (previous, start) = match *bytes.first()? {
            LONG_PREVIOUS => (u32::from_le_bytes(*bytes.get(1..)?.first_chunk()?) as usize, 5),
            END => return None,
            short => (short.into(), 1),
        };
        let (len, item) = payload(bytes.get(start..)?)?;
        if previous != self.previous {
            return None;
        }
        self.previous = start + len;
        self.at += start + len;
        // The tail has to be where the last one starts.
        let is_last = self.at == self.bytes.len();
        (is_last == (self.at - self.previous == self.tail)).then_some(item)
    }
}

/// Bytes of the encoding and payload that the bytes begin with, and what they are.
fn payload(bytes: &[u8]) -> Option<(usize, Item<'_>)> {
    let head = *bytes.first()?;
    match head {
        0..0x40 => elements::string(bytes, 1, head.into()),
        0x40..0x80 => elements::string(bytes, 2, usize::from(head & 0x3F) << 8 | usize::from(*bytes.get(1)?)),
        0x80..0xC0 => elements::string(bytes, 5, u32::from_be_bytes(*bytes.get(1..)?.first_chunk()?) as usize),
        0xC0 => elements::int(bytes, 2),
        0xD0 => elements::int(bytes, 4),
        0xE0 => elements::int(bytes, 8),
        0xF0 => elements::int(bytes, 3),
        0xFE => elements::int(bytes, 1),
        0xF1..=0xFD => Some((1, Item::Int(i64::from(head & 0x0F) - 1))),
        _ => None,
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Item<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let is_there = self.expected.next(&self.bytes[self.at..])?;
        Some(is_there.and_then(|()| self.read().ok_or(DecodeError::malformed("a ziplist has a wrong entry"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Redis's documentation of the format has it: the strings "2" and "5", and the text "Hello World" behind them.
    const DOCUMENTED: &[u8] = b"\x1c\0\0\0\x0e\0\0\0\x03\0\0\xf3\x02\xf6\x02\x0bHello World\xff";

    fn all(bytes: &[u8]) -> Result<Vec<Vec<u8>>, DecodeError> {
        Entries::new(bytes)?.map(|entry| entry.map(Item::to_vec)).collect()
    }

    /// A ziplist of entries, each an encoding with its payload.
    fn ziplist(entries: &[&[u8]]) -> Vec<u8> {
        let (mut body, mut previous, mut tail) = (Vec::new(), 0, 10);
        for entry in entries {
            tail = 10 + body.len();
            if previous < 254 {
                body.push(previous as u8);
            } else {
                body.push(LONG_PREVIOUS);
                body.extend_from_slice(&(previous as u32).to_le_bytes());
            }
            body.extend_from_slice(entry);
            previous = 10 + body.len() - tail;
        }
        let mut bytes = (body.len() as u32 + 11).to_le_bytes().to_vec();
        bytes.extend_from_slice(&(tail as u32).to_le_bytes());
        bytes.extend_from_slice(&(entries.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes.push(END);
        bytes
    }

    #[test]
    fn every_encoding_is_read() {
        assert_eq!(all(DOCUMENTED).unwrap(), [&b"2"[..], b"5", b"Hello World"]);
        let long = [&[0x41, 0x2C][..], &[b'l'; 300]].concat();
        let huge = [&[0x80, 0, 0, 0x40, 0][..], &[b'h'; 16_384]].concat();
        let entries: &[&[u8]] = &[
            b"\x03abc",
            &long,
            &huge,
            b"\xC0\x00\x80",
            b"\xD0\x00\x00\x00\x80",
            b"\xE0\x00\x00\x00\x00\x00\x00\x00\x80",
            b"\xF0\xFF\xFF\xFF",
            b"\xFE\x80",
            b"\xF1",
            b"\xFD",
            b"\x00",
        ];
        let bytes = ziplist(entries);
        let found = all(&bytes).unwrap();
        assert_eq!((&found[0][..], &found[1], found[2].len()), (&b"abc"[..], &vec![b'l'; 300], 16_384));
        let numbers: Vec<_> = found[3..].iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
        assert_eq!(numbers, ["-32768", "-2147483648", "-9223372036854775808", "-1", "-128", "0", "12", ""]);
        assert_eq!(all(&ziplist(&[])), Ok(Vec::new()));
    }

    #[test]
    fn every_wrong_byte_is_found_or_harmless() {
        for at in 0..DOCUMENTED.len() {
            assert!(all(&DOCUMENTED[..at]).is_err());
            for wrong in [0, 1, 0x3F, 0x40, 0x80, 0xC0, 0xE0, 0xF0, 0xFE, 0xFF] {
                let mut changed = DOCUMENTED.to_vec();
                changed[at] = wrong;
                if let Ok(found) = all(&changed) {
                    assert!(found.len() == 3, "byte {at} as {wrong:#x}");
                }
            }
        }
        let mut tail = DOCUMENTED.to_vec();
        tail[4] = 0x0c;
        assert!(all(&tail).is_err(), "the tail is not the last");
    }
}
