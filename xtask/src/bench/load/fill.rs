//! Storing every key once, as fast as a server takes it, before something is measured. Knows a server by its address only.

use super::drive::{Load, Plan, run};
use super::requests::{Operation, Protocol};
use anyhow::Result;
use std::net::SocketAddr;

/// Few connections with much in flight: little time goes into system calls. What is in flight of the longest values stays
/// below what makes a server keep large buffers.
const CONNECTIONS: usize = 8;
const PIPELINE: usize = 64;

/// Stores each of the first `keys` keys once with `operation`, from one thread on one of these cores.
pub fn fill(address: SocketAddr, protocol: Protocol, operation: Operation, keys: u64, cores: &[usize]) -> Result<()> {
    let plan = Plan::EachOnce { keys };
    run(&Load { address, protocol, operation, plan, connections: CONNECTIONS, threads: 1, pipeline: PIPELINE, cores })
        .map(drop)
}
