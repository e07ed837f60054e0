//! Recorded requests of real caches: read from files, and the best that any cache could have done. Know no server.

mod belady;
mod read;
mod trace;

pub use belady::{Hits, best};
pub use read::{FORMS, read};
pub use trace::Trace;
