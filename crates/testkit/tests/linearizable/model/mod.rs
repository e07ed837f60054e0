//! The server as one thread would be it: keys, and what each command makes of them, in the simplest way that is right.

mod collections;
mod keys;
mod lists;
mod memcache;
mod state;
mod strings;

pub use state::State;
