//! Moves bytes with io_uring: one system call a turn begins all sends and waits for all receives. Knows no service and no
//! connection state.
//!
//! - Every socket has one receive in flight that goes on by itself (multishot) and takes its buffers from the ring's. What
//!   the worker does not take in the same turn is put aside, and that receive ended: a client that is not read costs no more
//!   than what the kernel had for it then. It is read on with plain receives until the socket is empty. Completions come
//!   within [`Io::wait`] (deferred task run), or where a full queue has the kernel work in the middle of a turn; while some of
//!   those wait for the next turn, plain receives that could overtake them do, too.
//! - Short outputs are staged and sent together by the next wait, and their buffers are the ring's until then. What a socket
//!   does not take then, and long output, is sent by plain calls as the socket has room.
//! - Who sends much at a time is received from by plain calls, when the ring says that there is something: into the one
//!   buffer that is warm in the cache, or, of a long value, into the place where it will stay.
//! - A ring takes calls of the thread alone that has made it. Where another thread is to go on, all operations are ended and
//!   what they have brought is put aside; the ring stays with its thread, and the other one begins them anew on its own.

mod port;
mod receiving;
mod ring;
mod shared;

use super::inbox::Waker;
use super::io::{Event, Io, Received};
use super::sending::{REPLY_BUFFER_KEPT, SEND_BYTES_PER_TURN, StoppedBy, seal_and_send, send_sealed, send_some};
use super::tls::TlsSession;
use port::{End, Port};
use ring::{Completion, Kind, Own, Ring};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use shared::Shared;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use tenon_wire::OutBuf;

/// Outputs of a turn up to this many bytes leave with the next wait. Longer ones, of many commands, are sent at once, from
/// the one buffer that is warm in the cache: a system call is little against them.
const STAGED_MAX: usize = 2048;

/// The waker's tag, which no socket reaches.
const WAKER_TAG: u32 = u32::MAX;

/// Of several that wait for the same, one is told: `EPOLLEXCLUSIVE`.
const EXCLUSIVE: u32 = 1 << 28;

/// A socket's port is there until that is closed and its operations have ended.
const OPEN: &str = "a port stays while its socket is open or has operations in flight";

/// So often all operations are ended anew before a ring is let go: the end of a send may have begun another one.
const ENDINGS_MAX: usize = 4;

thread_local! {
    /// This thread's ring, while no loop runs here. It has no operations.
    static SPARE: Cell<Option<Box<Ring>>> = const { Cell::new(None) };
}

pub(super) struct Uring {
    /// Before the ports: operations end before their sockets are closed.
    ring: Own,
    /// The ports by their tags, those that are closed and have operations in flight included. One that something is done with
    /// is out of its place meanwhile.
    ports: Vec<Option<Box<Port>>>,
    free: Vec<u32>,
    waker: Arc<OwnedFd>,
    /// What others watch, too.
    shared: Shared,
    /// Ports whose bytes came with the last wait; those whose receive is to end, and those that have staged output.
    arrived: Vec<u32>,
    behind: Vec<u32>,
    staged: Vec<u32>,
    /// Ports whose receive was ended to let the ring go, of which the next wait will tell.
    let_go: Vec<u32>,
    /// Events for the next wait to report, and those that the last has reported.
    coming: Vec<Event>,
    ready: Vec<Event>,
    waits: u64,
    /// Where bytes under TLS are received.
    sealed: Vec<u8>,
}

/// The tag of a port.
pub(super) struct UringSocket(u32);

impl Io for Uring {
    type Socket = UringSocket;

    fn new(waker: &Waker) -> std::io::Result<Uring> {
        let mut own = Uring::without_ring(Arc::new(waker.as_fd().try_clone_to_owned()?));
        own.arrive()?;
        Ok(own)
    }

    fn hollow(&self) -> Uring {
        Uring::without_ring(Arc::clone(&self.waker))
    }

    fn prepare_thread() -> std::io::Result<()> {
        SPARE.set(Some(ring_of_thread()?));
        Ok(())
    }

    fn leave(&mut self) -> bool {
        let is_quiet = self.end_operations();
        if is_quiet {
            SPARE.set(self.ring.0.take());
        } else {
            self.wait_for_waker();
        }
        is_quiet
    }

    fn arrive(&mut self) -> std::io::Result<()> {
        self.ring = Own(Some(ring_of_thread()?));
        self.wait_for_waker();
        Ok(())
    }

    fn open(&mut self, fd: OwnedFd, tls: Option<TlsSession>, token: u64) -> std::io::Result<UringSocket> {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.ports.push(None);
            self.ports.len() as u32 - 1
        });
        let mut port = Box::new(Port::new(fd, tls, token, tag));
        begin_receive(&mut self.ring, &mut port);
        self.ports[tag as usize] = Some(port);
        Ok(UringSocket(tag))
    }

    fn watch(&mut self, fd: &impl AsFd, token: u64) -> std::io::Result<()> {
        self.shared.add(fd.as_fd().try_clone_to_owned()?, token);
        Ok(())
    }

    fn unwatch(&mut self, _: &impl AsFd, token: u64) {
        // Before any wait that is begun in the same place: what is queued begins in its order.
        if let Some(tag) = self.shared.remove(token) {
            self.ring.cancel(Kind::Shared, tag);
        }
    }

    fn again(&mut self, token: u64) {
        self.coming.push(Event { token, received: true, ..Event::default() });
    }

    fn wait(&mut self, timeout: Duration) -> std::io::Result<usize> {
        self.put_aside();
        self.begin_sends();
        self.shared.begin_waits(|fd, tag| {
            self.ring.poll(fd, Kind::Shared, poll_bits(PollFlags::IN) | EXCLUSIVE, tag);
        });
        let timeout = if self.coming.is_empty() { timeout } else { Duration::ZERO };
        self.ring.wait(timeout)?;
        while let Some(completion) = self.ring.completion() {
            self.on_completion(completion);
        }
        self.waits += 1;
        // What these are to wait for is known when their events have been dealt with.
        self.behind.append(&mut self.let_go);
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
        input.clear();
        self.with_port(socket, |own, port| match port.tls {
            Some(_) => own.receive_sealed(port, input),
            None => own.receive_raw(port, input),
        })
    }

    fn receive_into(&mut self, socket: &mut UringSocket, room: &mut Vec<u8>, missing: usize) -> Received {
        self.with_port(socket, |own, port| {
            debug_assert!(port.tls.is_none() && room.len() < room.capacity());
            let before = room.len();
            let received = own.receive_raw(port, room);
            if !port.may_receive() && port.brings_much() {
                // The wait for more begins with the next system call.
                let received = room.len() - before;
                port.low_water.after(&port.fd, received, missing.saturating_sub(received));
            }
            received
        })
    }

    fn tell_of_every_byte(&mut self, socket: &mut UringSocket) -> bool {
        let port = self.port_mut(socket);
        port.low_water.reset(&port.fd)
    }

    #[inline]
    fn receive_later(&mut self, socket: &mut UringSocket) {
        self.with_port(socket, |own, port| {
            if !port.may_receive() {
                own.receive_on(port);
            } else if !port.queued {
                port.queued = true;
                own.again(port.token);
            }
        });
    }

    fn not_later(&mut self, socket: &mut UringSocket) {
        let last = self.coming.last().filter(|event| !event.sent).map(|event| event.token);
        let port = self.port_mut(socket);
        if port.queued && !port.may_receive() && last == Some(port.token) {
            port.queued = false;
            self.coming.pop();
        }
    }

    #[inline]
    fn send(&mut self, socket: &mut UringSocket, out: &mut OutBuf) -> Result<(), Errno> {
        self.with_port(socket, |own, port| {
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
                own.staged.push(port.tag);
                let spare = own.ring.spare();
                port.staged = out.take_contiguous(spare);
                return Ok(());
            }
            own.send_now(port, out)
        })
    }

    fn flush(&mut self, socket: &mut UringSocket) -> Result<(), Errno> {
        self.with_port(socket, |own, port| {
            port.send_staged()?;
            own.wait_until_writable(port);
            Ok(())
        })
    }

    fn close(&mut self, socket: UringSocket) {
        self.with_port(&socket, |own, port| {
            // Whoever does not take it now has gone, or will see the connection end without it.
            let _ = port.send_staged();
            if let Some(tls) = &mut port.tls {
                tls.end(&mut port.unsent);
                let _ = send_some(&port.fd, &mut port.unsent, SEND_BYTES_PER_TURN);
            }
            port.drop_arrived(&mut own.ring);
            port.unsent = OutBuf::new();
            port.is_closed = true;
            for kind in port.in_flight.kinds() {
                own.ring.cancel(kind, port.tag);
            }
        });
    }

    fn continue_send(&mut self, socket: &mut UringSocket) -> Result<bool, Errno> {
        self.with_port(socket, |own, port| {
            if let Some(error) = port.send_failed {
                return Err(error);
            }
            let (before, sealed) = (port.unsent.len(), port.tls.as_ref().map(|tls| tls.unsealed()));
            let stopped_by = match &mut port.tls {
                Some(tls) => seal_and_send(&port.fd, tls, &mut port.unsent)?,
                None => send_some(&port.fd, &mut port.unsent, SEND_BYTES_PER_TURN)?,
            };
            port.has_room = stopped_by == StoppedBy::Turn;
            let moved = match (&port.tls, sealed) {
                (Some(tls), Some(sealed)) => port.unsent.len() + tls.unsealed() < before + sealed,
                _ => port.unsent.len() < before,
            };
            if port.unsent.is_empty() {
                port.unsent = OutBuf::new();
            }
            own.wait_until_writable(port);
            Ok(moved)
        })
    }

    #[inline]
    fn note(&mut self, socket: &mut UringSocket, event: Event) {
        self.port_mut(socket).note(event);
    }

    #[inline]
    fn may_receive(&self, socket: &UringSocket) -> bool {
        self.port(socket).may_receive()
    }

    fn peer_ended(&self, socket: &UringSocket) -> bool {
        self.port(socket).end_is_near
    }

    fn is_clear(&self, socket: &UringSocket) -> bool {
        self.port(socket).tls.is_none()
    }

    fn is_handshaking(&self, socket: &UringSocket) -> bool {
        self.port(socket).tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    #[inline]
    fn unsent(&self, socket: &UringSocket) -> usize {
        let port = self.port(socket);
        port.unsent.len() + port.tls.as_ref().map_or(0, |tls| tls.unsealed())
    }

    fn unsent_memory(&self, socket: &UringSocket) -> usize {
        let port = self.port(socket);
        port.unsent.memory() + port.tls.as_ref().map_or(0, |tls| tls.unsealed_memory())
    }
}

impl Uring {
    /// One that nobody wakes, or why this machine lets us have none.
    pub(super) fn try_out() -> std::io::Result<Uring> {
        Uring::new(&Waker::new()?)
    }

    fn without_ring(waker: Arc<OwnedFd>) -> Uring {
        Uring {
            ring: Own::default(),
            ports: Vec::new(),
            free: Vec::new(),
            waker,
            shared: Shared::default(),
            arrived: Vec::new(),
            behind: Vec::new(),
            staged: Vec::new(),
            let_go: Vec::new(),
            coming: Vec::new(),
            ready: Vec::new(),
            waits: 1,
            sealed: Vec::new(),
        }
    }

    #[inline]
    fn port(&self, socket: &UringSocket) -> &Port {
        self.ports[socket.0 as usize].as_deref().expect(OPEN)
    }

    #[inline]
    fn port_mut(&mut self, socket: &UringSocket) -> &mut Port {
        self.ports[socket.0 as usize].as_deref_mut().expect(OPEN)
    }

    #[inline(always)]
    fn with_port<R>(&mut self, socket: &UringSocket, act: impl FnOnce(&mut Uring, &mut Port) -> R) -> R {
        self.with_tag(socket.0, act)
    }

    /// Does something with a port. Closes its socket if that is closed and its operations have ended.
    #[inline(always)]
    fn with_tag<R>(&mut self, tag: u32, act: impl FnOnce(&mut Uring, &mut Port) -> R) -> R {
        let mut port = self.ports[tag as usize].take().expect(OPEN);
        let result = act(self, &mut port);
        if port.is_closed && port.in_flight.has_none() {
            self.free.push(tag);
        } else {
            self.ports[tag as usize] = Some(port);
        }
        result
    }

    fn wait_for_waker(&mut self) {
        self.ring.poll(&*self.waker, Kind::Wake, poll_bits(PollFlags::IN), WAKER_TAG);
    }

    /// Sends what is to leave, ends all operations and takes what they have brought; whether there are none any more. The next
    /// wait tells of every socket that was received from.
    fn end_operations(&mut self) -> bool {
        self.begin_sends();
        for _ in 0..ENDINGS_MAX {
            let is_quiet = self.ring.end_all();
            while let Some(completion) = self.ring.completion() {
                // The wait for the waker is the next thread's.
                if !matches!(completion, Completion::Polled { kind: Kind::Wake, .. }) {
                    self.on_completion(completion);
                }
            }
            for tag in self.arrived.drain(..) {
                if let Some(port) = &mut self.ports[tag as usize] {
                    port.put_aside(&mut self.ring);
                }
            }
            self.let_go.append(&mut self.behind);
            if is_quiet && !self.ring.has_operations() {
                return true;
            }
        }
        false
    }

    /// Puts aside what came with the last wait and was not taken, so that all buffers are there for the next.
    fn put_aside(&mut self) {
        let mut behind = std::mem::take(&mut self.behind);
        for tag in self.arrived.drain(..).chain(behind.drain(..)) {
            let Some(port) = &mut self.ports[tag as usize] else { continue };
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
            let Some(port) = &mut self.ports[tag as usize] else { continue };
            if !port.staged.is_empty() {
                self.ring.send(&port.fd, std::mem::take(&mut port.staged), tag);
            }
        }
    }

    fn on_completion(&mut self, completion: Completion) {
        match completion {
            Completion::Received { tag, result, goes_on } => {
                self.with_tag(tag, |own, port| own.on_received(port, result, goes_on));
            }
            Completion::SentShort { tag, bytes, result } => {
                if self.ports[tag as usize].as_ref().is_none_or(|port| port.is_closed) {
                    return;
                }
                self.with_tag(tag, |own, port| {
                    port.keep_short(&bytes, result);
                    own.wait_until_writable(port);
                    own.report(port, Event { sent: true, ..Event::default() });
                });
            }
            Completion::Polled { tag, kind: Kind::Shared, .. } => {
                if let Some(token) = self.shared.wait_ended(tag) {
                    self.coming.push(Event { token, received: true, ..Event::default() });
                }
            }
            Completion::Polled { kind: Kind::Wake, goes_on, .. } => {
                if !goes_on {
                    self.wait_for_waker();
                }
            }
            Completion::Polled { tag, kind, result, goes_on } => {
                self.with_tag(tag, |own, port| own.on_polled(port, kind, result, goes_on));
            }
        }
    }

    #[inline]
    fn on_received(&mut self, port: &mut Port, result: Result<Option<ring::Filled>, Errno>, goes_on: bool) {
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
            return;
        }
        if !goes_on {
            self.behind.push(port.tag);
        }
        let mut event = Event { received: true, ..Event::default() };
        match result {
            Ok(Some(filled)) => {
                if port.arrived.is_empty() {
                    self.arrived.push(port.tag);
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

    fn on_polled(&mut self, port: &mut Port, kind: Kind, result: Result<u32, Errno>, goes_on: bool) {
        let mut event = Event::default();
        match kind {
            Kind::Readable | Kind::WritableOn if goes_on => {}
            Kind::Readable => {
                port.in_flight.readable = false;
                port.in_flight.readable_ends = false;
            }
            Kind::Writable => port.in_flight.writable = false,
            Kind::WritableOn => port.in_flight.writable_on = false,
            _ => port.in_flight.ended = false,
        }
        if port.is_closed {
            return;
        }
        // What it is to wait for from now on; a wait for the stream's end fails when it was ended itself.
        if (kind == Kind::Readable && !goes_on) || (kind == Kind::Ended && result.is_err()) {
            self.behind.push(port.tag);
        }
        let seen = match result {
            Ok(bits) => PollFlags::from_bits_retain(bits as u16),
            Err(_) => PollFlags::empty(),
        };
        event.peer_ended = seen.contains(PollFlags::RDHUP) && kind != Kind::WritableOn;
        event.broken = seen.intersects(PollFlags::ERR | PollFlags::HUP);
        event.received = kind == Kind::Readable || event.broken || event.peer_ended;
        event.sent = match kind {
            Kind::Writable if event.peer_ended && !event.broken && !seen.contains(PollFlags::OUT) => {
                port.ends_waits = true;
                self.wait_until_writable(port);
                false
            }
            Kind::Writable => true,
            Kind::WritableOn if goes_on && !event.broken && !seen.contains(PollFlags::OUT) => return,
            Kind::WritableOn => true,
            _ => false,
        };
        self.report(port, event);
    }

    /// Has the next wait, or the one that is going on, report this about a port, in one event with all else about it.
    #[inline]
    fn report(&mut self, port: &mut Port, event: Event) {
        let (wait, index) = port.reported;
        if wait == self.waits {
            self.coming[index].add(event);
        } else {
            port.reported = (self.waits, self.coming.len());
            self.coming.push(Event { token: port.token, ..event });
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
                port.has_room = send_sealed(&port.fd, tls, &mut port.unsent, out)? == StoppedBy::Turn;
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
        if !waits || port.send_failed.is_some() {
            return;
        }
        if port.in_flight.writable || port.in_flight.writable_on {
            // It tells when room comes, not that there is some.
            if std::mem::take(&mut port.has_room) {
                self.report(port, Event { sent: true, ..Event::default() });
            }
            return;
        }
        let kind = if port.ends_waits { Kind::WritableOn } else { Kind::Writable };
        port.in_flight.writable = kind == Kind::Writable;
        port.in_flight.writable_on = kind == Kind::WritableOn;
        self.ring.poll(&port.fd, kind, poll_bits(PollFlags::OUT), port.tag);
    }
}

/// The ring that this thread has, or a new one.
fn ring_of_thread() -> std::io::Result<Box<Ring>> {
    SPARE.take().map_or_else(|| Ring::new().map(Box::new), Ok)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{Shutdown, TcpListener, TcpStream};

    #[test]
    fn who_sends_no_more_and_takes_nothing_is_waited_for() {
        const WAITS: usize = 1_000;
        const LEN: usize = 30_000_000;
        // A system without io_uring has nothing to test.
        let Ok(mut io) = Uring::try_out() else { return };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut peer = TcpStream::connect(listener.local_addr().expect("it has one")).expect("connected");
        let (own, _) = listener.accept().expect("it came");
        own.set_nonblocking(true).expect("a socket");
        let mut socket = io.open(own.into(), None, 7).expect("opened");
        let mut out = OutBuf::new();
        out.tail_for(LEN).resize(LEN, b'x');
        io.send(&mut socket, &mut out).expect("sent");
        io.flush(&mut socket).expect("flushed");
        peer.shutdown(Shutdown::Write).expect("it is open");
        let mut go_on = |timeout| {
            let mut times = 0;
            for index in 0..io.wait(timeout).expect("waited") {
                let event = io.event(index);
                io.note(&mut socket, event);
                if event.sent {
                    times += 1;
                    io.continue_send(&mut socket).expect("it is there");
                }
            }
            (times, io.unsent(&socket))
        };
        let times: usize = (0..WAITS).map(|_| go_on(Duration::ZERO).0).sum();
        assert!(times < 10, "{times}");
        let reader = std::thread::spawn(move || {
            let mut bytes = vec![0; LEN];
            peer.read_exact(&mut bytes).expect("all of it comes");
        });
        while go_on(Duration::from_secs(1)).1 > 0 {}
        reader.join().expect("all came");
    }
}
