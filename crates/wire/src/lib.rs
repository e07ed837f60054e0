//! Bytes to frames and back: RESP2, RESP3, inline, memcached's protocols, and pieces of RDB. Knows no command, no socket and no store.
#![forbid(unsafe_code)]

pub mod memcache;
pub mod out;
pub mod rdb;
pub mod resp;
pub mod span;

pub use out::{Mark, OutBuf};
pub use span::{ArgSpans, Place, Span};
