//! Transcripts, oracles and started servers for Tenon's tests. Knows no command and no type of the server.
#![forbid(unsafe_code)]

pub mod server;
pub mod target;
pub mod transcripts;
