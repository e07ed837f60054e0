//! What a load sends and how it reads the replies. Knows no socket and no time.

use super::opening::Statement;
use anyhow::Result;

/// One thread's operations. Each thread has its own.
pub trait Workload: Send {
    /// What must be remembered of an operation until its reply.
    type Pending: Send;

    /// Names of the kinds of operations, whose latencies are kept apart.
    const KINDS: &'static [&'static str];

    /// What each connection to PostgreSQL prepares.
    fn statements(&self) -> Vec<Statement> {
        Vec::new()
    }

    /// Appends the first request of the next operation; `None`, with nothing appended, when there is none left, or none
    /// [for now](Workload::waits).
    fn begin(&mut self, out: &mut Vec<u8>) -> Option<Self::Pending>;

    /// Whether operations are left that wait for replies to others.
    fn waits(&self) -> bool {
        false
    }

    /// Reads the front of what has come as the reply to the operation's last request. A wrong one is an error.
    ///
    /// # Errors
    /// When the server answered what it must not.
    fn reply(&mut self, pending: &mut Self::Pending, input: &[u8], out: &mut Vec<u8>) -> Result<Reply>;
}

/// What lies at the front of the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The beginning of the reply.
    Incomplete,
    /// A reply of so many bytes, and with it the operation is done.
    Finished {
        /// Bytes of the reply.
        len: usize,
        /// Which of the [`Workload::KINDS`] it was.
        kind: usize,
        /// How many operations it counts as: a request for several keys is several.
        operations: u64,
    },
    /// A reply of so many bytes; the next one belongs to the operation as well.
    Partly {
        /// Bytes of the reply.
        len: usize,
    },
    /// A reply of so many bytes, after which the operation's next request has been appended.
    Continued {
        /// Bytes of the reply.
        len: usize,
    },
}
