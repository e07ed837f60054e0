//! tenon-bench: measures Tenon and its peers on the same work. Knows servers only by their sockets, their command lines
//! and what the kernel says about their processes.
#![forbid(unsafe_code)]

pub mod generators;
pub mod latency;
