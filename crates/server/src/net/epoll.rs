//! Moves bytes with epoll, edge-triggered. Knows no service and no connection state.
//!
//! A request at pipeline 1 costs one `epoll_wait`, one `recv` and one `send`:
//! a receive that does not fill the buffer has emptied the socket, so no second one is made to hear so (epoll(7); only
//! out-of-band data and passed descriptors, which no client of ours sends, cut a receive short, to the sender's harm);
//! interest in writability is registered only after a send that fell short;
//! of a long value that comes steadily an event tells only when much of it is there;
//! a connection that is not read for a while needs no change of its registration, because an edge is reported once.

use super::inbox::Waker;
use super::io::{Event, Io, RECEIVE_BYTES, Received};
use super::low_water::LowWater;
use super::sending::{self, REPLY_BUFFER_KEPT, SEND_BYTES_PER_TURN, StoppedBy, keep_rest, send_some};
use super::tls::TlsSession;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::time::Timespec;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;
use tenon_wire::OutBuf;

/// How many events one wait may bring; what is left over comes with the next.
const EVENTS_PER_WAIT: usize = 256;

/// The waker's token; its index part is one that no connection reaches.
const WAKER_TOKEN: u64 = u64::MAX;

const READ_INTEREST: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

pub(super) struct Epoll {
    /// Shared with what stands in its place while another thread uses it.
    epoll: Arc<OwnedFd>,
    /// Where bytes under TLS are received.
    sealed: Vec<u8>,
    /// What the last wait has brought.
    events: Vec<Event>,
    /// What the next wait tells of without asking the kernel.
    again: Vec<Event>,
}

pub(super) struct EpollSocket {
    fd: OwnedFd,
    token: u64,
    unsent: OutBuf,
    /// Between the service's bytes and the socket's, where TLS is spoken; `unsent` is the socket's.
    tls: Option<Box<TlsSession>>,
    /// An edge was seen and the socket not emptied since.
    may_receive: bool,
    /// The end of the stream is among what is waiting: read on until it comes, no further edge will tell.
    end_is_near: bool,
    low_water: LowWater,
    write_interest: bool,
    /// The token is in `again` because of input.
    queued: bool,
    /// The token is in `again` because of output.
    goes_on_sending: bool,
}

impl Io for Epoll {
    type Socket = EpollSocket;

    fn new(waker: &Waker) -> std::io::Result<Epoll> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        // Edge-triggered, so the counter never has to be read back.
        epoll::add(&epoll, waker, EventData::new_u64(WAKER_TOKEN), EventFlags::IN | EventFlags::ET)?;
        Ok(Epoll { events: Vec::with_capacity(EVENTS_PER_WAIT), ..Epoll::of(Arc::new(epoll)) })
    }

    fn hollow(&self) -> Epoll {
        Epoll::of(Arc::clone(&self.epoll))
    }

    fn prepare_thread() -> std::io::Result<()> {
        Ok(())
    }

    fn leave(&mut self) -> bool {
        // It is any thread's.
        true
    }

    fn arrive(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn open(&mut self, fd: OwnedFd, tls: Option<TlsSession>, token: u64) -> std::io::Result<EpollSocket> {
        epoll::add(&self.epoll, &fd, EventData::new_u64(token), READ_INTEREST)?;
        Ok(EpollSocket {
            fd,
            token,
            unsent: OutBuf::new(),
            tls: tls.map(Box::new),
            may_receive: false,
            end_is_near: false,
            low_water: LowWater::default(),
            write_interest: false,
            queued: false,
            goes_on_sending: false,
        })
    }

    fn watch(&mut self, fd: &impl AsFd, token: u64) -> std::io::Result<()> {
        let interest = EventFlags::IN | EventFlags::ET | EventFlags::EXCLUSIVE;
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), interest)?)
    }

    fn unwatch(&mut self, fd: &impl AsFd, _: u64) {
        // What is not watched, as that has failed, need not be taken away.
        let _ = epoll::delete(&self.epoll, fd);
    }

    fn again(&mut self, token: u64) {
        self.again.push(Event { token, received: true, ..Event::default() });
    }

    fn wait(&mut self, timeout: Duration) -> std::io::Result<usize> {
        let timeout = if self.again.is_empty() { timeout } else { Duration::ZERO };
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        self.events.clear();
        let mut ready = [const { MaybeUninit::uninit() }; EVENTS_PER_WAIT];
        match epoll::wait(&self.epoll, &mut ready, Some(&timeout)) {
            // The kernel's form of them may not leave the thread.
            Ok((ready, _)) => self.events.extend(ready.iter().map(event_of)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.events.append(&mut self.again);
        Ok(self.events.len())
    }

    #[inline]
    fn event(&mut self, index: usize) -> Event {
        self.events[index]
    }

    #[inline]
    fn receive(&mut self, socket: &mut EpollSocket, input: &mut Vec<u8>) -> Received {
        input.clear();
        if socket.tls.is_some() {
            return self.receive_sealed(socket, input);
        }
        receive_clear(socket, input)
    }

    #[inline]
    fn receive_into(&mut self, socket: &mut EpollSocket, room: &mut Vec<u8>, missing: usize) -> Received {
        debug_assert!(socket.tls.is_none() && room.len() < room.capacity());
        let before = room.len();
        let received = receive_clear(socket, room);
        if !socket.may_receive {
            let received = room.len() - before;
            socket.low_water.after(&socket.fd, received, missing.saturating_sub(received));
        }
        received
    }

    fn tell_of_every_byte(&mut self, socket: &mut EpollSocket) -> bool {
        socket.low_water.reset(&socket.fd)
    }

    #[inline]
    fn receive_later(&mut self, socket: &mut EpollSocket) {
        if socket.may_receive && !socket.queued {
            socket.queued = true;
            self.again(socket.token);
        }
    }

    fn not_later(&mut self, socket: &mut EpollSocket) {
        if socket.queued
            && !socket.may_receive
            && self.again.last().is_some_and(|event| event.token == socket.token && !event.sent)
        {
            self.again.pop();
            socket.queued = false;
        }
    }

    #[inline(always)]
    fn send(&mut self, socket: &mut EpollSocket, out: &mut OutBuf) -> Result<(), Errno> {
        // Nearly always it is one short piece that leaves at once.
        if socket.tls.is_none()
            && socket.unsent.is_empty()
            && let Some(bytes) = out.contiguous()
            && let asked @ 1..=REPLY_BUFFER_KEPT = bytes.len()
            && let Ok(sent) = send(&socket.fd, bytes, SendFlags::NOSIGNAL)
        {
            out.advance(sent);
            return if sent == asked { Ok(()) } else { self.keep_unsent(socket, out, StoppedBy::Kernel) };
        }
        self.send_anything(socket, out)
    }

    fn flush(&mut self, _: &mut EpollSocket) -> Result<(), Errno> {
        // Nothing is left for later that the kernel would take.
        Ok(())
    }

    fn close(&mut self, mut socket: EpollSocket) {
        if let Some(tls) = &mut socket.tls {
            tls.end(&mut socket.unsent);
            // Whoever does not take it now has gone, or will see the connection end without it.
            let _ = send_some(&socket.fd, &mut socket.unsent, SEND_BYTES_PER_TURN);
        }
    }

    fn continue_send(&mut self, socket: &mut EpollSocket) -> Result<bool, Errno> {
        if socket.tls.is_some() {
            let before = self.unsent(socket);
            self.seal_and_send(socket)?;
            return Ok(self.unsent(socket) < before);
        }
        if socket.unsent.is_empty() {
            return Ok(false);
        }
        let before = socket.unsent.len();
        let stopped_by = send_some(&socket.fd, &mut socket.unsent, self.turn_bytes())?;
        let moved = socket.unsent.len() < before;
        if socket.unsent.is_empty() {
            socket.unsent = OutBuf::new();
        }
        self.note_stop(socket, stopped_by)?;
        Ok(moved)
    }

    #[inline]
    fn note(&mut self, socket: &mut EpollSocket, event: Event) {
        socket.queued = false;
        socket.goes_on_sending &= !event.sent;
        socket.may_receive |= event.received;
        socket.end_is_near |= event.peer_ended || event.broken;
    }

    #[inline]
    fn may_receive(&self, socket: &EpollSocket) -> bool {
        socket.may_receive
    }

    fn peer_ended(&self, socket: &EpollSocket) -> bool {
        socket.end_is_near
    }

    fn is_clear(&self, socket: &EpollSocket) -> bool {
        socket.tls.is_none()
    }

    fn is_handshaking(&self, socket: &EpollSocket) -> bool {
        socket.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    #[inline]
    fn unsent(&self, socket: &EpollSocket) -> usize {
        socket.unsent.len() + socket.tls.as_ref().map_or(0, |tls| tls.unsealed())
    }

    fn unsent_memory(&self, socket: &EpollSocket) -> usize {
        socket.unsent.memory() + socket.tls.as_ref().map_or(0, |tls| tls.unsealed_memory())
    }
}

impl Epoll {
    fn of(epoll: Arc<OwnedFd>) -> Epoll {
        Epoll { epoll, sealed: Vec::new(), events: Vec::new(), again: Vec::new() }
    }

    /// Receives what comes under TLS.
    #[inline(never)]
    fn receive_sealed(&mut self, socket: &mut EpollSocket, input: &mut Vec<u8>) -> Received {
        if socket.tls.as_ref().is_some_and(|tls| tls.has_ended()) {
            // It was said together with the bytes of the last receive, and the socket does not say it again.
            return Received::End;
        }
        self.sealed.clear();
        self.sealed.reserve_exact(RECEIVE_BYTES);
        match recv(&socket.fd, spare_capacity(&mut self.sealed), RecvFlags::empty()) {
            Ok((0, _)) => return Received::End,
            Ok((received, _)) => socket.may_receive = received == self.sealed.capacity() || socket.end_is_near,
            Err(Errno::AGAIN | Errno::INTR) => {
                socket.may_receive = false;
                return Received::Nothing;
            }
            Err(error) => return Received::Failed(error),
        }
        let tls = socket.tls.as_mut().expect("the socket is one with TLS");
        let opened = tls.open(&self.sealed, input);
        let has_ended = tls.has_ended();
        // The handshake's answers, or why there is none.
        if let Err(error) = self.seal_and_send(socket) {
            return Received::Failed(error);
        }
        match opened {
            Err(_) => Received::Failed(Errno::PROTO),
            Ok(()) if !input.is_empty() => {
                // Nobody tells of an end that came together with bytes.
                socket.may_receive |= has_ended;
                Received::Bytes
            }
            Ok(()) if has_ended => Received::End,
            Ok(()) => {
                self.receive_later(socket);
                Received::Nothing
            }
        }
    }

    /// Sends what [`Io::send`] does not see to be short and in clear, with nothing before it.
    #[inline(never)]
    fn send_anything(&mut self, socket: &mut EpollSocket, out: &mut OutBuf) -> Result<(), Errno> {
        if socket.tls.is_some() {
            return self.send_sealed(socket, out);
        }
        if !socket.unsent.is_empty() {
            keep_rest(&mut socket.unsent, out);
            return Ok(());
        }
        let whole = out.len();
        let stopped_by = send_some(&socket.fd, out, self.turn_bytes())?;
        if !out.is_empty() {
            return self.keep_unsent(socket, out, stopped_by);
        }
        if whole > REPLY_BUFFER_KEPT {
            out.shrink(REPLY_BUFFER_KEPT);
        }
        Ok(())
    }

    /// Keeps what has not left, behind nothing else.
    #[inline(never)]
    fn keep_unsent(&mut self, socket: &mut EpollSocket, out: &mut OutBuf, stopped_by: StoppedBy) -> Result<(), Errno> {
        keep_rest(&mut socket.unsent, out);
        self.note_stop(socket, stopped_by)
    }

    /// Sees to it that an event tells when sending is to go on: when the kernel takes more, where that stopped it, and with
    /// the next wait, where it was the others' turn.
    fn note_stop(&mut self, socket: &mut EpollSocket, stopped_by: StoppedBy) -> Result<(), Errno> {
        if stopped_by == StoppedBy::Turn {
            if !std::mem::replace(&mut socket.goes_on_sending, true) {
                self.again.push(Event { token: socket.token, sent: true, ..Event::default() });
            }
            return Ok(());
        }
        let wants_room = stopped_by == StoppedBy::Kernel;
        if socket.write_interest == wants_room {
            // Edge-triggered, so what was registered before tells of the next time, too.
            return Ok(());
        }
        socket.write_interest = wants_room;
        self.set_interest(socket, if wants_room { READ_INTEREST | EventFlags::OUT } else { READ_INTEREST })
    }

    #[inline(never)]
    fn send_sealed(&mut self, socket: &mut EpollSocket, out: &mut OutBuf) -> Result<(), Errno> {
        let tls = socket.tls.as_mut().expect("the socket is one with TLS");
        let stopped_by = sending::send_sealed(&socket.fd, tls, &mut socket.unsent, out)?;
        self.note_stop(socket, stopped_by)
    }

    /// Encrypts and sends as much as the socket takes, or a turn's share of it.
    fn seal_and_send(&mut self, socket: &mut EpollSocket) -> Result<(), Errno> {
        let tls = socket.tls.as_mut().expect("the socket is one with TLS");
        let stopped_by = sending::seal_and_send(&socket.fd, tls, &mut socket.unsent)?;
        self.note_stop(socket, stopped_by)
    }

    /// How much one connection may send before the others have their turn.
    fn turn_bytes(&self) -> usize {
        sending::send_bytes_of_turn(self.events.len())
    }

    fn set_interest(&self, socket: &EpollSocket, interest: EventFlags) -> Result<(), Errno> {
        epoll::modify(&self.epoll, &socket.fd, EventData::new_u64(socket.token), interest)
    }
}

#[inline(always)]
fn event_of(ready: &epoll::Event) -> Event {
    let (token, flags) = (ready.data.u64(), ready.flags);
    if flags == EventFlags::IN {
        // Nearly always.
        return Event { token, received: true, ..Event::default() };
    }
    let broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
    Event {
        token,
        received: broken || flags.intersects(EventFlags::IN | EventFlags::RDHUP),
        sent: flags.contains(EventFlags::OUT),
        peer_ended: flags.contains(EventFlags::RDHUP),
        broken,
    }
}

#[inline]
fn receive_clear(socket: &mut EpollSocket, room: &mut Vec<u8>) -> Received {
    match recv(&socket.fd, spare_capacity(room), RecvFlags::empty()) {
        Ok((0, _)) => Received::End,
        Ok(_) => {
            socket.may_receive = room.len() == room.capacity() || socket.end_is_near;
            Received::Bytes
        }
        Err(Errno::AGAIN | Errno::INTR) => {
            socket.may_receive = false;
            Received::Nothing
        }
        Err(error) => Received::Failed(error),
    }
}
