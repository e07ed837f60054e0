//! The values that are objects of their own: strings too long for their entry now, collections later.

mod object;
mod rope;

pub use object::Object;
pub use rope::{CHUNK_LEN, Rope};
