//! The append-only file of the running server: an index.
//!
//! ```text
//!   off -- CONFIG SET appendonly yes --> on, and lacks its base -- a rewrite is done --> on
//!   off <-- its files cannot be made --
//!   on  -- CONFIG SET appendonly no --> off
//!   start with appendonly yes, after loading --> on
//! ```
//!
//! Records go from the workers to the log (`tenon_journal::Log`), whose threads write and sync them. A rewrite is a
//! snapshot of one position of the log, which takes the place of all records before it.

mod hooks;
mod rewrite;
mod running;
mod switch;
mod task;

pub use rewrite::RewriteStart;
pub use running::{Aof, AofFigures};
