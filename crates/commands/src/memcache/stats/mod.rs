//! stats: what other tools read, by group: an index.

mod cachedump;
mod classes;
mod connections;
mod detail;
mod general;
mod lines;
mod settings;
pub mod show;

pub use show::{STATS, binary_stats, stats};
