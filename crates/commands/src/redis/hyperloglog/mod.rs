//! Counting different elements in little memory: an index.

pub mod add;
pub mod count;
pub mod debug;
pub mod merge;
mod sketch;
