//! One client's bytes in, bytes out, no sockets: the two protocols, each over the engine.
#![forbid(unsafe_code)]

pub mod connection;
pub mod datagram;
mod filling;
pub mod flow;
pub mod memcache;
mod memcache_watch;
mod pending;
pub mod resp;

pub use connection::Connection;
pub use flow::{Ending, Flow};
