//! Starts the workers and the acceptor, and waits for them. Knows no protocol.

use super::acceptor::Acceptor;
use super::datagrams::Datagrams;
use super::epoll::Epoll;
use super::inbox::{Grace, Mailboxes, Waker};
use super::io::Io;
use super::listener::{Bind, Listen, ListenError, Listener};
use super::relisten::Listening;
use super::service::{Address, FrontEnd, Service};
use super::uring::Uring;
use super::way::{self, Wanted, Way};
use super::worker::{Hire, Worker, run, run_lent};
use crate::shutdown::Shutdown;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle, Scope};
use std::time::Duration;

/// A worker's stack: scripts may nest calls, coroutines and values as deeply as Lua lets them. It is memory only as far
/// as it is used.
const WORKER_STACK_BYTES: usize = 16 << 20;

/// What to serve on.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many worker threads; at least one.
    pub workers: usize,
    /// Where to listen, in this order.
    pub listens: Vec<Listen>,
    /// The UDP port and its addresses; none for no UDP.
    pub datagrams: Option<(u16, Vec<Bind>)>,
    /// How many new connections the kernel may queue for each listener.
    pub backlog: i32,
    /// Which way moves the bytes.
    pub io: Wanted,
}

/// An address that is listened on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Who speaks there.
    pub front_end: FrontEnd,
    /// What comes there.
    pub takes: Takes,
    /// The address, with the port that the kernel chose where none was asked for.
    pub address: Address,
    /// The socket's number. For showing only.
    pub fd: i32,
}

/// What comes to an address that is listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Connections.
    Connections,
    /// Connections that speak TLS.
    Tls,
    /// Datagrams.
    Datagrams,
}

/// The server could not start.
#[derive(Debug)]
pub enum ServeError {
    /// An address cannot be listened on.
    Listen(ListenError),
    /// The UDP port of an address cannot be had.
    Datagrams(String, u16, std::io::Error),
    /// A thread, or something that it needs from the kernel, cannot be had.
    Thread(std::io::Error),
    /// The service panicked when a worker was made.
    WorkerPanicked,
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Listen(error) => error.fmt(f),
            ServeError::Datagrams(host, port, error) => {
                write!(f, "cannot listen to datagrams on {host}:{port}: {error}")
            }
            ServeError::Thread(error) => write!(f, "cannot start the worker threads: {error}"),
            ServeError::WorkerPanicked => f.write_str("a worker panicked while it was started"),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ServeError::Listen(error) => Some(error),
            ServeError::Datagrams(_, _, error) | ServeError::Thread(error) => Some(error),
            ServeError::WorkerPanicked => None,
        }
    }
}

impl From<std::io::Error> for ServeError {
    fn from(error: std::io::Error) -> ServeError {
        ServeError::Thread(error)
    }
}

/// A server that runs until its [`Shutdown`] is requested.
pub struct Running<M> {
    way: Way,
    bound: Vec<Bound>,
    mail: Mailboxes<M>,
    listening: Listening,
    threads: Vec<JoinHandle<()>>,
}

impl<M> fmt::Debug for Running<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("bound", &self.bound).finish_non_exhaustive()
    }
}

impl<M> Running<M> {
    /// What was listened on at the start, in the order of [`Options::listens`], without skipped optional addresses, and
    /// behind it the addresses for datagrams.
    pub fn bound(&self) -> &[Bound] {
        &self.bound
    }

    /// Which way moves the bytes.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Reaches every worker.
    pub fn mail(&self) -> &Mailboxes<M> {
        &self.mail
    }

    /// Listens elsewhere.
    pub fn listening(&self) -> &Listening {
        &self.listening
    }

    /// Waits until shutdown was requested and all threads have ended. `false` if one of them ended by a panic, or could not go on.
    pub fn wait(self) -> bool {
        self.threads.into_iter().map(JoinHandle::join).fold(true, |well, joined| well & joined.is_ok())
    }
}

/// The sockets that clients come to, before anybody serves them: until then what comes waits.
#[derive(Debug)]
pub struct Sockets {
    listeners: Vec<Listener>,
    datagrams: Vec<Arc<Datagrams>>,
}

impl Sockets {
    /// Opens them all, or none.
    ///
    /// # Errors
    /// When one that is not optional cannot be had.
    pub fn open(options: &Options) -> Result<Sockets, ServeError> {
        let listeners = Listener::open_all(&options.listens, options.backlog).map_err(ServeError::Listen)?;
        let datagrams = Datagrams::open_all(options.datagrams.as_ref(), &[], &[])?;
        Ok(Sockets { listeners, datagrams })
    }

    /// Whether none was asked for, or none of those that were is there.
    pub fn is_empty(&self) -> bool {
        self.listeners.is_empty() && self.datagrams.is_empty()
    }

    /// Starts the workers and serves `service` until `shutdown` is requested. The options are those it was opened with.
    ///
    /// # Errors
    /// When a thread cannot be started. Those that were have ended then.
    pub fn serve<S: Service>(
        self,
        options: &Options,
        service: Arc<S>,
        shutdown: &Shutdown,
    ) -> Result<Running<S::Message>, ServeError> {
        let workers = options.workers.max(1);
        let of_datagrams = self.datagrams.iter().map(|socket| socket.bound());
        let bound = self.listeners.iter().map(Listener::bound).chain(of_datagrams).collect();
        let mail = Mailboxes::new(workers)?;
        let way = way::choose(options.io);
        match start_threads((workers, way), self, options.backlog, service, &mail, shutdown) {
            Ok((threads, listening)) => Ok(Running { way, bound, mail, listening, threads }),
            Err(error) => {
                // Those that did start have nothing to serve.
                mail.shut_down_workers(Grace::begin(Duration::ZERO));
                Err(error)
            }
        }
    }
}

/// Opens the sockets, starts the workers and serves `service` until `shutdown` is requested.
///
/// # Errors
/// When an address cannot be had, or a thread not be started.
pub fn serve<S: Service>(
    options: &Options,
    service: Arc<S>,
    shutdown: &Shutdown,
) -> Result<Running<S::Message>, ServeError> {
    Sockets::open(options)?.serve(options, service, shutdown)
}

fn start_threads<S: Service>(
    (workers, way): (usize, Way),
    Sockets { listeners, datagrams }: Sockets,
    backlog: i32,
    service: Arc<S>,
    mail: &Mailboxes<S::Message>,
    shutdown: &Shutdown,
) -> Result<(Vec<JoinHandle<()>>, Listening), ServeError> {
    let mut threads = Vec::with_capacity(workers + 1);
    let (started, is_started) = mpsc::channel();
    for index in 0..workers {
        let (service, mail, shutdown) = (Arc::clone(&service), mail.clone(), shutdown.clone());
        let (started, datagrams) = (started.clone(), datagrams.clone());
        let body = move || {
            let place = Place { service: &*service, index, mail: &mail, shutdown: &shutdown };
            thread::scope(|scope| match own_ring(way, index, &mail) {
                Some(ring) => run_worker(place, Ok(ring), datagrams, started, scope),
                None => run_worker(place, Epoll::new(mail.mailbox(index).waker()), datagrams, started, scope),
            });
        };
        threads
            .push(thread::Builder::new().name(format!("tenon-w{index}")).stack_size(WORKER_STACK_BYTES).spawn(body)?);
    }
    drop(started);
    for _ in 0..workers {
        is_started.recv().map_err(|_| ServeError::WorkerPanicked)??;
    }
    let waker = Arc::new(Waker::new()?);
    shutdown.wakes(Arc::clone(&waker));
    let (listening, requests) = Listening::new(Arc::clone(&waker));
    let (mail, shutdown) = (mail.clone(), shutdown.clone());
    let left = Vec::new();
    let acceptor = Acceptor { service, listeners, datagrams, left, mail, shutdown, waker, requests, backlog };
    acceptor.tell_where();
    threads.push(thread::Builder::new().name("tenon-accept".to_owned()).spawn(move || acceptor.run())?);
    Ok((threads, listening))
}

/// The ring of a worker that is to have one. Where the system gave the first ones and has no more, the others have epoll.
fn own_ring<M>(way: Way, index: usize, mail: &Mailboxes<M>) -> Option<Uring> {
    if way != Way::IoUring {
        return None;
    }
    let ring = Uring::new(mail.mailbox(index).waker());
    ring.inspect_err(|error| tracing::warn!(worker = index, "a worker has epoll, as it can have no io_uring: {error}"))
        .ok()
}

/// What the threads of one worker have in common.
struct Place<'s, S: Service> {
    service: &'s S,
    index: usize,
    mail: &'s Mailboxes<S::Message>,
    shutdown: &'s Shutdown,
}

impl<S: Service> Clone for Place<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Service> Copy for Place<'_, S> {}

fn run_worker<'s, S: Service, I: Io + 's>(
    place: Place<'s, S>,
    io: std::io::Result<I>,
    datagrams: Vec<Arc<Datagrams>>,
    started: mpsc::Sender<std::io::Result<()>>,
    scope: &'s Scope<'s, '_>,
) {
    let Place { service, index, mail, .. } = place;
    let mut own = match io.and_then(|io| Worker::new(service, index, mail.clone(), datagrams, io)) {
        Ok(own) => Box::new(own),
        Err(error) => {
            // If the receiver is gone, the start has failed already.
            let _ = started.send(Err(error));
            return;
        }
    };
    own.may_be_lent(hire(place, scope));
    let mut state = service.worker(index, mail);
    let _ = started.send(Ok(()));
    drop(started);
    in_good_order(place, || run(own, &mut state, true));
}

/// How one more thread is started that runs this worker's loop while its calls take long.
fn hire<'s, S: Service, I: Io + 's>(place: Place<'s, S>, scope: &'s Scope<'s, '_>) -> Hire<'s, S, I> {
    Box::new(move |loops| {
        let Place { service, index, mail, .. } = place;
        let (prepared, is_prepared) = mpsc::channel();
        let body = move || {
            let is_ready = I::prepare_thread();
            let has_failed = is_ready.is_err();
            if prepared.send(is_ready).is_err() || has_failed {
                return;
            }
            in_good_order(place, || run_lent(&loops, &mut service.stand_in(index, mail)));
        };
        let builder = thread::Builder::new().name(format!("tenon-w{index}+")).stack_size(WORKER_STACK_BYTES);
        builder.spawn_scoped(scope, body)?;
        is_prepared.recv().unwrap_or_else(|error| Err(std::io::Error::other(error)))
    })
}

/// Runs a worker's loop. Without it its connections would hang: if it fails, the server better ends in good order.
fn in_good_order<S: Service>(place: Place<'_, S>, run: impl FnOnce() -> std::io::Result<()>) {
    let Place { service, index, shutdown, .. } = place;
    let result = catch_unwind(AssertUnwindSafe(run));
    if !matches!(result, Ok(Ok(()))) {
        // There is nobody any more whom calls of this worker could be told of that go on elsewhere.
        service.end_long_calls();
    }
    match result {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::error!(worker = index, %error, "the event loop failed; shutting down");
            shutdown.request(Duration::ZERO);
            // Who waits for the threads is to know that this one has not ended well.
            resume_unwind(Box::new(error));
        }
        Err(panic) => {
            tracing::error!(worker = index, "a bug made the event loop panic; shutting down");
            shutdown.request(Duration::ZERO);
            resume_unwind(panic);
        }
    }
}
