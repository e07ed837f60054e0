//! The ordered log of writes and the files it goes to. Knows no command, no key and no file format.
#![forbid(unsafe_code)]

pub mod files;
pub mod log;

pub use log::{Hooks, Log, Policy, Settings};
