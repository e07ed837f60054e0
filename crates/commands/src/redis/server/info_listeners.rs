//! INFO's lines about what the server listens on. Opens nothing.

use std::fmt::Write;
use tenon_engine::clients::Dialect;
use tenon_engine::listening::{Listening, ListeningSocket, Transport};

/// The sockets of one kind and port.
struct Listener {
    name: &'static str,
    hosts: Vec<String>,
    port: Option<String>,
}

/// What Redis calls a socket; memcached's have names of their own.
fn name_of(socket: &ListeningSocket) -> &'static str {
    match (socket.dialect, socket.transport) {
        (Dialect::Resp, Transport::Tls) => "tls",
        (Dialect::Resp, Transport::Unix) => "unix",
        (Dialect::Resp, Transport::Tcp | Transport::Udp) => "tcp",
        (Dialect::Memcached, Transport::Tcp) => "memcached",
        (Dialect::Memcached, Transport::Tls) => "memcached-tls",
        (Dialect::Memcached, Transport::Unix) => "memcached-unix",
        (Dialect::Memcached, Transport::Udp) => "memcached-udp",
    }
}

/// What is listened on, a text for each kind and port, such as `name=tcp,bind=127.0.0.1,bind=::1,port=6379`.
pub(super) fn listeners(listening: &Listening) -> Vec<String> {
    let mut found: Vec<Listener> = Vec::new();
    listening.each(|socket| {
        let (host, port) = match socket.transport {
            Transport::Unix => (socket.address.as_str(), None),
            _ => socket.address.rsplit_once(':').map_or((&*socket.address, None), |(host, port)| (host, Some(port))),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = name_of(socket);
        match found.iter_mut().find(|it| (it.name, it.port.as_deref()) == (name, port)) {
            Some(listener) => listener.hosts.push(host),
            None => found.push(Listener { name, hosts: vec![host], port: port.map(str::to_owned) }),
        }
    });
    found.iter().map(text_of).collect()
}

fn text_of(listener: &Listener) -> String {
    let mut text = format!("name={}", listener.name);
    for host in &listener.hosts {
        write!(text, ",bind={host}").expect("a String takes everything");
    }
    if let Some(port) = &listener.port {
        write!(text, ",port={port}").expect("a String takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_port_are_one_listener() {
        let listening = Listening::default();
        let socket =
            |fd, dialect, transport, address: &str| ListeningSocket::new(fd, dialect, transport, address.to_owned(), 0);
        listening.set(vec![
            socket(3, Dialect::Resp, Transport::Tcp, "127.0.0.1:6379"),
            socket(4, Dialect::Resp, Transport::Tls, "127.0.0.1:6380"),
            socket(5, Dialect::Resp, Transport::Tcp, "[::1]:6379"),
            socket(6, Dialect::Memcached, Transport::Udp, "0.0.0.0:11211"),
            socket(7, Dialect::Memcached, Transport::Tcp, "0.0.0.0:11211"),
            socket(8, Dialect::Resp, Transport::Unix, "/run/a:b.sock"),
        ]);
        assert_eq!(
            listeners(&listening),
            [
                "name=tcp,bind=127.0.0.1,bind=::1,port=6379",
                "name=tls,bind=127.0.0.1,port=6380",
                "name=memcached-udp,bind=0.0.0.0,port=11211",
                "name=memcached,bind=0.0.0.0,port=11211",
                "name=unix,bind=/run/a:b.sock",
            ]
        );
    }
}
