//! What is kept for one socket of the ring: what has come and was not taken, what waits to be sent, and which operations are
//! in flight. Begins no operation itself.

use super::ring::{Filled, Kind, Ring};
use crate::net::io::Event;
use crate::net::low_water::LowWater;
use crate::net::sending::{SEND_BYTES_PER_TURN, StoppedBy, keep_rest, send_some};
use crate::net::tls::TlsSession;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::collections::VecDeque;
use tenon_wire::OutBuf;

/// Input of this many bytes at a time is much.
const MUCH: usize = 1024;
/// So often more than not much has to come before it is received otherwise.
const MUCH_OFTEN: u8 = 4;

/// One socket.
pub(super) struct Port {
    pub(super) fd: OwnedFd,
    /// The worker's name for it.
    pub(super) token: u64,
    /// The ring's name for it.
    pub(super) tag: u32,
    /// Between the service's bytes and the socket's, where TLS is spoken; `unsent` is the socket's.
    pub(super) tls: Option<Box<TlsSession>>,
    /// Operations that have not ended. The socket stays open until they have.
    pub(super) in_flight: InFlight,
    /// The worker has closed it.
    pub(super) is_closed: bool,
    /// A single wait for room ends at once: its peer sends no more, which the kernel counts as news of any kind.
    pub(super) ends_waits: bool,
    /// When it was sent to last there was room left.
    pub(super) has_room: bool,
    /// The event about it that the next wait reports, and that wait.
    pub(super) reported: (u64, usize),
    /// The token is among those to be reported again.
    pub(super) queued: bool,

    /// What came before `arrived` and was put aside; read up to `aside_read`.
    aside: Vec<u8>,
    aside_read: usize,
    /// What has come, in the ring's buffers.
    pub(super) arrived: VecDeque<Filled>,
    /// How the stream has ended, behind all that has come.
    pub(super) end: Option<End>,
    /// There may be something in the socket of which no operation will tell.
    pub(super) may_hold: bool,
    pub(super) low_water: LowWater,
    /// How often much has come at a time, less how often little has, within bounds.
    much_often: u8,
    /// The end of the stream is among what is waiting.
    pub(super) end_is_near: bool,

    /// What leaves with the next wait.
    pub(super) staged: Vec<u8>,
    /// What the kernel was offered and has not taken.
    pub(super) unsent: OutBuf,
    /// Why nothing more can be sent.
    pub(super) send_failed: Option<Errno>,
}

/// Which operations have begun, or will with the next wait, and have not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InFlight {
    pub(super) receive: bool,
    /// The receive is to end.
    pub(super) receive_ends: bool,
    pub(super) readable: bool,
    /// The wait for input is to end.
    pub(super) readable_ends: bool,
    pub(super) writable: bool,
    /// The wait for each time that room comes.
    pub(super) writable_on: bool,
    pub(super) ended: bool,
}

impl InFlight {
    /// Their kinds.
    pub(super) fn kinds(self) -> impl Iterator<Item = Kind> {
        let all = [
            (self.receive, Kind::Receive),
            (self.readable, Kind::Readable),
            (self.writable, Kind::Writable),
            (self.writable_on, Kind::WritableOn),
            (self.ended, Kind::Ended),
        ];
        all.into_iter().filter_map(|(is_in_flight, kind)| is_in_flight.then_some(kind))
    }

    pub(super) fn has_none(self) -> bool {
        self.kinds().next().is_none()
    }
}

/// How a stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The peer sends no more.
    Closed,
    Failed(Errno),
}

impl Port {
    pub(super) fn new(fd: OwnedFd, tls: Option<TlsSession>, token: u64, tag: u32) -> Port {
        Port {
            fd,
            token,
            tag,
            tls: tls.map(Box::new),
            in_flight: InFlight::default(),
            is_closed: false,
            ends_waits: false,
            has_room: false,
            reported: (0, 0),
            queued: false,
            aside: Vec::new(),
            aside_read: 0,
            arrived: VecDeque::new(),
            end: None,
            may_hold: false,
            low_water: LowWater::default(),
            much_often: 0,
            end_is_near: false,
            staged: Vec::new(),
            unsent: OutBuf::new(),
            send_failed: None,
        }
    }

    /// Whether bytes have come, or an end.
    #[inline]
    pub(super) fn has_come(&self) -> bool {
        !self.arrived.is_empty() || self.has_aside() || self.end.is_some()
    }

    #[inline]
    pub(super) fn may_receive(&self) -> bool {
        self.has_come() || self.may_hold
    }

    /// Whether bytes were put aside that are not taken.
    #[inline]
    pub(super) fn has_aside(&self) -> bool {
        self.aside_read < self.aside.len()
    }

    #[inline]
    pub(super) fn note(&mut self, event: Event) {
        self.queued = false;
        self.may_hold |= event.received;
        self.end_is_near |= event.peer_ended || event.broken;
    }

    /// Takes note of how much a receive has brought.
    #[inline]
    pub(super) fn note_amount(&mut self, bytes: usize) {
        if bytes >= MUCH {
            self.much_often = (self.much_often + 1).min(2 * MUCH_OFTEN);
        } else {
            self.much_often = self.much_often.saturating_sub(1);
        }
    }

    /// Whether this socket brings so much at a time that it is received from by plain calls.
    #[inline]
    pub(super) fn brings_much(&self) -> bool {
        self.much_often > MUCH_OFTEN
    }

    /// Moves what has come behind what is in `room`, up to so many bytes; whether there was anything.
    #[inline]
    pub(super) fn take_arrived(&mut self, ring: &mut Ring, room: &mut Vec<u8>, bytes_max: usize) -> bool {
        let full = room.len() + bytes_max;
        let before = room.len();
        if self.has_aside() {
            self.take_aside(room, bytes_max);
        }
        while !self.has_aside()
            && let Some(filled) = self.arrived.front()
            && (room.len() + filled.len() <= full || room.len() < full)
        {
            let bytes = ring.bytes(filled);
            let fitting = bytes.len().min(full - room.len());
            room.extend_from_slice(&bytes[..fitting]);
            if fitting < bytes.len() {
                // The room of a long value ends within this buffer.
                self.aside.clear();
                self.aside.extend_from_slice(&bytes[fitting..]);
                self.aside_read = 0;
            }
            let filled = self.arrived.pop_front().expect("it was just there");
            ring.give_back(filled);
        }
        if self.in_flight.receive {
            // It tells of all that follows.
            self.may_hold = false;
        }
        self.note_amount(room.len() - before);
        room.len() > before
    }

    #[cold]
    fn take_aside(&mut self, room: &mut Vec<u8>, bytes_max: usize) {
        let end = self.aside.len().min(self.aside_read + bytes_max);
        room.extend_from_slice(&self.aside[self.aside_read..end]);
        self.aside_read = end;
        if !self.has_aside() {
            self.aside = Vec::new();
            self.aside_read = 0;
        }
    }

    /// Empties the ring's buffers, so that they can be filled for others.
    pub(super) fn put_aside(&mut self, ring: &mut Ring) {
        if self.arrived.is_empty() {
            return;
        }
        self.aside.drain(..self.aside_read);
        self.aside_read = 0;
        for filled in self.arrived.drain(..) {
            self.aside.extend_from_slice(ring.bytes(&filled));
            ring.give_back(filled);
        }
    }

    /// Forgets what has come.
    pub(super) fn drop_arrived(&mut self, ring: &mut Ring) {
        self.arrived.drain(..).for_each(|filled| ring.give_back(filled));
        self.aside = Vec::new();
        self.aside_read = 0;
    }

    /// Offers the kernel now what would leave with the next wait.
    pub(super) fn send_staged(&mut self) -> Result<(), Errno> {
        if self.staged.is_empty() {
            return Ok(());
        }
        debug_assert!(self.unsent.is_empty(), "what is staged leaves before what is not");
        let staged = std::mem::take(&mut self.staged);
        let sent = match send(&self.fd, &staged, SendFlags::NOSIGNAL) {
            Ok(sent) => sent,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(error) => return Err(error),
        };
        self.unsent.tail().extend_from_slice(&staged[sent..]);
        Ok(())
    }

    /// Takes over what a send of the ring has left, which is to leave before anything else.
    pub(super) fn keep_short(&mut self, bytes: &[u8], result: Result<usize, Errno>) {
        match result {
            Ok(sent) => self.unsent.tail().extend_from_slice(&bytes[sent..]),
            Err(Errno::AGAIN | Errno::INTR) => self.unsent.tail().extend_from_slice(bytes),
            Err(error) => self.send_failed = Some(error),
        }
    }

    /// Sends `out` now, behind all else, or takes it over.
    pub(super) fn send_now(&mut self, out: &mut OutBuf) -> Result<(), Errno> {
        self.send_staged()?;
        if self.unsent.is_empty() {
            let stopped_by = send_some(&self.fd, out, SEND_BYTES_PER_TURN)?;
            if stopped_by == StoppedBy::Empty {
                return Ok(());
            }
            self.has_room = stopped_by == StoppedBy::Turn;
        }
        keep_rest(&mut self.unsent, out);
        Ok(())
    }
}
