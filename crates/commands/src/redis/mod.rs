//! The commands of Redis, by family: an index.

pub mod connection;
pub mod help;
mod help_command;
pub mod server;
pub mod string;

use tenon_engine::command::Command;

/// Every command.
pub static ALL: &[&Command] = &[
    // Connection.
    &connection::ping::PING,
    // Server.
    &server::command::COMMAND,
    &server::config::CONFIG,
    &server::debug::DEBUG,
    &server::info::INFO,
    &server::latency::LATENCY,
    &server::lolwut::LOLWUT,
    &server::memory::MEMORY,
    &server::role::ROLE,
    &server::shutdown::SHUTDOWN,
    &server::slowlog::SLOWLOG,
    &server::time::LASTSAVE,
    &server::time::TIME,
    // Strings.
    &string::get::GET,
];
