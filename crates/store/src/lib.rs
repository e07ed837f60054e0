//! The keyspace of Tenon: entries, tables, expiry and eviction, without clock, I/O, threads or locks.

pub mod access;
pub mod entry;
pub mod evict;
pub mod hash;
pub mod keyspace;
pub mod shard;
pub mod types;

pub use tenon_ds::hash_table::Slot;
