//! Commands, sessions, contexts and dispatch over the sharded store. Knows no socket, and no command by name.
#![forbid(unsafe_code)]

pub mod args;
pub mod auth;
pub mod batch;
pub mod blocking;
mod client_eviction;
pub mod clients;
pub mod clock;
pub mod command;
mod compact;
pub mod config;
pub mod context;
pub mod engine;
pub mod errors;
pub mod execute;
mod expire;
pub mod flush;
pub mod flush_schedule;
pub mod info;
pub mod keys;
pub mod latency;
pub mod long_double;
mod memory;
mod natural;
pub mod notify;
pub mod outbox;
pub mod pause;
pub mod pubsub;
pub mod rates;
pub mod reaper;
pub mod session;
pub mod shards;
pub mod slowlog;
pub mod stats;
pub mod string;
pub mod table;
pub mod transaction;
pub mod unsent;
pub mod version;
pub mod watch;
pub mod worker;

pub use engine::Engine;
pub use tenon_ds as ds;
pub use tenon_store as store;
pub use tenon_wire as wire;
