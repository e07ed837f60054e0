//! stats without a word behind it: what most tools read. Knows no other group.

use super::super::admin::VERSION_TEXT;
use super::lines::Lines;
use std::sync::atomic::Ordering;
use tenon_engine::Engine;
use tenon_engine::ds::memory;
use tenon_engine::info::CpuTimes;
use tenon_engine::stats::{Counter, Counters};
use tenon_engine::worker::Worker;

/// Keys of all databases, and the bytes that tables and expiry indexes take.
fn keys_and_overhead(engine: &Engine, worker: &mut Worker) -> (usize, usize) {
    let (mut keys, mut overhead) = (0, 0);
    for index in 0..engine.shards.count() {
        let state = engine.lock_serving(worker, index);
        for (_, keyspace) in state.shard.databases() {
            keys += keyspace.len();
            overhead += keyspace.overhead();
        }
    }
    (keys, overhead)
}

/// The figures of the whole server.
pub(super) fn general(engine: &Engine, worker: &mut Worker, lines: &mut Lines<'_>) {
    let sum = |counter: fn(&Counters) -> &Counter| engine.sum(|stats| counter(&stats.all).get());
    let difference = |all, part| sum(all).saturating_sub(sum(part));
    let config = &engine.config;
    let (keys, overhead) = keys_and_overhead(engine, worker);
    lines.stat("pid", std::process::id());
    lines.stat("uptime", engine.started.elapsed().as_secs());
    lines.stat("time", worker.clock.now_ms / 1_000);
    lines.stat("version", VERSION_TEXT);
    lines.stat("pointer_size", usize::BITS);
    let times = CpuTimes::of_process();
    lines.stat("rusage_user", format_args!("{:.6}", times.user));
    lines.stat("rusage_system", format_args!("{:.6}", times.system));
    lines.stat("max_connections", config.maxclients());
    lines.stat("curr_connections", engine.clients.count());
    lines.stat("total_connections", sum(|all| &all.connections));
    lines.stat("rejected_connections", engine.refused_connections.load(Ordering::Relaxed));
    lines.stat("connection_structures", engine.clients.count());
    buffers(engine, lines);
    lines.stat("cmd_get", sum(|all| &all.mc_get));
    lines.stat("cmd_set", sum(|all| &all.mc_set));
    lines.stat("cmd_flush", sum(|all| &all.mc_flush));
    lines.stat("cmd_touch", sum(|all| &all.mc_touch));
    lines.stat("cmd_meta", sum(|all| &all.mc_meta));
    lines.stat("get_hits", sum(|all| &all.mc_get_hits));
    lines.stat("get_misses", difference(|all| &all.mc_get, |all| &all.mc_get_hits));
    lines.stat("get_expired", sum(|all| &all.expired_in_use));
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
    lines.stat("auth_cmds", sum(|all| &all.mc_auth));
    lines.stat("auth_errors", sum(|all| &all.mc_auth_errors));
    if config.timeout() > 0 {
        lines.stat("idle_kicks", engine.idle_kicks.load(Ordering::Relaxed));
    }
    if config.memcached_tls_port() != 0 {
        let counts = &engine.tls_counts;
        if config.tls_session_caching() {
            lines.stat("ssl_new_sessions", counts.new_sessions.load(Ordering::Relaxed));
        }
        lines.stat("ssl_handshake_errors", counts.handshake_errors.load(Ordering::Relaxed));
        // As newer ones than 1.6.18 tell it.
        lines.stat("ssl_proto_errors", counts.protocol_errors.load(Ordering::Relaxed));
        let read_s = engine.certificates_read_s.load(Ordering::Relaxed);
        // They may be read anew between the two.
        let age = engine.started.elapsed().as_secs().saturating_sub(read_s);
        lines.stat("time_since_server_cert_refresh", age);
    }
    lines.stat("bytes_read", sum(|all| &all.input_bytes));
    lines.stat("bytes_written", sum(|all| &all.output_bytes));
    lines.stat("limit_maxbytes", config.maxmemory());
    lines.stat("accepting_conns", 1);
    // A client is turned away when there are too many, none waits for another to leave.
    lines.stat("listen_disabled_num", 0);
    lines.stat("time_in_listen_disabled_us", 0);
    lines.stat("threads", engine.workers());
    lines.stat("conn_yields", sum(|all| &all.mc_yields));
    // As there are many tables, the power of two of the places that all of them have together.
    lines.stat("hash_power_level", (overhead / size_of::<usize>()).checked_ilog2().unwrap_or(0));
    lines.stat("hash_bytes", overhead);
    // A table grows in one pass over its own words, and no page moves from one size to another while it is used.
    lines.stat("hash_is_expanding", 0);
    for name in [
        "slab_reassign_rescues",
        "slab_reassign_chunk_rescues",
        "slab_reassign_evictions_nomem",
        "slab_reassign_inline_reclaim",
        "slab_reassign_busy_items",
        "slab_reassign_busy_deletes",
        "slab_reassign_running",
        "slabs_moved",
        "lru_crawler_running",
        "lru_crawler_starts",
        "lru_maintainer_juggles",
        "malloc_fails",
    ] {
        lines.stat(name, 0);
    }
    let watchers = engine.watchers.counts();
    // A line is written when it is told, and never dropped before.
    lines.stat("log_worker_dropped", 0);
    lines.stat("log_worker_written", watchers.sent + watchers.skipped);
    lines.stat("log_watcher_skipped", watchers.skipped);
    lines.stat("log_watcher_sent", watchers.sent);
    lines.stat("log_watchers", watchers.watchers);
    // The kernel spreads connections.
    lines.stat("unexpected_napi_ids", 0);
    lines.stat("round_robin_fallback", 0);
    lines.stat("bytes", memory::used().saturating_sub(engine.uncounted_memory()));
    lines.stat("curr_items", keys);
    lines.stat("total_items", sum(|all| &all.mc_stored));
    lines.stat("evictions", sum(|all| &all.evicted));
    lines.stat("reclaimed", sum(|all| &all.expired));
    lines.stat("expired_unfetched", sum(|all| &all.expired_unfetched));
    lines.stat("evicted_unfetched", sum(|all| &all.evicted_unfetched));
    // What is free is the system's again, or any size's.
    lines.stat("slab_global_page_pool", 0);
    // A flush leaves nothing behind that a get could find, nobody crawls, and items are in no queue that they move in.
    for name in [
        "get_flushed",
        "crawler_reclaimed",
        "crawler_items_checked",
        "lrutail_reflocked",
        "moves_to_cold",
        "moves_to_warm",
        "moves_within_lru",
        "direct_reclaims",
        "lru_bumps_dropped",
    ] {
        lines.stat(name, 0);
    }
}

/// What clients' bytes take on their way in, and answers on their way out: memcached calls them read buffers and response
/// objects. Its errors for want of memory are connections that are closed here.
fn buffers(engine: &Engine, lines: &mut Lines<'_>) {
    let sum = |counter: fn(&Counters) -> &Counter| engine.sum(|stats| counter(&stats.all).get());
    let (mut answered, mut answers, mut asking, mut requests) = (0, 0, 0, 0);
    for client in engine.clients.list() {
        let unsent = client.output_bytes.load(Ordering::Relaxed);
        answered += u64::from(unsent > 0);
        answers += unsent;
        let kept = client.input_bytes.load(Ordering::Relaxed);
        asking += u64::from(kept > 0);
        requests += kept;
    }
    lines.stat("response_obj_oom", sum(|all| &all.output_limit_closed));
    lines.stat("response_obj_count", answered);
    lines.stat("response_obj_bytes", answers);
    lines.stat("read_buf_count", asking);
    lines.stat("read_buf_bytes", requests);
    lines.stat("read_buf_bytes_free", 0);
    lines.stat("read_buf_oom", sum(|all| &all.input_limit_closed));
    // No file is kept back: there is room for all that the server needs beside its clients from the start.
    lines.stat("reserved_fds", 0);
}
