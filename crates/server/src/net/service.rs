//! What the event loop asks of whoever understands the bytes. Knows no socket.

use super::inbox::Mailboxes;
use super::serve::Bound;
use super::tls::TlsTerms;
use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenon_frontend::Flow;
use tenon_wire::OutBuf;

/// Whoever understands the bytes: the loop calls it, on the worker that owns the connection.
///
/// A panic in a call closes the connection that it was for; the worker lives on. The worker's own state is then used
/// again, so an implementation keeps it valid at every point where it may panic.
pub trait Service: Send + Sync + 'static {
    /// One thread's own state, such as statistics. Never leaves the thread.
    type Worker;
    /// One connection's state. It is used by the thread that runs its worker's loop: mostly the same one.
    type Connection: Send;
    /// What other threads post to a connection or to a worker.
    type Message: Send + 'static;

    /// Makes a worker's state, on the worker's thread. The mailboxes reach every worker, and may be kept.
    fn worker(&self, index: usize, mail: &Mailboxes<Self::Message>) -> Self::Worker;

    /// Makes the state of one more thread that runs calls of this worker, on that thread, while other calls take long.
    fn stand_in(&self, index: usize, mail: &Mailboxes<Self::Message>) -> Self::Worker {
        self.worker(index, mail)
    }

    /// Does what is to be done now and then by a thread that runs no worker's loop at the moment; says when to be called next.
    fn rest(&self, worker: &mut Self::Worker) -> Duration {
        let _ = worker;
        Duration::from_secs(60)
    }

    /// Says where the server listens: before the first connection is accepted, and when that has changed.
    fn listens(&self, bound: &[Bound]) {
        let _ = bound;
    }

    /// Takes a new connection, or refuses it with the bytes to send before it is closed.
    fn accept(&self, worker: &mut Self::Worker, peer: Peer) -> Result<Self::Connection, Cow<'static, [u8]>>;

    /// Consumes all of `input`; what it cannot use yet it keeps itself. Replies are appended to `out`, which is shared
    /// by the worker's connections and holds only this call's output.
    fn on_bytes(
        &self,
        worker: &mut Self::Worker,
        connection: &mut Self::Connection,
        input: &[u8],
        out: &mut OutBuf,
    ) -> Flow;

    /// After [`Flow::Fill`]: where the connection's next bytes may be put, behind what is there, as many as there is capacity
    /// for. `None`: they are to be given to [`Service::on_bytes`], which is always right.
    fn room<'c>(&self, connection: &'c mut Self::Connection) -> Option<&'c mut Vec<u8>> {
        let _ = connection;
        None
    }

    /// How many bytes are missing of the argument that the connection has room for, in this room and behind it.
    fn missing(&self, connection: &Self::Connection) -> usize {
        let _ = connection;
        0
    }

    /// Goes on after so many bytes were put into the connection's room; otherwise as [`Service::on_bytes`].
    fn on_filled(
        &self,
        worker: &mut Self::Worker,
        connection: &mut Self::Connection,
        received: usize,
        out: &mut OutBuf,
    ) -> Flow {
        let _ = (worker, connection, received, out);
        unreachable!("a service that gives room says what becomes of what is put there")
    }

    /// Goes on with what [`Service::on_bytes`] kept: after [`Flow::Drain`] when enough output has left, after
    /// [`Flow::Park`] when a message returned [`Flow::Continue`].
    fn resume(&self, worker: &mut Self::Worker, connection: &mut Self::Connection, out: &mut OutBuf) -> Flow;

    /// Delivers a message that was posted to the connection.
    ///
    /// [`Flow::Continue`] un-parks a parked connection, which is then resumed; [`Flow::Park`] leaves it parked;
    /// [`Flow::Stay`] leaves any connection as it is.
    /// A connection that is draining or closing stays so unless the answer closes it sooner.
    fn on_message(
        &self,
        worker: &mut Self::Worker,
        connection: &mut Self::Connection,
        message: Self::Message,
        out: &mut OutBuf,
    ) -> Flow;

    /// Answers a datagram from `from`, which came to `local`, by those that it hands to `send`.
    fn on_datagram(
        &self,
        worker: &mut Self::Worker,
        (from, local): (SocketAddr, SocketAddr),
        datagram: &[u8],
        send: &mut dyn FnMut(&[u8]),
    ) {
        let _ = (worker, from, local, datagram, send);
    }

    /// How a new connection's TLS is to be spoken; nothing where none can be.
    fn tls(&self) -> Option<TlsTerms> {
        None
    }

    /// Delivers a message that was posted to the worker, between two calls.
    fn on_worker_message(&self, worker: &mut Self::Worker, message: Self::Message);

    /// Gives back a message whose connection is gone.
    fn on_lost_message(&self, worker: &mut Self::Worker, to: ConnectionId, message: Self::Message) {
        let _ = (worker, to, message);
    }

    /// Starts a call for a connection that is not in the middle of another one's.
    #[inline]
    fn begin_call(&self, worker: &mut Self::Worker) {
        let _ = worker;
    }

    /// A call with this worker has panicked in its middle.
    fn after_panic(&self, worker: &mut Self::Worker) {
        let _ = worker;
    }

    /// Up to which position the log has to be on disk before what the last call has written may be sent; `None` if it
    /// may be sent now. Whoever keeps the log posts one message to the worker when [`Service::durable`] has risen.
    #[inline]
    fn holds(&self, worker: &Self::Worker) -> Option<u64> {
        let _ = worker;
        None
    }

    /// The worker has looked at [`Service::durable`] and goes on holding: it wants another message when that rises, and
    /// looks once more after this.
    fn holds_on(&self, worker: &Self::Worker) {
        let _ = worker;
    }

    /// Up to which position the log is on disk.
    fn durable(&self) -> u64 {
        u64::MAX
    }

    /// Starts a turn of the loop: `now` holds for all that is delivered until the next one.
    fn begin_turn(&self, worker: &mut Self::Worker, now: Instant) {
        let _ = (worker, now);
    }

    /// Ends a turn of the loop, before the worker waits.
    fn end_turn(&self, worker: &mut Self::Worker) {
        let _ = worker;
    }

    /// Does what is due now and then, and says when to be called next.
    fn tick(&self, worker: &mut Self::Worker, now: Instant) -> Duration;

    /// How long the worker may wait at most before it is to tick, whatever the last tick said; `None` for as long as
    /// that did. Asked before each wait.
    fn wakes_in(&self, worker: &Self::Worker) -> Option<Duration> {
        let _ = worker;
        None
    }

    /// Ends a connection. Its socket is still open, but nothing more is sent.
    fn closed(&self, worker: &mut Self::Worker, connection: Self::Connection, reason: CloseReason);

    /// Notes how many bytes of the connection's output are unsent, and how many they take in memory. Told when the former has
    /// changed.
    fn note_unsent(&self, connection: &Self::Connection, bytes: usize, memory: usize);

    /// Notes that so many bytes of the connection's output have left, as far as the kernel has taken them.
    fn note_sent(&self, worker: &mut Self::Worker, connection: &Self::Connection, bytes: usize);

    /// Notes that an answer on its way to the connection's thread takes so many bytes, which were `before`, as long as that
    /// cannot tell of it as unsent: none when it has come.
    fn note_on_its_way(&self, before: usize, bytes: usize) {
        let _ = (before, bytes);
    }

    /// Whether a connection may be given its input while another one's call has not ended (see
    /// [`Service::with_meanwhile`]); its input waits otherwise.
    fn may_serve_meanwhile(&self, connection: &Self::Connection) -> bool {
        let _ = connection;
        false
    }

    /// Whether such a connection may be told this then; the message waits otherwise.
    fn may_tell_meanwhile(&self, message: &Self::Message) -> bool {
        let _ = message;
        false
    }

    /// Makes a call for a connection. As long as it runs, `meanwhile` serves the worker's other connections, new ones
    /// too, whenever the service asks for it.
    fn with_meanwhile<R>(&self, meanwhile: &mut dyn Meanwhile<Self::Worker>, call: impl FnOnce() -> R) -> R {
        let _ = meanwhile;
        call()
    }

    /// Notes that a call lends the loop, before another thread has that; gives the call's number.
    fn begin_lent_call(&self) -> u64 {
        0
    }

    /// Notes that the call of this number has ended.
    fn end_lent_call(&self, number: u64) {
        let _ = number;
    }

    /// Ends calls that would go on for long, if they may end in their middle: the server ends.
    fn end_long_calls(&self) {}

    /// How much unsent output this connection may have and still be read, in bytes; what waits after [`Flow::Drain`]
    /// goes on when half of that is free. Asked only where some is unsent.
    fn unsent_read_max(&self, connection: &Self::Connection) -> usize;

    /// How much unsent output this connection may have before it is cut. Asked only where some is unsent.
    fn output_limits(&self, connection: &Self::Connection) -> OutputLimits;

    /// How long this connection may be silent; `None` for ever. Parked connections are never asked about.
    fn idle_timeout(&self, connection: &Self::Connection) -> Option<Duration>;

    /// Whether a parked connection is dropped when its client ends its side, as Redis does with a blocked one. The
    /// alternative is for replies that are merely held back: they are still sent, and the connection ends after them.
    fn drops_parked(&self, connection: &Self::Connection) -> bool {
        let _ = connection;
        true
    }

    /// Notes that the client of a parked connection that is dropped has ended its side, some time before the connection is
    /// closed: nothing is to be done for it any more.
    fn note_gone(&self, connection: &Self::Connection) {
        let _ = connection;
    }

    /// Ends what a parked connection waits for, as the server ends and all that it was answered before has left. `false`: that has
    /// come, and a message which un-parks the connection is on its way. Nothing comes for it after `true`.
    fn ends_unanswered(&self, connection: &Self::Connection) -> bool {
        let _ = connection;
        true
    }

    /// How often something was taken back that new connections may have been let in by. Asked for each new connection, before
    /// anything else that it is let in by.
    fn taken_back(&self) -> u64 {
        0
    }

    /// How many connections all workers together may have. Read for each new connection.
    fn max_clients(&self) -> usize;

    /// What a connection over [`Service::max_clients`] is told before it is closed. Called on the accepting thread.
    fn refuse_over_max_clients(&self, front_end: FrontEnd) -> Cow<'static, [u8]>;

    /// How long a TCP connection may be silent before its peer is probed; `None` for no probes. Read for each new
    /// connection.
    fn tcp_keepalive(&self) -> Option<Duration>;
}

/// Serves a worker's other connections in the middle of a call.
pub trait Meanwhile<W> {
    /// Has another thread serve them from now on, with everything that is asked of a worker; `true` too if one does already.
    /// `false`: none can now.
    fn lend(&mut self) -> bool;

    /// Serves those that [`Service::may_serve_meanwhile`] lets through, without waiting. Not while they are lent.
    fn serve(&mut self, worker: &mut W);
}

/// Which protocol family a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrontEnd {
    /// RESP2, RESP3 and inline commands.
    Resp,
    /// The memcached dialects.
    Memcached,
}

impl fmt::Display for FrontEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FrontEnd::Resp => "RESP",
            FrontEnd::Memcached => "memcached",
        })
    }
}

/// Names one connection for as long as the process lives; a later connection in the same place has another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId {
    /// The worker that owns it.
    pub worker: u32,
    /// Its place among the worker's connections.
    pub index: u32,
    /// How often that place was used before.
    pub generation: u32,
}

/// One end of a connection, shown as Redis shows it in `CLIENT LIST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `127.0.0.1:6379` or `[::1]:6379`.
    Inet(SocketAddr),
    /// The listener's path and port 0: `/run/tenon.sock:0`. Redis shows it for both ends.
    Unix(Arc<Path>),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Inet(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "{}:0", path.display()),
        }
    }
}

impl Address {
    /// Whether the other end is on this machine for certain: what protected mode lets through.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Inet(address) => address.ip().to_canonical().is_loopback(),
            Address::Unix(_) => true,
        }
    }
}

/// A new connection's particulars.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its name for messages.
    pub id: ConnectionId,
    /// Which listener it came through.
    pub front_end: FrontEnd,
    /// The client's end.
    pub remote: Address,
    /// Our end.
    pub local: Address,
    /// The socket's number, as `CLIENT LIST` shows it. For showing only.
    pub fd: i32,
    /// [`Service::taken_back`] when it came.
    pub taken_back: u64,
}

/// How much unsent output a connection may have before it is cut; 0 bytes for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimits {
    /// Cut at once above this many bytes.
    pub hard_bytes: usize,
    /// Cut above this many bytes for longer than `soft_for`.
    pub soft_bytes: usize,
    /// How long `soft_bytes` may be exceeded.
    pub soft_for: Duration,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The client closed its end.
    PeerClosed,
    /// The service asked for it: QUIT, a protocol error, a kill.
    Service,
    /// The socket failed.
    Failed(rustix::io::Errno),
    /// More output was unsent than allowed.
    OutputLimit,
    /// The client was silent for too long.
    IdleTimeout,
    /// The client took nothing of its last replies for too long.
    FlushTimeout,
    /// The server is shutting down.
    Shutdown,
    /// A call to the service panicked.
    Panicked,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloseReason::PeerClosed => f.write_str("the client closed it"),
            CloseReason::Service => f.write_str("the server was asked to"),
            CloseReason::Failed(error) => write!(f, "the socket failed: {error}"),
            CloseReason::OutputLimit => f.write_str("its unsent output exceeded the limit"),
            CloseReason::IdleTimeout => f.write_str("it was idle for too long"),
            CloseReason::FlushTimeout => f.write_str("it did not take its last replies"),
            CloseReason::Shutdown => f.write_str("the server shuts down"),
            CloseReason::Panicked => f.write_str("a bug made its command panic"),
        }
    }
}
