//! What the loop keeps for one connection beside the service's state. Knows no protocol.

use super::held::Held;
use super::io::{Event, Io};
use super::service::{CloseReason, ConnectionId};
use std::time::Instant;

/// One connection, as the loop sees it.
pub(super) struct Connection<C, S> {
    pub(super) socket: S,
    /// Taken out while a call with it runs.
    pub(super) state: Option<C>,
    /// Replies that wait for the log; they leave behind whatever the socket has not sent.
    pub(super) held: Held,
    pub(super) id: ConnectionId,
    pub(super) phase: Phase,
    pub(super) intake: Intake,
    /// What has happened to it, while it waits for its turn among those that take long.
    pub(super) in_slow_lane: Option<Event>,
    /// Up to where the log has to be on disk for what was done and not answered: the next reply confirms that, too. 0: nothing.
    pub(super) silent_until: u64,
    /// When bytes last came or went.
    pub(super) active_at: Instant,
    /// How much unsent output the service knows of, in bytes.
    pub(super) unsent_noted: usize,
    /// How much of that was counted as sent when the socket was given it, in bytes, and then came back; or is what TLS adds.
    pub(super) sent_ahead: usize,
    /// Since when the unsent output has been over its soft limit.
    pub(super) over_soft_since: Option<Instant>,
}

impl<C, S> Connection<C, S> {
    /// The service's state.
    ///
    /// # Panics
    /// While a call with it runs.
    #[inline]
    pub(super) fn state(&self) -> &C {
        self.state.as_ref().expect("a connection is left alone while a call with it runs")
    }

    /// Bytes of output that have not left yet.
    #[inline]
    pub(super) fn unsent(&self, io: &impl Io<Socket = S>) -> usize {
        io.unsent(&self.socket) + self.held.bytes()
    }

    /// Bytes of memory that they take.
    pub(super) fn unsent_memory(&self, io: &impl Io<Socket = S>) -> usize {
        io.unsent_memory(&self.socket) + self.held.bytes()
    }
}

/// Where a connection's input goes.
///
/// ```text
///   Handshake
///     | its end
///     v
///   Buffer -- Fill --> Room -- the value is whole --> Head -- Fill --> Room
///     ^                                                 |
///     +------- more than a head came and no value ------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intake {
    /// To the connection's TLS, which takes long over it.
    Handshake,
    /// Into the worker's buffer.
    Buffer,
    /// To where the service has room for it: it is part of a long value.
    Room,
    /// Only its head into a small buffer: a long value has just come, and if this is another one, most of it should go where
    /// it will stay, not through a buffer.
    Head,
}

/// What a connection is waiting for.
///
/// ```text
///            Drain               enough output left: resume
///   Open ------------> Draining ------------------------------> Open
///   Open ---- Park --> Parked ---- a message says Continue: resume --> Open
///   any ---- CloseAfterFlush, end of input --> Flushing ---- all output left --> closed
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// For input.
    Open,
    /// For room in its output, then to be resumed.
    Draining,
    /// For a message.
    Parked,
    /// For its output to leave, then to be closed for this reason.
    Flushing(CloseReason),
}
