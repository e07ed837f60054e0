//! Strings and counters: an index.

pub mod get;
mod value;
