//! What a handler sees: a locked key, locked keys, its session, or the server. The recurring duties of reading and
//! changing a key (expiry on access, type check, access clock, watchers, statistics) are done here and nowhere else.

mod collection;
mod following;
mod key;
mod keys;
mod log;
mod server;
mod string;
mod write;

pub use crate::record::Word;
pub use collection::{Change, view_of};
pub use following::FollowingCx;
pub use key::KeyCx;
pub use keys::KeysCx;
pub(crate) use keys::Turn;
pub use server::{ServerCx, SessionCx};
pub use write::Deadline;
