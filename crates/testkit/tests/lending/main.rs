//! What goes on beside long scripts, with epoll; `tests/lending_uring` has io_uring.
#![allow(missing_docs)]

mod beside;

/// The way that moves the bytes.
const IO: &str = "epoll";
