//! Commands on sorted sets: an index.

pub mod add;
pub mod blocking;
pub(super) mod bounds;
pub mod combine;
mod combine_sources;
pub mod expire;
pub mod pop;
pub mod random;
pub mod range;
mod range_query;
pub mod rank;
pub mod read;
pub mod remove;
pub(super) mod scores;
pub mod ttl;
