//! Numbers, lengths and strings on their way into a payload or a file. Knows no type of value.
//!
//! ```text
//!   00LLLLLL                      a length of 6 bits
//!   01LLLLLL LLLLLLLL             of 14 bits
//!   10000000 four bytes           of 32 bits, big-endian
//!   10000001 eight bytes          of 64 bits
//!   11000000 / 01 / 02            a string that is an integer of 8, 16 or 32 bits, little-endian
//!   11000011 length length bytes  a string that is compressed: of how many bytes, to how many
//! ```

use super::lzf_compress;
use crate::resp::number::parse_i64;

/// Strings up to this length are looked at for being an integer, in bytes: 32 bits have no more digits and a sign.
const INT_LEN_MAX: usize = 11;
/// Strings up to this length are never compressed, in bytes.
const PLAIN_LEN_MAX: usize = 20;
/// What has at most so many bytes compressed needs no allocation.
const SHORT_LEN_MAX: usize = 128;
/// Bytes that compressing must save at least.
const SAVED_MIN: usize = 4;

/// The first bytes of special strings.
pub(super) const INT_8: u8 = 0;
pub(super) const INT_16: u8 = 1;
pub(super) const INT_32: u8 = 2;
pub(super) const COMPRESSED: u8 = 3;
pub(super) const SPECIAL: u8 = 0xC0;

/// Whether strings are compressed where that pays (`rdbcompression`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// They are.
    On,
    /// They are written as they are.
    Off,
}

/// Writes in Redis's format.
pub struct Writer<'s> {
    out: &'s mut Vec<u8>,
    compression: Compression,
}

impl<'s> Writer<'s> {
    /// A writer behind what is in `out`.
    pub fn new(out: &'s mut Vec<u8>, compression: Compression) -> Writer<'s> {
        Writer { out, compression }
    }

    /// Bytes as they are.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// One byte.
    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    /// A length, or any number that is mostly small.
    #[inline]
    pub fn length(&mut self, len: u64) {
        match len {
            0..=0x3F => self.byte(len as u8),
            0x40..=0x3FFF => self.raw(&[0x40 | (len >> 8) as u8, len as u8]),
            0x4000..=0xFFFF_FFFF => {
                self.byte(0x80);
                self.raw(&(len as u32).to_be_bytes());
            }
            _ => {
                self.byte(0x81);
                self.raw(&len.to_be_bytes());
            }
        }
    }

    /// A double in eight bytes.
    pub fn double(&mut self, number: f64) {
        self.raw(&number.to_le_bytes());
    }

    /// A string: as an integer, compressed or as it is, whichever is short.
    pub fn string(&mut self, text: &[u8]) {
        if text.len() <= INT_LEN_MAX
            && let Some(int) = parse_i64(text)
            && self.special_int(int)
        {
            return;
        }
        if self.compression == Compression::On && text.len() > PLAIN_LEN_MAX && self.compressed(text) {
            return;
        }
        self.length(text.len() as u64);
        self.raw(text);
    }

    /// Writes the string compressed, if that is shorter; tells whether it did.
    fn compressed(&mut self, text: &[u8]) -> bool {
        let len_max = text.len() - SAVED_MIN;
        let mut short = [0; SHORT_LEN_MAX];
        let mut long;
        let room = match short.get_mut(..len_max) {
            Some(room) => room,
            None => {
                long = vec![0; len_max];
                &mut long[..]
            }
        };
        let Some(len) = lzf_compress(text, room) else { return false };
        self.byte(SPECIAL | COMPRESSED);
        self.length(len as u64);
        self.length(text.len() as u64);
        self.raw(&room[..len]);
        true
    }

    /// A string that is the decimal form of a number.
    pub fn int_string(&mut self, int: i64) {
        if !self.special_int(int) {
            let mut digits = itoa::Buffer::new();
            let text = digits.format(int).as_bytes();
            self.length(text.len() as u64);
            self.raw(text);
        }
    }

    /// Writes the number, if it has at most 32 bits.
    fn special_int(&mut self, int: i64) -> bool {
        if let Ok(int) = i8::try_from(int) {
            self.raw(&[SPECIAL | INT_8, int as u8]);
        } else if let Ok(int) = i16::try_from(int) {
            self.byte(SPECIAL | INT_16);
            self.raw(&int.to_le_bytes());
        } else if let Ok(int) = i32::try_from(int) {
            self.byte(SPECIAL | INT_32);
            self.raw(&int.to_le_bytes());
        } else {
            return false;
        }
        true
    }
}
