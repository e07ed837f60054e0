//! The registers of a HyperLogLog unpacked, one a byte: what several sketches are merged into. Knows no encoding.

use super::Position;
use super::estimate::{Histogram, estimate};

/// How many registers a sketch has.
pub const REGISTERS: usize = 16_384;

/// The registers, one a byte.
pub struct Registers(Box<[u8; REGISTERS]>);

impl Default for Registers {
    fn default() -> Registers {
        Registers(Box::new([0; REGISTERS]))
    }
}

impl Registers {
    /// Makes a register at least this.
    pub fn raise(&mut self, position: Position) {
        let register = &mut self.0[position.register];
        *register = position.count.max(*register);
    }

    /// The registers that are not zero, in order.
    pub fn raised(&self) -> impl Iterator<Item = Position> {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(register, &count)| Position { register, count })
    }

    /// All of them, in order.
    pub fn counts(&self) -> &[u8] {
        &self.0[..]
    }

    pub(super) fn counts_mut(&mut self) -> &mut [u8] {
        &mut self.0[..]
    }

    /// About how many different elements were added.
    pub fn estimate(&self) -> u64 {
        let eights = self.0.as_chunks::<8>().0.iter();
        estimate(&Histogram::of_words(eights.map(|eight| u64::from_le_bytes(*eight))))
    }
}
