//! Commands on places: an index.

pub mod add;
mod query;
pub mod read;
pub mod search;
mod unit;
