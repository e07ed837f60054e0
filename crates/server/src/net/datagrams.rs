//! A UDP socket that all workers receive from, each one datagram at a time. Knows no protocol.

use super::listener::Bind;
use super::serve::{Bound, ServeError, Takes};
use super::service::{Address, FrontEnd};
use nix::cmsg_space;
use nix::libc::{in_pktinfo, in6_pktinfo};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{set_ipv6_v6only, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};

/// Datagrams that one worker takes before its connections have their turn.
const DATAGRAMS_PER_TURN: usize = 64;
/// Bytes of the longest datagram.
const DATAGRAM_MAX: usize = 65_536;

/// What a worker receives datagrams into: as long as the longest, from the first one on.
#[derive(Debug, Default)]
pub(super) struct Room {
    datagram: Vec<u8>,
    /// What the kernel says beside it.
    control: Vec<u8>,
    frames: Frames,
}

/// A worker keeps room for answers of so many bytes.
const FRAMES_KEPT_MAX: usize = 64 << 10;

/// The datagrams of an answer, one behind the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Frames {
    pub(super) fn push(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn clear(&mut self) {
        if self.bytes.capacity() > FRAMES_KEPT_MAX {
            *self = Frames::default();
        }
        self.bytes.clear();
        self.ends.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes that a copy takes, but for itself.
    pub(super) fn memory(&self) -> usize {
        self.bytes.len() + size_of_val(&self.ends[..])
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }
}

/// Whom an answer is for, and from where it leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    to: SockaddrStorage,
    /// Where the request has come to, if the kernel said so.
    reached: Option<Reached>,
}

/// The address of this machine that a datagram was sent to, as the kernel is told it for the answer.
#[derive(Clone, Copy, Debug)]
enum Reached {
    V4(in_pktinfo),
    V6(in6_pktinfo),
}

impl Reached {
    fn of(message: &ControlMessageOwned) -> Option<Reached> {
        match *message {
            // The answer need not leave by the interface that the request came by. Of what was sent to many the kernel names
            // an address of its own here.
            ControlMessageOwned::Ipv4PacketInfo(info) => Some(Reached::V4(in_pktinfo { ipi_ifindex: 0, ..info })),
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                let address = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                // An address of a link means nothing without it.
                let ipi6_ifindex = if address.is_unicast_link_local() { info.ipi6_ifindex } else { 0 };
                (!address.is_multicast()).then_some(Reached::V6(in6_pktinfo { ipi6_ifindex, ..info }))
            }
            _ => None,
        }
    }

    fn ip(&self) -> IpAddr {
        match self {
            Reached::V4(info) => Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()).into(),
            Reached::V6(info) => Ipv6Addr::from(info.ipi6_addr.s6_addr).into(),
        }
    }

    fn message(&self) -> ControlMessage<'_> {
        match self {
            Reached::V4(info) => ControlMessage::Ipv4PacketInfo(info),
            Reached::V6(info) => ControlMessage::Ipv6PacketInfo(info),
        }
    }
}

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
    /// Opens the sockets of a port and its addresses, or none. Those of `there` that are among them are kept; those that were
    /// `left` before are in nobody's way. An optional address that this machine lacks is skipped with a warning.
    pub(super) fn open_all(
        wanted: Option<&(u16, Vec<Bind>)>,
        there: &[Arc<Datagrams>],
        left: &[Weak<Datagrams>],
    ) -> Result<Vec<Arc<Datagrams>>, ServeError> {
        let Some((port, words)) = wanted else { return Ok(Vec::new()) };
        let left: Vec<_> = left.iter().filter_map(Weak::upgrade).collect();
        let going: Vec<&Datagrams> = there.iter().chain(&left).map(Arc::as_ref).collect();
        let mut opened = Vec::new();
        for word in words {
            let is_again = |socket: &Arc<Datagrams>| (socket.port, &socket.word) == (*port, word);
            if *port != 0 && opened.iter().any(is_again) {
                return Err(ServeError::Datagrams(word.host.clone(), *port, Errno::ADDRINUSE.into()));
            }
            let before = opened.len();
            opened.extend(there.iter().filter(|socket| (socket.port, &socket.word) == (*port, word)).cloned());
            if opened.len() > before {
                continue;
            }
            match Datagrams::open(word, *port, &going, &opened) {
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

    fn open(
        word: &Bind,
        port: u16,
        going: &[&Datagrams],
        opened: &[Arc<Datagrams>],
    ) -> std::io::Result<Vec<Datagrams>> {
        let open = |address| {
            // One that stays may share its address for a moment with one that goes, and with no other.
            let is_taken = opened.iter().any(|socket| socket.overlaps(address));
            if is_taken { Err(Errno::ADDRINUSE) } else { Datagrams::open_at(address, word, port, going) }
        };
        Ok(word.open_each(word.resolve(port)?, |errno| errno, open)?)
    }

    /// Opens one socket. Those of `going` are not in its way: workers may use them for a moment longer.
    fn open_at(address: SocketAddr, word: &Bind, port: u16, going: &[&Datagrams]) -> Result<Datagrams, Errno> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(family, SocketType::DGRAM, flags, None)?;
        if address.is_ipv6() {
            // So that `* ::*` can be received on both.
            set_ipv6_v6only(&fd, true)?;
        }
        let in_the_way: Vec<_> = going.iter().filter(|socket| socket.overlaps(address)).collect();
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
        if address.ip().is_unspecified() {
            // Else the kernel would choose from which address an answer leaves, and whoever asked another one, or a firewall
            // between, would take it for somebody else's.
            let asked = match address {
                SocketAddr::V4(_) => setsockopt(&fd, sockopt::Ipv4PacketInfo, &true),
                SocketAddr::V6(_) => setsockopt(&fd, sockopt::Ipv6RecvPacketInfo, &true),
            };
            asked.map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
        }
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

    /// Hands what has come to `answer`, with who sent it, to which address, and the way back. What it puts into the frames, which
    /// are empty, is sent. Tells whether there may be more; there may be, too, when `answer` breaks off.
    pub(super) fn receive(
        &self,
        room: &mut Room,
        mut answer: impl FnMut((SocketAddr, SocketAddr), &[u8], &Way, &mut Frames) -> ControlFlow<()>,
    ) -> bool {
        room.datagram.resize(DATAGRAM_MAX, 0);
        if room.control.is_empty() {
            room.control = cmsg_space!(in6_pktinfo);
        }
        for _ in 0..DATAGRAMS_PER_TURN {
            let fd = self.fd.as_raw_fd();
            let mut parts = [IoSliceMut::new(&mut room.datagram)];
            let received = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut room.control), MsgFlags::empty());
            let (len, from, reached) = match received {
                Ok(received) => {
                    let reached = received.cmsgs().ok().and_then(|mut said| said.find_map(|it| Reached::of(&it)));
                    (received.bytes, received.address, reached)
                }
                Err(nix::Error::EAGAIN) => return false,
                // The answer to an earlier datagram has reached nobody, or a signal came: no reason not to go on.
                Err(_) => continue,
            };
            let Some((to, from)) = from.and_then(|from| Some((from, address_of(&from)?))) else { continue };
            let local = reached.map_or(self.local, |reached| SocketAddr::new(reached.ip(), self.local.port()));
            let way = Way { to, reached };
            room.frames.clear();
            let flow = answer((from, local), &room.datagram[..len], &way, &mut room.frames);
            self.send(&way, &room.frames);
            if flow.is_break() {
                break;
            }
        }
        true
    }

    /// Sends an answer. What the kernel does not take is lost, as any datagram may be.
    pub(super) fn send(&self, way: &Way, frames: &Frames) {
        let said = way.reached.as_ref().map(Reached::message);
        for frame in frames.iter() {
            let parts = [IoSlice::new(frame)];
            let _ = sendmsg(self.fd.as_raw_fd(), &parts, said.as_slice(), MsgFlags::empty(), Some(&way.to));
        }
    }
}

fn address_of(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|&address| address.into());
    v4.or_else(|| address.as_sockaddr_in6().map(|&address| address.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_was_just_left_can_be_had_again() {
        let open = |port, there: &[_], left: &[_]| {
            Datagrams::open_all(Some(&(port, vec![Bind::parse("127.0.0.1")])), there, left)
        };
        let of_a_worker = open(0, &[], &[]).unwrap();
        let port = of_a_worker[0].local().port();
        // As far as is known here it is another process's.
        assert!(matches!(open(port, &[], &[]), Err(ServeError::Datagrams(..))));
        let left: Vec<_> = of_a_worker.iter().map(Arc::downgrade).collect();
        let again = open(port, &[], &left).unwrap();
        assert_eq!(again[0].local().port(), port);
        drop(of_a_worker);
        assert!(matches!(open(port, &[], &left), Err(ServeError::Datagrams(..))), "the new one is shared with nobody");
        assert!(Arc::ptr_eq(&open(port, &again, &left).unwrap()[0], &again[0]));
    }
}
