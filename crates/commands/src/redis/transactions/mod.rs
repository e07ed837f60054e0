//! MULTI and its kin: an index.

pub mod multi;
pub mod watch;
