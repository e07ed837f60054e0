//! A UDP socket that all workers receive from, each one datagram at a time. Knows no protocol.

use super::listener::Bind;
use super::serve::{Bound, Takes};
use super::service::{Address, FrontEnd};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::set_ipv6_v6only;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, getsockname, recvfrom, sendto, socket_with,
};
use std::net::SocketAddr;

/// Datagrams that one worker takes before its connections have their turn.
const DATAGRAMS_PER_TURN: usize = 64;
/// Bytes of the longest datagram.
const DATAGRAM_MAX: usize = 65_536;

/// A UDP socket.
#[derive(Debug)]
pub(super) struct Datagrams {
    fd: OwnedFd,
    local: SocketAddr,
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Datagrams {
    /// Opens the sockets of this word.
    pub(super) fn open(word: &Bind, port: u16) -> std::io::Result<Vec<Datagrams>> {
        Ok(word.open_each(word.resolve(port)?, |errno| errno, Datagrams::open_at)?)
    }

    fn open_at(address: SocketAddr) -> Result<Datagrams, Errno> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(family, SocketType::DGRAM, flags, None)?;
        if address.is_ipv6() {
            // So that `* ::*` can be received on both.
            set_ipv6_v6only(&fd, true)?;
        }
        bind(&fd, &address)?;
        let local = getsockname(&fd).and_then(SocketAddr::try_from)?;
        Ok(Datagrams { fd, local })
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
