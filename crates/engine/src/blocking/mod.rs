//! Commands that wait until a key holds something for them: an index.
//!
//! ```text
//!  the client's worker                                  the worker of whoever changes a key
//!  -------------------                                  ------------------------------------
//!  the keys' shards locked:                             a shard locked:
//!    the handler finds nothing: `Outcome::Wait`           the change finds waiters: the key is noted as ready
//!    the waiter joins its keys' queues                  nothing locked, before the next command:
//!  the batch stops, the connection is parked              for each waiter of a ready key, the longest waiting first:
//!                                                           all shards of its command locked:
//!      Waiting ---- the handler, run again, is done --------> Ended, it leaves the queues
//!         |
//!         +---- timeout, CLIENT UNBLOCK, disconnect --------> Ended, it leaves the queues
//!
//!  a letter to the connection: the reply is written, the connection goes on
//! ```
//!
//! Who ends the wait is decided under the waiter's own lock, so a client gets one answer and an element is taken for
//! it once. That lock is taken after those of shards and held together with nothing else. Between a change and the end
//! of the round that serves it, elements may lie in a key that clients wait for: a command that may wait and finds
//! others waiting waits behind them. The round sees it, as it goes on until the queue is at its end or the key is gone.

mod registry;
mod serve;
mod timeout;
mod timers;
mod waiter;

pub use registry::Blocking;
pub(crate) use serve::Parked;
pub use serve::{ReadyKey, Unblocking};
pub use timeout::Timeout;
pub(crate) use waiter::Waiter;
pub use waiter::{Outcome, Wait};
