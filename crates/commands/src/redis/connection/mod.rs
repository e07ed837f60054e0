//! Commands on the connection: an index.

pub mod auth;
pub mod client;
pub mod hello;
pub mod leave;
pub mod ping;
pub mod select;
