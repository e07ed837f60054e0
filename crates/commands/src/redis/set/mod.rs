//! Commands on sets: an index.

pub mod add;
pub mod combine;
pub mod members;
pub mod random;
