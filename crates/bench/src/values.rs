//! What is stored under a key, so that what is read back can be checked. Knows no protocol.

use crate::generators::Random;
use std::sync::Arc;

/// The contents of all values: each is a piece of one long text, from a place that its key decides.
#[derive(Clone, Debug)]
pub struct Values {
    text: Arc<[u8]>,
}

/// Different keys begin at so many places.
const PLACES: u64 = 1 << 16;

impl Values {
    /// For values of up to `len_max` bytes. All are printable, and hold nothing that JSON or a log line would escape.
    pub fn new(len_max: usize) -> Values {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut random = Random::new(0);
        Values { text: (0..PLACES as usize + len_max).map(|_| LETTERS[random.below(64) as usize]).collect() }
    }

    /// The value of this length under the key of this number.
    #[inline]
    pub fn of(&self, number: u64, len: usize) -> &[u8] {
        // Fibonacci hashing: neighbouring keys have values from far apart.
        let place = (number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as usize;
        &self.text[place..place + len]
    }
}

/// How long the values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// The shortest.
    pub min: usize,
    /// The longest.
    pub max: usize,
}

impl Lengths {
    /// All alike.
    pub fn fixed(len: usize) -> Lengths {
        Lengths { min: len, max: len }
    }

    /// The length of a key's value, the same each time.
    #[inline]
    pub fn of(self, number: u64) -> usize {
        if self.min == self.max {
            return self.min;
        }
        let spread = (self.max - self.min + 1) as u64;
        self.min + (number.wrapping_add(7).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 32) as usize % spread as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_tell_their_keys_apart() {
        let values = Values::new(100);
        let clashes = (1..1_000).filter(|number| values.of(*number, 32) == values.of(0, 32)).count();
        assert_eq!(clashes, 0);
        assert_eq!(values.of(5, 100), values.clone().of(5, 100));
        assert!(values.of(7, 100).iter().all(u8::is_ascii_graphic));
    }

    #[test]
    fn lengths_stay_in_their_range_and_fill_it() {
        let lengths = Lengths { min: 10, max: 20 };
        let mut seen: Vec<usize> = (0..1_000).map(|number| lengths.of(number)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (10..=20).collect::<Vec<_>>());
        assert_eq!(Lengths::fixed(8).of(3), 8);
    }
}
