//! `cargo xtask bench`: Tenon beside redis-server and memcached, on the same work in one run. Knows servers only by
//! their command lines, their sockets and what the kernel says about their processes.

mod callgrind;
mod case;
mod collections;
mod context;
mod cross_check;
mod growth;
mod load;
mod log_floor;
mod measure;
mod memcached;
mod memory;
mod persistence;
mod placement;
mod reach;
mod report;
mod resp;
mod runner;
mod servers;
mod throughput;
mod workers;

pub use context::Options;
pub use runner::run;
