//! stats: which group a client asks for. Knows no statistic.

use super::super::answer::Answer;
use super::super::verb::TextCommand;
use super::cachedump::cachedump;
use super::classes::{items, sizes, slabs};
use super::connections::connections;
use super::detail::{detail, dump};
use super::general::general;
use super::lines::Lines;
use super::settings::settings;
use tenon_engine::Engine;
use tenon_engine::clients::Client;
use tenon_engine::config::Caller;
use tenon_engine::wire::memcache::binary::BinaryHead;
use tenon_engine::worker::Worker;

/// Shows statistics.
pub static STATS: TextCommand = TextCommand {
    name: "stats",
    family: "admin",
    syntax: "[settings | items | slabs | sizes | sizes_enable | sizes_disable | conns | detail on|off|dump \
             | cachedump class limit | extstore | reset]",
    summary: "Returns statistics of the server, of both protocols together where memcached has no other.",
};

/// Writes the statistics of the group that the words behind `stats` name. `client` is who asks.
pub fn stats(engine: &Engine, worker: &mut Worker, client: &Client, words: &[&[u8]], out: &mut Vec<u8>) {
    match words {
        [b"reset", ..] => {
            engine.reset_stats();
            Answer::Reset.write(out);
        }
        // These are answered without an end, as in memcached.
        [b"sizes_enable", ..] => track_sizes(engine, "yes", "enabled", &mut Lines::new(out, None)),
        [b"sizes_disable", ..] => track_sizes(engine, "no", "disabled", &mut Lines::new(out, None)),
        [b"detail", behind @ ..] => detail(engine, behind.first().copied(), out),
        [b"cachedump", behind @ ..] => cachedump(engine, worker, behind, out),
        _ => {
            let mut lines = Lines::new(out, None);
            if group(engine, worker, client, words.first().copied().unwrap_or_default(), &mut lines) {
                lines.end();
            } else {
                Answer::Unknown.write(out);
            }
        }
    }
}

/// Writes the statistics of a group as answers to a request of the binary protocol; tells whether there is such a group.
pub fn binary_stats(
    engine: &Engine,
    worker: &mut Worker,
    client: &Client,
    head: &BinaryHead,
    name: &[u8],
    out: &mut Vec<u8>,
) -> bool {
    let mut lines = Lines::new(out, Some(head));
    if name.starts_with(b"reset") {
        engine.reset_stats();
    } else if let Some(word) = name.strip_prefix(b"detail") {
        match word {
            b" dump" => {
                let mut counted = Vec::new();
                dump(engine, &mut counted);
                lines.stat("detailed", String::from_utf8_lossy(&counted));
            }
            b" on" => engine.prefixes.set_on(true),
            b" off" => engine.prefixes.set_on(false),
            _ => return false,
        }
    } else if !group(engine, worker, client, name, &mut lines) {
        return false;
    }
    lines.end();
    true
}

/// Has `stats sizes` look at the items, or not, and says so.
fn track_sizes(engine: &Engine, value: &str, status: &str, lines: &mut Lines<'_>) {
    match engine.set_config(&[(b"memcached-track-sizes", value.as_bytes())], Caller::Local) {
        Ok(()) => lines.stat("sizes_status", status),
        Err(_) => unreachable!("the value is yes or no, and may change at run time"),
    }
}

/// Writes the statistics of a group; tells whether there is such a group.
fn group(engine: &Engine, worker: &mut Worker, client: &Client, name: &[u8], lines: &mut Lines<'_>) -> bool {
    match name {
        b"" => general(engine, worker, lines),
        b"settings" => settings(engine, lines),
        b"slabs" => slabs(engine, worker, lines),
        b"items" => items(engine, worker, lines),
        b"sizes" if engine.config.memcached_track_sizes() => sizes(engine, worker, lines),
        b"sizes" => lines.stat("sizes_status", "disabled"),
        b"sizes_enable" => track_sizes(engine, "yes", "enabled", lines),
        b"sizes_disable" => track_sizes(engine, "no", "disabled", lines),
        b"conns" => connections(engine, worker, client, lines),
        // There is no storage but memory.
        b"extstore" => {}
        _ => return false,
    }
    true
}
