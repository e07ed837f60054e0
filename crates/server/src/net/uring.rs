//! Moves bytes with io_uring: one system call a turn begins all sends and waits for all receives. Knows no service and no
//! connection state.
//!
//! - Every socket has one receive in flight that goes on by itself (multishot) and takes its buffers from the ring's. What
//!   the worker does not take in the same turn is put aside, and that receive ended: a client that is not read costs no more
//!   than what the kernel had for it then. It is read on with plain receives until the socket is empty. Completions come
//!   within [`Io::wait`] alone (deferred task run), so a plain receive never overtakes one.
//! - Short outputs are staged and sent together by the next wait, and their buffers are the ring's until then. What a socket
//!   does not take then, and long output, is sent by plain calls as the socket has room.
//! - Who sends much at a time is received from by plain calls, when the ring says that there is something: into the one
//!   buffer that is warm in the cache, or, of a long value, into the place where it will stay.

mod port;
mod ring;

use super::inbox::Waker;
use super::io::{Event, Io, RECEIVE_BYTES, Received, Socket};
use super::sending::{REPLY_BUFFER_KEPT, SEND_BYTES_PER_TURN, seal_and_send, send_sealed, send_some};
use super::tls::TlsSession;
use port::{End, Port};
use ring::{Completion, Kind, Ring};
use rustix::buffer::spare_capacity;
use rustix::event::PollFlags;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tenon_wire::OutBuf;

/// Outputs of a turn up to this many bytes leave with the next wait. Longer ones, of many commands, are sent at once, from
/// the one buffer that is warm in the cache: a system call is little against them.
const STAGED_MAX: usize = 2048;

/// The waker's tag, which no socket reaches.
const WAKER_TAG: u32 = u32::MAX;

/// Of several that wait for the same, one is told: `EPOLLEXCLUSIVE`.
const EXCLUSIVE: u32 = 1 << 28;

pub(super) struct Uring {
    /// Before the ports: operations end before their sockets are closed.
    ring: Ring,
    /// The ports by their tags, those that are closed and have operations in flight included.
    ports: Vec<Option<Rc<RefCell<Port>>>>,
    free: Vec<u32>,
    waker: OwnedFd,
    /// What others watch, too, and its token, by the tag of the wait for it. What is not watched any more leaves its place
    /// empty, as the end of that wait is still to come.
    shared: Vec<Option<(OwnedFd, u64)>>,
    /// Those to wait for anew.
    shared_seen: Vec<u32>,
    /// Ports whose bytes came with the last wait; those whose receive is to end, and those that have staged output.
    arrived: Vec<u32>,
    behind: Vec<u32>,
    staged: Vec<u32>,
    /// Events for the next wait to report, and those that the last has reported.
    coming: Vec<Event>,
    ready: Vec<Event>,
    waits: u64,
    /// Where bytes under TLS are received.
    sealed: Vec<u8>,
}

pub(super) struct UringSocket(Rc<RefCell<Port>>);

impl Socket for UringSocket {
    #[inline]
    fn unsent(&self) -> usize {
        let port = self.0.borrow();
        port.unsent.len() + port.tls.as_ref().map_or(0, |tls| tls.unsealed())
    }

    fn unsent_memory(&self) -> usize {
        let port = self.0.borrow();
        port.unsent.memory() + port.tls.as_ref().map_or(0, |tls| tls.unsealed_memory())
    }

    fn peer_ended(&self) -> bool {
        self.0.borrow().end_is_near
    }

    fn is_clear(&self) -> bool {
        self.0.borrow().tls.is_none()
    }

    #[inline]
    fn note(&mut self, event: Event) {
        self.0.borrow_mut().note(event);
    }

    #[inline]
    fn may_receive(&self) -> bool {
        self.0.borrow().may_receive()
    }
}

impl Io for Uring {
    type Socket = UringSocket;

    fn new(waker: &Waker) -> std::io::Result<Uring> {
        let waker = waker.as_fd().try_clone_to_owned()?;
        let mut ring = Ring::new()?;
        ring.poll(&waker, Kind::Wake, poll_bits(PollFlags::IN), WAKER_TAG);
        Ok(Uring {
            ring,
            ports: Vec::new(),
            free: Vec::new(),
            waker,
            shared: Vec::new(),
            shared_seen: Vec::new(),
            arrived: Vec::new(),
            behind: Vec::new(),
            staged: Vec::new(),
            coming: Vec::new(),
            ready: Vec::new(),
            waits: 1,
            sealed: Vec::new(),
        })
    }

    fn hollow(&self) -> Option<Uring> {
        // The ring takes calls of the thread alone that has made it.
        None
    }

    fn open(&mut self, fd: OwnedFd, tls: Option<TlsSession>, token: u64) -> std::io::Result<UringSocket> {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.ports.push(None);
            self.ports.len() as u32 - 1
        });
        let port = Rc::new(RefCell::new(Port::new(fd, tls, token, tag)));
        begin_receive(&mut self.ring, &mut port.borrow_mut());
        self.ports[tag as usize] = Some(Rc::clone(&port));
        Ok(UringSocket(port))
    }

    fn watch(&mut self, fd: &impl AsFd, token: u64) -> std::io::Result<()> {
        self.shared_seen.push(self.shared.len() as u32);
        self.shared.push(Some((fd.as_fd().try_clone_to_owned()?, token)));
        Ok(())
    }

    fn unwatch(&mut self, _: &impl AsFd, token: u64) {
        let is_meant = |shared: &Option<(OwnedFd, u64)>| shared.as_ref().is_some_and(|(_, watched)| *watched == token);
        if let Some(index) = self.shared.iter().position(is_meant) {
            self.shared[index] = None;
            self.ring.cancel(Kind::Shared, index as u32);
        }
    }

    fn again(&mut self, token: u64) {
        self.coming.push(Event { token, received: true, ..Event::default() });
    }

    fn wait(&mut self, timeout: Duration) -> std::io::Result<usize> {
        self.put_aside();
        self.begin_sends();
        for tag in self.shared_seen.drain(..) {
            if let Some((fd, _)) = &self.shared[tag as usize] {
                self.ring.poll(fd, Kind::Shared, poll_bits(PollFlags::IN) | EXCLUSIVE, tag);
            }
        }
        let timeout = if self.coming.is_empty() { timeout } else { Duration::ZERO };
        self.ring.wait(timeout)?;
        while let Some(completion) = self.ring.completion() {
            self.on_completion(completion);
        }
        self.waits += 1;
        std::mem::swap(&mut self.coming, &mut self.ready);
        self.coming.clear();
        Ok(self.ready.len())
    }

    #[inline]
    fn event(&mut self, index: usize) -> Event {
        self.ready[index]
    }

    #[inline]
    fn receive(&mut self, socket: &mut UringSocket, input: &mut Vec<u8>) -> Received {
        let port = &mut *socket.0.borrow_mut();
        input.clear();
        if port.tls.is_some() {
            return self.receive_sealed(port, input);
        }
        self.receive_raw(port, input)
    }

    fn receive_into(&mut self, socket: &mut UringSocket, room: &mut Vec<u8>, missing: usize) -> Received {
        let port = &mut *socket.0.borrow_mut();
        debug_assert!(port.tls.is_none() && room.len() < room.capacity());
        let before = room.len();
        let received = self.receive_raw(port, room);
        if !port.may_receive() && port.brings_much() {
            // The wait for more begins with the next system call.
            let received = room.len() - before;
            port.low_water.after(&port.fd, received, missing.saturating_sub(received));
        }
        received
    }

    fn tell_of_every_byte(&mut self, socket: &mut UringSocket) -> bool {
        let port = &mut *socket.0.borrow_mut();
        port.low_water.reset(&port.fd)
    }

    #[inline]
    fn receive_later(&mut self, socket: &mut UringSocket) {
        let port = &mut *socket.0.borrow_mut();
        if port.may_receive() {
            if !port.queued {
                port.queued = true;
                self.coming.push(Event { token: port.token, received: true, ..Event::default() });
            }
        } else {
            self.receive_on(port);
        }
    }

    fn not_later(&mut self, socket: &mut UringSocket) {
        let port = &mut *socket.0.borrow_mut();
        if port.queued && !port.may_receive() && self.coming.last().is_some_and(|event| event.token == port.token) {
            self.coming.pop();
            port.queued = false;
        }
    }

    #[inline]
    fn send(&mut self, socket: &mut UringSocket, out: &mut OutBuf) -> Result<(), Errno> {
        let port = &mut *socket.0.borrow_mut();
        // Nearly always it is one short piece.
        if port.unsent.is_empty()
            && port.tls.is_none()
            && let Some(bytes) = out.contiguous()
            && bytes.len() + port.staged.len() <= STAGED_MAX
        {
            if !port.staged.is_empty() {
                port.staged.extend_from_slice(bytes);
                out.clear();
                return Ok(());
            }
            self.staged.push(port.tag);
            let spare = self.ring.spare();
            port.staged = out.take_contiguous(spare);
            return Ok(());
        }
        self.send_now(port, out)
    }

    fn flush(&mut self, socket: &mut UringSocket) -> Result<(), Errno> {
        let port = &mut *socket.0.borrow_mut();
        port.send_staged()?;
        self.wait_until_writable(port);
        Ok(())
    }

    fn close(&mut self, socket: UringSocket) {
        let port = &mut *socket.0.borrow_mut();
        // Whoever does not take it now has gone, or will see the connection end without it.
        let _ = port.send_staged();
        if let Some(tls) = &mut port.tls {
            tls.end(&mut port.unsent);
            let _ = send_some(&port.fd, &mut port.unsent, SEND_BYTES_PER_TURN);
        }
        port.drop_arrived(&mut self.ring);
        port.unsent = OutBuf::new();
        port.is_closed = true;
        for kind in port.in_flight.kinds() {
            self.ring.cancel(kind, port.tag);
        }
        self.forget_if_done(port);
    }

    fn continue_send(&mut self, socket: &mut UringSocket) -> Result<bool, Errno> {
        let port = &mut *socket.0.borrow_mut();
        if let Some(error) = port.send_failed {
            return Err(error);
        }
        let (before, sealed) = (port.unsent.len(), port.tls.as_ref().map(|tls| tls.unsealed()));
        match &mut port.tls {
            Some(tls) => seal_and_send(&port.fd, tls, &mut port.unsent)?,
            None => send_some(&port.fd, &mut port.unsent, SEND_BYTES_PER_TURN)?,
        };
        let moved = match (&port.tls, sealed) {
            (Some(tls), Some(sealed)) => port.unsent.len() + tls.unsealed() < before + sealed,
            _ => port.unsent.len() < before,
        };
        if port.unsent.is_empty() {
            port.unsent = OutBuf::new();
        }
        self.wait_until_writable(port);
        Ok(moved)
    }
}

impl Uring {
    /// One that nobody wakes, or why this machine lets us have none.
    pub(super) fn try_out() -> std::io::Result<Uring> {
        Uring::new(&Waker::new()?)
    }

    /// Puts aside what came with the last wait and was not taken, so that all buffers are there for the next.
    fn put_aside(&mut self) {
        let mut behind = std::mem::take(&mut self.behind);
        for tag in self.arrived.drain(..).chain(behind.drain(..)) {
            let Some(port) = &self.ports[tag as usize] else { continue };
            let port = &mut *port.borrow_mut();
            port.put_aside(&mut self.ring);
            let in_flight = port.in_flight;
            if in_flight.receive {
                if port.has_aside() && !in_flight.receive_ends {
                    port.in_flight.receive_ends = true;
                    self.ring.cancel(Kind::Receive, tag);
                }
            } else if !port.is_closed && port.end.is_none() && !in_flight.readable && !in_flight.ended {
                // It is not read on now, and nobody else would tell of its end.
                port.in_flight.ended = true;
                self.ring.poll(&port.fd, Kind::Ended, poll_bits(PollFlags::RDHUP), tag);
            }
        }
    }

    fn begin_sends(&mut self) {
        for tag in self.staged.drain(..) {
            let Some(port) = &self.ports[tag as usize] else { continue };
            let port = &mut *port.borrow_mut();
            if !port.staged.is_empty() {
                self.ring.send(&port.fd, std::mem::take(&mut port.staged), tag);
            }
        }
    }

    fn on_completion(&mut self, completion: Completion) {
        match completion {
            Completion::Received { tag, result, goes_on } => self.on_received(tag, result, goes_on),
            Completion::SentShort { tag, bytes, result } => {
                let Some(port) = self.ports[tag as usize].clone() else { return };
                let port = &mut *port.borrow_mut();
                if !port.is_closed {
                    port.keep_short(&bytes, result);
                    self.wait_until_writable(port);
                    self.report(port, Event { sent: true, ..Event::default() });
                }
            }
            Completion::Polled { tag, kind: Kind::Shared, .. } => {
                if let Some((_, token)) = self.shared[tag as usize] {
                    self.coming.push(Event { token, received: true, ..Event::default() });
                    self.shared_seen.push(tag);
                }
            }
            Completion::Polled { kind: Kind::Wake, goes_on, .. } => {
                if !goes_on {
                    self.ring.poll(&self.waker, Kind::Wake, poll_bits(PollFlags::IN), WAKER_TAG);
                }
            }
            Completion::Polled { tag, kind, result, goes_on } => self.on_polled(tag, kind, result, goes_on),
        }
    }

    #[inline]
    fn on_received(&mut self, tag: u32, result: Result<Option<ring::Filled>, Errno>, goes_on: bool) {
        let port = self.ports[tag as usize].clone().expect("a port stays while operations are in flight");
        let port = &mut *port.borrow_mut();
        if !goes_on {
            port.in_flight.receive = false;
            port.in_flight.receive_ends = false;
            // What has come meanwhile is in the socket.
            port.may_hold = true;
        }
        if port.is_closed {
            if let Ok(Some(filled)) = result {
                self.ring.give_back(filled);
            }
            return self.forget_if_done(port);
        }
        if !goes_on {
            self.behind.push(tag);
        }
        let mut event = Event { received: true, ..Event::default() };
        match result {
            Ok(Some(filled)) => {
                if port.arrived.is_empty() {
                    self.arrived.push(tag);
                }
                port.arrived.push_back(filled);
            }
            Ok(None) => {
                port.end = Some(End::Closed);
                event.peer_ended = true;
            }
            // Cancelled, or there was no buffer left: it is read on by plain receives.
            Err(Errno::CANCELED | Errno::NOBUFS | Errno::INTR | Errno::AGAIN) => {}
            Err(error) => {
                port.end = Some(End::Failed(error));
                event.broken = true;
            }
        }
        self.report(port, event);
    }

    fn on_polled(&mut self, tag: u32, kind: Kind, result: Result<u32, Errno>, goes_on: bool) {
        let port = self.ports[tag as usize].clone().expect("a port stays while operations are in flight");
        let port = &mut *port.borrow_mut();
        let mut event = Event::default();
        match kind {
            Kind::Readable if goes_on => {}
            Kind::Readable => {
                port.in_flight.readable = false;
                port.in_flight.readable_ends = false;
            }
            Kind::Writable => port.in_flight.writable = false,
            _ => port.in_flight.ended = false,
        }
        if port.is_closed {
            return self.forget_if_done(port);
        }
        if kind == Kind::Readable && !goes_on {
            self.behind.push(tag);
        }
        let seen = match result {
            Ok(bits) => PollFlags::from_bits_retain(bits as u16),
            Err(_) => PollFlags::empty(),
        };
        event.sent = kind == Kind::Writable;
        event.peer_ended = seen.contains(PollFlags::RDHUP);
        event.broken = seen.intersects(PollFlags::ERR | PollFlags::HUP);
        event.received = kind == Kind::Readable || event.broken || event.peer_ended;
        self.report(port, event);
    }

    /// Has the next wait, or the one that is going on, report this about a port, in one event with all else about it.
    #[inline]
    fn report(&mut self, port: &mut Port, event: Event) {
        let (wait, index) = port.reported;
        if wait == self.waits {
            let before = &mut self.coming[index];
            before.received |= event.received;
            before.sent |= event.sent;
            before.peer_ended |= event.peer_ended;
            before.broken |= event.broken;
        } else {
            port.reported = (self.waits, self.coming.len());
            self.coming.push(Event { token: port.token, ..event });
        }
    }

    /// Receives the socket's bytes, as many as there is room for behind those that are there.
    #[inline]
    fn receive_raw(&mut self, port: &mut Port, room: &mut Vec<u8>) -> Received {
        let bytes_max = (room.capacity() - room.len()).min(RECEIVE_BYTES);
        if (!port.arrived.is_empty() || port.has_aside()) && port.take_arrived(&mut self.ring, room, bytes_max) {
            return Received::Bytes;
        }
        match port.end {
            Some(End::Closed) => return Received::End,
            Some(End::Failed(error)) => return Received::Failed(error),
            None => {}
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
    fn receive_on(&mut self, port: &mut Port) {
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
    fn receive_sealed(&mut self, port: &mut Port, input: &mut Vec<u8>) -> Received {
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
        if let Err(error) = seal_and_send(&port.fd, tls, &mut port.unsent) {
            return Received::Failed(error);
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

    /// Sends what [`Io::send`] does not see to be short and in clear, with nothing before it that waits for room.
    #[inline(never)]
    fn send_now(&mut self, port: &mut Port, out: &mut OutBuf) -> Result<(), Errno> {
        if let Some(error) = port.send_failed {
            return Err(error);
        }
        match &mut port.tls {
            Some(tls) => {
                send_sealed(&port.fd, tls, &mut port.unsent, out)?;
            }
            None => {
                port.send_now(out)?;
                out.shrink(REPLY_BUFFER_KEPT);
            }
        }
        self.wait_until_writable(port);
        Ok(())
    }

    /// Has an event come when the socket has room, if something waits for that.
    fn wait_until_writable(&mut self, port: &mut Port) {
        let waits = !port.unsent.is_empty() || port.tls.as_ref().is_some_and(|tls| tls.unsealed() > 0);
        if waits && port.send_failed.is_none() && !port.in_flight.writable {
            port.in_flight.writable = true;
            self.ring.poll(&port.fd, Kind::Writable, poll_bits(PollFlags::OUT), port.tag);
        }
    }

    /// Closes the socket of a port whose operations have ended.
    fn forget_if_done(&mut self, port: &Port) {
        if port.in_flight.has_none() {
            self.ports[port.tag as usize] = None;
            self.free.push(port.tag);
        }
    }
}

fn begin_receive(ring: &mut Ring, port: &mut Port) {
    if !port.in_flight.receive {
        port.in_flight.receive = true;
        ring.receive(&port.fd, port.tag);
    }
}

/// The kernel's number for these events.
fn poll_bits(flags: PollFlags) -> u32 {
    u32::from(flags.bits())
}
