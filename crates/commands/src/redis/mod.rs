//! The commands of Redis, by family: an index.

pub mod connection;
pub mod help;
pub mod string;

use tenon_engine::command::Command;

/// Every command.
pub static ALL: &[&Command] = &[
    // Connection.
    &connection::auth::AUTH,
    &connection::client::container::CLIENT,
    &connection::ping::ECHO,
    &connection::hello::HELLO,
    &connection::ping::PING,
    &connection::leave::QUIT,
    &connection::leave::RESET,
    // Strings.
    &string::get::GET,
];
