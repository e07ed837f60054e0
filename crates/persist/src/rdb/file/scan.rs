//! Passing over what stands in memory, as far as it is there. Whoever asks for more than that is told how much it is.

use super::super::DecodeError;
use std::borrow::Cow;
use tenon_wire::rdb::{ReadError, Reader};

/// Why one cannot go on.
#[derive(Debug)]
pub(super) enum Stop {
    /// So many bytes are needed, counted from where the scan began.
    More(u64),
    /// What stands there is wrong.
    Wrong(DecodeError),
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Stop {
        Stop::Wrong(DecodeError::Read(error))
    }
}

/// Whether a form of strings is followed by bytes, by how many, and what these are.
enum Form {
    Plain,
    Int,
    Compressed,
}

/// A place in bytes that are there.
pub(super) struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    /// The place `at` in these bytes.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Scan<'a> {
        Scan { bytes, at }
    }

    /// Another place in the same bytes.
    pub(super) fn clone_at(&self, at: usize) -> Scan<'a> {
        Scan { bytes: self.bytes, at }
    }

    /// Where it is now.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next `len` bytes.
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Stop> {
        let end = (self.at as u64).saturating_add(len as u64);
        match self.bytes.get(self.at..self.at.wrapping_add(len)) {
            Some(taken) => {
                self.at += len;
                Ok(taken)
            }
            None => Err(Stop::More(end)),
        }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        self.take(N).map(|bytes| bytes.try_into().expect("so many were asked for"))
    }

    pub(super) fn byte(&mut self) -> Result<u8, Stop> {
        let byte = *self.bytes.get(self.at).ok_or(Stop::More(self.at as u64 + 1))?;
        self.at += 1;
        Ok(byte)
    }

    /// The next byte, which stays where it is.
    pub(super) fn peek(&self) -> Result<u8, Stop> {
        self.bytes.get(self.at).copied().ok_or(Stop::More(self.at as u64 + 1))
    }

    /// A length.
    pub(super) fn length(&mut self) -> Result<u64, Stop> {
        Ok(match self.byte()? {
            short @ 0..0x40 => short.into(),
            high @ 0x40..0x80 => u64::from(high & 0x3F) << 8 | u64::from(self.byte()?),
            0x80 => u32::from_be_bytes(self.array()?).into(),
            0x81 => u64::from_be_bytes(self.array()?),
            _ => return Err(ReadError::Malformed("something else stands in a length's place").into()),
        })
    }

    /// How many elements follow, of so many bytes at least each.
    pub(super) fn count(&mut self, element_bytes: u64) -> Result<u64, Stop> {
        let count = self.length()?;
        let end = count.saturating_mul(element_bytes).saturating_add(self.at as u64);
        if end > self.bytes.len() as u64 { Err(Stop::More(end)) } else { Ok(count) }
    }

    fn any_string(&mut self) -> Result<(Form, &'a [u8]), Stop> {
        let (form, len) = match self.peek()? {
            0..0xC0 => (Form::Plain, self.length()?),
            int @ 0xC0..=0xC2 => {
                self.at += 1;
                (Form::Int, 1 << (int & 0x3F))
            }
            0xC3 => {
                self.at += 1;
                let compressed = self.length()?;
                self.length()?;
                (Form::Compressed, compressed)
            }
            _ => return Err(ReadError::Malformed("a string has no known form").into()),
        };
        let len = usize::try_from(len).map_err(|_| Stop::More(u64::MAX))?;
        self.take(len).map(|bytes| (form, bytes))
    }

    /// Passes over a string.
    pub(super) fn skip_string(&mut self) -> Result<(), Stop> {
        self.any_string().map(|_| ())
    }

    /// A string, or in its place its pieces ([`Reader::string_or_pieces`]).
    pub(super) fn string_or_pieces(&mut self, take: impl FnMut(&[u8])) -> Result<Option<Cow<'a, [u8]>>, Stop> {
        let from = self.at;
        match self.any_string()? {
            (Form::Plain, bytes) => Ok(Some(Cow::Borrowed(bytes))),
            (Form::Int | Form::Compressed, _) => {
                let mut encoded = &self.bytes[from..self.at];
                let text = Reader::new(&mut encoded, usize::MAX).string_or_pieces(take)?.map(Cow::into_owned);
                Ok(text.map(Cow::Owned))
            }
        }
    }

    /// A string.
    pub(super) fn string(&mut self) -> Result<Cow<'a, [u8]>, Stop> {
        let from = self.at;
        match self.any_string()? {
            (Form::Plain, bytes) => Ok(Cow::Borrowed(bytes)),
            // Rare, and written down once.
            (Form::Int | Form::Compressed, _) => {
                let mut encoded = &self.bytes[from..self.at];
                Ok(Reader::new(&mut encoded, usize::MAX).string()?.into_owned().into())
            }
        }
    }
}
