//! Channels and their subscribers: an index.

mod registry;
mod sessions;

pub use registry::{PubSub, Scope};
pub use sessions::{Subscriptions, Topic};
