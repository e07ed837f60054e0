//! The versions that the server gives itself.

/// Tenon's own version (`tenon_version` in INFO).
pub const TENON: &str = env!("CARGO_PKG_VERSION");

/// The memcached version whose verbs are there.
pub const MEMCACHED: &str = "1.6.18";

/// The Redis version whose clients find what they expect: they choose what to use by it (`version` in HELLO,
/// `redis_version` in INFO).
pub const REDIS: &str = "7.4.0";
