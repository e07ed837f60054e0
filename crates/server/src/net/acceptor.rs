//! The thread that takes new connections and deals them to the workers. Knows no protocol.

use super::datagrams::Datagrams;
use super::inbox::{Accepted, Grace, Letter, Mailboxes, Waker};
use super::listener::Listener;
use super::relisten::Request;
use super::service::{Address, Service};
use crate::shutdown::Shutdown;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_nodelay,
};
use rustix::net::{RecvFlags, SendFlags, SocketFlags, acceptfrom_with, getsockname, recv, send};
use rustix::time::Timespec;
use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tenon_engine::clock::monotonic_ns;
use tenon_engine::log_limit::LogLimit;

/// How many connections one listener may bring before the others are looked at; Redis's number.
const ACCEPTS_PER_TURN: usize = 1000;

/// How long to let connections queue in the kernel when it has no descriptor or memory for another.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// How often at most it is logged that there are none.
const LOG_PERIOD: Duration = Duration::from_secs(1);

pub(super) struct Acceptor<S: Service> {
    pub(super) service: Arc<S>,
    pub(super) listeners: Vec<Listener>,
    /// The UDP sockets, which the workers read themselves.
    pub(super) datagrams: Vec<Arc<Datagrams>>,
    /// Those that were left, which a worker may have until its next turn.
    pub(super) left: Vec<Weak<Datagrams>>,
    pub(super) mail: Mailboxes<S::Message>,
    pub(super) shutdown: Shutdown,
    pub(super) waker: Arc<Waker>,
    pub(super) requests: Receiver<Request>,
    pub(super) backlog: i32,
}

/// What stopped a listener's turn.
enum Stopped {
    /// Its queue is empty, or it had its share.
    Done,
    /// The process or the machine has no more descriptors or memory.
    Exhausted(Errno),
}

impl<S: Service> Acceptor<S> {
    /// Accepts until shutdown is asked for; then closes the listeners and tells the workers.
    pub(super) fn run(mut self) {
        let mut paused_until: Option<Instant> = None;
        let exhausted = LogLimit::every(LOG_PERIOD);
        let mut next_worker = 0;
        while !self.shutdown.is_requested() {
            let mut fds = vec![PollFd::new(&*self.waker, PollFlags::IN)];
            let pause = paused_until.map(|until| until.saturating_duration_since(Instant::now()));
            let pause = pause.filter(|pause| !pause.is_zero());
            if pause.is_none() {
                fds.extend(self.listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)));
            }
            let timeout = pause.map(|pause| Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() });
            match poll(&mut fds, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "cannot wait for new connections; trying again");
                    std::thread::sleep(EXHAUSTED_PAUSE);
                    continue;
                }
            }
            let woken = !fds[0].revents().is_empty();
            let ready: Vec<bool> = fds.iter().skip(1).map(|fd| !fd.revents().is_empty()).collect();
            paused_until = None;
            if woken {
                self.waker.clear();
                while let Ok(request) = self.requests.try_recv() {
                    let before = self.datagrams.clone();
                    let answer = request.serve(&mut self.listeners, &mut self.datagrams, &self.left, self.backlog);
                    if !self.datagrams.iter().map(Arc::as_ptr).eq(before.iter().map(Arc::as_ptr)) {
                        self.mail.give_datagrams(&self.datagrams);
                        self.left.retain(|socket| socket.strong_count() > 0);
                        self.left.extend(before.iter().map(Arc::downgrade));
                    }
                    self.tell_where();
                    answer.send();
                }
                // Which listener was ready means nothing any more.
                continue;
            }
            for (listener, _) in self.listeners.iter().zip(ready).filter(|(_, ready)| *ready) {
                if let Stopped::Exhausted(error) = self.accept_some(listener, &mut next_worker) {
                    paused_until = Some(Instant::now() + EXHAUSTED_PAUSE);
                    if let Some(times) = exhausted.note(monotonic_ns()) {
                        tracing::warn!(%error, times, "cannot accept more connections for now; new ones wait in the kernel");
                    }
                }
            }
        }
        for listener in &self.listeners {
            if let Some(file) = listener.file() {
                tracing::info!(path = %file.display(), "removing the UNIX socket file");
            }
        }
        drop(self.listeners);
        self.shutdown.stops_listening(&self.waker);
        self.mail.shut_down_workers(Grace::begin(self.shutdown.grace()));
    }

    /// Tells the service where the server listens now.
    pub(super) fn tell_where(&self) {
        let bound =
            self.listeners.iter().map(Listener::bound).chain(self.datagrams.iter().map(|socket| socket.bound()));
        self.service.listens(&bound.collect::<Vec<_>>());
    }

    fn accept_some(&self, listener: &Listener, next_worker: &mut usize) -> Stopped {
        for _ in 0..ACCEPTS_PER_TURN {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (fd, remote) = match acceptfrom_with(listener, flags) {
                Ok(accepted) => accepted,
                Err(Errno::AGAIN) => return Stopped::Done,
                Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                    return Stopped::Exhausted(error);
                }
                // The client gave up meanwhile, or a network error of its connection is reported here: accept(2).
                Err(_) => continue,
            };
            let remote = remote.and_then(|remote| SocketAddr::try_from(remote).ok());
            self.take(listener, fd, remote, next_worker);
        }
        Stopped::Done
    }

    fn take(&self, listener: &Listener, fd: OwnedFd, remote: Option<SocketAddr>, next_worker: &mut usize) {
        // Before anything that it is let in by: an address, the limit, terms of TLS.
        let taken_back = self.service.taken_back();
        if self.mail.connections() >= self.service.max_clients() {
            let reason = self.service.refuse_over_max_clients(listener.front_end);
            // Under TLS nobody would understand it.
            return refuse(&fd, if listener.tls() { b"" } else { &reason });
        }
        let (remote, local) = match &listener.address {
            unix @ Address::Unix(_) => (unix.clone(), unix.clone()),
            Address::Inet(bound) => {
                let Some(remote) = remote else { return };
                if let Err(error) = prepare_tcp(&fd, self.service.tcp_keepalive()) {
                    tracing::debug!(%remote, %error, "cannot set a new connection's options");
                }
                let local = getsockname(&fd).and_then(SocketAddr::try_from).unwrap_or(*bound);
                (Address::Inet(remote), Address::Inet(local))
            }
        };
        let worker = self.least_busy(*next_worker);
        *next_worker = worker + 1;
        let mailbox = self.mail.mailbox(worker);
        mailbox.connection_added();
        mailbox.post(Letter::Accepted(Accepted {
            fd,
            front_end: listener.front_end,
            tls: listener.tls(),
            remote,
            local,
            taken_back,
        }));
    }

    /// The worker with the fewest connections; among equals the next in turn.
    fn least_busy(&self, next_worker: usize) -> usize {
        let workers = self.mail.workers();
        (0..workers)
            .map(|step| (next_worker + step) % workers)
            .min_by_key(|&worker| self.mail.mailbox(worker).connections())
            .expect("there is a worker")
    }
}

/// Tells a client why it is not served; whoever drops the descriptor closes it.
pub(super) fn refuse(fd: &OwnedFd, reason: &[u8]) {
    // What the client has sent already is taken off first: closing a socket with unread input resets the connection,
    // and the client might never see the reason. A few bytes that do not fit a fresh socket's buffer do not exist, so
    // one try of each is enough, and a failure concerns nobody any more.
    let mut unread = [0; 4096];
    let _ = recv(fd, &mut unread, RecvFlags::empty());
    let _ = send(fd, reason, SendFlags::NOSIGNAL);
}

fn prepare_tcp(fd: &OwnedFd, keepalive: Option<Duration>) -> Result<(), Errno> {
    set_tcp_nodelay(fd, true)?;
    let Some(keepalive) = keepalive else { return Ok(()) };
    // Redis's proportions: the first probe after the whole time, three more at a third of it.
    set_socket_keepalive(fd, true)?;
    set_tcp_keepidle(fd, keepalive.max(Duration::from_secs(1)))?;
    set_tcp_keepintvl(fd, (keepalive / 3).max(Duration::from_secs(1)))?;
    set_tcp_keepcnt(fd, 3)
}
