//! The commands of Redis, by family: an index.

pub mod bitmap;
pub mod connection;
mod database;
pub mod generic;
pub mod hash;
pub mod help;
mod help_command;
pub mod hyperloglog;
pub mod pubsub;
mod random_count;
mod reply_item;
mod scan_page;
pub mod scripting;
pub mod server;
pub mod set;
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
    // Scripts and functions.
    &scripting::eval::EVAL,
    &scripting::eval::EVALSHA,
    &scripting::eval::EVALSHA_RO,
    &scripting::eval::EVAL_RO,
    &scripting::fcall::FCALL,
    &scripting::fcall::FCALL_RO,
    &scripting::function::FUNCTION,
    &scripting::script::SCRIPT,
    // Server.
    &server::command::COMMAND,
    &server::config::CONFIG,
    &server::debug::DEBUG,
    &server::info::INFO,
    &server::latency::LATENCY,
    &server::lolwut::LOLWUT,
    &server::memory::MEMORY,
    &server::monitor::MONITOR,
    &server::role::ROLE,
    &server::shutdown::SHUTDOWN,
    &server::slowlog::SLOWLOG,
    &server::time::LASTSAVE,
    &server::time::TIME,
    // Hashes.
    &hash::get::HEXISTS,
    &hash::get::HGET,
    &hash::get::HMGET,
    &hash::get::HSTRLEN,
    &hash::increment::HINCRBY,
    &hash::increment::HINCRBYFLOAT,
    &hash::random::HRANDFIELD,
    &hash::remove::HDEL,
    &hash::set::HMSET,
    &hash::set::HSET,
    &hash::set::HSETNX,
    &hash::whole::HGETALL,
    &hash::whole::HKEYS,
    &hash::whole::HLEN,
    &hash::whole::HSCAN,
    &hash::whole::HVALS,
    // Sets.
    &set::add::SADD,
    &set::add::SMOVE,
    &set::add::SREM,
    &set::combine::SDIFF,
    &set::combine::SDIFFSTORE,
    &set::combine::SINTER,
    &set::combine::SINTERCARD,
    &set::combine::SINTERSTORE,
    &set::combine::SUNION,
    &set::combine::SUNIONSTORE,
    &set::members::SCARD,
    &set::members::SISMEMBER,
    &set::members::SMEMBERS,
    &set::members::SMISMEMBER,
    &set::members::SSCAN,
    &set::random::SPOP,
    &set::random::SRANDMEMBER,
    // Strings.
    &string::append::APPEND,
    &string::counter::DECR,
    &string::counter::DECRBY,
    &string::counter::INCR,
    &string::counter::INCRBY,
    &string::counter::INCRBYFLOAT,
    &string::increx::INCREX,
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
    // Bitmaps.
    &bitmap::bit::GETBIT,
    &bitmap::bit::SETBIT,
    &bitmap::bitfield::BITFIELD,
    &bitmap::bitfield::BITFIELD_RO,
    &bitmap::bitop::BITOP,
    &bitmap::range::BITCOUNT,
    &bitmap::range::BITPOS,
    // HyperLogLog.
    &hyperloglog::add::PFADD,
    &hyperloglog::count::PFCOUNT,
    &hyperloglog::debug::PFDEBUG,
    &hyperloglog::debug::PFSELFTEST,
    &hyperloglog::merge::PFMERGE,
];
