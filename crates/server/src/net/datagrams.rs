//! A UDP socket that all workers receive from, each one datagram at a time. Knows no protocol.

use super::listener::Bind;
use super::serve::{Bound, ServeError, Takes};
use super::service::{Address, FrontEnd};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{set_ipv6_v6only, set_socket_reuseaddr};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, getsockname, recvfrom, sendto, socket_with,
};
use std::net::SocketAddr;
use std::sync::Arc;

/// Datagrams that one worker takes before its connections have their turn.
const DATAGRAMS_PER_TURN: usize = 64;
/// Bytes of the longest datagram.
const DATAGRAM_MAX: usize = 65_536;

/// A UDP socket.
#[derive(Debug)]
pub(super) struct Datagrams {
    fd: OwnedFd,
    /// What was asked for.
    word: Bind,
    port: u16,
    local: SocketAddr,
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Datagrams {
    /// Opens the sockets of a port and its addresses, or none. Those of `there` that are among them are kept. An optional
    /// address that this machine lacks is skipped with a warning.
    pub(super) fn open_all(
        wanted: Option<&(u16, Vec<Bind>)>,
        there: &[Arc<Datagrams>],
    ) -> Result<Vec<Arc<Datagrams>>, ServeError> {
        let Some((port, words)) = wanted else { return Ok(Vec::new()) };
        let mut opened = Vec::new();
        for word in words {
            let before = opened.len();
            opened.extend(there.iter().filter(|socket| (socket.port, &socket.word) == (*port, word)).cloned());
            if opened.len() > before {
                continue;
            }
            match Datagrams::open(word, *port, there) {
                Ok(sockets) => {
                    for socket in sockets {
                        tracing::info!(address = %socket.local(), "listening to datagrams");
                        opened.push(Arc::new(socket));
                    }
                }
                Err(error) if word.optional => {
                    tracing::warn!("no UDP on {}: {error}; going on without it", word.host)
                }
                Err(error) => return Err(ServeError::Datagrams(word.host.clone(), *port, error)),
            }
        }
        Ok(opened)
    }

    fn open(word: &Bind, port: u16, there: &[Arc<Datagrams>]) -> std::io::Result<Vec<Datagrams>> {
        let open = |address| Datagrams::open_at(address, word, port, there);
        Ok(word.open_each(word.resolve(port)?, |errno| errno, open)?)
    }

    /// Opens one socket. Those of `there` are not in its way: workers may use them for a moment longer.
    fn open_at(address: SocketAddr, word: &Bind, port: u16, there: &[Arc<Datagrams>]) -> Result<Datagrams, Errno> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(family, SocketType::DGRAM, flags, None)?;
        if address.is_ipv6() {
            // So that `* ::*` can be received on both.
            set_ipv6_v6only(&fd, true)?;
        }
        let in_the_way: Vec<_> = there.iter().filter(|socket| socket.overlaps(address)).collect();
        // The kernel looks at both when the later one is bound. No longer than that: no other process is to come between.
        let share = |shared| in_the_way.iter().try_for_each(|socket| set_socket_reuseaddr(&socket.fd, shared));
        if !in_the_way.is_empty() {
            set_socket_reuseaddr(&fd, true)?;
            share(true)?;
        }
        let bound = bind(&fd, &address);
        if !in_the_way.is_empty() {
            share(false)?;
            set_socket_reuseaddr(&fd, false)?;
        }
        bound?;
        let local = getsockname(&fd).and_then(SocketAddr::try_from)?;
        Ok(Datagrams { fd, word: word.clone(), port, local })
    }

    /// Whether a socket of this address could not be bound beside this one.
    fn overlaps(&self, address: SocketAddr) -> bool {
        let (own, other) = (self.local.ip(), address.ip());
        self.local.port() == address.port()
            && own.is_ipv4() == other.is_ipv4()
            && (own == other || own.is_unspecified() || other.is_unspecified())
    }

    /// The address, with the port that the kernel chose where none was asked for.
    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Where it listens: memcached's protocol alone has datagrams.
    pub(super) fn bound(&self) -> Bound {
        let (front_end, address) = (FrontEnd::Memcached, Address::Inet(self.local));
        Bound { front_end, takes: Takes::Datagrams, address, fd: self.fd.as_raw_fd() }
    }

    /// Hands what has come to `answer`, with a way to send back; tells whether there may be more.
    pub(super) fn receive(&self, mut answer: impl FnMut(SocketAddr, &[u8], &mut dyn FnMut(&[u8]))) -> bool {
        let mut datagram = vec![0; DATAGRAM_MAX];
        for _ in 0..DATAGRAMS_PER_TURN {
            let (len, from) = match recvfrom(&self.fd, &mut datagram[..], RecvFlags::empty()) {
                Ok((len, _, from)) => (len, from),
                Err(Errno::AGAIN) => return false,
                // The answer to an earlier datagram has reached nobody, or a signal came: no reason not to go on.
                Err(_) => continue,
            };
            let Some(from) = from.and_then(|from| SocketAddr::try_from(from).ok()) else { continue };
            // What the kernel does not take is lost, as any datagram may be.
            let mut send = |frame: &[u8]| {
                let _ = sendto(&self.fd, frame, SendFlags::empty(), &from);
            };
            answer(from, &datagram[..len], &mut send);
        }
        true
    }
}
