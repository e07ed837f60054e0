//! What is wrong with a request of memcached's text protocol, and what memcached says. Does not send it.

use super::request::StoreVerb;
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
    /// There is no memory to receive the data into.
    OutOfMemory,
    /// The amount of `incr` or `decr` is no number.
    InvalidDelta,
    /// The expiry of `touch`, `gat`, `gats` or `flush_all` is no number.
    InvalidExptime,
    /// `delete` with something behind its key that it does not know.
    DeleteUsage,
    /// A meta command with more flags than memcached takes.
    TooManyFlags,
    /// The same, as `mg` says it.
    TooManyGetFlags,
    /// A flag that was there before.
    DuplicateFlag,
    /// A flag that no meta command knows.
    UnknownFlag,
    /// Whatever is wrong with the flags of `md` and `ma`.
    BadFlags,
    /// A key that is said to be base64 and is not.
    BadEncodedKey,
    /// A flag whose argument is no number.
    BadFlagArgument,
    /// A mode that is no single character.
    BadModeLength,
    /// No mode of `ms`.
    UnknownSetMode,
    /// No mode of `ma`.
    UnknownArithmeticMode,
    /// The first value of a counter is no number.
    InvalidInitial,
    /// The amount of `ma` is no number.
    InvalidMetaDelta,
    /// More to be given back than memcached keeps.
    OpaqueTooLong,
}

impl RequestError {
    /// The line memcached 1.6 answers, without CR LF.
    pub const fn text(self) -> &'static str {
        match self {
            RequestError::Unknown => "ERROR",
            RequestError::BadFormat => "CLIENT_ERROR bad command line format",
            RequestError::BadDataChunk => "CLIENT_ERROR bad data chunk",
            RequestError::TooLarge => "SERVER_ERROR object too large for cache",
            RequestError::OutOfMemory => "SERVER_ERROR out of memory storing object",
            RequestError::InvalidDelta => "CLIENT_ERROR invalid numeric delta argument",
            RequestError::InvalidExptime => "CLIENT_ERROR invalid exptime argument",
            RequestError::DeleteUsage => "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]",
            RequestError::TooManyFlags => "CLIENT_ERROR options flags too long",
            RequestError::TooManyGetFlags => "CLIENT_ERROR options flags are too long",
            RequestError::DuplicateFlag => "CLIENT_ERROR duplicate flag",
            RequestError::UnknownFlag => "CLIENT_ERROR invalid flag",
            RequestError::BadFlags => "CLIENT_ERROR invalid or duplicate flag",
            RequestError::BadEncodedKey => "CLIENT_ERROR error decoding key",
            RequestError::BadFlagArgument => "CLIENT_ERROR bad token in command line format",
            RequestError::BadModeLength => "CLIENT_ERROR incorrect length for M token",
            RequestError::UnknownSetMode => "CLIENT_ERROR invalid mode for ms M token",
            RequestError::UnknownArithmeticMode => "CLIENT_ERROR invalid mode for ma M token",
            RequestError::InvalidInitial => "CLIENT_ERROR invalid numeric initial value",
            RequestError::InvalidMetaDelta => "CLIENT_ERROR invalid numeric delta value",
            RequestError::OpaqueTooLong => "CLIENT_ERROR opaque token too long",
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
    /// The write that it was and its key, where it was refused for its length or for lack of memory.
    pub write: Option<(StoreVerb, Span)>,
}

impl Refusal {
    /// The item under this key must go: a `set` that failed may not leave the old value behind, as in memcached.
    pub fn stale_key(&self) -> Option<Span> {
        self.write.and_then(|(verb, key)| (verb == StoreVerb::Set).then_some(key))
    }
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
