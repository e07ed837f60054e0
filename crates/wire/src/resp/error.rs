//! What is wrong with a RESP stream, and what Redis says about it. Does not know how a reply is framed.

/// A stream that is no RESP; the connection is closed after the text is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The number of arguments is no number, or over the limit.
    InvalidMultibulkLength,
    /// The length of an argument is no number, negative or over the limit.
    InvalidBulkLength,
    /// An argument does not start with `$`, but with this byte.
    ExpectedDollar(u8),
    /// No line end where the number of arguments stands.
    MultibulkCountTooLong,
    /// No line end where the length of an argument stands.
    BulkCountTooLong,
    /// No line end within the limit of an inline command.
    InlineTooLong,
    /// A quote without its partner, or one with text right behind it.
    UnbalancedQuotes,
    /// A NUL byte in an inline command. Redis waits for ever after one, as if no line end could follow.
    NulInInline,
    /// More arguments than a client may send that has not authenticated.
    UnauthenticatedMultibulkLength,
    /// A longer argument than a client may send that has not authenticated.
    UnauthenticatedBulkLength,
    /// The bytes of one command outgrow what spans can reach (2 GiB); Redis closes at `client-query-buffer-limit`.
    CommandTooLong,
    /// A reply's first byte is none of RESP's types.
    UnknownType(u8),
    /// A reply's line is not of its type's form.
    InvalidValue,
    /// A reply nests deeper than the limit.
    NestedTooDeep,
}

impl ProtocolError {
    /// Appends the text for the client, without the error code `ERR`: `Protocol error: ...`.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"Protocol error: ");
        match *self {
            ProtocolError::ExpectedDollar(got) => {
                out.extend_from_slice(b"expected '$', got '");
                out.push(got);
                out.push(b'\'');
            }
            ProtocolError::UnknownType(got) => {
                out.extend_from_slice(b"unknown reply type '");
                out.push(got);
                out.push(b'\'');
            }
            ref fixed => out.extend_from_slice(fixed.fixed_text().as_bytes()),
        }
    }

    fn fixed_text(&self) -> &'static str {
        match self {
            ProtocolError::InvalidMultibulkLength => "invalid multibulk length",
            ProtocolError::InvalidBulkLength => "invalid bulk length",
            ProtocolError::MultibulkCountTooLong => "too big mbulk count string",
            ProtocolError::BulkCountTooLong => "too big bulk count string",
            ProtocolError::InlineTooLong => "too big inline request",
            ProtocolError::UnbalancedQuotes => "unbalanced quotes in request",
            ProtocolError::NulInInline => "NUL byte in inline request",
            ProtocolError::UnauthenticatedMultibulkLength => "unauthenticated multibulk length",
            ProtocolError::UnauthenticatedBulkLength => "unauthenticated bulk length",
            ProtocolError::CommandTooLong => "too big request",
            ProtocolError::InvalidValue => "invalid reply",
            ProtocolError::NestedTooDeep => "reply nested too deep",
            ProtocolError::ExpectedDollar(_) | ProtocolError::UnknownType(_) => "unexpected byte",
        }
    }
}

impl std::fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = Vec::new();
        self.write_to(&mut text);
        write!(f, "{}", text.escape_ascii())
    }
}

impl std::error::Error for ProtocolError {}
