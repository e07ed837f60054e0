//! Strings as rows of bits and of small integers: an index.

pub mod bit;
pub mod bitfield;
pub mod bitop;
mod offset;
pub mod range;
