//! A small synchronous client for RESP and memcached servers. Knows no command's meaning beyond what a connection needs.
#![forbid(unsafe_code)]

pub mod address;
pub mod memcache;
pub mod resp;
pub mod stream;

pub use address::Address;
pub use memcache::Memcache;
pub use resp::Resp;
pub use stream::Stream;
pub use tenon_wire::resp::value::{Value, ValueDecoder, ValueLimits};
