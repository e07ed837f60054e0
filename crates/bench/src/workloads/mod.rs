//! What loads send. Know no socket and no server's name.

mod cycle;
mod disturbance;
mod key_value;
mod rank;
mod replay;
mod replies;
mod requests;
mod slots;
mod weblog;
pub mod ycsb;

pub use cycle::{Command, Cycle, Unexpected};
pub use disturbance::{Disturbance, Scale};
pub use key_value::{KeyValue, Keys, Misses, Mix, Spec, Tally};
pub use rank::{Ranking, Task, rank_key, targets_key};
pub use replay::Replay;
pub use replies::Language;
pub use requests::{Piece, Request};
pub use slots::Node;
pub use weblog::{Log, Step, WebLog};
