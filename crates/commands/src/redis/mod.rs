//! The commands of Redis, by family: an index.

pub mod connection;
pub mod string;

use tenon_engine::command::Command;

/// Every command.
pub static ALL: &[&Command] = &[
    // Connection.
    &connection::ping::PING,
    // Strings.
    &string::get::GET,
];
