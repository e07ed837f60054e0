//! The versions that the server gives itself.

/// Tenon's own version (`tenon_version` in INFO).
pub const TENON: &str = env!("CARGO_PKG_VERSION");

/// The Redis version whose clients find what they expect: they choose what to use by it (`version` in HELLO,
/// `redis_version` in INFO).
pub const REDIS: &str = "7.4.0";
