//! Zipmaps, which small hashes were before Redis 2.6, read without believing anything in them.
//!
//! ```text
//! +-------+---------------------------------------------+-----+------+
//! | count | length  field  length  free  value  free B  | ... | 0xFF |    a count from 254 on says nothing
//! | 1 B   |                        1 B                  |     |      |    a length is one byte, or behind 254 four,
//! +-------+---------------------------------------------+-----+------+    little endian
//! ```

use super::DecodeError;
use super::elements::Expected;
use tenon_ds::packed::Item;

const COUNT_UNKNOWN_FROM: u8 = 254;
const LONG: u8 = 254;
const END: u8 = 0xFF;

/// Fields and values in turn, each of which may turn out to be wrong.
pub(super) struct Strings<'a> {
    left: &'a [u8],
    /// Pairs.
    expected: Expected,
    /// Whether the next is a value.
    is_value: bool,
}

impl<'a> Strings<'a> {
    /// The fields and values of the zipmap in these bytes.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Strings<'a>, DecodeError> {
        let (&count, rest) = bytes.split_first().ok_or(DecodeError::malformed("a zipmap has no header"))?;
        let Some((&END, left)) = rest.split_last() else {
            return Err(DecodeError::malformed("a zipmap has no end"));
        };
        Ok(Strings { left, expected: Expected((count < COUNT_UNKNOWN_FROM).then_some(count.into())), is_value: false })
    }

    fn read(&mut self) -> Option<Item<'a>> {
        let (&first, rest) = self.left.split_first()?;
        let (len, rest) = match first {
            LONG => {
                let (len, rest) = rest.split_first_chunk().map(|(len, rest)| (u32::from_le_bytes(*len), rest))?;
                // One byte would have done: whoever writes so wants something else.
                (usize::try_from(len).ok().filter(|len| *len >= LONG.into())?, rest)
            }
            END => return None,
            short => (short.into(), rest),
        };
        let (free, rest) =
            if self.is_value { rest.split_first().map(|(free, rest)| (*free, rest))? } else { (0, rest) };
        let (text, rest) = rest.split_at_checked(len)?;
        self.left = rest.get(free.into()..)?;
        self.is_value = !self.is_value;
        Some(Item::of(text))
    }
}

impl<'a> Iterator for Strings<'a> {
    type Item = Result<Item<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let is_there = if self.is_value { Ok(()) } else { self.expected.next(self.left)? };
        Some(is_there.and_then(|()| self.read().ok_or(DecodeError::malformed("a zipmap has a wrong string"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<Vec<u8>>, DecodeError> {
        Strings::new(bytes)?.map(|text| text.map(Item::to_vec)).collect()
    }

    #[test]
    fn fields_and_values_are_read() {
        // As Redis's source describes the format: "foo" => "bar", "hello" => "world".
        assert_eq!(
            all(b"\x02\x03foo\x03\x00bar\x05hello\x05\x00world\xff").unwrap(),
            [&b"foo"[..], b"bar", b"hello", b"world"]
        );
        // Free bytes behind a value that has become shorter, a long value, and an unknown count.
        let long = [&b"\xfe\x01a\xfe\x2c\x01\0\0\x02"[..], &[b'v'; 300], b"..\xff"].concat();
        assert_eq!(all(&long).unwrap(), [b"a".to_vec(), vec![b'v'; 300]]);
        assert_eq!(all(b"\x00\xff"), Ok(Vec::new()));
    }

    #[test]
    fn wrong_ones_are_refused() {
        let good = b"\x02\x03foo\x03\x00bar\x05hello\x05\x00world\xff";
        for at in 0..good.len() {
            assert!(all(&good[..at]).is_err());
            for wrong in [0, 1, 2, 0x7F, 0xFD, 0xFE, 0xFF] {
                let mut changed = good.to_vec();
                changed[at] = wrong;
                // Nothing panics.
                let _ = all(&changed);
            }
        }
        assert!(all(b"\x01\x03foo\xff").is_err(), "a field without a value");
        assert!(all(b"\x03\x03foo\x03\x00bar\xff").is_err(), "too few");
        assert!(all(b"\x00\x03foo\x03\x00bar\xff").is_err(), "too many");
        assert!(all(b"\x01\x03foo\x03\x09bar\xff").is_err(), "free bytes past the end");
        assert!(all(b"\x01\xfe\x03\0\0\0foo\x03\x00bar\xff").is_err(), "a length in needless bytes");
    }
}
