//! RDB files, of every version from Redis 1.0's to those of Redis 8.8 and Valkey 9: an index.

mod batch;
mod cut;
mod error;
mod header;
pub(super) mod module;
pub(super) mod opcode;
mod record;
mod scan;
mod skip;
mod write;

pub use batch::{Batch, EntrySpan, Note, Usage};
pub use cut::{Cut, Cutter, Ending, OnModule, Options};
pub use error::{At, Cause, Doing, FileError};
pub use header::Header;
pub use write::{Access, FileOptions, FileWriter, Form, write_entry, write_slice};
