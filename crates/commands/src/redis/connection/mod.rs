//! Commands on the connection: an index.

pub mod ping;
