//! The dense encoding: 6 bits a register, the least significant bits of a byte first. Knows no header.
//!
//! ```text
//! +--------+--------+--------+--------+
//! |11000000|22221111|33333322|55444444| ...
//! +--------+--------+--------+--------+
//! ```

use super::estimate::Histogram;
use super::registers::REGISTERS;
use super::{Position, Registers};

/// Bytes of the registers.
pub(super) const LEN: usize = REGISTERS * 6 / 8;

/// One register of the packed bytes.
pub(super) fn get(bytes: &[u8], register: usize) -> u8 {
    let (group, shift) = place(register);
    (word(bytes, group) >> shift & 63) as u8
}

/// Sets one register of the packed bytes.
pub(super) fn set(bytes: &mut [u8], register: usize, count: u8) {
    let (group, shift) = place(register);
    let changed = word(bytes, group) & !(63 << shift) | u32::from(count & 63) << shift;
    bytes[group..group + 3].copy_from_slice(&changed.to_le_bytes()[..3]);
}

/// Four registers fill three bytes: where these begin, and by how many bits the register lies above their lowest.
fn place(register: usize) -> (usize, usize) {
    (register / 4 * 3, register % 4 * 6)
}

fn word(bytes: &[u8], group: usize) -> u32 {
    u32::from_le_bytes([bytes[group], bytes[group + 1], bytes[group + 2], 0])
}

/// The registers in order.
fn counts(bytes: &[u8]) -> impl Iterator<Item = u8> {
    let groups = bytes.as_chunks::<3>().0.iter();
    groups.flat_map(|&[low, middle, high]| {
        let word = u32::from_le_bytes([low, middle, high, 0]);
        [word, word >> 6, word >> 12, word >> 18].map(|shifted| (shifted & 63) as u8)
    })
}

/// How many registers have each value.
pub(super) fn histogram(bytes: &[u8]) -> Histogram {
    let mut histogram = Histogram::default();
    counts(bytes).for_each(|count| histogram.add(count, 1));
    histogram
}

/// Makes the registers at least these.
pub(super) fn merge_into(bytes: &[u8], registers: &mut Registers) {
    counts(bytes).enumerate().for_each(|(register, count)| registers.raise(Position { register, count }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_register_is_by_itself() {
        let mut bytes = vec![0; LEN];
        let count_of = |register: usize, round: usize| (register * 7 + round * 13 + register / 64) as u8 & 63;
        for round in 0..if cfg!(miri) { 1 } else { 10 } {
            for register in 0..REGISTERS {
                set(&mut bytes, register, count_of(register, round));
            }
            assert!((0..REGISTERS).all(|register| get(&bytes, register) == count_of(register, round)));
            assert!(counts(&bytes).eq((0..REGISTERS).map(|register| count_of(register, round))));
        }
        // As drawn above.
        let mut first = vec![0; LEN];
        set(&mut first, 1, 63);
        assert_eq!(first[..3], [0b1100_0000, 0b0000_1111, 0]);
    }
}
