//! Transcripts, oracles and started servers for Tenon's tests. Knows no command.
#![forbid(unsafe_code)]

pub mod in_process;
pub mod info;
pub mod journal;
pub mod oracle;
pub mod patience;
pub mod ports;
pub mod random;
pub mod server;
pub mod slow_log;
pub mod target;
pub mod transcripts;
