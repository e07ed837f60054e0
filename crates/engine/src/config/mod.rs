//! The configuration: one table of settings, and everything derived from it (files, flags, CONFIG, help, docs). It
//! knows nothing of sockets, commands or the store; who uses a setting reads it here.

pub(crate) mod args;
mod choices;
mod cli;
mod end_words;
mod error;
mod file;
mod help;
mod live;
mod loader;
mod machine;
mod memcached;
mod memcached_addresses;
mod memcached_file;
mod memcached_options;
mod memcached_refusal;
mod memcached_sizes;
mod packing;
mod rewrite;
mod setting;
mod table;
mod unsupported;
mod value;

pub use choices::{
    Access, ChannelDefault, Choice, Fsync, IoChoice, LogFormat, LogLevel, MemcachedProtocol, Supervisor,
    SyslogFacility, TlsAuthClients,
};
pub use cli::{Invocation, parse};
pub use end_words::EndWords;
pub use error::{LoadError, LoadProblem, RewriteError, SetError, ValueError};
pub use help::{docs, help};
pub(crate) use live::Staged;
pub use live::{Caller, Changed, Config};
pub use loader::{Loader, Oddity, Origin, Rename, UserLine, Warning};
pub use machine::{Machine, reservation_limit};
pub use memcached_refusal::MemcachedRefusal;
pub use memcached_sizes::SizeRefusal;
pub use rewrite::RightUsers;
pub use setting::{At, Group, Guard, Initial, Kind, Setting, Support};
pub use table::{SETTINGS, SettingId};
pub use tenon_store::evict::Policy;
pub use unsupported::{ACCEPTED_AT_DEFAULT, Fixed, Otherwise};
pub(crate) use value::system_reason;
pub use value::{ClientClass, OutputBufferLimit, OutputBufferLimits, SavePoint, Value, parse_memory};
