//! The tests of `tests/lending` once more, with io_uring where the system has it. Knows no test itself.
#![allow(missing_docs)]

#[path = "../lending/beside.rs"]
mod beside;

/// The way that moves the bytes.
const IO: &str = "io-uring";
