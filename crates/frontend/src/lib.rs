//! One client's bytes in, bytes out, no sockets.
#![forbid(unsafe_code)]

pub mod flow;

pub use flow::Flow;
