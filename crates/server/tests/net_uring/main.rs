//! The tests of `tests/net` once more, with io_uring where the system has it: a file of its own, so that both are always run.
//! Knows no test itself.

use tenon_server::net::Wanted;

#[path = "../net/closing.rs"]
mod closing;
#[path = "../net/datagrams.rs"]
mod datagrams;
#[path = "../net/echo.rs"]
mod echo;
#[path = "../net/harness.rs"]
mod harness;
#[path = "../net/holding.rs"]
mod holding;
#[path = "../net/lending.rs"]
mod lending;
#[path = "../net/limits.rs"]
mod limits;
#[path = "../net/moving.rs"]
mod moving;
#[path = "../net/signals.rs"]
mod signals;
#[path = "../net/stopping.rs"]
mod stopping;
#[path = "../net/tls.rs"]
mod tls;

/// The way that moves the bytes.
const IO: Wanted = Wanted::IoUring;
