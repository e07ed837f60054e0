//! The state of all data at one moment, written while clients go on: an index.
//!
//! ```text
//!  a worker: begin       the scanner's thread: write_to               workers meanwhile
//!  ---------------       ------------------------------               -----------------
//!  all shards locked:    shard by shard, some keys each time:         before a key changes that is not written yet:
//!   the epoch flips,      a copy under the lock, written without it    a copy into the queue, or, where that would take
//!   at_moment runs       large values in slices                        long, the client waits until the scanner has it
//!                        the queue, in between
//! ```
//!
//! Which keys are not written yet is a bit of their entries (`store/src/keyspace/snapshot.rs`).

mod begin;
mod hand_over;
mod priority;
mod scanner;
mod shared;

pub(crate) use begin::KnownSnapshot;
pub use begin::{Begun, SnapshotOptions, Snapshots};
pub(crate) use hand_over::{CHANGES, has_due_members};
pub use priority::may_yield;
pub(crate) use priority::yield_to_workers;
pub use scanner::Report;
pub use shared::{Progress, Snapshot};
