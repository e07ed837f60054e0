//! The completion-shaped face of the kernel: "here are bytes", "these have left". Knows no service and no connection state.

use super::inbox::Waker;
use super::tls::TlsSession;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::time::Duration;
use tenon_wire::OutBuf;

/// How many bytes one receive usually may deliver. A worker has one such buffer for all its connections, and another one while it
/// serves some in the middle of a call.
pub(super) const RECEIVE_BYTES: usize = 64 * 1024;

/// One worker's way to move bytes. The loop is written against this, so that a ring can stand behind it as well as epoll.
///
/// Each socket carries a token, which comes back in its [`Event`]s. A token may come back after its socket was closed.
pub(super) trait Io: Sized + Send {
    /// One socket, and what the way keeps for it: the descriptor, and output that has not left.
    type Socket: Send;

    /// `waker` makes a waiting thread return from [`Io::wait`]; it yields no event.
    fn new(waker: &Waker) -> std::io::Result<Self>;

    /// One without any socket, for the place of this one while another thread uses it.
    fn hollow(&self) -> Self;

    /// Sees to it that [`Io::arrive`] will not fail on this thread.
    fn prepare_thread() -> std::io::Result<()>;

    /// Leaves this thread, as another one goes on; `false` if it has to stay. Events that were not dealt with stay to be asked
    /// for.
    fn leave(&mut self) -> bool;

    /// Goes on, on another thread or again on this one after it has left.
    fn arrive(&mut self) -> std::io::Result<()>;

    /// Takes over a connected, non-blocking socket and starts to report about it. With TLS the bytes that come out of it
    /// and go into it are those in clear.
    fn open(&mut self, fd: OwnedFd, tls: Option<TlsSession>, token: u64) -> std::io::Result<Self::Socket>;

    /// Reports what comes to a socket that several workers watch, to one of them each time.
    fn watch(&mut self, fd: &impl AsFd, token: u64) -> std::io::Result<()>;

    /// Reports nothing more of a socket that was watched; an event of this token may come once more.
    fn unwatch(&mut self, fd: &impl AsFd, token: u64);

    /// Has the next wait return at once with an event of this token.
    fn again(&mut self, token: u64);

    /// Waits until something is to be done or until the timeout, and tells how many events there are.
    fn wait(&mut self, timeout: Duration) -> std::io::Result<usize>;

    /// One of the events of the last wait.
    fn event(&mut self, index: usize) -> Event;

    /// Puts the next bytes that came in, if any, into `input`, in the place of what is there: as many as it has capacity for,
    /// but for a socket with TLS, whose bytes in clear may be more.
    fn receive(&mut self, socket: &mut Self::Socket, input: &mut Vec<u8>) -> Received;

    /// Puts the next bytes that came in, if any, behind what is in `room`, as many as it has capacity for. So many are
    /// `missing`, in this room and others, and will come: the next event may wait until much of it has, until
    /// [`Io::tell_of_every_byte`] is called. Not for sockets with TLS: what they receive is to be opened first.
    fn receive_into(&mut self, socket: &mut Self::Socket, room: &mut Vec<u8>, missing: usize) -> Received;

    /// Has an event tell of every byte again that comes or has come; says whether it was otherwise.
    fn tell_of_every_byte(&mut self, socket: &mut Self::Socket) -> bool;

    /// Says that the socket is to be read again although nothing new may come in. Where more may be waiting, the next
    /// wait returns at once and has an event for it.
    fn receive_later(&mut self, socket: &mut Self::Socket);

    /// Takes back an [`Io::receive_later`] of this turn, as the socket was read since until nothing was waiting.
    fn not_later(&mut self, socket: &mut Self::Socket);

    /// Sends `out`, now or with the next [`Io::wait`], or takes over what cannot leave yet: `out` is empty afterwards. When
    /// the kernel has not taken all of it and may take more, an event with [`Event::sent`] follows.
    fn send(&mut self, socket: &mut Self::Socket, out: &mut OutBuf) -> Result<(), Errno>;

    /// Offers the kernel now what [`Io::send`] has left for the next [`Io::wait`], so that [`Io::unsent`] tells of it.
    fn flush(&mut self, socket: &mut Self::Socket) -> Result<(), Errno>;

    /// Closes a socket: what waits for the next [`Io::wait`] leaves before, and TLS is ended in good order, as far as that
    /// needs no waiting.
    fn close(&mut self, socket: Self::Socket);

    /// Goes on sending after an event with [`Event::sent`]; tells whether anything left.
    fn continue_send(&mut self, socket: &mut Self::Socket) -> Result<bool, Errno>;

    /// Takes note of an event of this socket, before anything is done about it.
    fn note(&mut self, socket: &mut Self::Socket, event: Event);

    /// Whether more input may be waiting.
    fn may_receive(&self, socket: &Self::Socket) -> bool;

    /// Whether the client has ended its side; input from before may still be waiting.
    fn peer_ended(&self, socket: &Self::Socket) -> bool;

    /// Whether what the socket receives are the service's bytes as they are.
    fn is_clear(&self, socket: &Self::Socket) -> bool;

    /// Whether nothing can be received before a handshake has come to its end.
    fn is_handshaking(&self, socket: &Self::Socket) -> bool;

    /// Bytes that have been offered to the kernel and not been taken. What is offered with the next [`Io::wait`] is not
    /// among them.
    fn unsent(&self, socket: &Self::Socket) -> usize;

    /// Bytes of memory that they take.
    fn unsent_memory(&self, socket: &Self::Socket) -> usize;
}

/// Something happened on the socket of this token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) token: u64,
    /// There may be input.
    pub(super) received: bool,
    /// Unsent output may go on.
    pub(super) sent: bool,
    /// The client has ended its side of the stream, after the input that may still be waiting.
    pub(super) peer_ended: bool,
    /// Nothing can be sent any more, nor will more come.
    pub(super) broken: bool,
}

impl Event {
    /// Adds what else has happened on the same socket.
    #[inline]
    pub(super) fn add(&mut self, event: Event) {
        self.received |= event.received;
        self.sent |= event.sent;
        self.peer_ended |= event.peer_ended;
        self.broken |= event.broken;
    }
}

/// The outcome of a receive.
#[derive(Debug)]
pub(super) enum Received {
    Bytes,
    /// Nothing now; an event will tell.
    Nothing,
    /// The client has ended its side, and all before it was delivered.
    End,
    Failed(Errno),
}
