//! Data structures of Tenon: the only data crate that may use unsafe. Knows nothing of keys, commands or time.

pub mod apart;
pub mod bits;
pub mod blob;
pub mod extents;
pub mod glob;
pub mod hash_table;
pub mod heavy_hitters;
pub mod listpack;
pub mod looks;
pub mod low_water;
pub mod memory;
pub mod packed;
mod pages;
pub mod progress;
pub mod quicklist;
pub mod region;
pub mod ring;
pub mod scored_set;
pub mod six_bits;
pub mod slab;
pub mod timer_wheel;
pub mod turn_length;
