//! Listening elsewhere while the server runs: what anyone may ask for, and the acceptor does. Knows no setting.

use super::datagrams::Datagrams;
use super::inbox::Waker;
use super::listener::{Bind, Listen, ListenError, Listener};
use super::serve::ServeError;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Asks the acceptor to listen elsewhere; clones ask the same one.
#[derive(Clone, Debug)]
pub struct Listening {
    requests: Sender<Request>,
    waker: Arc<Waker>,
}

/// Where to listen from now on, and whom to tell what became of it.
#[derive(Debug)]
pub(super) struct Request {
    listens: Vec<Listen>,
    datagrams: Option<(u16, Vec<Bind>)>,
    answer: Sender<Result<(), ServeError>>,
}

impl Listening {
    /// Asks through this waker, which is to wake the acceptor; the requests are for it.
    pub(super) fn new(waker: Arc<Waker>) -> (Listening, Receiver<Request>) {
        let (requests, receiver) = channel();
        (Listening { requests, waker }, receiver)
    }

    /// Listens in these places, to datagrams too, and no others, once this returns. Connections that there are stay; workers
    /// may receive from UDP sockets that are left until their next turns.
    ///
    /// # Errors
    /// When one of them cannot be listened on: then all is as it was before.
    pub fn change(&self, listens: Vec<Listen>, datagrams: Option<(u16, Vec<Bind>)>) -> Result<(), ServeError> {
        let (answer, answered) = channel();
        // Without an acceptor, as at the end of the process, there is nothing to change.
        if self.requests.send(Request { listens, datagrams, answer }).is_err() {
            return Ok(());
        }
        self.waker.wake();
        answered.recv().unwrap_or(Ok(()))
    }
}

/// What became of a request, for who has asked.
#[must_use]
pub(super) struct Answer {
    result: Result<(), ServeError>,
    to: Sender<Result<(), ServeError>>,
}

impl Request {
    /// Does what was asked for.
    pub(super) fn serve(
        self,
        listeners: &mut Vec<Listener>,
        datagrams: &mut Vec<Arc<Datagrams>>,
        backlog: i32,
    ) -> Answer {
        // The UDP sockets that there are stay until nothing can fail any more.
        let opened = Datagrams::open_all(self.datagrams.as_ref(), datagrams);
        let opened = opened.inspect_err(|error| tracing::warn!("{error}; listening where it was before"));
        let result = opened.and_then(|opened| {
            change(listeners, &self.listens, backlog).map_err(ServeError::Listen)?;
            *datagrams = opened;
            Ok(())
        });
        Answer { result, to: self.answer }
    }
}

impl Answer {
    /// Tells who has asked.
    pub(super) fn send(self) {
        // Nobody waits for the answer when the asking thread has panicked.
        let _ = self.to.send(self.result);
    }
}

/// Listens in `listens` alone. The old places are left before the new ones are taken: another address of the same port
/// may be in the way of `*`.
fn change(listeners: &mut Vec<Listener>, listens: &[Listen], backlog: i32) -> Result<(), ListenError> {
    let (kept, left): (Vec<_>, Vec<_>) =
        std::mem::take(listeners).into_iter().partition(|listener| listens.contains(&listener.listen));
    *listeners = kept;
    let wanted: Vec<Listen> =
        listens.iter().filter(|listen| listeners.iter().all(|open| open.listen != **listen)).cloned().collect();
    let before: Vec<Listen> = left.iter().map(|listener| listener.listen.clone()).collect();
    drop(left);
    let opened = Listener::open_all(&wanted, backlog);
    match opened {
        Ok(opened) => {
            for listener in &opened {
                tracing::info!(address = %listener.address, front_end = %listener.front_end, "listening");
            }
            listeners.extend(opened);
            Ok(())
        }
        Err(error) => {
            tracing::warn!("{error}; listening where it was before");
            match Listener::open_all(&before, backlog) {
                Ok(reopened) => listeners.extend(reopened),
                Err(lost) => tracing::error!("{lost}: another process has taken the place meanwhile"),
            }
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Address, Bind, Endpoint, FrontEnd};
    use std::net::{SocketAddr, TcpListener};

    fn at(host: &str, port: u16) -> Listen {
        Listen { front_end: FrontEnd::Resp, endpoint: Endpoint::Tcp { bind: Bind::parse(host), port } }
    }

    fn addresses(listeners: &[Listener]) -> Vec<SocketAddr> {
        listeners
            .iter()
            .map(|listener| match listener.address {
                Address::Inet(address) => address,
                Address::Unix(_) => panic!("a UNIX socket was not asked for"),
            })
            .collect()
    }

    /// A port that nobody listens on.
    fn free_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn moves_to_other_places_or_stays() {
        let [first, second] = [free_port(), free_port()];
        let mut listeners = Listener::open_all(&[at("127.0.0.1", first)], 1).unwrap();
        change(&mut listeners, &[at("127.0.0.1", second)], 1).unwrap();
        assert_eq!(addresses(&listeners), [SocketAddr::from(([127, 0, 0, 1], second))]);
        // The same port of all addresses, which the one address is in the way of.
        change(&mut listeners, &[at("*", second)], 1).unwrap();
        assert_eq!(addresses(&listeners), [SocketAddr::from(([0, 0, 0, 0], second))]);
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = at("127.0.0.1", taken.local_addr().unwrap().port());
        for impossible in [taken.clone(), at("192.0.2.1", first)] {
            let error = change(&mut listeners, &[at("127.0.0.1", first), impossible.clone()], 1).unwrap_err();
            assert_eq!(error.listen, impossible);
            assert_eq!(addresses(&listeners), [SocketAddr::from(([0, 0, 0, 0], second))]);
        }
        change(&mut listeners, &[], 1).unwrap();
        assert_eq!(addresses(&listeners), []);
    }
}
