//! The commands of Tenon, declared once, above their handlers. Knows no socket and no connection's bytes.
#![forbid(unsafe_code)]

pub mod memcache;
pub mod redis;

pub use redis::ALL;
