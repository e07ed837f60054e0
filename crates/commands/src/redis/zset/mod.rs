//! Commands on sorted sets: an index.

pub mod add;
pub(super) mod bounds;
pub mod combine;
mod combine_sources;
pub mod pop;
pub mod random;
pub mod range;
mod range_query;
pub mod rank;
pub mod read;
pub mod remove;
pub(super) mod scores;
