//! The one place where the end of the process is asked for and heard of. Knows no signal and no command.

use crate::net::Waker;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Asks for a graceful shutdown; clones mean the same one.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    requested: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    grace: Duration,
    /// Those of the threads that listen for new connections.
    wakers: Vec<Arc<Waker>>,
}

impl Shutdown {
    /// One that nobody has asked for yet.
    pub fn new() -> Shutdown {
        Shutdown::default()
    }

    /// Asks for it: clients may take their replies for at most `grace`. `false` if it was asked for before; then the
    /// first grace holds.
    pub fn request(&self, grace: Duration) -> bool {
        let mut state = self.shared.state.lock();
        if self.shared.requested.load(Ordering::Acquire) {
            return false;
        }
        state.grace = grace;
        self.shared.requested.store(true, Ordering::Release);
        for waker in &state.wakers {
            waker.wake();
        }
        self.shared.changed.notify_all();
        true
    }

    /// Whether it was asked for.
    pub fn is_requested(&self) -> bool {
        self.shared.requested.load(Ordering::Acquire)
    }

    /// Waits until it is asked for.
    pub fn wait(&self) {
        let mut state = self.shared.state.lock();
        while !self.is_requested() {
            self.shared.changed.wait(&mut state);
        }
    }

    /// Waits until it is asked for, so long at most; tells whether it was.
    pub(crate) fn wait_for(&self, at_most: Duration) -> bool {
        let mut state = self.shared.state.lock();
        if !self.is_requested() {
            self.shared.changed.wait_for(&mut state, at_most);
        }
        self.is_requested()
    }

    /// How long clients may take their replies; zero before it is asked for.
    pub(crate) fn grace(&self) -> Duration {
        self.shared.state.lock().grace
    }

    /// Waits until nobody listens any more, so long at most. Whoever asks for the end in a client's name does so before that is
    /// closed: by then a new server may be started in the place of this one, as with Redis.
    pub(crate) fn wait_until_deaf(&self, at_most: Duration) {
        let mut state = self.shared.state.lock();
        self.shared.changed.wait_while_for(&mut state, |state| !state.wakers.is_empty(), at_most);
    }

    /// Says that the thread listens no more that has given this waker.
    pub(crate) fn stops_listening(&self, waker: &Arc<Waker>) {
        self.shared.state.lock().wakers.retain(|known| !Arc::ptr_eq(known, waker));
        self.shared.changed.notify_all();
    }

    /// Has the waker of a thread that listens woken when it is asked for, or now if it was.
    pub(crate) fn wakes(&self, waker: Arc<Waker>) {
        let mut state = self.shared.state.lock();
        if self.is_requested() {
            waker.wake();
        }
        state.wakers.push(waker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_counts_and_is_heard() {
        let shutdown = Shutdown::new();
        let waiting = std::thread::spawn({
            let shutdown = shutdown.clone();
            move || shutdown.wait()
        });
        assert!(!shutdown.is_requested());
        assert!(shutdown.request(Duration::from_secs(3)));
        assert!(!shutdown.request(Duration::from_secs(9)));
        waiting.join().unwrap();
        assert_eq!(shutdown.grace(), Duration::from_secs(3));
    }

    #[test]
    fn who_listens_is_waited_for() {
        let shutdown = Shutdown::new();
        let waker = Arc::new(Waker::new().unwrap());
        shutdown.wakes(Arc::clone(&waker));
        shutdown.wait_until_deaf(Duration::from_millis(1));
        assert_eq!(shutdown.shared.state.lock().wakers.len(), 1);
        std::thread::scope(|threads| {
            threads.spawn(|| shutdown.stops_listening(&waker));
            shutdown.wait_until_deaf(Duration::from_secs(60));
            assert_eq!(shutdown.shared.state.lock().wakers.len(), 0);
        });
    }
}
