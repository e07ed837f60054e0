//! stats settings: what the server is told to do. Changes nothing.

use super::lines::Lines;
use std::sync::Arc;
use tenon_engine::Engine;
use tenon_engine::config::{LogLevel, MemcachedProtocol, Policy, TlsAuthClients};

/// The settings, by memcached's names for them.
pub(super) fn settings(engine: &Engine, lines: &mut Lines<'_>) {
    let config = &engine.config;
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let socket = config.memcached_unixsocket();
    lines.stat("maxbytes", config.maxmemory());
    lines.stat("maxconns", config.maxclients());
    lines.stat("tcpport", config.memcached_port());
    lines.stat("udpport", config.memcached_udp_port());
    // All addresses are those that nobody has named.
    match &*config.bind() {
        [v4, v6] if v4 == "*" && v6 == "-::*" => lines.stat("inter", "NULL"),
        words => lines.stat("inter", words.join(",")),
    }
    // The levels of `verbosity`; fewer lines than 0 has have none of their own.
    lines.stat(
        "verbosity",
        match config.loglevel() {
            LogLevel::Debug => 2,
            LogLevel::Verbose => 1,
            _ => 0,
        },
    );
    // What a flush takes is gone at once; nothing is kept that is too old to be told.
    lines.stat("oldest", 0);
    lines.stat("evictions", if config.maxmemory_policy() == Policy::NoEviction { "off" } else { "on" });
    lines.stat("domain_socket", if socket.is_empty() { "NULL" } else { &socket });
    lines.stat("umask", format_args!("{:o}", config.unixsocketperm()));
    lines.stat("shutdown_command", yes_no(config.memcached_shutdown()));
    lines.stat("num_threads", engine.workers());
    lines.stat("num_threads_per_udp", engine.workers());
    lines.stat("stat_key_prefix", char::from(engine.prefixes.delimiter()));
    lines.stat("detail_enabled", yes_no(engine.prefixes.is_on()));
    lines.stat("reqs_per_event", config.memcached_requests_per_turn());
    lines.stat("cas_enabled", yes_no(config.memcached_cas()));
    lines.stat("tcp_backlog", config.tcp_backlog());
    lines.stat(
        "binding_protocol",
        match config.memcached_protocol() {
            MemcachedProtocol::Auto => "auto-negotiate",
            MemcachedProtocol::Ascii => "ascii",
            MemcachedProtocol::Binary => "binary",
        },
    );
    lines.stat(
        "auth_enabled_sasl",
        yes_no(config.memcached_auth() && config.memcached_protocol() != MemcachedProtocol::Ascii),
    );
    let asks_by_text = config.memcached_auth() && config.memcached_protocol() != MemcachedProtocol::Binary;
    let auth_file = config.memcached_auth_file();
    // As memcached: the file's name where there is one.
    match (asks_by_text, auth_file.is_empty()) {
        (true, false) => lines.stat("auth_enabled_ascii", auth_file),
        (asks, _) => lines.stat("auth_enabled_ascii", yes_no(asks)),
    }
    lines.stat("item_size_max", config.max_value_size());
    // Who comes when there are too many is told so.
    lines.stat("maxconns_fast", yes_no(true));
    // What has expired is found without looking for it, and what is evicted without a queue for each class.
    for name in ["slab_reassign", "lru_crawler", "lru_maintainer_thread", "lru_segmented", "temp_lru"] {
        lines.stat(name, yes_no(false));
    }
    lines.stat("slab_automove", 0);
    lines.stat("flush_enabled", yes_no(config.memcached_flush_all()));
    lines.stat("dump_enabled", yes_no(config.memcached_dump()));
    lines.stat("hash_algorithm", "rapidhash");
    lines.stat("idle_timeout", config.timeout());
    lines.stat("watcher_logbuf_size", config.memcached_watch_buffer());
    lines.stat("read_buf_mem_limit", config.maxmemory_clients().max(0));
    lines.stat("track_sizes", yes_no(config.memcached_track_sizes()));
    let has_tls = config.memcached_tls_port() != 0;
    lines.stat("ssl_enabled", yes_no(has_tls));
    if has_tls {
        tls(engine, lines);
    }
}

/// How TLS is spoken, in memcached's words.
fn tls(engine: &Engine, lines: &mut Lines<'_>) {
    let config = &engine.config;
    let or_null = |file: Arc<str>| if file.is_empty() { "NULL".into() } else { file };
    lines.stat("ssl_chain_cert", config.tls_cert_file());
    lines.stat("ssl_key", config.tls_key_file());
    lines.stat(
        "ssl_verify_mode",
        match config.tls_auth_clients() {
            TlsAuthClients::No => 0,
            TlsAuthClients::Optional => 1,
            TlsAuthClients::Yes => 2,
        },
    );
    // Certificates and keys are PEM.
    lines.stat("ssl_keyformat", 1);
    lines.stat("ssl_ciphers", or_null(config.tls_ciphers()));
    lines.stat("ssl_ca_cert", or_null(config.tls_ca_cert_file()));
    lines.stat("ssl_wbuf_size", config.tls_write_buffer());
    lines.stat("ssl_session_cache", if config.tls_session_caching() { "yes" } else { "no" });
    lines.stat("ssl_kernel_tls", "no");
    let is_newest = !config.tls_protocols().is_empty() && !config.tls_protocols().contains("TLSv1.2");
    lines.stat("ssl_min_version", if is_newest { "tlsv1.3" } else { "tlsv1.2" });
}
