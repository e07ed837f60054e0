//! Commands on hashes: an index.

pub mod expire;
pub mod get;
pub mod get_change;
pub mod increment;
pub mod random;
pub mod remove;
pub mod set;
pub mod set_expire;
pub mod ttl;
pub mod whole;
