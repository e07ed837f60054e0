//! What is asked of a load. Knows not what it sends.

use super::pace::{Draw, Pace};
use crate::target::Target;
use anyhow::Result;
use rustls::ClientConfig;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

/// A load on one server.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The server.
    pub target: &'a Target,
    /// How TLS is spoken, if it is.
    pub tls: Option<&'a Arc<ClientConfig>>,
    /// Connections over all threads.
    pub connections: usize,
    /// Most requests in flight on each connection.
    pub pipeline: usize,
    /// Whether operations wait for each other.
    pub pace: Pace,
    /// What operations of an open loop are due by.
    pub draw: Draw,
    /// When it ends.
    pub until: Until,
    /// Cores the threads may use; empty for all.
    pub cores: &'a [usize],
    /// Counts operations as they are answered, for who watches.
    pub progress: &'a AtomicU64,
    /// Set by who wants the load to end early, which makes it an error.
    pub stop: &'a AtomicBool,
}

/// When a load ends. What is in flight then is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After so many operations begun, shared out over the threads.
    Operations(u64),
    /// After so long.
    Elapsed(Duration),
    /// When the workloads have nothing more to send.
    Exhausted,
}

impl Until {
    /// When the same load ends that runs before it, so that a server is warm.
    pub fn warm(self) -> Until {
        match self {
            Until::Operations(operations) => Until::Operations(operations.div_ceil(WARM_UP)),
            Until::Elapsed(duration) => Until::Elapsed(duration / WARM_UP as u32),
            Until::Exhausted => Until::Exhausted,
        }
    }
}

/// A load is so many times longer than the one that warms its server up.
const WARM_UP: u64 = 6;

/// Who wants to look at the server just before the first request and just after the last reply, while all connections are
/// open.
pub trait Observer {
    /// All connections are open, nothing has been sent.
    ///
    /// # Errors
    /// When the server cannot be looked at; the load is given up.
    fn begins(&mut self) -> Result<()>;

    /// All replies have come.
    ///
    /// # Errors
    /// When the server cannot be looked at.
    fn ended(&mut self) -> Result<()>;
}

/// Nobody looks.
impl Observer for () {
    fn begins(&mut self) -> Result<()> {
        Ok(())
    }

    fn ended(&mut self) -> Result<()> {
        Ok(())
    }
}
