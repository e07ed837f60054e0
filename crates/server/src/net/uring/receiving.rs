//! Receiving from a socket of the ring: what has come, or plainly, and which of them tells of more. Knows no service.

use super::port::{End, Port};
use super::ring::Kind;
use super::{Uring, begin_receive, poll_bits};
use crate::net::io::{Io, RECEIVE_BYTES, Received};
use crate::net::sending::{StoppedBy, seal_and_send};
use rustix::buffer::spare_capacity;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

impl Uring {
    /// Receives the socket's bytes, as many as there is room for behind those that are there.
    #[inline]
    pub(super) fn receive_raw(&mut self, port: &mut Port, room: &mut Vec<u8>) -> Received {
        let bytes_max = (room.capacity() - room.len()).min(RECEIVE_BYTES);
        if (!port.arrived.is_empty() || port.has_aside()) && port.take_arrived(&mut self.ring, room, bytes_max) {
            return Received::Bytes;
        }
        match port.end {
            Some(End::Closed) => return Received::End,
            Some(End::Failed(error)) => return Received::Failed(error),
            None => {}
        }
        if port.in_flight.receive && self.ring.has_completed() {
            // What it has brought may be among what is to be handed out by the next wait, and comes first.
            if !port.queued {
                port.queued = true;
                self.again(port.token);
            }
            return Received::Nothing;
        }
        self.receive_plainly(port, room)
    }

    #[cold]
    fn receive_plainly(&mut self, port: &mut Port, room: &mut Vec<u8>) -> Received {
        let before = room.len();
        let result = match recv(&port.fd, spare_capacity(room), RecvFlags::empty()) {
            Ok((0, _)) => {
                port.end = Some(End::Closed);
                return Received::End;
            }
            Ok(_) => {
                // Of an end that it has told of, the wait that goes on by itself does not tell again.
                port.may_hold = room.len() == room.capacity() || port.end_is_near;
                port.note_amount(room.len() - before);
                Received::Bytes
            }
            Err(Errno::AGAIN | Errno::INTR) => {
                port.may_hold = false;
                Received::Nothing
            }
            Err(error) => {
                port.end = Some(End::Failed(error));
                return Received::Failed(error);
            }
        };
        if !port.may_hold {
            self.receive_on(port);
        } else {
            self.end_receive(port);
        }
        result
    }

    /// Has something tell when there is more: the receive that goes on by itself, or, where plain ones will follow, a wait.
    #[inline]
    pub(super) fn receive_on(&mut self, port: &mut Port) {
        if port.brings_much() {
            self.receive_plainly_on(port);
        } else if !port.in_flight.receive {
            if !port.in_flight.readable {
                begin_receive(&mut self.ring, port);
            } else if !port.in_flight.readable_ends {
                // When it has ended, the socket is looked at.
                port.in_flight.readable_ends = true;
                self.ring.cancel(Kind::Readable, port.tag);
            }
        }
    }

    #[inline(never)]
    fn receive_plainly_on(&mut self, port: &mut Port) {
        if port.in_flight.receive {
            // When it has ended, the socket is looked at.
            self.end_receive(port);
        } else if !port.in_flight.readable {
            port.in_flight.readable = true;
            self.ring.poll(&port.fd, Kind::Readable, poll_bits(PollFlags::IN | PollFlags::RDHUP), port.tag);
        }
    }

    fn end_receive(&mut self, port: &mut Port) {
        if port.in_flight.receive && !port.in_flight.receive_ends {
            port.in_flight.receive_ends = true;
            self.ring.cancel(Kind::Receive, port.tag);
        }
    }

    /// Receives what comes under TLS.
    #[cold]
    pub(super) fn receive_sealed(&mut self, port: &mut Port, input: &mut Vec<u8>) -> Received {
        let mut sealed = std::mem::take(&mut self.sealed);
        sealed.clear();
        sealed.reserve_exact(RECEIVE_BYTES);
        let received = self.receive_raw(port, &mut sealed);
        let received = match received {
            Received::Bytes => self.open_sealed(port, &sealed, input),
            other => other,
        };
        self.sealed = sealed;
        received
    }

    fn open_sealed(&mut self, port: &mut Port, sealed: &[u8], input: &mut Vec<u8>) -> Received {
        let tls = port.tls.as_mut().expect("the socket is one with TLS");
        let opened = tls.open(sealed, input);
        let has_ended = tls.has_ended();
        // The handshake's answers, or why there is none.
        match seal_and_send(&port.fd, tls, &mut port.unsent) {
            Ok(stopped_by) => port.has_room = stopped_by == StoppedBy::Turn,
            Err(error) => return Received::Failed(error),
        }
        self.wait_until_writable(port);
        if has_ended {
            port.drop_arrived(&mut self.ring);
            port.end.get_or_insert(End::Closed);
        }
        match opened {
            Err(_) => Received::Failed(Errno::PROTO),
            Ok(()) if !input.is_empty() => Received::Bytes,
            Ok(()) if has_ended => Received::End,
            Ok(()) => {
                if port.may_receive() && !port.queued {
                    port.queued = true;
                    self.again(port.token);
                }
                Received::Nothing
            }
        }
    }
}
