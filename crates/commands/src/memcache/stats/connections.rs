//! stats conns: the sockets of memcached's clients and those where they are awaited. Changes nothing.

use super::lines::Lines;
use std::sync::atomic::Ordering;
use tenon_engine::Engine;
use tenon_engine::clients::{Awaited, Client, Dialect};
use tenon_engine::listening::{ListeningSocket, Transport};
use tenon_engine::session::Roles;
use tenon_engine::worker::Worker;

/// What is told of one socket.
struct Shown {
    fd: i32,
    is_udp: bool,
    address: String,
    /// The server's end, where that is another.
    listens_at: Option<String>,
    state: &'static str,
    active_ms: u64,
}

/// The sockets, by their numbers. `asking` is who wants to know.
pub(super) fn connections(engine: &Engine, worker: &Worker, asking: &Client, lines: &mut Lines<'_>) {
    let mut all = Vec::new();
    engine.listening.each(|socket| {
        if socket.dialect == Dialect::Memcached {
            all.push(listening(socket, asking));
        }
    });
    let clients = engine.clients.list();
    all.extend(clients.iter().filter(|client| client.info.dialect == Dialect::Memcached).map(|one| shown(one, asking)));
    all.sort_by_key(|shown| shown.fd);
    for Shown { fd, is_udp, address, listens_at, state, active_ms } in all {
        if is_udp {
            lines.stat(format_args!("{fd}:UDP"), "UDP");
        }
        lines.stat(format_args!("{fd}:addr"), address);
        if let Some(at) = listens_at {
            lines.stat(format_args!("{fd}:listen_addr"), at);
        }
        lines.stat(format_args!("{fd}:state"), state);
        let idle_ms = worker.clock.now_ms.saturating_sub(active_ms);
        lines.stat(format_args!("{fd}:secs_since_last_cmd"), idle_ms / 1_000);
    }
}

fn listening(socket: &ListeningSocket, asking: &Client) -> Shown {
    let own = named(socket.transport, &socket.address);
    let is_udp = socket.transport == Transport::Udp;
    // Who asks over UDP has no socket but this one.
    let (address, listens_at, state) = match (is_udp, asking.info.fd) {
        (true, -1) if asking.info.local == socket.address => {
            (named(Transport::Udp, &asking.info.remote), Some(own), "conn_parse_cmd")
        }
        (true, _) => (own, None, "conn_read"),
        (false, _) => (own, None, "conn_listening"),
    };
    Shown { fd: socket.fd, is_udp, address, listens_at, state, active_ms: socket.active_ms() }
}

fn shown(client: &Client, asking: &Client) -> Shown {
    let info = &client.info;
    let (address, listens_at) = if info.unix {
        // The client's end of a UNIX socket has no address, and this is how memcached says so.
        let path = info.local.strip_suffix(":0").unwrap_or(&info.local);
        ("?:<AF 0>".to_owned(), named(Transport::Unix, path))
    } else {
        (named(Transport::Tcp, &info.remote), named(Transport::Tcp, &info.local))
    };
    let state = match client.awaited() {
        _ if client.id == asking.id => "conn_parse_cmd",
        _ if client.roles().has(Roles::WATCHER) => "conn_watch",
        _ if client.output_bytes.load(Ordering::Relaxed) > 0 => "conn_mwrite",
        Awaited::Request if client.received_bytes.load(Ordering::Relaxed) == 0 => "conn_new_cmd",
        Awaited::Request => "conn_read",
        Awaited::Data => "conn_nread",
        Awaited::Refused => "conn_swallow",
    };
    let active_ms = client.active_ms.load(Ordering::Relaxed);
    Shown { fd: info.fd, is_udp: false, address, listens_at: Some(listens_at), state, active_ms }
}

/// An address as memcached shows it.
fn named(transport: Transport, address: &str) -> String {
    let is_v6 = address.starts_with('[');
    let name = match transport {
        Transport::Unix => "unix",
        Transport::Tcp | Transport::Tls if is_v6 => "tcp6",
        Transport::Tcp | Transport::Tls => "tcp",
        Transport::Udp if is_v6 => "udp6",
        Transport::Udp => "udp",
    };
    format!("{name}:{address}")
}
