//! Small blocks in size classes of four bytes, for entries and tables. Knows nothing of what the blocks hold.
//!
//! General allocators round 56 bytes up to 64 and 1,030 up to 1,280; with a header of eight bytes on an entry, that
//! rounding would be most of what a key costs. Here a class exists for every multiple of four up to 1 KiB, and above
//! it one for every number of blocks that fit a span.
//!
//! ```text
//! chunk (4 MiB, aligned to 4 MiB, from the system)
//! +---------+---------+-- ... --+---------+
//! | span 0  | span 1  |         | span 15 |   256 KiB each: all blocks of one class, one owning heap
//! +---------+---------+-- ... --+---------+
//! span 0:  [ header 0 ][ header 1 ] ... [ header 15 ][ block ][ block ] ...       64 bytes a header
//! others:  [ block ][ block ] ...
//!
//! so a block's address, with its low 22 bits cleared, is that of its chunk, and bits 18 to 21 choose the header.
//! ```
//!
//! Where blocks of a class were freed here and there, their spans stay although little of them is used. Such spans can
//! be drained: they give out no more blocks, and whoever owns the blocks moves those that `is_draining` names.
//!
//! Every thread has a heap. A block that another thread frees goes onto its owner's `remote` stack (push one, take
//! all: no ABA), which the owner takes over and puts back, a part at a time, when it needs memory or calls
//! `collect_some`. The heap of a thread that ended is given to the next thread that starts.

mod block;
mod classes;
mod drain;
mod heap;
mod lease;
mod poison;
mod span;
mod spare;

pub use block::{alloc, collect, collect_some, free};
pub use classes::{SLAB_MAX, class_bytes, class_number, rounded};
pub use drain::{draining_spans, is_draining, may_be_draining, start_draining, stop_draining, waste};
pub use lease::waste_of_all;
pub use span::SPAN_BYTES;
pub use spare::{class_spans, release_ready, spans};
