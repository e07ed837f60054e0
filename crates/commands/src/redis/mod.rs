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
    &string::append::APPEND,
    &string::counter::DECR,
    &string::counter::DECRBY,
    &string::counter::INCR,
    &string::counter::INCRBY,
    &string::counter::INCRBYFLOAT,
    &string::digest::DELEX,
    &string::digest::DIGEST,
    &string::get::GET,
    &string::get::GETDEL,
    &string::get::GETEX,
    &string::get::MGET,
    &string::get::STRLEN,
    &string::lcs::LCS,
    &string::mset::MSET,
    &string::mset::MSETEX,
    &string::mset::MSETNX,
    &string::range::GETRANGE,
    &string::range::SETRANGE,
    &string::range::SUBSTR,
    &string::set::GETSET,
    &string::set::PSETEX,
    &string::set::SET,
    &string::set::SETEX,
    &string::set::SETNX,
];
