//! What INFO's sections say: lines of `name:value` with the names that exporters and clients read from Redis. A figure
//! that the server has not is left out; one that is 0 because there is no such thing is 0.

use super::info_append_only::append_only;
use super::info_keysizes::KeySizes;
use super::info_listeners::listeners;
use super::latency::latency_counts;
use std::fmt::{Arguments, Write};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenon_engine::acl::Reason;
use tenon_engine::clock::monotonic_ns;
use tenon_engine::context::ServerCx;
use tenon_engine::engine::Engine;
use tenon_engine::info::{CpuTimes, DatabaseFacts, MemoryFacts, databases_at_a_glance, operating_system};
use tenon_engine::pause::PauseMode;
use tenon_engine::pubsub::Scope;
use tenon_engine::session::Roles;
use tenon_engine::stats::{Counter, Counters, LAG_BUCKETS};
use tenon_engine::{clock, version};

/// What the sections are written from.
pub struct Facts<'a> {
    engine: &'a Engine,
    databases: Vec<DatabaseFacts>,
    memory: MemoryFacts,
    now_ms: u64,
    /// What was found beforehand, if it is wanted.
    pub(super) key_sizes: KeySizes,
}

impl<'a> Facts<'a> {
    /// What can be told without a look at the data.
    pub fn without_data(cx: &ServerCx<'a>) -> Facts<'a> {
        let (databases, memory) = (Vec::new(), MemoryFacts::default());
        let key_sizes = KeySizes::default();
        Facts { engine: cx.engine, databases, memory, now_ms: cx.worker.clock.now_ms, key_sizes }
    }

    /// Looks at the data and the process.
    pub fn gather(cx: &mut ServerCx<'a>) -> Facts<'a> {
        let (databases, table_bytes) = databases_at_a_glance(cx);
        let memory = MemoryFacts::gather(cx.engine, table_bytes);
        Facts { databases, memory, ..Facts::without_data(cx) }
    }

    fn sum(&self, counter: fn(&Counters) -> &Counter) -> u64 {
        self.engine.sum(|stats| counter(&stats.all).get())
    }
}

pub(super) fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    put(text, format_args!("{name}:{value}\r\n"));
}

fn put(text: &mut String, what: Arguments<'_>) {
    text.write_fmt(what).expect("a string takes whatever is written");
}

pub(super) fn lines(text: &mut String, all: &[(&str, u64)]) {
    all.iter().for_each(|(name, value)| line(text, name, value));
}

/// Bytes for people, as Redis writes them: `1.51M`.
fn human(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["K", "M", "G", "T", "P", "E"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let power = (bytes.ilog2() / 10) as usize;
    format!("{:.2}{}", bytes as f64 / (1u64 << (10 * power)) as f64, UNITS[power - 1])
}

/// Where the program was when somebody asked first; it may have been replaced since.
static EXECUTABLE: LazyLock<PathBuf> = LazyLock::new(|| std::env::current_exe().unwrap_or_default());

/// `# Server`
pub fn server(facts: &Facts<'_>, text: &mut String) {
    let engine = facts.engine;
    let uptime = engine.started.elapsed().as_secs();
    let now_us = clock::now_us();
    line(text, "redis_version", version::REDIS);
    // Builds are named by their version alone.
    line(text, "redis_git_sha1", "00000000");
    line(text, "redis_git_dirty", 0);
    line(text, "redis_build_id", "0");
    line(text, "tenon_version", version::TENON);
    line(text, "redis_mode", "standalone");
    line(text, "server_mode", "standalone");
    line(text, "os", operating_system());
    line(text, "arch_bits", usize::BITS);
    line(text, "monotonic_clock", "POSIX clock_gettime");
    line(text, "multiplexing_api", engine.multiplexer.get().copied().unwrap_or("none"));
    line(text, "process_id", std::process::id());
    line(text, "process_supervised", engine.supervisor.get().copied().unwrap_or("no"));
    line(text, "run_id", &engine.run_id);
    line(text, "tcp_port", engine.config.port());
    line(text, "server_time_usec", now_us);
    line(text, "uptime_in_seconds", uptime);
    line(text, "uptime_in_days", uptime / 86_400);
    line(text, "hz", engine.config.hz());
    line(text, "configured_hz", engine.config.hz());
    // The clock of Redis's LRU: 24 bits of seconds.
    line(text, "lru_clock", (now_us / 1_000_000) & 0xff_ffff);
    line(text, "executable", EXECUTABLE.display());
    // Each worker has its connections for itself: there are no threads that only read and write for others.
    line(text, "io_threads_active", 0);
    line(text, "config_file", engine.config.file().unwrap_or("".as_ref()).display());
    for (number, listener) in listeners(&engine.listening).into_iter().enumerate() {
        line(text, &format!("listener{number}"), listener);
    }
}

/// `# Clients`
pub fn clients(facts: &Facts<'_>, text: &mut String) {
    let clients = facts.engine.clients.list();
    let most =
        |of: fn(&tenon_engine::clients::Client) -> u64| clients.iter().map(|client| of(client)).max().unwrap_or(0);
    // What is kept now may have come long ago.
    let input = most(|client| client.input_bytes.load(Ordering::Relaxed));
    let output = most(|client| client.output_bytes.load(Ordering::Relaxed));
    let blocking = &facts.engine.blocking;
    // As in Redis whoever waits for the end of a CLIENT PAUSE counts.
    let paused = clients.iter().filter(|client| client.paused.load(Ordering::Relaxed)).count();
    let blocked = blocking.clients.load(Ordering::Relaxed) + paused;
    let watched = || clients.iter().map(|client| u64::from(client.watching.load(Ordering::Relaxed)));
    lines(
        text,
        &[
            ("connected_clients", clients.len() as u64),
            ("cluster_connections", 0),
            ("maxclients", facts.engine.config.maxclients().into()),
            ("client_recent_max_input_buffer", input.max(facts.engine.recent_input.get(facts.now_ms))),
            ("client_recent_max_output_buffer", output.max(facts.engine.recent_output.get(facts.now_ms))),
            ("blocked_clients", blocked as u64),
            ("tracking_clients", facts.engine.tracking.clients() as u64),
            ("pubsub_clients", clients.iter().filter(|client| client.roles().has(Roles::SUBSCRIBER)).count() as u64),
            ("watching_clients", watched().filter(|&keys| keys > 0).count() as u64),
            ("total_watched_keys", watched().sum()),
            ("clients_in_timeout_table", facts.engine.waits_with_end() as u64),
            ("total_blocking_keys", blocking.keys.load(Ordering::Relaxed) as u64),
            ("total_blocking_keys_on_nokey", blocking.keys_watched_for_end.load(Ordering::Relaxed) as u64),
        ],
    );
    pause(facts, text);
}

/// Which commands wait for the end of a pause, why, and for how long: in the names of Valkey.
fn pause(facts: &Facts<'_>, text: &mut String) {
    // By the clock that a pause runs from: that of the batch is behind it, and more than the whole pause would be left.
    let pause = facts.engine.pause.rest(clock::now_us() / 1_000);
    let waits_for_log = facts.engine.pause.waits_for_log();
    let reason = match pause {
        // Valkey, which stands still then, has no name for it.
        None if waits_for_log => "aof_buffer_full",
        None => "none",
        Some(_) if facts.engine.is_ending() => "shutdown_in_progress",
        Some(_) => "client_pause",
    };
    line(text, "paused_reason", reason);
    let mode = pause.map(|(mode, _)| mode).max(waits_for_log.then_some(PauseMode::Write));
    let actions = mode.map_or("none", |mode| match mode {
        PauseMode::Write => "write",
        PauseMode::All => "all",
    });
    line(text, "paused_actions", actions);
    // Where the process ends there is no time set; 2^63 is as good as none for who reads it.
    line(text, "paused_timeout_milliseconds", pause.map_or(0, |(_, rest_ms)| rest_ms.min(i64::MAX as u64)));
}

/// Bytes as a number and for people.
fn both(text: &mut String, name: &str, bytes: u64) {
    line(text, name, bytes);
    put(text, format_args!("{name}_human:{}\r\n", human(bytes)));
}

/// `# Memory`
pub fn memory(facts: &Facts<'_>, text: &mut String) {
    let memory = &facts.memory;
    let config = &facts.engine.config;
    both(text, "used_memory", memory.used);
    both(text, "used_memory_rss", memory.resident);
    both(text, "used_memory_peak", memory.peak);
    put(text, format_args!("used_memory_peak_perc:{:.2}%\r\n", memory.peak_percent()));
    line(text, "used_memory_overhead", memory.overhead);
    line(text, "used_memory_startup", memory.startup);
    line(text, "used_memory_dataset", memory.dataset());
    put(text, format_args!("used_memory_dataset_perc:{:.2}%\r\n", memory.dataset_percent()));
    // The allocator tells nothing of itself. As Redis does with such a one, all that is in RAM is taken for its own.
    line(text, "allocator_allocated", memory.used);
    line(text, "allocator_active", memory.resident);
    line(text, "allocator_resident", memory.resident);
    if let Some(bytes) = config.machine().memory_bytes {
        both(text, "total_system_memory", bytes);
    }
    scripts_memory(facts, text);
    both(text, "maxmemory", config.maxmemory());
    line(text, "maxmemory_policy", config.maxmemory_policy().name());
    let mut fragmentation = |name: &str, ratio: f64, bytes: i64| {
        put(text, format_args!("{name}_ratio:{ratio:.2}\r\n{name}_bytes:{bytes}\r\n"));
    };
    fragmentation("allocator_frag", memory.fragmentation_ratio(), memory.fragmentation_bytes());
    fragmentation("allocator_rss", 1.0, 0);
    fragmentation("rss_overhead", 1.0, 0);
    fragmentation("mem_fragmentation", memory.fragmentation_ratio(), memory.fragmentation_bytes());
    lines(
        text,
        &[
            ("mem_not_counted_for_evict", facts.engine.uncounted_memory() as u64),
            ("mem_wasted", facts.engine.wasted_memory() as u64),
            ("mem_wasted_counted_for_evict", facts.engine.waste_counted() as u64),
            ("mem_replication_backlog", 0),
            ("mem_total_replication_buffers", 0),
            ("mem_replicas_repl_buffer", 0),
            ("mem_clients_slaves", 0),
            ("mem_clients_normal", memory.clients),
            ("mem_cluster_links", 0),
            ("mem_aof_buffer", facts.engine.aof_figures().files.map_or(0, |files| files.log.buffered)),
            // A table of keys grows in one step, so that there are never two of it.
            ("mem_overhead_db_hashtable_rehashing", 0),
        ],
    );
    if let Some(allocator) = facts.engine.allocator.get() {
        line(text, "mem_allocator", allocator.name);
    }
    let reaper = &facts.engine.reaper;
    lines(
        text,
        &[
            ("active_defrag_running", 0),
            ("lazyfree_pending_objects", reaper.pending() as u64),
            ("lazyfreed_objects", reaper.freed() as u64),
        ],
    );
}

/// What of `# Memory` is about scripts: their Lua states, and what is kept of them beside.
fn scripts_memory(facts: &Facts<'_>, text: &mut String) {
    let scripts = &facts.engine.scripts;
    let [eval, functions] = [0, 1].map(|kind| facts.engine.sum(|stats| stats.lua_bytes[kind].load(Ordering::Relaxed)));
    let shelf = scripts.libraries.shelf();
    line(text, "used_memory_vm_eval", eval);
    both(text, "used_memory_lua", eval);
    line(text, "used_memory_scripts_eval", scripts.known.memory());
    line(text, "number_of_cached_scripts", scripts.known.count());
    line(text, "number_of_functions", shelf.function_count());
    line(text, "number_of_libraries", shelf.libraries().len());
    line(text, "used_memory_vm_functions", functions);
    both(text, "used_memory_vm_total", eval + functions);
    line(text, "used_memory_functions", scripts.libraries.memory());
    both(text, "used_memory_scripts", scripts.overhead());
}

/// `# Persistence`. What Redis copies on write is here what was handed over to the snapshot: the most of it at one time.
pub fn persistence(facts: &Facts<'_>, text: &mut String) {
    let saving = facts.engine.saving.facts(facts.engine.changes());
    let snapshot = facts.engine.snapshot().map(|snapshot| snapshot.progress());
    let progress = snapshot.unwrap_or_default();
    lines(
        text,
        &[
            ("loading", facts.engine.is_loading().into()),
            ("async_loading", 0),
            ("current_cow_peak", progress.queued_peak),
            ("current_cow_size", progress.queued),
            ("current_cow_size_age", 0),
        ],
    );
    let percent =
        if progress.keys_total == 0 { 0.0 } else { progress.keys as f64 * 100.0 / progress.keys_total as f64 };
    line(text, "current_fork_perc", format!("{percent:.2}"));
    lines(
        text,
        &[
            ("current_save_keys_processed", progress.keys),
            ("current_save_keys_total", progress.keys_total),
            ("rdb_changes_since_last_save", saving.changes),
            ("rdb_bgsave_in_progress", u64::from(saving.current.is_some())),
            ("rdb_last_save_time", saving.saved_s),
        ],
    );
    let seconds = |duration: Option<Duration>| duration.map_or(-1, |duration| duration.as_secs() as i64);
    line(text, "rdb_last_bgsave_status", if saving.is_well { "ok" } else { "err" });
    line(text, "rdb_last_bgsave_time_sec", seconds(saving.took));
    line(text, "rdb_current_bgsave_time_sec", seconds(saving.current));
    lines(
        text,
        &[
            ("rdb_last_cow_size", saving.last.queued_peak),
            ("rdb_last_stalls", saving.last.stalls),
            ("rdb_last_stalls_usec", saving.last.stalled_us),
            ("rdb_saves", saving.tries),
            ("rdb_last_load_keys_expired", facts.engine.loading.keys_expired.load(Ordering::Relaxed)),
            ("rdb_last_load_keys_loaded", facts.engine.loading.keys_loaded.load(Ordering::Relaxed)),
        ],
    );
    append_only(facts.engine, text);
    lines(text, &[("module_fork_in_progress", 0), ("module_fork_last_cow_size", 0)]);
    if facts.engine.is_loading() {
        loading(facts, text);
    }
}

/// How far the data is that is being loaded.
fn loading(facts: &Facts<'_>, text: &mut String) {
    let figures = facts.engine.loading.figures();
    lines(
        text,
        &[
            ("loading_start_time", figures.started_ms / 1_000),
            ("loading_total_bytes", figures.total_bytes),
            ("loading_rdb_used_mem", figures.writer_memory),
            ("loading_loaded_bytes", figures.loaded_bytes),
        ],
    );
    put(text, format_args!("loading_loaded_perc:{:.2}\r\n", figures.percent()));
    line(text, "loading_eta_seconds", figures.seconds_left(clock::now_us() / 1_000));
}

/// `# Stats`
pub fn stats(facts: &Facts<'_>, text: &mut String) {
    let rates = facts.engine.rates.a_second();
    let pubsub = &facts.engine.pubsub;
    let denied = |reason| facts.engine.acl.log.count(reason);
    let refused = facts.engine.refused_connections.load(Ordering::Relaxed);
    let [over_limit_ms, over_limit_total_ms] = facts.engine.over_limit.current_and_total_ms(monotonic_ns());
    lines(
        text,
        &[
            ("total_connections_received", facts.sum(|all| &all.connections)),
            ("total_commands_processed", facts.sum(|all| &all.commands)),
            ("instantaneous_ops_per_sec", rates.commands),
            ("total_net_input_bytes", facts.sum(|all| &all.input_bytes)),
            ("total_net_output_bytes", facts.sum(|all| &all.output_bytes)),
            ("total_net_repl_input_bytes", 0),
            ("total_net_repl_output_bytes", 0),
        ],
    );
    put(text, format_args!("instantaneous_input_kbps:{:.2}\r\n", rates.input_bytes as f64 / 1024.0));
    put(text, format_args!("instantaneous_output_kbps:{:.2}\r\n", rates.output_bytes as f64 / 1024.0));
    line(text, "instantaneous_input_repl_kbps", "0.00");
    line(text, "instantaneous_output_repl_kbps", "0.00");
    // Not estimated (docs/compatibility.md): what is due goes by the time that it is due, not by samples.
    line(text, "expired_stale_perc", "0.00");
    lines(
        text,
        &[
            ("rejected_connections", refused),
            ("sync_full", 0),
            ("sync_partial_ok", 0),
            ("sync_partial_err", 0),
            ("expired_subkeys", facts.sum(|all| &all.expired_members)),
            ("expired_keys", facts.sum(|all| &all.expired)),
            ("expired_fields", facts.sum(|all| &all.expired_fields)),
            ("expired_time_cap_reached_count", facts.sum(|all| &all.expire_capped)),
            ("expire_cycle_cpu_milliseconds", facts.sum(|all| &all.expire_us) / 1_000),
            ("evicted_keys", facts.sum(|all| &all.evicted)),
            ("evicted_clients", facts.sum(|all| &all.clients_evicted)),
            ("evicted_scripts", facts.engine.scripts.known.evicted()),
            ("total_eviction_exceeded_time", over_limit_total_ms),
            ("current_eviction_exceeded_time", over_limit_ms),
            ("keyspace_hits", facts.sum(|all| &all.hits)),
            ("keyspace_misses", facts.sum(|all| &all.misses)),
            ("pubsub_channels", pubsub.channel_count(Scope::Global) as u64),
            ("pubsub_patterns", pubsub.pattern_count() as u64),
            ("pubsubshard_channels", pubsub.channel_count(Scope::Shard) as u64),
            ("latest_fork_usec", 0),
            ("total_forks", 0),
            ("migrate_cached_sockets", 0),
            ("slave_expires_tracked_keys", 0),
            ("active_defrag_hits", 0),
            ("active_defrag_misses", 0),
            ("active_defrag_key_hits", 0),
            ("active_defrag_key_misses", 0),
            ("total_active_defrag_time", 0),
            ("current_active_defrag_time", 0),
            ("tracking_total_keys", facts.engine.tracking.keys() as u64),
            ("tracking_total_items", facts.engine.tracking.items() as u64),
            ("tracking_total_prefixes", facts.engine.tracking.prefix_count() as u64),
            ("unexpected_error_replies", 0),
            ("total_error_replies", facts.sum(|all| &all.errors)),
            ("total_reads_processed", facts.sum(|all| &all.reads)),
            ("total_writes_processed", facts.sum(|all| &all.writes)),
            ("io_threaded_reads_processed", 0),
            ("io_threaded_writes_processed", 0),
            ("reply_buffer_shrinks", 0),
            ("reply_buffer_expands", 0),
            ("client_query_buffer_limit_disconnections", facts.sum(|all| &all.input_limit_closed)),
            ("client_output_buffer_limit_disconnections", facts.sum(|all| &all.output_limit_closed)),
            ("acl_access_denied_auth", denied(Reason::Auth)),
            ("acl_access_denied_cmd", denied(Reason::Command)),
            ("acl_access_denied_key", denied(Reason::Key)),
            ("acl_access_denied_channel", denied(Reason::Channel)),
            ("acl_access_denied_db", denied(Reason::Database)),
        ],
    );
}

/// `# Replication`: a master without replicas.
pub fn replication(facts: &Facts<'_>, text: &mut String) {
    line(text, "role", "master");
    line(text, "connected_slaves", 0);
    line(text, "master_failover_state", "no-failover");
    line(text, "master_replid", &facts.engine.run_id);
    line(text, "master_replid2", "0".repeat(40));
    line(text, "master_repl_offset", 0);
    line(text, "second_repl_offset", -1);
    for name in ["active", "size", "first_byte_offset", "histlen"] {
        put(text, format_args!("repl_backlog_{name}:0\r\n"));
    }
}

/// `# CPU`
pub fn cpu(_facts: &Facts<'_>, text: &mut String) {
    let all = CpuTimes::of_process();
    let main = CpuTimes::of_main_thread();
    for (name, seconds) in [
        ("sys", all.system),
        ("user", all.user),
        ("sys_children", all.children_system),
        ("user_children", all.children_user),
        ("sys_main_thread", main.system),
        ("user_main_thread", main.user),
    ] {
        put(text, format_args!("used_cpu_{name}:{seconds:.6}\r\n"));
    }
}

/// `# Commandstats`: every command that was called or refused.
pub fn command_stats(facts: &Facts<'_>, text: &mut String) {
    for (number, command) in facts.engine.commands.all().iter().enumerate() {
        let sum = |of: fn(&tenon_engine::stats::CommandCounters) -> &Counter| {
            facts.engine.sum(|stats| of(&stats.commands[number]).get())
        };
        let (calls, rejected, failed) = (sum(|c| &c.calls), sum(|c| &c.rejected), sum(|c| &c.failed));
        if calls + rejected + failed == 0 {
            continue;
        }
        let us = sum(|c| &c.time_ns) / 1_000;
        let us_per_call = if calls == 0 { 0.0 } else { us as f64 / calls as f64 };
        let name = command.full_name();
        put(
            text,
            format_args!(
                "cmdstat_{name}:calls={calls},usec={us},usec_per_call={us_per_call:.2},rejected_calls={rejected},\
                 failed_calls={failed}\r\n"
            ),
        );
    }
}

/// `# Errorstats`
pub fn error_stats(facts: &Facts<'_>, text: &mut String) {
    for (code, count) in facts.engine.errors.lock().iter() {
        put(text, format_args!("errorstat_{code}:count={count}\r\n"));
    }
}

/// `# Latencystats`: of every command that was called, the percentiles that the settings name.
pub fn latency_stats(facts: &Facts<'_>, text: &mut String) {
    let percentiles = facts.engine.config.latency_tracking_info_percentiles();
    for (number, command) in facts.engine.commands.all().iter().enumerate() {
        let Some(counts) = latency_counts(facts.engine, number) else { continue };
        let shown = percentiles.iter().map(|percent| {
            let ns = counts.percentile_ns(*percent);
            format!("p{percent}={}.{:03}", ns / 1_000, ns % 1_000)
        });
        let shown: Vec<String> = shown.collect();
        put(text, format_args!("latency_percentiles_usec_{}:{}\r\n", command.full_name(), shown.join(",")));
    }
}

/// `# Cluster`
pub fn cluster(_facts: &Facts<'_>, text: &mut String) {
    line(text, "cluster_enabled", 0);
}

/// `# Keyspace`: every database that has keys.
pub fn keyspace(facts: &Facts<'_>, text: &mut String) {
    for (index, database) in facts.databases.iter().enumerate().filter(|(_, database)| database.keys > 0) {
        let DatabaseFacts { keys, expiring, ttl_ms_mean, with_deadlines, .. } = database;
        put(
            text,
            format_args!(
                "db{index}:keys={keys},expires={expiring},avg_ttl={ttl_ms_mean},subexpiry={with_deadlines}\r\n"
            ),
        );
    }
}

/// Whether there is anything to say of hot keys.
pub fn has_hotkeys(facts: &Facts<'_>) -> bool {
    facts.engine.hotkeys.is_known()
}

/// `# Hotkeys`
pub fn hotkeys(facts: &Facts<'_>, text: &mut String) {
    line(text, "hotkeys-tracking-active", u64::from(facts.engine.hotkeys.is_active(facts.now_ms)));
}

/// How late 99 % of the removed keys and members were at most, in milliseconds: the end of their bucket.
fn expiry_lag_ms_p99(engine: &Engine) -> u64 {
    let counts: [u64; LAG_BUCKETS] = std::array::from_fn(|bucket| engine.sum(|stats| stats.expiry_lag[bucket].get()));
    let all: u64 = counts.iter().sum();
    let mut later = 0;
    // From the latest bucket down, as long as no more than a hundredth of all keys lies beyond.
    let last = (0..LAG_BUCKETS).rev().find(|&bucket| {
        later += counts[bucket];
        later * 100 > all
    });
    last.map_or(0, |bucket| (1 << bucket) - 1)
}

/// `# Tenon`: what Redis has no names for.
pub fn tenon(facts: &Facts<'_>, text: &mut String) {
    let engine = facts.engine;
    let expired = facts.sum(|all| &all.expired) + facts.sum(|all| &all.expired_members);
    let evicted = facts.sum(|all| &all.evicted);
    let mean = |sum: u64, count: u64| if count == 0 { 0.0 } else { sum as f64 / count as f64 };
    let mut lag_ms_max = 0;
    engine.each_stats(|stats| lag_ms_max = lag_ms_max.max(stats.all.expiry_lag_ms_max.get()));
    line(text, "workers", engine.workers());
    line(text, "shards", engine.shards.count());
    line(text, "memcached_port", engine.config.memcached_port());
    let lag_ms_mean = mean(facts.sum(|all| &all.expiry_lag_ms_sum), expired);
    put(text, format_args!("expiry_lag_ms_mean:{lag_ms_mean:.2}\r\n"));
    line(text, "expiry_lag_ms_p99", expiry_lag_ms_p99(engine).min(lag_ms_max));
    line(text, "expiry_lag_ms_max", lag_ms_max);
    put(text, format_args!("eviction_us_mean:{:.2}\r\n", mean(facts.sum(|all| &all.eviction_us), evicted)));
    line(text, "changes", engine.changes());
    for index in 0..engine.workers() {
        let threads = engine.stats_of(index);
        let sum =
            |counter: fn(&Counters) -> &Counter| threads.iter().map(|stats| counter(&stats.all).get()).sum::<u64>();
        put(
            text,
            format_args!(
                "worker{index}:commands={},connections={},hits={},misses={},expired={},evicted={},input_bytes={},\
                 output_bytes={}\r\n",
                sum(|all| &all.commands),
                sum(|all| &all.connections),
                sum(|all| &all.hits),
                sum(|all| &all.misses),
                sum(|all| &all.expired),
                sum(|all| &all.evicted),
                sum(|all| &all.input_bytes),
                sum(|all| &all.output_bytes)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_for_people() {
        let shown = [0, 1023, 1024, 1_585_280, 25_276_514_304, u64::MAX].map(human);
        assert_eq!(shown, ["0B", "1023B", "1.00K", "1.51M", "23.54G", "16.00E"]);
    }
}
