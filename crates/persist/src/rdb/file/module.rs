//! Values of modules, and what modules keep beside the keys: nothing of them is understood, but where they end can be
//! told. Knows no file.
//!
//! ```text
//!   module's number, then until the end's 0: 1 and a signed integer, 2 and an unsigned one, 3 and four bytes,
//!   4 and eight bytes, 5 and a string
//!
//!   number:  9 characters of 6 bits, and 10 bits of a version
//! ```

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

/// The name of the module's type that has this number.
pub(super) fn name_of(number: u64) -> String {
    let character = |place: u32| CHARACTERS[(number >> (VERSION_BITS + 6 * place)) as usize & 0x3F] as char;
    (0..NAME_LEN).rev().map(character).collect()
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
    fn parts_end_at_zero() {
        let bytes = b"\x01\x05\x02\x41\x00\x03abcd\x04abcdefgh\x05\x02hi\x00rest";
        let mut scan = Scan::new(bytes, 0);
        skip_parts(&mut scan).unwrap();
        assert_eq!(&bytes[scan.at()..], b"rest");
        assert!(matches!(skip_parts(&mut Scan::new(b"\x06", 0)), Err(Stop::Wrong(_))));
        assert!(matches!(skip_parts(&mut Scan::new(b"\x05\x02h", 0)), Err(Stop::More(4))));
    }
}
