//! Commands, sessions, contexts and dispatch over the sharded store.
pub mod config;
