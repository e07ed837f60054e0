//! What an example of a command is. Knows none.

use crate::target::Protocol;

/// A command as it is measured.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// What it is spoken in.
    pub protocol: Protocol,
    /// The command, or the few that take turns.
    pub command: &'static str,
    /// What it works on.
    pub on: &'static str,
    /// [Templates](super::template) of what is stored first.
    pub stock: &'static [&'static str],
    /// What is sent over and over.
    pub turn: &'static [Step],
    /// Requests that are sent before the first one's reply is waited for.
    pub in_flight: usize,
}

/// A [template](super::template), and the first line of what answers each of its commands, or its beginning and a `*`;
/// a `*` alone stands for all that is no error.
pub type Step = (&'static str, &'static str);

/// Requests in flight where an example does not say otherwise.
const IN_FLIGHT: usize = 64;

/// One of RESP.
pub const fn resp(
    command: &'static str,
    on: &'static str,
    stock: &'static [&'static str],
    turn: &'static [Step],
) -> Example {
    Example { protocol: Protocol::Resp, command, on, stock, turn, in_flight: IN_FLIGHT }
}

/// One of memcached's text protocol.
pub const fn text(
    command: &'static str,
    on: &'static str,
    stock: &'static [&'static str],
    turn: &'static [Step],
) -> Example {
    Example { protocol: Protocol::Text, ..resp(command, on, stock, turn) }
}

/// One of memcached's meta commands.
pub const fn meta(
    command: &'static str,
    on: &'static str,
    stock: &'static [&'static str],
    turn: &'static [Step],
) -> Example {
    Example { protocol: Protocol::Meta, ..resp(command, on, stock, turn) }
}

impl Example {
    /// With fewer in flight, as their replies are long or each takes long.
    pub const fn in_flight(self, in_flight: usize) -> Example {
        Example { in_flight, ..self }
    }
}
