//! The sockets that the server listens on, for whoever shows them (`stats conns`). Opens none.

use crate::clients::Dialect;
use parking_lot::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a socket takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP connections.
    Tcp,
    /// TCP connections that begin with TLS.
    Tls,
    /// Connections of a UNIX socket.
    Unix,
    /// Datagrams.
    Udp,
}

/// One socket that is listened on.
#[derive(Debug)]
pub struct ListeningSocket {
    /// The socket's number.
    pub fd: i32,
    /// Who speaks there.
    pub dialect: Dialect,
    /// What it takes.
    pub transport: Transport,
    /// Its address and port, or its path.
    pub address: String,
    /// When it was opened, or its last datagram came, in milliseconds since the UNIX epoch.
    active_ms: AtomicU64,
}

impl ListeningSocket {
    /// A socket that was opened at this time.
    pub fn new(fd: i32, dialect: Dialect, transport: Transport, address: String, now_ms: u64) -> ListeningSocket {
        ListeningSocket { fd, dialect, transport, address, active_ms: AtomicU64::new(now_ms) }
    }

    /// When it was opened, or its last datagram came, in milliseconds since the UNIX epoch.
    pub fn active_ms(&self) -> u64 {
        self.active_ms.load(Ordering::Relaxed)
    }
}

/// All sockets that are listened on; told by whoever opens them.
#[derive(Debug, Default)]
pub struct Listening {
    sockets: RwLock<Vec<ListeningSocket>>,
}

impl Listening {
    /// Says which there are now. One that was there before keeps its times.
    pub fn set(&self, sockets: Vec<ListeningSocket>) {
        let mut own = self.sockets.write();
        for socket in &sockets {
            if let Some(before) = own.iter().find(|own| (own.fd, &own.address) == (socket.fd, &socket.address)) {
                socket.active_ms.store(before.active_ms(), Ordering::Relaxed);
            }
        }
        *own = sockets;
    }

    /// Notes that a datagram has come to this address: on the socket that has it, or on that of all addresses.
    pub fn note_datagram(&self, local: &str, now_ms: u64) {
        let sockets = self.sockets.read();
        let find = |address: &str| {
            sockets.iter().find(|socket| socket.transport == Transport::Udp && socket.address == address)
        };
        let of_all = || {
            let (host, port) = local.rsplit_once(':')?;
            find(&format!("{}:{port}", if host.starts_with('[') { "[::]" } else { "0.0.0.0" }))
        };
        // All workers write there: not more often than anybody can see.
        if let Some(socket) = find(local).or_else(of_all)
            && socket.active_ms() / 1_000 != now_ms / 1_000
        {
            socket.active_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    /// Shows each of them.
    pub fn each(&self, show: impl FnMut(&ListeningSocket)) {
        self.sockets.read().iter().for_each(show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(fd: i32, address: &str, now_ms: u64) -> ListeningSocket {
        ListeningSocket::new(fd, Dialect::Memcached, Transport::Udp, address.to_owned(), now_ms)
    }

    fn shown(listening: &Listening) -> Vec<(i32, u64)> {
        let mut shown = Vec::new();
        listening.each(|socket| shown.push((socket.fd, socket.active_ms())));
        shown
    }

    #[test]
    fn a_socket_that_stays_keeps_its_time() {
        let listening = Listening::default();
        listening.set(vec![socket(3, "a:1", 1_000), socket(4, "b:1", 1_000)]);
        listening.note_datagram("a:1", 5_500);
        listening.note_datagram("a:1", 5_700);
        listening.note_datagram("c:1", 6_000);
        assert_eq!(shown(&listening), [(3, 5_500), (4, 1_000)]);
        listening.set(vec![socket(5, "[::]:1", 1_000), socket(6, "0.0.0.0:1", 1_000)]);
        listening.note_datagram("127.0.0.2:1", 7_000);
        assert_eq!(shown(&listening), [(5, 1_000), (6, 7_000)]);
        listening.note_datagram("[::1]:1", 8_000);
        listening.note_datagram("127.0.0.2:2", 9_000);
        assert_eq!(shown(&listening), [(5, 8_000), (6, 7_000)]);
    }

    #[test]
    fn a_socket_that_stays_keeps_its_time_when_others_come() {
        let listening = Listening::default();
        listening.set(vec![socket(3, "a:1", 5_500), socket(4, "b:1", 1_000)]);
        listening.set(vec![socket(3, "a:1", 9_000), socket(4, "c:1", 9_000)]);
        assert_eq!(shown(&listening), [(3, 5_500), (4, 9_000)]);
    }
}
