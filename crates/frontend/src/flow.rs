//! What a connection asks of whoever moves its bytes.

/// What is to happen to a connection after it has seen bytes, a message or a drained output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on: send what was written, read more.
    Continue,
    /// The same; what comes next is part of a long value, and may be put where it will stay: into `room`.
    Fill,
    /// Send what was written; read nothing and deliver nothing until so much output has left that there is room for
    /// more, then call `resume`. A client that sends and does not read is slowed down by this.
    Drain,
    /// Send what was written; read nothing until a message for this connection says otherwise, then call `resume`.
    Park,
    /// Send what was written; the connection goes on with whatever it was doing. Said of messages alone.
    Stay,
    /// Send what was written, then close.
    CloseAfterFlush,
    /// Close at once; what was not sent is lost.
    Close,
}

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The client has ended it.
    Normal,
    /// The socket failed, the client was cut, or nobody understands it.
    Error,
    /// The client was silent for too long.
    IdleTimeout,
    /// The server ends.
    Shutdown,
}
