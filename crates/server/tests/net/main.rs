//! The event loop against real sockets on loopback, with a service that echoes lines. Knows no Tenon command.

mod closing;
mod datagrams;
mod echo;
mod harness;
mod holding;
mod lending;
mod limits;
mod moving;
mod signals;
mod stopping;
mod tls;

/// The way that moves the bytes; `tests/net_uring` has the other.
const IO: tenon_server::net::Wanted = tenon_server::net::Wanted::Epoll;
