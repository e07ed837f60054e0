//! Strings and counters: an index.

pub mod append;
mod condition;
pub mod counter;
pub mod digest;
pub mod get;
pub mod increx;
pub mod lcs;
pub mod mset;
pub(in crate::redis) mod options;
pub mod range;
pub mod set;
pub(super) mod value;
