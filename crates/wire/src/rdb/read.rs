//! Numbers, lengths and strings out of a payload or a file, nothing of which is believed: no length reserves memory
//! before the bytes are there. Knows no type of value.

use super::lzf::lzf_decompress_in_pieces;
use super::lzf_decompress;
use super::write::{COMPRESSED, INT_8, INT_16, INT_32};
use std::borrow::Cow;
use std::fmt;

/// The most bytes that a string has: collections count them in 32 bits, with some to spare for what stands around.
pub const STRING_LEN_MAX: u64 = u32::MAX as u64 - 1024;

/// Compressed strings of more bytes are long.
const LONG_LEN_MIN: usize = 1 << 20;

/// Why something cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// It ends early.
    Truncated,
    /// It is not as it has to be: this.
    Malformed(&'static str),
    /// What is compressed in it would take more memory than it may.
    TooLarge,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReadError::Truncated => "it ends early",
            ReadError::Malformed(what) => what,
            ReadError::TooLarge => "it would take more memory than there is",
        })
    }
}

impl std::error::Error for ReadError {}

/// Where bytes come from: memory, or a file.
pub trait Source {
    /// The next `len` bytes.
    ///
    /// # Errors
    /// When there are not so many.
    fn take(&mut self, len: usize) -> Result<&[u8], ReadError>;

    /// How many bytes follow at most.
    fn left(&self) -> u64;
}

impl Source for &[u8] {
    fn take(&mut self, len: usize) -> Result<&[u8], ReadError> {
        let (taken, rest) = self.split_at_checked(len).ok_or(ReadError::Truncated)?;
        *self = rest;
        Ok(taken)
    }

    fn left(&self) -> u64 {
        self.len() as u64
    }
}

const NOT_COMPRESSED: ReadError = ReadError::Malformed("a string cannot be decompressed");

/// What a length's first byte says.
enum Len {
    /// So many bytes, or elements.
    Plain(u64),
    /// No length: a special string of this kind.
    Special(u8),
}

/// Reads Redis's format; see [`super::Writer`] for how things look.
pub struct Reader<'s> {
    source: &'s mut dyn Source,
    /// Bytes that may still be made of compressed strings.
    expansion_left: usize,
}

impl<'s> Reader<'s> {
    /// A reader of this source, which makes at most `expansion_max` bytes of compressed strings in all.
    pub fn new(source: &'s mut dyn Source, expansion_max: usize) -> Reader<'s> {
        Reader { source, expansion_left: expansion_max }
    }

    /// How many bytes follow at most.
    pub fn left(&self) -> u64 {
        self.source.left()
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// When there are not so many.
    pub fn raw(&mut self, len: usize) -> Result<&[u8], ReadError> {
        self.source.take(len)
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        self.source.take(N).map(|bytes| bytes.try_into().expect("so many were asked for"))
    }

    /// One byte.
    ///
    /// # Errors
    /// At the end.
    pub fn byte(&mut self) -> Result<u8, ReadError> {
        Ok(self.chunk::<1>()?[0])
    }

    fn any_len(&mut self) -> Result<Len, ReadError> {
        let first = self.byte()?;
        Ok(Len::Plain(match first {
            0..0x40 => first.into(),
            0x40..0x80 => u64::from(first & 0x3F) << 8 | u64::from(self.byte()?),
            0x80 => u32::from_be_bytes(self.chunk()?).into(),
            0x81 => u64::from_be_bytes(self.chunk()?),
            0x82..0xC0 => return Err(ReadError::Malformed("a length has no known form")),
            special => return Ok(Len::Special(special & 0x3F)),
        }))
    }

    /// A length, or any number that is mostly small.
    ///
    /// # Errors
    /// When there is none.
    pub fn length(&mut self) -> Result<u64, ReadError> {
        match self.any_len()? {
            Len::Plain(len) => Ok(len),
            Len::Special(_) => Err(ReadError::Malformed("a string stands in a length's place")),
        }
    }

    /// How many elements follow, each of `element_bytes` at least.
    ///
    /// # Errors
    /// When there is no room for so many.
    pub fn count(&mut self, element_bytes: u64) -> Result<usize, ReadError> {
        let count = self.length()?;
        let fits = count.checked_mul(element_bytes).is_some_and(|bytes| bytes <= self.left());
        usize::try_from(count).ok().filter(|_| fits).ok_or(ReadError::Truncated)
    }

    fn byte_len(&mut self) -> Result<usize, ReadError> {
        usize::try_from(self.length()?).map_err(|_| ReadError::Truncated)
    }

    /// A double in eight bytes.
    ///
    /// # Errors
    /// At the end.
    pub fn double(&mut self) -> Result<f64, ReadError> {
        self.chunk().map(f64::from_le_bytes)
    }

    /// A number of 64 bits in eight bytes.
    ///
    /// # Errors
    /// At the end.
    pub fn word(&mut self) -> Result<u64, ReadError> {
        self.chunk().map(u64::from_le_bytes)
    }

    /// A double as the first sorted sets have it: its digits behind their number, or one of three numbers alone.
    ///
    /// # Errors
    /// When it is none.
    pub fn text_double(&mut self) -> Result<f64, ReadError> {
        match self.byte()? {
            255 => Ok(f64::NEG_INFINITY),
            254 => Ok(f64::INFINITY),
            253 => Ok(f64::NAN),
            len => {
                let text = std::str::from_utf8(self.raw(len.into())?).ok();
                text.and_then(|text| text.parse().ok()).ok_or(ReadError::Malformed("a score is no number"))
            }
        }
    }

    /// A string.
    ///
    /// # Errors
    /// When there is none.
    pub fn string(&mut self) -> Result<Cow<'_, [u8]>, ReadError> {
        match self.any_len()? {
            Len::Special(COMPRESSED) => {
                let (bytes, len) = self.compressed()?;
                lzf_decompress(bytes, len).ok_or(NOT_COMPRESSED).map(Cow::Owned)
            }
            len => self.uncompressed(len),
        }
    }

    /// A string. A long one that is compressed is handed on in pieces instead, some of it also where it turns out to be none: it may
    /// be long, and mostly zeros.
    ///
    /// # Errors
    /// When there is none.
    pub fn string_or_pieces(&mut self, take: impl FnMut(&[u8])) -> Result<Option<Cow<'_, [u8]>>, ReadError> {
        match self.any_len()? {
            Len::Special(COMPRESSED) => {
                let (bytes, len) = self.compressed()?;
                if len <= LONG_LEN_MIN {
                    return lzf_decompress(bytes, len).ok_or(NOT_COMPRESSED).map(Cow::Owned).map(Some);
                }
                if lzf_decompress_in_pieces(bytes, len, take) { Ok(None) } else { Err(NOT_COMPRESSED) }
            }
            len => self.uncompressed(len).map(Some),
        }
    }

    fn uncompressed(&mut self, len: Len) -> Result<Cow<'_, [u8]>, ReadError> {
        let len = match len {
            Len::Plain(len) if len > STRING_LEN_MAX => return Err(ReadError::Malformed("a string is too long")),
            Len::Plain(len) => len,
            Len::Special(INT_8) => return Ok(digits(i8::from_le_bytes(self.chunk()?))),
            Len::Special(INT_16) => return Ok(digits(i16::from_le_bytes(self.chunk()?))),
            Len::Special(INT_32) => return Ok(digits(i32::from_le_bytes(self.chunk()?))),
            Len::Special(_) => return Err(ReadError::Malformed("a string has no known form")),
        };
        self.raw(usize::try_from(len).map_err(|_| ReadError::Truncated)?).map(Cow::Borrowed)
    }

    /// What is compressed, and to how many bytes it has to decompress.
    fn compressed(&mut self) -> Result<(&[u8], usize), ReadError> {
        let compressed = self.byte_len()?;
        let len = self.byte_len()?;
        if len as u64 > STRING_LEN_MAX {
            return Err(ReadError::Malformed("a string is too long"));
        }
        self.expansion_left = self.expansion_left.checked_sub(len).ok_or(ReadError::TooLarge)?;
        Ok((self.raw(compressed)?, len))
    }
}

fn digits(int: impl itoa::Integer) -> Cow<'static, [u8]> {
    Cow::Owned(itoa::Buffer::new().format(int).as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::super::{Compression, Writer};
    use super::*;

    fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out, Compression::On));
        out
    }

    fn string(mut bytes: &[u8]) -> Result<Vec<u8>, ReadError> {
        Reader::new(&mut bytes, 1 << 20).string().map(Cow::into_owned)
    }

    #[test]
    fn strings_of_every_length_come_back() {
        for len in [0, 1, 11, 20, 21, 63, 64, 16_383, 16_384, 100_000] {
            let mut random = 1u32;
            let mut next = || {
                random = random.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
                (random >> 24) as u8
            };
            let noise: Vec<u8> = (0..len).map(|_| next()).collect();
            for text in [vec![b'x'; len], noise] {
                let mut out = written(|writer| writer.string(&text));
                let end = out.len();
                out.push(b'!');
                let mut left = &out[..];
                assert_eq!(Reader::new(&mut left, len).string().unwrap(), text);
                assert_eq!(left, b"!");
                for at in (0..end).step_by(1 + end / 50) {
                    assert!(string(&out[..at]).is_err(), "{at} of {end} bytes");
                }
            }
        }
    }

    #[test]
    fn integers_are_short() {
        for (text, len) in [
            ("0", 2),
            ("-128", 2),
            ("128", 3),
            ("-32769", 5),
            ("2147483647", 5),
            ("-2147483648", 5),
            ("2147483648", 11),
            ("007", 4),
            ("-0", 3),
        ] {
            let out = written(|writer| writer.string(text.as_bytes()));
            assert_eq!((out.len(), string(&out).unwrap()), (len, text.into()));
            if let Some(int) = parse_canonical(text) {
                assert_eq!(written(|writer| writer.int_string(int)), out);
            }
        }
        let out = written(|writer| writer.int_string(i64::MIN));
        assert_eq!(string(&out).unwrap(), i64::MIN.to_string().into_bytes());
    }

    fn parse_canonical(text: &str) -> Option<i64> {
        text.parse::<i64>().ok().filter(|int| int.to_string() == text)
    }

    #[test]
    fn lengths_come_back() {
        for (len, bytes) in
            [(0, 1), (63, 1), (64, 2), (16_383, 2), (16_384, 5), (u32::MAX.into(), 5), (1 << 32, 9), (u64::MAX, 9)]
        {
            let out = written(|writer| writer.length(len));
            assert_eq!(out.len(), bytes);
            assert_eq!(Reader::new(&mut &out[..], 0).length(), Ok(len));
        }
    }

    #[test]
    fn nothing_is_believed() {
        assert_eq!(string(b"\xC3\x05\x0F\x00a\xE0\x05\x00").unwrap(), b"a".repeat(15));
        assert_eq!(string(b"\xC3\x05\x0Fa\xE0\x05\x00"), Err(ReadError::Truncated));
        assert!(string(b"\xC3\x05\x10\x00a\xE0\x05\x00").is_err());
        assert!(string(b"\xC4").is_err() && string(b"\x82").is_err() && string(b"").is_err());
        assert!(string(b"\x81\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF").is_err());
        assert_eq!(string(b"\x80\xFF\xFF\x00\x00"), Err(ReadError::Truncated));
        // A terabyte of compressed zeros, and more than the reader may make.
        assert!(string(b"\xC3\x01\x81\0\0\x01\0\0\0\0\0\0").is_err());
        let zeros = written(|writer| writer.string(&vec![0; 1_000]));
        assert_eq!(Reader::new(&mut &zeros[..], 999).string(), Err(ReadError::TooLarge));
        let twice = zeros.repeat(2);
        let mut left = &twice[..];
        let mut reader = Reader::new(&mut left, 1_500);
        assert!(reader.string().is_ok());
        assert_eq!(reader.string(), Err(ReadError::TooLarge));
        assert_eq!(Reader::new(&mut &b"\x05abcd"[..], 0).count(1), Err(ReadError::Truncated));
        assert_eq!(Reader::new(&mut &b"\x02abcd"[..], 0).count(2), Ok(2));
        assert_eq!(
            Reader::new(&mut &b"\x81\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"[..], 0).count(16),
            Err(ReadError::Truncated)
        );
    }

    #[test]
    fn doubles_in_both_forms() {
        let double = |mut bytes: &[u8]| Reader::new(&mut bytes, 0).text_double();
        assert_eq!(double(b"\x033.5"), Ok(3.5));
        assert_eq!((double(b"\xFE"), double(b"\xFF")), (Ok(f64::INFINITY), Ok(f64::NEG_INFINITY)));
        assert!(double(b"\xFD").unwrap().is_nan());
        assert!(double(b"\x033.").is_err() && double(b"\x02xy").is_err() && double(b"").is_err());
        let out = written(|writer| writer.double(-0.1));
        assert_eq!(Reader::new(&mut &out[..], 0).double(), Ok(-0.1));
        assert_eq!(Reader::new(&mut &out[..], 0).word(), Ok((-0.1f64).to_bits()));
    }
}
