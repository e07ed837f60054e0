//! Tips of COMMAND INFO: what proxies and clients of clusters should know of a command's answer, as Redis gives them
//! (<https://redis.io/docs/latest/develop/reference/command-tips/>). Of later commands there are none.

use std::sync::LazyLock;

/// Commands that share their tips.
type Row = (&'static [&'static str], &'static [&'static str]);

const ANY_ORDER: &str = "nondeterministic_output_order";
const ANY_OUTPUT: &str = "nondeterministic_output";
const ALL_NODES: &str = "request_policy:all_nodes";
const ALL_SHARDS: &str = "request_policy:all_shards";
const MULTI_SHARD: &str = "request_policy:multi_shard";
const ALL_SUCCEEDED: &str = "response_policy:all_succeeded";
const ONE_SUCCEEDED: &str = "response_policy:one_succeeded";
const SPECIAL: &str = "response_policy:special";
const SUM: &str = "response_policy:agg_sum";
const MIN: &str = "response_policy:agg_min";

static ROWS: &[Row] = &[
    (
        &[
            "client|info",
            "client|list",
            "cluster|bumpepoch",
            "cluster|count-failure-reports",
            "cluster|getkeysinslot",
            "cluster|info",
            "cluster|links",
            "cluster|myshardid",
            "cluster|nodes",
            "cluster|replicas",
            "cluster|shards",
            "cluster|slaves",
            "cluster|slots",
            "dump",
            "hrandfield",
            "hscan",
            "lastsave",
            "migrate",
            "object|encoding",
            "object|freq",
            "object|idletime",
            "object|refcount",
            "pttl",
            "spop",
            "srandmember",
            "sscan",
            "time",
            "ttl",
            "xadd",
            "xautoclaim",
            "xclaim",
            "xinfo|consumers",
            "xpending",
            "xtrim",
            "zrandmember",
            "zscan",
        ],
        &[ANY_OUTPUT],
    ),
    (
        &[
            "command",
            "command|docs",
            "command|info",
            "command|list",
            "function|list",
            "hgetall",
            "hkeys",
            "hvals",
            "sdiff",
            "sinter",
            "smembers",
            "sunion",
        ],
        &[ANY_ORDER],
    ),
    (&["mget"], &[MULTI_SHARD]),
    (&["scan"], &[ANY_OUTPUT, "request_policy:special"]),
    (&["commandlog|get", "slowlog|get"], &[ALL_NODES, ANY_OUTPUT]),
    (
        &[
            "client|setinfo",
            "commandlog|reset",
            "config|set",
            "latency|reset",
            "script|flush",
            "script|load",
            "slowlog|reset",
        ],
        &[ALL_NODES, ALL_SUCCEEDED],
    ),
    (&["randomkey"], &[ALL_SHARDS, ANY_OUTPUT]),
    (&["keys"], &[ALL_SHARDS, ANY_ORDER]),
    (&["script|exists"], &[ALL_SHARDS, "response_policy:agg_logical_and"]),
    (&["dbsize"], &[ALL_SHARDS, SUM]),
    (
        &[
            "flushall",
            "flushdb",
            "function|delete",
            "function|flush",
            "function|load",
            "function|restore",
            "memory|purge",
            "ping",
        ],
        &[ALL_SHARDS, ALL_SUCCEEDED],
    ),
    (&["function|kill", "script|kill"], &[ALL_SHARDS, ONE_SUCCEEDED]),
    (&["msetnx"], &[MULTI_SHARD, MIN]),
    (&["wait", "waitaof"], &[ALL_SHARDS, MIN]),
    (&["del", "exists", "touch", "unlink"], &[MULTI_SHARD, SUM]),
    (&["mset", "msetex"], &[MULTI_SHARD, ALL_SUCCEEDED]),
    (
        &["latency|doctor", "latency|graph", "latency|histogram", "latency|history", "latency|latest"],
        &[ANY_OUTPUT, ALL_NODES, SPECIAL],
    ),
    (
        &["function|stats", "info", "memory|doctor", "memory|malloc-stats", "memory|stats"],
        &[ANY_OUTPUT, ALL_SHARDS, SPECIAL],
    ),
    (&["commandlog|len", "slowlog|len"], &[ALL_NODES, SUM, ANY_OUTPUT]),
];

/// The rows' names in order, each with its tips: COMMAND looks for every command there is.
static BY_NAME: LazyLock<Vec<(&'static str, &'static [&'static str])>> = LazyLock::new(|| {
    let mut all: Vec<_> = ROWS.iter().flat_map(|(names, tips)| names.iter().map(|name| (*name, *tips))).collect();
    all.sort_unstable_by_key(|(name, _)| *name);
    all
});

/// The tips of the command of this full name.
pub fn tips(full_name: &str) -> &'static [&'static str] {
    BY_NAME.binary_search_by_key(&full_name, |(name, _)| name).map_or(&[], |at| BY_NAME[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_has_two_rows() {
        let mut names: Vec<&str> = ROWS.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for (names, row) in ROWS {
            assert!(names.iter().all(|name| tips(name) == *row));
        }
        assert!(tips("no such command").is_empty());
    }
}
