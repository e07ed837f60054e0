//! What loads send. Know no socket and no server's name.

mod key_value;
pub mod ycsb;

pub use key_value::{KeyValue, Keys, Misses, Mix, Spec, Tally};
