//! Lengths and strings as the format writes them.
//!
//! ```text
//!   00LLLLLL                      a length of 6 bits
//!   01LLLLLL LLLLLLLL             of 14 bits
//!   10000000 four bytes           of 32 bits, big-endian
//!   10000001 eight bytes          of 64 bits
//!   11000000 / 01 / 02            a string that is an integer of 8, 16 or 32 bits, little-endian
//!   11000011 length length bytes  a string that is compressed: to how many bytes, of how many
//! ```

use super::lzf_decompress;

/// What a length's first byte says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Len {
    /// So many bytes, or elements.
    Plain(u64),
    /// No length: a special string of this kind.
    Special(u8),
}

/// Appends a length.
pub fn write_len(out: &mut Vec<u8>, len: usize) {
    match len {
        0..=0x3F => out.push(len as u8),
        0x40..=0x3FFF => out.extend_from_slice(&[0x40 | (len >> 8) as u8, len as u8]),
        0x4000..=0xFFFF_FFFF => {
            out.push(0x80);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
        _ => {
            out.push(0x81);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
}

/// A length, and what follows it.
pub fn read_len(input: &[u8]) -> Option<(Len, &[u8])> {
    let (&first, rest) = input.split_first()?;
    match first >> 6 {
        0 => Some((Len::Plain(u64::from(first)), rest)),
        1 => {
            let (&low, rest) = rest.split_first()?;
            Some((Len::Plain(u64::from(first & 0x3F) << 8 | u64::from(low)), rest))
        }
        2 if first == 0x80 => {
            let (len, rest) = rest.split_first_chunk()?;
            Some((Len::Plain(u32::from_be_bytes(*len).into()), rest))
        }
        2 if first == 0x81 => {
            let (len, rest) = rest.split_first_chunk()?;
            Some((Len::Plain(u64::from_be_bytes(*len)), rest))
        }
        2 => None,
        _ => Some((Len::Special(first & 0x3F), rest)),
    }
}

/// Appends a string as it is.
pub fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    write_len(out, text.len());
    out.extend_from_slice(text);
}

/// A string, and what follows it.
pub fn read_string(input: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let plain = |input| match read_len(input)? {
        (Len::Plain(len), rest) => Some((usize::try_from(len).ok()?, rest)),
        (Len::Special(_), _) => None,
    };
    let (len, rest) = read_len(input)?;
    match len {
        Len::Plain(len) => {
            let (text, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
            Some((text.to_vec(), rest))
        }
        Len::Special(0) => rest.split_first_chunk().map(|(n, rest)| (i8::from_le_bytes(*n).to_string().into(), rest)),
        Len::Special(1) => rest.split_first_chunk().map(|(n, rest)| (i16::from_le_bytes(*n).to_string().into(), rest)),
        Len::Special(2) => rest.split_first_chunk().map(|(n, rest)| (i32::from_le_bytes(*n).to_string().into(), rest)),
        Len::Special(3) => {
            let (compressed, rest) = plain(rest)?;
            let (len, rest) = plain(rest)?;
            let (bytes, rest) = rest.split_at_checked(compressed)?;
            Some((lzf_decompress(bytes, len)?, rest))
        }
        Len::Special(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_every_length_come_back() {
        for len in [0, 1, 63, 64, 16_383, 16_384, 100_000] {
            let text = vec![b'x'; len];
            let mut out = Vec::new();
            write_string(&mut out, &text);
            out.push(b'!');
            assert_eq!(read_string(&out), Some((text, &b"!"[..])));
            assert_eq!(read_string(&out[..len]), None);
        }
    }

    #[test]
    fn special_strings_are_read() {
        assert_eq!(read_string(b"\xC0\xFF").unwrap().0, b"-1");
        assert_eq!(read_string(b"\xC1\x00\x01").unwrap().0, b"256");
        assert_eq!(read_string(b"\xC2\x00\x00\x01\x00").unwrap().0, b"65536");
        assert_eq!(read_string(b"\xC3\x05\x0Fa\xE0\x05\x00").map(|(text, _)| text.len()), None);
        assert_eq!(read_string(b"\xC3\x05\x0F\x00a\xE0\x05\x00").unwrap().0, b"a".repeat(15));
        assert_eq!(read_string(b"\xC4"), None);
        assert_eq!(read_string(b"\x81\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"), None);
    }
}
