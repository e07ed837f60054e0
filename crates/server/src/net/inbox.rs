//! How other threads reach a worker: a mailbox that wakes it only if it sleeps. Knows nothing of what is posted.

use super::datagrams::Datagrams;
use super::service::{Address, ConnectionId, FrontEnd};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Reaches every worker, from any thread.
pub struct Mailboxes<M> {
    boxes: Arc<[Mailbox<M>]>,
}

impl<M> Clone for Mailboxes<M> {
    fn clone(&self) -> Mailboxes<M> {
        Mailboxes { boxes: Arc::clone(&self.boxes) }
    }
}

impl<M> fmt::Debug for Mailboxes<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailboxes").field("workers", &self.boxes.len()).finish()
    }
}

impl<M> Mailboxes<M> {
    pub(super) fn new(workers: usize) -> std::io::Result<Mailboxes<M>> {
        Ok(Mailboxes { boxes: (0..workers).map(|_| Mailbox::new()).collect::<std::io::Result<_>>()? })
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.boxes.len()
    }

    /// How many connections all workers have, those on their way to a worker included.
    pub fn connections(&self) -> usize {
        self.boxes.iter().map(Mailbox::connections).sum()
    }

    /// Posts a message to a connection. If it is gone when the message arrives, the service is told so.
    pub fn post(&self, to: ConnectionId, message: M) {
        self.boxes[to.worker as usize].post(Letter::Connection(to, message));
    }

    /// Posts a message to the worker of this index.
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn post_worker(&self, worker: usize, message: M) {
        self.boxes[worker].post(Letter::Worker(message));
    }

    /// Has every worker receive datagrams at these sockets and no others.
    pub(super) fn give_datagrams(&self, sockets: &[Arc<Datagrams>]) {
        self.boxes.iter().for_each(|mailbox| mailbox.post(Letter::Datagrams(sockets.to_vec())));
    }

    /// Has every worker finish what it was sent, as long as clients may take over it, and end.
    pub(super) fn shut_down_workers(&self, grace: Grace) {
        self.boxes.iter().for_each(|mailbox| mailbox.post(Letter::Shutdown(grace)));
    }

    pub(super) fn mailbox(&self, worker: usize) -> &Mailbox<M> {
        &self.boxes[worker]
    }
}

/// What lies in a mailbox.
pub(super) enum Letter<M> {
    Connection(ConnectionId, M),
    Worker(M),
    Accepted(Accepted),
    /// The sockets at which datagrams are received from now on.
    Datagrams(Vec<Arc<Datagrams>>),
    /// A call has ended on a thread that had lent the loop, or the thread itself is free now.
    CallEnded,
    Shutdown(Grace),
}

/// How long clients may take over their last replies when the server ends.
#[derive(Clone, Copy)]
pub(super) struct Grace {
    since: Instant,
    len: Duration,
}

impl Grace {
    /// One of this length that begins now.
    pub(super) fn begin(len: Duration) -> Grace {
        Grace { since: Instant::now(), len }
    }

    /// Whether nobody has any time left.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= self.len
    }

    /// Whether it is too late for what clients still send: a quarter of the time is over.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.is_given_up(self.since, now)
    }

    /// Whether a client that has taken nothing since then will take nothing any more: it has let a quarter of the time go by.
    pub(super) fn is_given_up(&self, active_at: Instant, now: Instant) -> bool {
        now.saturating_duration_since(active_at.max(self.since)) >= self.len / 4
    }
}

/// A connection on its way to its worker.
pub(super) struct Accepted {
    pub(super) fd: OwnedFd,
    pub(super) front_end: FrontEnd,
    /// Whether it speaks TLS.
    pub(super) tls: bool,
    pub(super) remote: Address,
    pub(super) local: Address,
    /// [`Service::taken_back`](super::service::Service::taken_back) when it came.
    pub(super) taken_back: u64,
}

/// One worker's mailbox.
///
/// The worker says that it is about to sleep and then looks for mail; a sender leaves mail and then looks whether the
/// worker sleeps. Both orders are sequentially consistent, so at least one of them sees the other.
///
/// In cache lines of its own: its worker writes it twice for each wait.
#[repr(align(128))]
pub(super) struct Mailbox<M> {
    letters: Mutex<Vec<Letter<M>>>,
    has_mail: AtomicBool,
    asleep: AtomicBool,
    /// How many connections the worker has; kept here so that the acceptor can choose the least busy.
    connections: AtomicUsize,
    waker: Waker,
}

impl<M> Mailbox<M> {
    fn new() -> std::io::Result<Mailbox<M>> {
        Ok(Mailbox {
            letters: Mutex::new(Vec::new()),
            has_mail: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            waker: Waker::new()?,
        })
    }

    pub(super) fn post(&self, letter: Letter<M>) {
        self.letters.lock().push(letter);
        self.has_mail.store(true, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst) {
            self.waker.wake();
        }
    }

    /// Announces that the worker is about to wait; `false` if there is mail, so that it must not.
    pub(super) fn may_sleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        !self.has_mail.load(Ordering::SeqCst)
    }

    pub(super) fn awake(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Moves all mail into `letters`, which is empty.
    pub(super) fn take(&self, letters: &mut Vec<Letter<M>>) {
        debug_assert!(letters.is_empty());
        if self.has_mail.load(Ordering::SeqCst) {
            // Cleared before the swap: a sender that comes between leaves a set flag and an empty box, never the reverse.
            self.has_mail.store(false, Ordering::SeqCst);
            std::mem::swap(&mut *self.letters.lock(), letters);
        }
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(super) fn connection_added(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn connection_gone(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }
}

/// Wakes a thread that waits on file descriptors.
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> std::io::Result<Waker> {
        Ok(Waker(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn wake(&self) {
        // The only possible failure is a full counter, which means that the sleeper is being woken already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

impl Waker {
    /// Takes back all wakes so far: for a sleeper whom a wake would keep awake until then.
    pub(crate) fn clear(&self) {
        // Nothing to read means that nobody has woken anyone.
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
