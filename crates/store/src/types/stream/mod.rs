//! Streams: an index.

mod block;
mod counters;
mod delivery;
mod entries;
mod group;
mod id;
mod limits;
mod producers;
mod value;
mod varint;

pub use block::{Block, Entry};
pub use delivery::{Acknowledgement, Claim, Claimed, NotPending, Recount};
pub use entries::{Keep, Reach, TakenBlocks, Trim};
pub use group::{Consumer, ConsumerNumber, Group, Pending};
pub use id::StreamId;
pub use limits::StreamLimits;
pub use producers::{ProducerCounts, ProducerLimits, Producers};
pub use value::{Deletion, References, Stream, StreamState};
