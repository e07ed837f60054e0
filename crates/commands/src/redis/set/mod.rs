//! Commands on sets: an index.

pub mod add;
pub mod combine;
pub mod expire;
pub mod members;
pub mod random;
pub mod ttl;
