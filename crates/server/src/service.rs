//! The bridge between the event loop and the front ends: what each asks of the other. Knows no protocol and no socket.

use crate::net::{
    Address, Bound, CloseReason, ConnectionId, FrontEnd, Mailboxes, Meanwhile, OutputLimits, Peer, Service, Takes,
    TlsTerms,
};
use crate::tls::Tls;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tenon_engine::Engine;
use tenon_engine::clients::{ClientInfo, ConnectionKey, Dialect, Message};
use tenon_engine::listening::{ListeningSocket, Transport};
use tenon_engine::session::Roles;
use tenon_engine::worker::Worker;
use tenon_frontend::{Connection, Ending, Flow};
use tenon_wire::OutBuf;

/// The engine behind both front ends, as the event loop sees it.
pub struct Tenon {
    engine: Arc<Engine>,
    tls: Tls,
    mail: OnceLock<Mailboxes<Message>>,
}

impl Tenon {
    /// Serves this engine.
    pub(crate) fn new(engine: Arc<Engine>, tls: Tls) -> Arc<Tenon> {
        let tenon = Arc::new(Tenon { engine, tls, mail: OnceLock::new() });
        let weak = Arc::downgrade(&tenon);
        tenon.engine.clients.set_post(Arc::new(move |key, message| {
            // Nobody is told anything once the server is gone.
            if let Some(tenon) = weak.upgrade()
                && let Some(mail) = tenon.mail.get()
            {
                mail.post(connection_id(key), message);
            }
        }));
        let weak = Arc::downgrade(&tenon);
        tenon.engine.set_wake(Arc::new(move |worker| {
            if let Some(tenon) = weak.upgrade()
                && let Some(mail) = tenon.mail.get()
            {
                mail.post_worker(worker, Message::Wake);
            }
        }));
        tenon
    }
}

fn connection_id(key: ConnectionKey) -> ConnectionId {
    ConnectionId { worker: key.worker, index: key.index, generation: key.generation }
}

fn ending_of(reason: CloseReason) -> Ending {
    match reason {
        CloseReason::PeerClosed => Ending::Normal,
        CloseReason::IdleTimeout => Ending::IdleTimeout,
        CloseReason::Shutdown => Ending::Shutdown,
        CloseReason::Service
        | CloseReason::Failed(_)
        | CloseReason::OutputLimit
        | CloseReason::FlushTimeout
        | CloseReason::Panicked => Ending::Error,
    }
}

fn dialect_of(front_end: FrontEnd) -> Dialect {
    match front_end {
        FrontEnd::Resp => Dialect::Resp,
        FrontEnd::Memcached => Dialect::Memcached,
    }
}

fn listening_socket(bound: &Bound, now_ms: u64) -> ListeningSocket {
    let (transport, address) = match (bound.takes, &bound.address) {
        (Takes::Datagrams, address) => (Transport::Udp, address.to_string()),
        (_, Address::Unix(path)) => (Transport::Unix, path.display().to_string()),
        (Takes::Tls, address) => (Transport::Tls, address.to_string()),
        (Takes::Connections, address) => (Transport::Tcp, address.to_string()),
    };
    ListeningSocket::new(bound.fd, dialect_of(bound.front_end), transport, address, now_ms)
}

fn client_info(peer: &Peer) -> ClientInfo {
    ClientInfo {
        key: ConnectionKey { worker: peer.id.worker, index: peer.id.index, generation: peer.id.generation },
        dialect: dialect_of(peer.front_end),
        remote: peer.remote.to_string(),
        local: peer.local.to_string(),
        fd: peer.fd,
        unix: matches!(peer.local, Address::Unix(_)),
    }
}

/// A worker's other connections, as the engine asks for them.
struct Others<'a> {
    engine: &'a Engine,
    connections: &'a mut dyn Meanwhile<Worker>,
}

impl tenon_engine::meanwhile::Meanwhile for Others<'_> {
    fn engine(&self) -> &Engine {
        self.engine
    }

    fn lend(&mut self) -> bool {
        self.connections.lend()
    }

    fn serve(&mut self, worker: &mut Worker) {
        self.connections.serve(worker);
    }
}

impl Service for Tenon {
    type Worker = Worker;
    type Connection = Connection;
    type Message = Message;

    fn worker(&self, index: usize, mail: &Mailboxes<Message>) -> Worker {
        // Every worker brings the same mailboxes; the first one's are kept.
        self.mail.get_or_init(|| mail.clone());
        self.engine.worker(index)
    }

    fn stand_in(&self, index: usize, _mail: &Mailboxes<Message>) -> Worker {
        self.engine.stand_in(index)
    }

    fn rest(&self, worker: &mut Worker) -> Duration {
        self.engine.rest(worker)
    }

    fn listens(&self, bound: &[Bound]) {
        let now_ms = tenon_engine::clock::now_us() / 1_000;
        self.engine.listening.set(bound.iter().map(|bound| listening_socket(bound, now_ms)).collect());
    }

    fn accept(&self, worker: &mut Worker, peer: Peer) -> Result<Connection, Cow<'static, [u8]>> {
        let info = client_info(&peer);
        if let Some(line) = self.engine.refuses(&info) {
            if let Some(times) = self.engine.strangers_log.refused.note(worker.clock.now_ns) {
                tracing::warn!(client = info.remote, times, "refused: protected mode");
            }
            self.engine.refused_connections.fetch_add(1, Ordering::Relaxed);
            return Err(Cow::Borrowed(line.as_bytes()));
        }
        let mut connection = Connection::open(&self.engine, worker, info);
        if self.engine.settings_undone() != peer.taken_back {
            // It may be in by what was taken back meanwhile: an address, or terms of TLS.
            connection.closed(&self.engine, Ending::Error);
            return Err(Cow::Borrowed(b""));
        }
        Ok(connection)
    }

    #[inline]
    fn on_bytes(&self, worker: &mut Worker, connection: &mut Connection, input: &[u8], out: &mut OutBuf) -> Flow {
        connection.on_bytes(&self.engine, worker, input, out)
    }

    fn room<'c>(&self, connection: &'c mut Connection) -> Option<&'c mut Vec<u8>> {
        connection.room()
    }

    fn missing(&self, connection: &Connection) -> usize {
        connection.missing()
    }

    fn on_filled(&self, worker: &mut Worker, connection: &mut Connection, received: usize, out: &mut OutBuf) -> Flow {
        connection.on_filled(&self.engine, worker, received, out)
    }

    fn resume(&self, worker: &mut Worker, connection: &mut Connection, out: &mut OutBuf) -> Flow {
        connection.resume(&self.engine, worker, out)
    }

    fn on_message(&self, worker: &mut Worker, connection: &mut Connection, message: Message, out: &mut OutBuf) -> Flow {
        connection.on_message(&self.engine, worker, message, out)
    }

    fn on_datagram(
        &self,
        worker: &mut Worker,
        (from, local): (SocketAddr, SocketAddr),
        datagram: &[u8],
        send: &mut dyn FnMut(&[u8]),
    ) {
        let local = local.to_string();
        self.engine.listening.note_datagram(&local, worker.clock.now_ms);
        let info = ClientInfo {
            key: ConnectionKey::of_datagram(worker.index as u32),
            dialect: Dialect::Memcached,
            remote: from.to_string(),
            local,
            fd: -1,
            unix: false,
        };
        tenon_frontend::datagram::on_datagram(&self.engine, worker, info, datagram, send);
    }

    fn taken_back(&self) -> u64 {
        self.engine.settings_undone()
    }

    fn tls(&self) -> Option<TlsTerms> {
        self.tls.current()
    }

    fn on_worker_message(&self, worker: &mut Worker, _message: Message) {
        self.engine.between_calls(worker.index);
    }

    #[inline]
    fn begin_call(&self, worker: &mut Worker) {
        self.engine.begin_call(worker);
    }

    fn after_panic(&self, worker: &mut Worker) {
        self.engine.after_panic(worker);
    }

    #[inline]
    fn holds(&self, worker: &Worker) -> Option<u64> {
        self.engine.holds_replies(worker)
    }

    fn holds_on(&self, worker: &Worker) {
        self.engine.holds_on(worker);
    }

    fn durable(&self) -> u64 {
        self.engine.durable()
    }

    fn begin_turn(&self, worker: &mut Worker, _now: Instant) {
        self.engine.read_clock(worker);
    }

    fn end_turn(&self, worker: &mut Worker) {
        self.engine.end_turn(worker);
    }

    fn tick(&self, worker: &mut Worker, _now: Instant) -> Duration {
        self.engine.tick(worker)
    }

    fn closed(&self, worker: &mut Worker, mut connection: Connection, reason: CloseReason) {
        let was_over = connection.client().is_over_output_limit.load(Ordering::Relaxed);
        let reason = if was_over { CloseReason::OutputLimit } else { reason };
        if reason == CloseReason::OutputLimit {
            worker.stats.all.output_limit_closed.add(1);
            tracing::warn!(client = connection.client().id, "closed: {reason}");
        } else {
            tracing::debug!(client = connection.client().id, "closed: {reason}");
        }
        connection.closed(&self.engine, ending_of(reason));
    }

    fn may_serve_meanwhile(&self, connection: &Connection) -> bool {
        connection.may_serve_meanwhile()
    }

    fn may_tell_meanwhile(&self, message: &Message) -> bool {
        // What it has sent comes again, and is let through or refused as if it came now.
        *message == Message::Unpause
    }

    #[inline(always)]
    fn with_meanwhile<R>(&self, meanwhile: &mut dyn Meanwhile<Worker>, call: impl FnOnce() -> R) -> R {
        tenon_engine::meanwhile::with(&mut Others { engine: &self.engine, connections: meanwhile }, call)
    }

    fn begin_lent_call(&self) -> u64 {
        self.engine.begin_lent_call()
    }

    fn end_lent_call(&self, number: u64) {
        self.engine.end_lent_call(number);
    }

    fn end_long_calls(&self) {
        self.engine.scripts.running.end_all();
    }

    fn note_on_its_way(&self, before: usize, bytes: usize) {
        self.engine.note_on_its_way(before, bytes);
    }

    fn note_unsent(&self, connection: &Connection, bytes: usize, memory: usize) {
        self.engine.note_unsent(connection.client(), bytes, memory);
    }

    fn note_sent(&self, worker: &mut Worker, connection: &Connection, bytes: usize) {
        connection.note_sent(worker, bytes);
    }

    fn unsent_read_max(&self, connection: &Connection) -> usize {
        connection.unsent_max(&self.engine)
    }

    fn output_limits(&self, connection: &Connection) -> OutputLimits {
        let limit = self.engine.config.output_buffer_limit(connection.client().class());
        OutputLimits {
            hard_bytes: limit.hard_bytes as usize,
            soft_bytes: limit.soft_bytes as usize,
            soft_for: Duration::from_secs(limit.soft_seconds),
        }
    }

    fn idle_timeout(&self, connection: &Connection) -> Option<Duration> {
        // Whoever listens, to channels or to other clients' commands, has nothing to say.
        let roles = connection.client().roles();
        if roles.has(Roles::SUBSCRIBER) || roles.has(Roles::MONITOR) || roles.has(Roles::WATCHER) {
            return None;
        }
        match self.engine.config.timeout() {
            0 => None,
            seconds => Some(Duration::from_secs(u64::from(seconds))),
        }
    }

    fn drops_parked(&self, connection: &Connection) -> bool {
        // Whoever waits for a key wants nothing any more, nor, as with Redis, who waits for the end of a CLIENT PAUSE: else clients that
        // try again and again would be as many as may be. What those have sent who wait for a disk, for another's command or for
        // the rest of their own still counts.
        connection.waits_for_others() || self.engine.pause.alone_holds(connection.client().info.key)
    }

    fn note_gone(&self, connection: &Connection) {
        connection.client().killed.store(true, Ordering::Release);
    }

    fn ends_unanswered(&self, connection: &Connection) -> bool {
        connection.ends_unanswered(&self.engine)
    }

    fn wakes_in(&self, worker: &Worker) -> Option<Duration> {
        let ends_rest = self.engine.ends_rest(worker);
        self.engine.next_end_of_wait(worker).into_iter().chain(ends_rest).min()
    }

    fn max_clients(&self) -> usize {
        self.engine.config.maxclients() as usize
    }

    fn refuse_over_max_clients(&self, front_end: FrontEnd) -> Cow<'static, [u8]> {
        self.engine.refused_connections.fetch_add(1, Ordering::Relaxed);
        Cow::Borrowed(match front_end {
            FrontEnd::Resp => b"-ERR max number of clients reached\r\n",
            FrontEnd::Memcached => b"ERROR Too many open connections\r\n",
        })
    }

    fn tcp_keepalive(&self) -> Option<Duration> {
        match self.engine.config.tcp_keepalive() {
            0 => None,
            seconds => Some(Duration::from_secs(u64::from(seconds))),
        }
    }
}
