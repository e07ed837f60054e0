//! What COMMAND DOCS says of a command's standing: whether another took its place, and whether it is for the server's own
//! use, as Redis has it.

use tenon_engine::command::Command;

/// A command in whose place another came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deprecated {
    /// In which version of Redis.
    pub since: &'static str,
    /// What to use instead.
    pub replaced_by: &'static str,
}

static DEPRECATED: &[(&str, Deprecated)] = &[
    ("BRPOPLPUSH", Deprecated { since: "6.2.0", replaced_by: "`BLMOVE` with the `RIGHT` and `LEFT` arguments" }),
    ("CLUSTER SLAVES", Deprecated { since: "5.0.0", replaced_by: "`CLUSTER REPLICAS`" }),
    ("CLUSTER SLOTS", Deprecated { since: "7.0.0", replaced_by: "`CLUSTER SHARDS`" }),
    (
        "GEORADIUS",
        Deprecated { since: "6.2.0", replaced_by: "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument" },
    ),
    ("GEORADIUS_RO", Deprecated { since: "6.2.0", replaced_by: "`GEOSEARCH` with the `BYRADIUS` argument" }),
    (
        "GEORADIUSBYMEMBER",
        Deprecated {
            since: "6.2.0",
            replaced_by: "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
        },
    ),
    (
        "GEORADIUSBYMEMBER_RO",
        Deprecated { since: "6.2.0", replaced_by: "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments" },
    ),
    ("GETSET", Deprecated { since: "6.2.0", replaced_by: "`SET` with the `!GET` argument" }),
    ("HMSET", Deprecated { since: "4.0.0", replaced_by: "`HSET` with multiple field-value pairs" }),
    ("RPOPLPUSH", Deprecated { since: "6.2.0", replaced_by: "`LMOVE` with the `RIGHT` and `LEFT` arguments" }),
    ("SLAVEOF", Deprecated { since: "5.0.0", replaced_by: "`REPLICAOF`" }),
    ("SUBSTR", Deprecated { since: "2.0.0", replaced_by: "`GETRANGE`" }),
    ("ZRANGEBYLEX", Deprecated { since: "6.2.0", replaced_by: "`ZRANGE` with the `BYLEX` argument" }),
    ("ZRANGEBYSCORE", Deprecated { since: "6.2.0", replaced_by: "`ZRANGE` with the `BYSCORE` argument" }),
    ("ZREVRANGE", Deprecated { since: "6.2.0", replaced_by: "`ZRANGE` with the `REV` argument" }),
    ("ZREVRANGEBYLEX", Deprecated { since: "6.2.0", replaced_by: "`ZRANGE` with the `REV` and `BYLEX` arguments" }),
    ("ZREVRANGEBYSCORE", Deprecated { since: "6.2.0", replaced_by: "`ZRANGE` with the `REV` and `BYSCORE` arguments" }),
];

/// Commands for the server's own use.
static INTERNAL: &[&str] = &["DEBUG", "PFDEBUG", "PFSELFTEST"];

/// What took the command's place.
pub fn deprecated(command: &Command) -> Option<Deprecated> {
    DEPRECATED.iter().find(|(name, _)| *name == command.name).map(|(_, deprecated)| *deprecated)
}

/// Whether the command is for the server's own use.
pub fn is_internal(command: &Command) -> bool {
    INTERNAL.contains(&command.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_name_commands() {
        let names = DEPRECATED.iter().map(|(name, _)| name).chain(INTERNAL);
        let all = || crate::redis::ALL.iter().flat_map(|it| std::iter::once(it).chain(it.subcommands()));
        names.for_each(|name| assert!(all().any(|it| it.name == *name), "{name} is no command"));
    }
}
