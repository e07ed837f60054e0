//! What clients who watch are told of memcached connections that begin and end (`watch connevents`). Knows no request.

use crate::Ending;
use std::io::Write;
use tenon_engine::Engine;
use tenon_engine::clients::Client;
use tenon_engine::watchers::Watched;

/// Tells that a connection has begun.
pub(super) fn tell_new(engine: &Engine, client: &Client) {
    if engine.watchers.want(Watched::CONNECTIONS) {
        tell(engine, client, "conn_new", "");
    }
}

/// Tells that a connection has ended.
pub(super) fn tell_closed(engine: &Engine, client: &Client, ending: Ending) {
    if engine.watchers.want(Watched::CONNECTIONS) {
        let reason = match ending {
            Ending::Normal => " reason=normal",
            Ending::Error => " reason=error",
            Ending::IdleTimeout => " reason=idle_timeout",
            Ending::Shutdown => " reason=shutdown",
        };
        tell(engine, client, "conn_close", reason);
    }
}

#[cold]
fn tell(engine: &Engine, client: &Client, what: &str, reason: &str) {
    let info = &client.info;
    let (host, port) = match info.remote.rsplit_once(':') {
        Some((host, port)) if !info.unix => (host.trim_matches(['[', ']']), port),
        _ => ("unix", "0"),
    };
    let transport = if info.unix { "local" } else { "tcp" };
    engine.tell_watchers(Watched::CONNECTIONS, |line| {
        write!(line, "type={what} rip={host} rport={port} transport={transport}{reason} cfd={}", info.fd)
            .expect("a Vec takes everything");
    });
}
