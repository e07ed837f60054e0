//! The dense encoding: 6 bits a register, the least significant bits of a byte first. Knows no header.
//!
//! ```text
//! +--------+--------+--------+--------+
//! |11000000|22221111|33333322|55444444| ...
//! +--------+--------+--------+--------+
//! ```

use super::Registers;
use super::estimate::Histogram;
use super::registers::REGISTERS;
use tenon_ds::six_bits;

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

/// How many registers have each value.
pub(super) fn histogram(bytes: &[u8]) -> Histogram {
    Histogram::of_words(six_bits::words(bytes))
}

/// Makes the registers at least these.
pub(super) fn merge_into(bytes: &[u8], registers: &mut Registers) {
    six_bits::raise(bytes, registers.counts_mut());
}

/// Makes the packed bytes these registers.
pub(super) fn pack(registers: &Registers, bytes: &mut [u8]) {
    six_bits::pack(registers.counts(), bytes);
}

#[cfg(test)]
mod tests {
    use super::super::Position;
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
            let counts = six_bits::words(&bytes).flat_map(u64::to_le_bytes);
            assert!(counts.eq((0..REGISTERS).map(|register| count_of(register, round))));

            let mut registers = Registers::default();
            (0..REGISTERS).step_by(3).for_each(|register| registers.raise(Position { register, count: 40 }));
            merge_into(&bytes, &mut registers);
            let raised =
                |register: usize| if register.is_multiple_of(3) { 40 } else { 0 }.max(count_of(register, round));
            assert!(registers.counts().iter().copied().eq((0..REGISTERS).map(raised)));
            let mut again = vec![0xff; LEN];
            pack(&registers, &mut again);
            assert!((0..REGISTERS).all(|register| get(&again, register) == raised(register)));
        }
        // As drawn above.
        let mut first = vec![0; LEN];
        set(&mut first, 1, 63);
        assert_eq!(first[..3], [0b1100_0000, 0b0000_1111, 0]);
    }
}
