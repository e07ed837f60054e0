//! Passwords as they are kept: their SHA-256 alone. Knows no user.

use sha2::{Digest, Sha256};
use std::fmt::{self, Display, Formatter, Write};

const BYTES: usize = 32;

/// A password's hash. Comparing two takes the same time whether they differ early, late or not at all.
#[derive(Clone, Debug)]
pub struct PasswordHash([u8; BYTES]);

impl PasswordHash {
    /// The hash of a password.
    pub fn of(password: &[u8]) -> PasswordHash {
        PasswordHash(Sha256::digest(password).into())
    }

    /// A hash written as 64 hexadecimal digits, the letters small.
    pub fn parse(digits: &[u8]) -> Option<PasswordHash> {
        from_hex(digits).map(PasswordHash)
    }

    /// The hash itself.
    pub(super) fn bytes(&self) -> [u8; BYTES] {
        self.0
    }
}

/// Bytes that are written as two hexadecimal digits each, the letters small.
pub fn from_hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 2 * N || !digits.iter().all(is_digit) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

impl PartialEq for PasswordHash {
    fn eq(&self, other: &PasswordHash) -> bool {
        let different = self.0.iter().zip(other.0).fold(0, |different, (one, two)| different | (one ^ two));
        // Hides from the optimiser that the first difference decides already.
        std::hint::black_box(different) == 0
    }
}

impl Eq for PasswordHash {}

impl Display for PasswordHash {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(2 * BYTES);
        for byte in self.0 {
            write!(text, "{byte:02x}")?;
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_read_as_they_are_written() {
        let hash = PasswordHash::of(b"test");
        let text = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        assert_eq!(hash.to_string(), text);
        assert_eq!(PasswordHash::parse(text.as_bytes()), Some(hash.clone()));
        assert_ne!(PasswordHash::of(b"tesu"), hash);
        for wrong in ["", "9f", &text.to_uppercase(), &text[1..], &format!("{text}0"), &text.replace('9', "+")] {
            assert_eq!(PasswordHash::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
