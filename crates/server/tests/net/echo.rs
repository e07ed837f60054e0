//! A service of a few line commands that exercises every answer the loop understands. Knows no socket.

use bytes::Bytes;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};
use tenon_frontend::Flow;
use tenon_server::net::{
    CloseReason, ConnectionId, FrontEnd, Mailboxes, Meanwhile, OutputLimits, Peer, Service, TlsTerms,
};
use tenon_wire::OutBuf;

/// More output than this waits before the next command runs.
pub const DRAIN_ABOVE: usize = 256 * 1024;

/// What `fill` makes room for at a time.
const ROOM: usize = 100_000;

/// How long it is waited at most for a thread to lend the loop to.
const THREADS_COME_IN: Duration = Duration::from_secs(10);

/// How long the soft limit on output may be exceeded.
pub const SOFT_FOR: Duration = Duration::from_secs(4);

/// Answers lines:
/// `big N` with N bytes by reference, `fill N` (behind its line N bytes, which it takes into its room) with `filled` if they
/// are the pattern's, `park` with nothing until un-parked, `panic`, `panic-later` (in `closed`),
/// `hold N` with `held N` once N is released (a datagram with itself), `hold-panic N` with a panic then, `thread` with the name of the thread,
/// `messages` with how many messages there were, `closed` with how many connections were closed,
/// `log N` with itself once the log is on disk up to N (as a datagram, too), `quit` with `bye`, `cut` with a close, `who` with its worker, anything else with itself.
#[derive(Default)]
pub struct Echo {
    pub max_clients: AtomicUsize,
    /// How often that was looked at, and, so it is told, something was taken back.
    pub looks_at_limit: AtomicU64,
    pub idle_ms: AtomicU64,
    pub hard_bytes: AtomicUsize,
    pub soft_bytes: AtomicUsize,
    pub keeps_parked: AtomicBool,
    pub produced: AtomicU64,
    pub filled: AtomicUsize,
    pub parked: AtomicUsize,
    /// Whether those that are parked at the end are to have an answer, and how often that was asked.
    pub answers_parked: AtomicBool,
    pub asked_of_parked: AtomicUsize,
    pub durable: AtomicU64,
    /// Whether a worker holds replies and is to be told when more is durable.
    pub is_holding: AtomicBool,
    pub ticks: AtomicUsize,
    pub worker_messages: AtomicUsize,
    pub lost_messages: AtomicUsize,
    /// How many messages connections have had.
    pub messages: AtomicUsize,
    pub turns: AtomicUsize,
    pub connections: Mutex<HashMap<String, ConnectionId>>,
    pub unsent: Mutex<HashMap<String, usize>>,
    /// Bytes that have left.
    pub sent: AtomicUsize,
    pub closed: Mutex<Vec<CloseReason>>,
    pub peers: Mutex<Vec<Peer>>,
    pub tls: Mutex<Option<TlsTerms>>,
    /// Whether each call lends the loop as soon as it begins.
    pub lends: AtomicBool,
    /// Whether a call that is to lend it waits for a thread: one that has lent it before takes a moment to come back.
    pub awaits_threads: AtomicBool,
    /// Calls in which the loop was lent, and those in which it could not be.
    pub lent: AtomicUsize,
    pub not_lent: AtomicUsize,
    /// Calls that wait to be released, and what is.
    pub holding: AtomicUsize,
    pub released: Mutex<HashSet<Vec<u8>>>,
    pub changed: Condvar,
}

#[derive(Default)]
pub struct Worker {
    holds: Option<u64>,
}

pub enum Message {
    Durable,
    Push(Vec<u8>),
    Unpark,
    Kill,
    Panic,
}

pub struct Client {
    peer: Peer,
    input: Vec<u8>,
    /// What `fill` asks for, and how many bytes that is.
    filling: Option<(Vec<u8>, usize)>,
    panics_when_closed: bool,
}

/// A byte that depends on its position, so that lost and swapped pieces show.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

impl Echo {
    /// The connection whose client's address is this.
    pub fn id_of(&self, remote: &str) -> Option<ConnectionId> {
        self.connections.lock().unwrap().get(remote).copied()
    }

    /// Has calls go on that wait for this.
    pub fn release(&self, what: &str) {
        self.released.lock().unwrap().insert(what.into());
        self.changed.notify_all();
    }

    fn hold(&self, what: &[u8]) {
        let released = self.released.lock().unwrap();
        self.holding.fetch_add(1, Ordering::SeqCst);
        let is_held = |released: &mut HashSet<Vec<u8>>| !released.contains(what) && !released.contains(&b"all"[..]);
        drop(self.changed.wait_while(released, is_held).unwrap());
        self.holding.fetch_sub(1, Ordering::SeqCst);
    }

    fn run(&self, worker: &mut Worker, client: &mut Client, out: &mut OutBuf) -> Flow {
        if let Some((filled, len)) = &mut client.filling {
            filled.extend(client.input.drain(..client.input.len().min(*len - filled.len())));
            if filled.len() < *len {
                return Flow::Fill;
            }
            let is_right = *filled == pattern(*len);
            client.filling = None;
            out.tail().extend_from_slice(if is_right { b"filled\n" } else { b"wrong!\n" });
        }
        while let Some(end) = client.input.iter().position(|&byte| byte == b'\n') {
            if out.len() > DRAIN_ABOVE {
                return Flow::Drain;
            }
            let line: Vec<u8> = client.input.drain(..=end).collect();
            let before = out.len();
            match line.trim_ascii_end().split(|&byte| byte == b' ').collect::<Vec<_>>()[..] {
                [b"big", count] => {
                    let count = std::str::from_utf8(count).unwrap().parse().unwrap();
                    out.tail().extend_from_slice(b"<");
                    out.push_shared(Bytes::from(pattern(count)));
                    out.tail().extend_from_slice(b">\n");
                }
                [b"fill", len] => {
                    let len = std::str::from_utf8(len).unwrap().parse().unwrap();
                    client.filling = Some((Vec::new(), len));
                    return self.run(worker, client, out);
                }
                [b"park"] => {
                    self.parked.fetch_add(1, Ordering::Relaxed);
                    return Flow::Park;
                }
                [b"hold", what] => {
                    self.hold(what);
                    out.tail().extend_from_slice(b"held ");
                    out.tail().extend_from_slice(what);
                    out.tail().push(b'\n');
                }
                [b"hold-panic", what] => {
                    self.hold(what);
                    panic!("asked to when it was released")
                }
                [b"thread"] => {
                    let thread = std::thread::current();
                    out.tail().extend_from_slice(thread.name().unwrap().as_bytes());
                    out.tail().push(b'\n');
                }
                [b"panic"] => panic!("asked to"),
                [b"panic-later"] => client.panics_when_closed = true,
                [b"who"] => out.tail().extend_from_slice(format!("{}\n", client.peer.id.worker).as_bytes()),
                [b"messages"] => {
                    let count = self.messages.load(Ordering::SeqCst);
                    out.tail().extend_from_slice(format!("{count}\n").as_bytes());
                }
                [b"closed"] => {
                    let count = self.closed.lock().unwrap().len();
                    out.tail().extend_from_slice(format!("{count}\n").as_bytes());
                }
                [b"quit"] => {
                    out.tail().extend_from_slice(b"bye\n");
                    return Flow::CloseAfterFlush;
                }
                [b"log", position] => {
                    worker.holds = std::str::from_utf8(position).unwrap().parse().ok();
                    out.tail().extend_from_slice(&line);
                }
                [b"cut"] => return Flow::Close,
                _ => out.tail().extend_from_slice(&line),
            }
            self.produced.fetch_add((out.len() - before) as u64, Ordering::Relaxed);
        }
        Flow::Continue
    }
}

impl Service for Echo {
    type Worker = Worker;
    type Connection = Client;
    type Message = Message;

    fn worker(&self, _index: usize, _mail: &Mailboxes<Message>) -> Worker {
        Worker::default()
    }

    fn begin_call(&self, worker: &mut Worker) {
        worker.holds = None;
    }

    fn holds(&self, worker: &Worker) -> Option<u64> {
        let holds = worker.holds.filter(|position| *position > self.durable());
        self.is_holding.fetch_or(holds.is_some(), Ordering::SeqCst);
        holds
    }

    fn holds_on(&self, _worker: &Worker) {
        self.is_holding.store(true, Ordering::SeqCst);
    }

    fn durable(&self) -> u64 {
        self.durable.load(Ordering::SeqCst)
    }

    fn accept(&self, _worker: &mut Self::Worker, peer: Peer) -> Result<Client, Cow<'static, [u8]>> {
        self.connections.lock().unwrap().insert(peer.remote.to_string(), peer.id);
        self.peers.lock().unwrap().push(peer.clone());
        Ok(Client { peer, input: Vec::new(), filling: None, panics_when_closed: false })
    }

    fn on_bytes(&self, worker: &mut Self::Worker, client: &mut Client, input: &[u8], out: &mut OutBuf) -> Flow {
        assert!(out.is_empty(), "another connection's output was left behind");
        client.input.extend_from_slice(input);
        self.run(worker, client, out)
    }

    fn room<'c>(&self, client: &'c mut Client) -> Option<&'c mut Vec<u8>> {
        let (filled, len) = client.filling.as_mut()?;
        let room = ROOM.min(*len - filled.len());
        filled.reserve_exact(room);
        // Only as much as belongs to it.
        (filled.capacity() <= *len).then_some(filled)
    }

    fn missing(&self, client: &Client) -> usize {
        client.filling.as_ref().map_or(0, |(filled, len)| len - filled.len())
    }

    fn on_filled(&self, worker: &mut Self::Worker, client: &mut Client, received: usize, out: &mut OutBuf) -> Flow {
        assert!(out.is_empty(), "another connection's output was left behind");
        assert!(received > 0 && client.input.is_empty());
        self.filled.fetch_add(received, Ordering::Relaxed);
        self.run(worker, client, out)
    }

    fn resume(&self, worker: &mut Self::Worker, client: &mut Client, out: &mut OutBuf) -> Flow {
        assert!(out.is_empty(), "another connection's output was left behind");
        self.run(worker, client, out)
    }

    fn on_message(&self, _worker: &mut Self::Worker, _client: &mut Client, message: Message, out: &mut OutBuf) -> Flow {
        assert!(out.is_empty(), "another connection's output was left behind");
        self.messages.fetch_add(1, Ordering::SeqCst);
        match message {
            Message::Push(bytes) => {
                out.tail().extend_from_slice(&bytes);
                Flow::Continue
            }
            Message::Unpark => {
                out.tail().extend_from_slice(b"unparked\n");
                Flow::Continue
            }
            Message::Durable => unreachable!("it is for workers"),
            Message::Kill => Flow::Close,
            Message::Panic => panic!("asked to by message"),
        }
    }

    fn on_datagram(
        &self,
        worker: &mut Self::Worker,
        _addresses: (SocketAddr, SocketAddr),
        datagram: &[u8],
        send: &mut dyn FnMut(&[u8]),
    ) {
        match datagram.split(|&byte| byte == b' ').collect::<Vec<_>>()[..] {
            [b"log", position] => worker.holds = std::str::from_utf8(position).unwrap().parse().ok(),
            [b"hold", what] => self.hold(what),
            _ => {}
        }
        send(datagram);
        send(b"and another");
    }

    fn tls(&self) -> Option<TlsTerms> {
        self.tls.lock().unwrap().clone()
    }

    fn on_worker_message(&self, _worker: &mut Self::Worker, message: Message) {
        if let Message::Panic = message {
            panic!("asked to by worker message");
        }
        self.worker_messages.fetch_add(1, Ordering::Relaxed);
    }

    fn on_lost_message(&self, _worker: &mut Self::Worker, _to: ConnectionId, _message: Message) {
        self.lost_messages.fetch_add(1, Ordering::Relaxed);
    }

    fn begin_turn(&self, _worker: &mut Self::Worker, _now: Instant) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    fn tick(&self, _worker: &mut Self::Worker, _now: Instant) -> Duration {
        self.ticks.fetch_add(1, Ordering::Relaxed);
        Duration::from_millis(10)
    }

    fn with_meanwhile<R>(&self, meanwhile: &mut dyn Meanwhile<Worker>, call: impl FnOnce() -> R) -> R {
        if self.lends.load(Ordering::SeqCst) {
            let mut is_lent = meanwhile.lend();
            let since = Instant::now();
            while !is_lent && self.awaits_threads.load(Ordering::SeqCst) && since.elapsed() < THREADS_COME_IN {
                std::thread::sleep(Duration::from_millis(1));
                is_lent = meanwhile.lend();
            }
            let count = if is_lent { &self.lent } else { &self.not_lent };
            count.fetch_add(1, Ordering::SeqCst);
            // Whoever has lent it has lent it.
            assert!(!meanwhile.lend() || meanwhile.lend());
        }
        call()
    }

    fn end_long_calls(&self) {
        self.release("all");
    }

    fn closed(&self, _worker: &mut Self::Worker, client: Client, reason: CloseReason) {
        self.connections.lock().unwrap().remove(&client.peer.remote.to_string());
        self.closed.lock().unwrap().push(reason);
        assert!(!client.panics_when_closed, "asked to when closed");
    }

    fn note_unsent(&self, client: &Client, bytes: usize, memory: usize) {
        assert!(memory >= bytes, "{memory} hold {bytes}");
        self.unsent.lock().unwrap().insert(client.peer.remote.to_string(), bytes);
    }

    fn note_sent(&self, _: &mut Worker, _: &Client, bytes: usize) {
        assert!(bytes > 0);
        self.sent.fetch_add(bytes, Ordering::SeqCst);
    }

    fn unsent_read_max(&self, _client: &Client) -> usize {
        DRAIN_ABOVE
    }

    fn output_limits(&self, _client: &Client) -> OutputLimits {
        OutputLimits {
            hard_bytes: self.hard_bytes.load(Ordering::Relaxed),
            soft_bytes: self.soft_bytes.load(Ordering::Relaxed),
            soft_for: SOFT_FOR,
        }
    }

    fn idle_timeout(&self, _client: &Client) -> Option<Duration> {
        Some(self.idle_ms.load(Ordering::Relaxed)).filter(|ms| *ms > 0).map(Duration::from_millis)
    }

    fn drops_parked(&self, _client: &Client) -> bool {
        !self.keeps_parked.load(Ordering::Relaxed)
    }

    fn ends_unanswered(&self, _client: &Client) -> bool {
        self.asked_of_parked.fetch_add(1, Ordering::Relaxed);
        !self.answers_parked.load(Ordering::Relaxed)
    }

    fn taken_back(&self) -> u64 {
        self.looks_at_limit.load(Ordering::SeqCst)
    }

    fn max_clients(&self) -> usize {
        self.looks_at_limit.fetch_add(1, Ordering::SeqCst);
        Some(self.max_clients.load(Ordering::Relaxed)).filter(|max| *max > 0).unwrap_or(10_000)
    }

    fn refuse_over_max_clients(&self, front_end: FrontEnd) -> Cow<'static, [u8]> {
        Cow::Borrowed(match front_end {
            FrontEnd::Resp => b"-ERR max number of clients reached\r\n",
            FrontEnd::Memcached => b"ERROR Too many open connections\r\n",
        })
    }

    fn tcp_keepalive(&self) -> Option<Duration> {
        Some(Duration::from_secs(300))
    }
}
