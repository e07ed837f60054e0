//! SORT and SORT_RO: an index.

mod elements;
mod options;
mod order;
mod pattern;
mod run;
mod texts;

pub use run::{SORT, SORT_RO};
