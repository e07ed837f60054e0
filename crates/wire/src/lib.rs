//! Bytes to frames and back: RESP2, RESP3, inline and memcached text. Knows no command, no socket and no store.
#![forbid(unsafe_code)]

pub mod out;

pub use out::OutBuf;
