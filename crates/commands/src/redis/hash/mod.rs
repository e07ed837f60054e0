//! Commands on hashes: an index.

pub mod get;
pub mod increment;
pub mod random;
pub mod remove;
pub mod set;
pub mod whole;
