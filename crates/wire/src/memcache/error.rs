//! What is wrong with a request of memcached's text protocol, and what memcached says. Does not send it.

use crate::span::Span;

/// A request that is refused; the connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// No such verb, or not with so many arguments.
    Unknown,
    /// A key too long, or flags, exptime, length or CAS token that are no number in range.
    BadFormat,
    /// The data is not followed by CR LF where its length says.
    BadDataChunk,
    /// The data is longer than the server takes.
    TooLarge,
    /// The amount of `incr` or `decr` is no number.
    InvalidDelta,
    /// The expiry of `touch`, `gat`, `gats` or `flush_all` is no number.
    InvalidExptime,
    /// `delete` with something behind its key that it does not know.
    DeleteUsage,
}

impl RequestError {
    /// The line memcached 1.6 answers, without CR LF.
    pub const fn text(self) -> &'static str {
        match self {
            RequestError::Unknown => "ERROR",
            RequestError::BadFormat => "CLIENT_ERROR bad command line format",
            RequestError::BadDataChunk => "CLIENT_ERROR bad data chunk",
            RequestError::TooLarge => "SERVER_ERROR object too large for cache",
            RequestError::InvalidDelta => "CLIENT_ERROR invalid numeric delta argument",
            RequestError::InvalidExptime => "CLIENT_ERROR invalid exptime argument",
            RequestError::DeleteUsage => "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]",
        }
    }
}

impl std::fmt::Display for RequestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for RequestError {}

/// A refused request, and what is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub error: RequestError,
    /// The client wants no answer, not even this one: memcached keeps silent then.
    pub noreply: bool,
    /// The item under this key must go: a `set` that failed may not leave the old value behind, as in memcached.
    pub stale_key: Option<Span>,
}

/// A stream that cannot be followed any further: the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fatal {
    /// A line longer than the limit, and no multiget.
    LineTooLong,
    /// A browser's request: another protocol is not to be mistaken for commands.
    Http,
    /// The bytes of one request outgrow what spans can reach (2 GiB).
    RequestTooLong,
}

impl Fatal {
    /// What to tell the client before the connection is closed, without CR LF; nothing for what is no client.
    ///
    /// Memcached closes without a word on a long line.
    pub const fn text(self) -> Option<&'static str> {
        match self {
            Fatal::LineTooLong => Some("CLIENT_ERROR line too long"),
            Fatal::Http => None,
            Fatal::RequestTooLong => Some("SERVER_ERROR object too large for cache"),
        }
    }
}

impl std::fmt::Display for Fatal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text().unwrap_or("an HTTP request"))
    }
}

impl std::error::Error for Fatal {}
