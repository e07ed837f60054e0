//! What the names in a command's syntax mean: which are keys, numbers, patterns or times, as Redis's documents have it.

use super::command_syntax::{Argument, Kind};

/// Names of whole numbers.
const INTEGERS: &[&str] = &[
    "bit",
    "bits",
    "client-id",
    "cluster-bus-port",
    "config-epoch",
    "count",
    "cursor",
    "db",
    "decrement",
    "destination-db",
    "end",
    "end-slot",
    "entries-added",
    "entries-read",
    "frequency",
    "increment",
    "index",
    "index1",
    "index2",
    "k",
    "len",
    "limit",
    "maxage",
    "milliseconds",
    "min-match-len",
    "ms",
    "num-matches",
    "num-vertices",
    "numfields",
    "numkeys",
    "nummembers",
    "numreplicas",
    "offset",
    "port",
    "protover",
    "rank",
    "ratio",
    "seconds",
    "slot",
    "start",
    "start-slot",
    "stop",
    "timeout",
    "ttl",
    "version",
    "weight",
];

/// What an argument of this name is for a command.
pub fn leaf_kind(command: &str, name: &str) -> Kind {
    let is_blocking_pop = command.starts_with("BL") || command.starts_with("BR") || command.starts_with("BZ");
    match name {
        "timeout" if is_blocking_pop => Kind::Double,
        "increment" if command.ends_with("FLOAT") => Kind::Double,
        "value" if matches!(command, "SETBIT" | "BITFIELD") => Kind::Integer,
        "min" | "max" if matches!(command, "ZCOUNT") || command.ends_with("BYSCORE") => Kind::Double,
        // Bounds of several kinds, and ids of entries.
        "start" | "stop" if command == "ZRANGE" => Kind::String,
        "start" | "end" if command.starts_with('X') => Kind::String,
        "min-idle-time" if command == "XPENDING" => Kind::Integer,
        "duration" | "maxsize" if command == "XCFGSET" => Kind::Integer,
        // The key that is asked about is not used.
        "key" if command == "CLUSTER KEYSLOT" => Kind::String,
        "key" | "key1" | "key2" | "newkey" => Kind::Key,
        "destination" | "destkey" | "dst" | "source" | "sourcekey" | "src" => Kind::Key,
        "pattern" => Kind::Pattern,
        "height" | "latitude" | "longitude" | "radius" | "score" | "width" => Kind::Double,
        name if name.starts_with("unix-time") => Kind::UnixTime,
        name if INTEGERS.contains(&name) => Kind::Integer,
        _ => Kind::String,
    }
}

/// What arguments that belong together are called: the syntax has no name for them.
pub fn compound_name(kind: Kind, arguments: &[Argument]) -> String {
    let first = arguments.first().and_then(|first| first.token.as_deref());
    let known = match (kind, first) {
        (Kind::OneOf, Some("NX")) => Some("condition"),
        (Kind::OneOf, Some("EX")) => Some("expiration"),
        (Kind::OneOf, Some("ASC")) => Some("order"),
        (Kind::OneOf, Some("SUM")) => Some("aggregate"),
        (Kind::OneOf, Some("M" | "BYTE")) => Some("unit"),
        (Kind::OneOf, Some("LEFT" | "MIN" | "BEFORE")) => Some("where"),
        (Kind::OneOf, Some("BYSCORE")) => Some("sortby"),
        (Kind::OneOf, Some("ASYNC")) => Some("flush-type"),
        (Kind::OneOf, Some("FROMMEMBER")) => Some("from"),
        (Kind::OneOf, Some("BYRADIUS")) => Some("by"),
        (Kind::OneOf, Some("FORCE")) => Some("options"),
        (Kind::OneOf, Some("IMPORTING")) => Some("subcommand"),
        _ => None,
    };
    // As Redis calls them mostly: `longitude_latitude`.
    let joined = || arguments.iter().map(|argument| argument.name.as_str()).collect::<Vec<_>>().join("_");
    known.map_or_else(joined, str::to_owned)
}
