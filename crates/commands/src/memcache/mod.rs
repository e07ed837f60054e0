//! The verbs of memcached's text protocol, by file: an index. They meet the other front end's commands at the key
//! context only, and know no socket and no connection's bytes.

pub mod admin;
pub mod answer;
pub mod arith;
pub mod binary;
mod counting;
pub mod crawler;
pub mod delete;
pub mod expiry;
pub mod get;
pub mod meta;
pub mod stats;
pub mod store;
pub mod touch;
mod value;
pub mod verb;
pub mod watch;

pub use answer::Answer;
pub use verb::TextCommand;

/// Every verb.
pub static VERBS: &[&TextCommand] = &[
    // Reads.
    &get::GET,
    &get::GETS,
    &get::GAT,
    &get::GATS,
    // Writes.
    &store::SET,
    &store::ADD,
    &store::REPLACE,
    &store::APPEND,
    &store::PREPEND,
    &store::CAS,
    // Counters.
    &arith::INCR,
    &arith::DECR,
    // Items.
    &touch::TOUCH,
    &delete::DELETE,
    // The same, told by flags.
    &meta::get::MG,
    &meta::set::MS,
    &meta::delete::MD,
    &meta::arith::MA,
    &meta::debug::ME,
    &meta::debug::MN,
    // The server.
    &admin::FLUSH_ALL,
    &admin::VERSION,
    &admin::VERBOSITY,
    &stats::STATS,
    &admin::CACHE_MEMLIMIT,
    &crawler::LRU_CRAWLER,
    &crawler::LRU,
    &crawler::SLABS,
    &watch::WATCH,
    &admin::SHUTDOWN,
    &admin::REFRESH_CERTS,
    &admin::QUIT,
];
