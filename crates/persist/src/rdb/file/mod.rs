//! RDB files: an index.

mod opcode;
mod write;

pub use write::{Access, FileOptions, FileWriter, write_entry, write_slice};
