//! The commands of Tenon, declared once, above their handlers. Knows no socket and no connection's bytes.
#![forbid(unsafe_code)]

mod docs;
pub mod memcache;
pub mod redis;

pub use docs::docs;
pub use redis::ALL;
