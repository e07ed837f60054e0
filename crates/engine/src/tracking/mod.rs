//! CLIENT TRACKING: clients that keep what they have read are told when it changes. An index.

mod broadcast;
mod invalidate;
mod sessions;
mod table;
mod trackers;

pub(crate) use broadcast::Changes;
pub use sessions::{Caching, SessionTracking};
pub use trackers::{Echo, Mode, Tracker, Tracking};
