//! stats: what other tools read. Figures that Tenon does not have, such as those of slab classes, are left out.

use super::admin::VERSION_TEXT;
use super::answer::Answer;
use super::verb::TextCommand;
use std::fmt::{Display, Write};
use std::sync::atomic::Ordering;
use tenon_engine::Engine;
use tenon_engine::clients::{Client, Dialect};
use tenon_engine::config::{LogLevel, Policy};
use tenon_engine::ds::memory;
use tenon_engine::stats::{Counter, Counters};
use tenon_engine::store::keyspace::Keyspace;
use tenon_engine::worker::Worker;

/// Shows statistics.
pub static STATS: TextCommand = TextCommand {
    name: "stats",
    family: "admin",
    syntax: "[settings | items | slabs | sizes | conns | extstore | reset]",
    summary: "Returns statistics of the server, of both protocols together where memcached has no other.",
};

/// Lines of `STAT name value`.
struct Lines(String);

impl Lines {
    fn stat(&mut self, name: impl Display, value: impl Display) {
        write!(self.0, "STAT {name} {value}\r\n").expect("a String takes everything");
    }
}

/// Writes the statistics of this kind (the first word behind `stats`, if any). `client` is who asks.
pub fn stats(engine: &Engine, worker: &mut Worker, client: &Client, kind: Option<&[u8]>, out: &mut Vec<u8>) {
    let mut lines = Lines(String::new());
    match kind {
        None => general(engine, worker, &mut lines),
        Some(b"settings") => settings(engine, &mut lines),
        Some(b"slabs") => {
            lines.stat("active_slabs", 0);
            lines.stat("total_malloced", memory::used());
        }
        Some(b"sizes") => lines.stat("sizes_status", "disabled"),
        Some(b"conns") => connections(engine, worker, client, &mut lines),
        // There are no slab classes, and no storage but memory.
        Some(b"items" | b"extstore") => {}
        Some(b"reset") => {
            engine.reset_stats();
            return Answer::Reset.write(out);
        }
        Some(b"cachedump") => return Answer::CachedumpDisabled.write(out),
        Some(_) => return Answer::Unknown.write(out),
    }
    out.extend_from_slice(lines.0.as_bytes());
    out.extend_from_slice(b"END\r\n");
}

/// Keys of all databases, and the bytes that tables and expiry indexes take.
fn keys_and_overhead(engine: &Engine, worker: &mut Worker) -> (usize, usize) {
    let (mut keys, mut overhead) = (0, 0);
    for index in 0..engine.shards.count() {
        let state = engine.lock_serving(worker, index);
        for database in 0..state.shard.databases() {
            let keyspace = state.shard.database(database);
            keys += keyspace.map_or(0, Keyspace::len);
            overhead += keyspace.map_or(0, Keyspace::overhead);
        }
    }
    (keys, overhead)
}

fn general(engine: &Engine, worker: &mut Worker, lines: &mut Lines) {
    let sum = |counter: fn(&Counters) -> &Counter| engine.sum(|stats| counter(&stats.all).get());
    let difference = |all, part| sum(all).saturating_sub(sum(part));
    let config = &engine.config;
    let (keys, overhead) = keys_and_overhead(engine, worker);
    lines.stat("pid", std::process::id());
    lines.stat("uptime", engine.started.elapsed().as_secs());
    lines.stat("time", worker.clock.now_ms / 1_000);
    lines.stat("version", VERSION_TEXT);
    lines.stat("pointer_size", usize::BITS);
    lines.stat("max_connections", config.maxclients());
    lines.stat("curr_connections", engine.clients.count());
    lines.stat("total_connections", sum(|all| &all.connections));
    lines.stat("rejected_connections", engine.refused_connections.load(Ordering::Relaxed));
    lines.stat("cmd_get", sum(|all| &all.mc_get));
    lines.stat("cmd_set", sum(|all| &all.mc_set));
    lines.stat("cmd_flush", sum(|all| &all.mc_flush));
    lines.stat("cmd_touch", sum(|all| &all.mc_touch));
    lines.stat("cmd_meta", sum(|all| &all.mc_meta));
    lines.stat("get_hits", sum(|all| &all.mc_get_hits));
    lines.stat("get_misses", difference(|all| &all.mc_get, |all| &all.mc_get_hits));
    lines.stat("delete_misses", sum(|all| &all.mc_delete_misses));
    lines.stat("delete_hits", sum(|all| &all.mc_delete_hits));
    lines.stat("incr_misses", sum(|all| &all.mc_incr_misses));
    lines.stat("incr_hits", sum(|all| &all.mc_incr_hits));
    lines.stat("decr_misses", sum(|all| &all.mc_decr_misses));
    lines.stat("decr_hits", sum(|all| &all.mc_decr_hits));
    lines.stat("cas_misses", sum(|all| &all.mc_cas_misses));
    lines.stat("cas_hits", sum(|all| &all.mc_cas_hits));
    lines.stat("cas_badval", sum(|all| &all.mc_cas_badval));
    lines.stat("touch_hits", sum(|all| &all.mc_touch_hits));
    lines.stat("touch_misses", difference(|all| &all.mc_touch, |all| &all.mc_touch_hits));
    lines.stat("store_too_large", sum(|all| &all.mc_too_large));
    lines.stat("store_no_memory", sum(|all| &all.mc_no_memory));
    lines.stat("auth_cmds", 0);
    lines.stat("auth_errors", 0);
    lines.stat("bytes_read", sum(|all| &all.input_bytes));
    lines.stat("bytes_written", sum(|all| &all.output_bytes));
    lines.stat("limit_maxbytes", config.maxmemory());
    lines.stat("accepting_conns", 1);
    lines.stat("threads", engine.workers());
    lines.stat("hash_bytes", overhead);
    lines.stat("bytes", memory::used());
    lines.stat("curr_items", keys);
    lines.stat("total_items", sum(|all| &all.mc_stored));
    lines.stat("evictions", sum(|all| &all.evicted));
    lines.stat("reclaimed", sum(|all| &all.expired));
}

fn settings(engine: &Engine, lines: &mut Lines) {
    let config = &engine.config;
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let socket = config.memcached_unixsocket();
    lines.stat("maxbytes", config.maxmemory());
    lines.stat("maxconns", config.maxclients());
    lines.stat("tcpport", config.memcached_port());
    lines.stat("udpport", 0);
    lines.stat("inter", config.bind().join(","));
    // The levels of `verbosity`; fewer lines than 0 has have none of their own.
    lines.stat(
        "verbosity",
        match config.loglevel() {
            LogLevel::Debug => 2,
            LogLevel::Verbose => 1,
            _ => 0,
        },
    );
    lines.stat("evictions", if config.maxmemory_policy() == Policy::NoEviction { "off" } else { "on" });
    lines.stat("domain_socket", if socket.is_empty() { "NULL" } else { &socket });
    lines.stat("shutdown_command", yes_no(false));
    lines.stat("num_threads", engine.workers());
    lines.stat("detail_enabled", yes_no(false));
    lines.stat("cas_enabled", yes_no(true));
    lines.stat("tcp_backlog", config.tcp_backlog());
    lines.stat("binding_protocol", "ascii");
    lines.stat("auth_enabled_sasl", yes_no(false));
    lines.stat("auth_enabled_ascii", yes_no(false));
    lines.stat("item_size_max", config.max_value_size());
    lines.stat("flush_enabled", yes_no(true));
    lines.stat("dump_enabled", yes_no(false));
    lines.stat("hash_algorithm", "rapidhash");
    lines.stat("idle_timeout", config.timeout());
    lines.stat("track_sizes", yes_no(false));
    lines.stat("ssl_enabled", yes_no(false));
}

/// The connections of memcached's clients, by the numbers of their sockets.
fn connections(engine: &Engine, worker: &Worker, asking: &Client, lines: &mut Lines) {
    for client in engine.clients.list().iter().filter(|client| client.info.dialect == Dialect::Memcached) {
        let info = &client.info;
        let kind = if info.unix { "unix" } else { "tcp" };
        let idle_ms = worker.clock.now_ms.saturating_sub(client.active_ms.load(Ordering::Relaxed));
        lines.stat(format_args!("{}:addr", info.fd), format_args!("{kind}:{}", info.remote));
        lines.stat(format_args!("{}:listen_addr", info.fd), format_args!("{kind}:{}", info.local));
        let state = if client.id == asking.id { "conn_parse_cmd" } else { "conn_read" };
        lines.stat(format_args!("{}:state", info.fd), state);
        lines.stat(format_args!("{}:secs_since_last_cmd", info.fd), idle_ms / 1_000);
    }
}
