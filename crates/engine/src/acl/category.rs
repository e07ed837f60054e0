//! The categories that commands are allowed and refused by. Knows no user.

/// Every category, in Redis's order.
pub static CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// The category of this name, in any case.
pub fn category(name: &[u8]) -> Option<&'static str> {
    CATEGORIES.iter().find(|known| known.as_bytes().eq_ignore_ascii_case(name)).copied()
}
