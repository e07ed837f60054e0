//! Commands that wait until a key holds something for them: an index.
//!
//! ```text
//!  the client's worker                                  the worker of whoever changes a key
//!  -------------------                                  ------------------------------------
//!  the keys' shards locked:                             a shard locked:
//!    the handler finds nothing: `Outcome::Wait`           the change finds waiters: the key is noted as ready
//!    the waiter joins its keys' queues                    the command, transaction or script is done, still locked:
//!  the batch stops, the connection is parked                for each waiter of a ready key, the longest waiting first:
//!      Waiting ---- the handler, run again, is done --------> Ended, it leaves the queues
//!         |
//!         +---- timeout, CLIENT UNBLOCK, disconnect --------> Ended, it leaves the queues
//!
//!  a letter to the connection: the reply is written, the connection goes on
//! ```
//!
//! Who ends the wait is decided under the waiter's own lock, so a client gets one answer and an element is taken for
//! it once. That lock is taken after those of shards and held together with nothing else.
//!
//! A change and the serving of those who wait for it are one step for everybody else: whoever changes a key holds all
//! shards that serving needs before it begins. These are few. Of the keys that a client waits for, its command looks only
//! at the one that has changed, so the others' shards are not needed; it leaves their queues later. What it changes
//! beside that key is named by its arguments (the destination of BLMOVE), so its shard is known, and noted in the queue.
//! Whoever changes keys in a shard in which such clients wait locks those of the first ones too, and those that clients who
//! wait there need in turn (`Engine::lock_several`): in the order of their indexes, before anything has changed.
//!
//! A script touches shards of which it did not say so before. At its end it takes what serving needs as it took those:
//! see scripting/host.rs. Where it cannot, when a key is evicted, and where one change serves more than the first of a long
//! queue, keys are left that are ready while nothing is locked: they are served at once (`Engine::serve_left`), and until
//! then a command that may wait waits behind those in the queue.

mod copies;
mod end;
mod ready;
mod registry;
mod serve;
mod timeout;
mod timers;
mod waiter;

pub use copies::Copies;
pub use end::Unblocking;
pub use ready::{ReadyKey, ReadyKeys};
pub use registry::Blocking;
pub(crate) use serve::{Parked, Served};
pub use timeout::Timeout;
pub(crate) use waiter::Waiter;
pub use waiter::{Outcome, Wait};
