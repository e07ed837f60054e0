//! The meta commands, by file: an index.

pub mod arith;
mod asked;
pub mod debug;
pub mod delete;
pub mod get;
pub mod set;
