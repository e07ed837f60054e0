//! The parts of the `tenon` binary that boot it and move its bytes. Knows no command and no data type.
#![deny(unsafe_code)]

pub mod allocator;
pub mod banner;
pub mod boot;
mod check;
mod leftovers;
pub mod logging;
pub mod net;
pub mod open_files;
mod process;
mod progress;
mod reconfigure;
mod restore;
pub mod service;
pub mod shutdown;
pub mod signals;
mod supervisor;
pub mod syslog;
mod tls;
mod whole_path;
