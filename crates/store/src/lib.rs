//! The keyspace of Tenon: entries, tables, expiry and eviction, without clock, I/O, threads or locks.

pub mod entry;
pub mod types;
