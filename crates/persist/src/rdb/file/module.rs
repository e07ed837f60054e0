//! Values of modules, and what modules keep of keys and beside them: nothing of it is understood, but where it ends can
//! be told. Knows no file.
//!
//! ```text
//!   module's number, then until the end's 0: 1 and a signed integer, 2 and an unsigned one, 3 and four bytes,
//!   4 and eight bytes, 5 and a string
//!
//!   number:  9 characters of 6 bits, and 10 bits of a version
//!
//!   metadata of a key: how many classes; each: 4 bytes of its number (little endian), parts as above up to the end's 0
//!
//!   class's number:  4 characters of 6 bits, 5 bits of a version, 3 flags: with the lowest it may be left out
//! ```

use super::super::DecodeError;
use super::scan::{Scan, Stop};
use tenon_wire::rdb::ReadError;

const END: u64 = 0;
const SIGNED: u64 = 1;
pub(super) const UNSIGNED: u64 = 2;
const FLOAT: u64 = 3;
const DOUBLE: u64 = 4;
const STRING: u64 = 5;

const NAME_LEN: u32 = 9;
const VERSION_BITS: u32 = 10;
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const CLASS_NAME_LEN: u32 = 4;
const CLASS_VERSION_AND_FLAG_BITS: u32 = 8;
const MAY_BE_LEFT_OUT: u32 = 1;
/// So many classes there are in Redis at most.
const CLASSES_MAX: u64 = 7;

/// What modules keep of a key.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::rdb) struct Metadata {
    /// The names of its classes.
    pub(in crate::rdb) classes: Vec<String>,
    /// The first of them that may not be left out.
    pub(in crate::rdb) needed: Option<String>,
}

/// The name of the module's type that has this number.
pub(super) fn name_of(number: u64) -> String {
    characters(number >> VERSION_BITS, NAME_LEN)
}

fn characters(number: u64, len: u32) -> String {
    (0..len).rev().map(|place| CHARACTERS[(number >> (6 * place)) as usize & 0x3F] as char).collect()
}

/// Passes over what modules keep of a key.
pub(super) fn skip_metadata(scan: &mut Scan<'_>) -> Result<Metadata, Stop> {
    let count = scan.length()?;
    if count > CLASSES_MAX {
        return Err(ReadError::Malformed("a key has metadata of more classes than there can be").into());
    }
    let mut metadata = Metadata { classes: Vec::new(), needed: None };
    for _ in 0..count {
        let number = u32::from_le_bytes(scan.array()?);
        let name = characters(u64::from(number >> CLASS_VERSION_AND_FLAG_BITS), CLASS_NAME_LEN);
        if number & MAY_BE_LEFT_OUT == 0 && metadata.needed.is_none() {
            metadata.needed = Some(name.clone());
        }
        metadata.classes.push(name);
        skip_parts(scan)?;
    }
    Ok(metadata)
}

/// What modules keep of a key, and what follows it.
pub(in crate::rdb) fn split_metadata(bytes: &[u8]) -> Result<(Metadata, &[u8]), DecodeError> {
    let mut scan = Scan::new(bytes, 0);
    match skip_metadata(&mut scan) {
        Ok(metadata) => Ok((metadata, &bytes[scan.at()..])),
        Err(Stop::More(_)) => Err(ReadError::Truncated.into()),
        Err(Stop::Wrong(error)) => Err(error),
    }
}

/// Passes over what stands behind a module's number, its end included.
pub(super) fn skip_parts(scan: &mut Scan<'_>) -> Result<(), Stop> {
    loop {
        match scan.length()? {
            END => return Ok(()),
            SIGNED | UNSIGNED => _ = scan.length()?,
            FLOAT => _ = scan.take(4)?,
            DOUBLE => _ = scan.take(8)?,
            STRING => scan.skip_string()?,
            _ => return Err(ReadError::Malformed("a module's value has a part of no known kind").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_nine_characters() {
        // What RedisBloom writes with its filters.
        let number = b"MBbloom--".iter().fold(0u64, |number, character| {
            number << 6 | CHARACTERS.iter().position(|known| known == character).unwrap() as u64
        });
        assert_eq!(name_of(number << VERSION_BITS | 4), "MBbloom--");
    }

    #[test]
    fn metadata_is_split_off() {
        // What Redis 8.6.3 writes: version 1 and a flag, version 3 and none.
        let bytes = b"\x02\x09\xf5\xc4\x28\x05\x04kept\x02\x01\x00\x18\xf6\xc4\x28\x03\x00\x00\xc0\x3f\x00rest";
        let (metadata, rest) = split_metadata(bytes).unwrap();
        assert_eq!(metadata.classes, ["KMT1", "KMT2"]);
        assert_eq!(metadata.needed.as_deref(), Some("KMT2"));
        assert_eq!(rest, b"rest");
        for len in 0..bytes.len() - rest.len() {
            assert_eq!(split_metadata(&bytes[..len]), Err(DecodeError::Read(ReadError::Truncated)), "{len} bytes");
        }
        let none = Metadata { classes: Vec::new(), needed: None };
        assert_eq!(split_metadata(b"\x00"), Ok((none, &b""[..])));
        for wrong in [&b"\x08"[..], b"\x81\0\0\x01\0\0\0\0\0", b"\xc0\x01", b"\x01abcd\x06"] {
            assert!(matches!(split_metadata(wrong), Err(DecodeError::Read(ReadError::Malformed(_)))), "{wrong:?}");
        }
    }

    #[test]
    fn parts_end_at_zero() {
        let bytes = b"\x01\x05\x02\x41\x00\x03abcd\x04abcdefgh\x05\x02hi\x00rest";
        let mut scan = Scan::new(bytes, 0);
        skip_parts(&mut scan).unwrap();
        assert_eq!(&bytes[scan.at()..], b"rest");
        assert!(matches!(skip_parts(&mut Scan::new(b"\x06", 0)), Err(Stop::Wrong(_))));
        assert!(matches!(skip_parts(&mut Scan::new(b"\x05\x02h", 0)), Err(Stop::More(4))));
    }
}
