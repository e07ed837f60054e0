//! The commands of Redis, by family: an index.

pub mod connection;
mod database;
mod element;
pub mod generic;
pub mod help;
mod help_command;
pub mod list;
pub mod pubsub;
pub mod server;
pub mod string;
pub mod transactions;

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
    &connection::select::SELECT,
    // Keys of any type and whole databases.
    &generic::copy::COPY,
    &generic::dbsize::DBSIZE,
    &generic::delete::DEL,
    &generic::delete::UNLINK,
    &generic::exists::EXISTS,
    &generic::exists::TOUCH,
    &generic::expire::EXPIRE,
    &generic::expire::EXPIREAT,
    &generic::expire::PERSIST,
    &generic::expire::PEXPIRE,
    &generic::expire::PEXPIREAT,
    &generic::flush::FLUSHALL,
    &generic::flush::FLUSHDB,
    &generic::keys::KEYS,
    &generic::move_key::MOVE,
    &generic::object::OBJECT,
    &generic::randomkey::RANDOMKEY,
    &generic::rename::RENAME,
    &generic::rename::RENAMENX,
    &generic::scan::SCAN,
    &generic::swapdb::SWAPDB,
    &generic::ttl::EXPIRETIME,
    &generic::ttl::PEXPIRETIME,
    &generic::ttl::PTTL,
    &generic::ttl::TTL,
    &generic::type_of::TYPE,
    // Transactions.
    &transactions::multi::DISCARD,
    &transactions::multi::EXEC,
    &transactions::multi::MULTI,
    &transactions::watch::UNWATCH,
    &transactions::watch::WATCH,
    // Channels.
    &pubsub::inspect::PUBSUB,
    &pubsub::publish::PUBLISH,
    &pubsub::publish::SPUBLISH,
    &pubsub::subscribe::PSUBSCRIBE,
    &pubsub::subscribe::PUNSUBSCRIBE,
    &pubsub::subscribe::SSUBSCRIBE,
    &pubsub::subscribe::SUBSCRIBE,
    &pubsub::subscribe::SUNSUBSCRIBE,
    &pubsub::subscribe::UNSUBSCRIBE,
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
    // Lists.
    &list::blocking::BLMOVE,
    &list::blocking::BLMPOP,
    &list::blocking::BLPOP,
    &list::blocking::BRPOP,
    &list::blocking::BRPOPLPUSH,
    &list::edit::LINSERT,
    &list::edit::LREM,
    &list::edit::LSET,
    &list::edit::LTRIM,
    &list::pop::LMPOP,
    &list::pop::LPOP,
    &list::pop::RPOP,
    &list::position::LPOS,
    &list::push::LPUSH,
    &list::push::LPUSHX,
    &list::push::RPUSH,
    &list::push::RPUSHX,
    &list::read::LINDEX,
    &list::read::LLEN,
    &list::read::LRANGE,
    &list::transfer::LMOVE,
    &list::transfer::RPOPLPUSH,
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
