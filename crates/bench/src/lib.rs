//! tenon-bench: measures Tenon and its peers on the same work. Knows servers only by their sockets, their command lines
//! and what the kernel says about their processes.
#![forbid(unsafe_code)]

pub mod cli;
pub mod dialects;
pub mod examples;
pub mod experiments;
pub mod generators;
pub mod graphs;
pub mod key;
pub mod latency;
pub mod load;
pub mod login;
pub mod machine;
pub mod packed;
pub mod peers;
pub mod processes;
pub mod report;
pub mod results;
pub mod session;
pub mod target;
pub mod tls;
pub mod traces;
pub mod values;
pub mod workloads;
