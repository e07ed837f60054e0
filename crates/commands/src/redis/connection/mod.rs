//! Commands on the connection: an index.

pub mod ping;
pub mod select;
