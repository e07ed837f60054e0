//! Commands on the server: an index.

pub mod acl;
pub mod command;
mod command_docs;
mod command_info;
mod command_keys;
pub mod config;
pub mod debug;
mod debug_protocol;
mod digest;
pub mod info;
mod info_sections;
mod key_specs;
pub mod latency;
mod latency_doctor;
pub mod lolwut;
pub mod memory;
mod memory_doctor;
pub mod monitor;
pub mod role;
pub mod shutdown;
pub mod slowlog;
mod sparkline;
pub mod time;
