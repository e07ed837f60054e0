//! The names of keys. Knows no protocol.

use crate::generators::fnv_hash;
use std::ops::Deref;

/// A key's text, without an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    bytes: [u8; Key::LEN_MAX],
    len: u8,
}

impl Key {
    const LEN_MAX: usize = 31;

    /// Bytes of every plain key.
    pub const PLAIN_LEN: usize = 16;

    /// `key:` and twelve digits, as redis-benchmark writes them.
    #[inline]
    pub fn plain(number: u64) -> Key {
        let mut bytes = [0; Key::LEN_MAX];
        bytes[..4].copy_from_slice(b"key:");
        write_digits(&mut bytes[4..Key::PLAIN_LEN], number);
        Key { bytes, len: Key::PLAIN_LEN as u8 }
    }

    /// `user` and the number's hash, as YCSB names its records.
    #[inline]
    pub fn record(number: u64) -> Key {
        let mut bytes = [0; Key::LEN_MAX];
        bytes[..4].copy_from_slice(b"user");
        let hash = fnv_hash(number);
        let digits = hash.checked_ilog10().unwrap_or(0) as usize + 1;
        write_digits(&mut bytes[4..4 + digits], hash);
        Key { bytes, len: 4 + digits as u8 }
    }

    /// Any text of up to 31 bytes.
    pub fn of(text: &[u8]) -> Key {
        let mut bytes = [0; Key::LEN_MAX];
        bytes[..text.len()].copy_from_slice(text);
        Key { bytes, len: text.len() as u8 }
    }
}

impl Deref for Key {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Fills `digits` with the number's last ones.
#[inline]
fn write_digits(digits: &mut [u8], number: u64) {
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_redis_benchmark_and_ycsb() {
        assert_eq!(&Key::plain(42)[..], b"key:000000000042");
        assert_eq!(&Key::record(0)[..], b"user6284781860667377211");
        assert_eq!(&Key::record(2)[..], b"user1820151046732198393");
        assert_eq!(&Key::of(b"abc")[..], b"abc");
    }
}
