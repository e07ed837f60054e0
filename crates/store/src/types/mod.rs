//! The values that are objects of their own (strings too long for their entry now, collections later), and what strings
//! can be read as.

pub mod bitfield;
pub mod bitmap;
pub mod hll;
mod object;
mod rope;

pub use object::Object;
pub use rope::{CHUNK_LEN, Rope};
