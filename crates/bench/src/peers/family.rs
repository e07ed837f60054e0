//! Programs that are called alike. Knows no file.

use crate::target::Protocol;

/// What kind of server a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Tenon: RESP and memcached's languages.
    Tenon,
    /// redis-server and valkey-server.
    Redis,
    /// memcached.
    Memcached,
    /// PostgreSQL, as a table of keys and values.
    Postgres,
}

impl Family {
    /// What its servers speak, the usual one first.
    pub fn protocols(self) -> &'static [Protocol] {
        match self {
            Family::Tenon => &[Protocol::Resp, Protocol::RespTls, Protocol::Text, Protocol::Meta, Protocol::Binary],
            Family::Redis => &[Protocol::Resp, Protocol::RespTls],
            Family::Memcached => &[Protocol::Text, Protocol::Meta, Protocol::Binary],
            Family::Postgres => &[Protocol::Postgres],
        }
    }

    /// The one that a program's file name tells of.
    pub fn of(file_name: &str) -> Option<Family> {
        let names = [
            ("tenon", Family::Tenon),
            ("redis", Family::Redis),
            ("valkey", Family::Redis),
            ("memcached", Family::Memcached),
            ("postgres", Family::Postgres),
        ];
        names.into_iter().find(|(name, _)| file_name.starts_with(name)).map(|(_, family)| family)
    }
}
