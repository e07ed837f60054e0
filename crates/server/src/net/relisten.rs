//! Listening elsewhere while the server runs: what anyone may ask for, and the acceptor does. Knows no setting.

use super::datagrams::Datagrams;
use super::inbox::Waker;
use super::listener::{Bind, Listen, ListenError, Listener, Place};
use super::serve::ServeError;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};

/// Asks the acceptor to listen elsewhere; clones ask the same one.
#[derive(Clone, Debug)]
pub struct Listening {
    requests: Sender<Request>,
    waker: Arc<Waker>,
}

/// Where to listen from now on, and whom to tell what became of it.
#[derive(Debug)]
pub(super) struct Request {
    to: Target,
    answer: Sender<Outcome>,
}

/// Where to listen from now on.
#[derive(Debug)]
enum Target {
    /// Where somebody wants it.
    New { listens: Vec<Listen>, datagrams: Option<(u16, Vec<Bind>)> },
    /// Where it was.
    Before(Places),
}

/// Where the server has listened before, if the change has succeeded.
type Outcome = Result<Places, ServeError>;

/// Where the server has listened, as it came out: with the ports that the system chose.
#[derive(Debug, Default)]
pub struct Places {
    listeners: Vec<Place>,
    /// The sockets themselves: nobody can have taken their places meanwhile.
    datagrams: Vec<Arc<Datagrams>>,
}

impl Listening {
    /// Asks through this waker, which is to wake the acceptor; the requests are for it.
    pub(super) fn new(waker: Arc<Waker>) -> (Listening, Receiver<Request>) {
        let (requests, receiver) = channel();
        (Listening { requests, waker }, receiver)
    }

    /// Listens in these places, to datagrams too, and no others, once this returns; gives where it was before. Connections that
    /// there are stay; workers may receive from UDP sockets that are left until their next turns.
    ///
    /// # Errors
    /// When one of them cannot be listened on: then all is as it was before.
    pub fn change(&self, listens: Vec<Listen>, datagrams: Option<(u16, Vec<Bind>)>) -> Result<Places, ServeError> {
        self.ask(Target::New { listens, datagrams })
    }

    /// Listens where it was before a change, once this returns. What another process has taken meanwhile is missing then, and
    /// the log says so.
    pub fn put_back(&self, before: Places) {
        self.ask(Target::Before(before)).expect("what cannot be had is passed over");
    }

    fn ask(&self, to: Target) -> Outcome {
        let (answer, answered) = channel();
        // Without an acceptor, as at the end of the process, there is nothing to change.
        if self.requests.send(Request { to, answer }).is_err() {
            return Ok(Places::default());
        }
        self.waker.wake();
        answered.recv().unwrap_or(Ok(Places::default()))
    }
}

/// What became of a request, for who has asked.
#[must_use]
pub(super) struct Answer {
    outcome: Outcome,
    to: Sender<Outcome>,
}

impl Request {
    /// Does what was asked for. Workers may still have the sockets that were `left` before.
    pub(super) fn serve(
        self,
        listeners: &mut Vec<Listener>,
        datagrams: &mut Vec<Arc<Datagrams>>,
        left: &[Weak<Datagrams>],
        backlog: i32,
    ) -> Answer {
        let before =
            Places { listeners: listeners.iter().map(Listener::place).collect(), datagrams: datagrams.clone() };
        let done = match self.to {
            Target::New { listens, datagrams: wanted } => {
                // The UDP sockets that there are stay until nothing can fail any more.
                let opened = Datagrams::open_all(wanted.as_ref(), datagrams, left);
                let opened = opened.inspect_err(|error| tracing::warn!("{error}; listening where it was before"));
                opened.and_then(|opened| {
                    change(listeners, &listens, backlog).map_err(ServeError::Listen)?;
                    *datagrams = opened;
                    Ok(())
                })
            }
            Target::Before(places) => {
                put_back(listeners, &places.listeners, backlog);
                *datagrams = places.datagrams;
                Ok(())
            }
        };
        Answer { outcome: done.map(|()| before), to: self.answer }
    }
}

impl Answer {
    /// Tells who has asked.
    pub(super) fn send(self) {
        // Nobody waits for the answer when the asking thread has panicked.
        let _ = self.to.send(self.outcome);
    }
}

/// Listens in `listens` alone. The old places are left before the new ones are taken: another address of the same port
/// may be in the way of `*`.
fn change(listeners: &mut Vec<Listener>, listens: &[Listen], backlog: i32) -> Result<(), ListenError> {
    let before: Vec<Place> = listeners.iter().map(Listener::place).collect();
    listeners.retain(|listener| listens.contains(&listener.listen));
    // What is named again is opened again, and fails as it does at the start.
    let is_again = |index: usize| listens[..index].contains(&listens[index]) && !listens[index].takes_any_port();
    let wanted: Vec<Listen> = (0..listens.len())
        .filter(|&index| is_again(index) || listeners.iter().all(|open| open.listen != listens[index]))
        .map(|index| listens[index].clone())
        .collect();
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
            put_back(listeners, &before, backlog);
            Err(error)
        }
    }
}

/// Listens in the places of before alone, as far as they can be had.
fn put_back(listeners: &mut Vec<Listener>, before: &[Place], backlog: i32) {
    listeners.retain(|listener| before.contains(&listener.place()));
    let kept: Vec<Place> = listeners.iter().map(Listener::place).collect();
    for place in before.iter().filter(|place| !kept.contains(place)) {
        match Listener::open_again(place, backlog) {
            Ok(listener) => listeners.push(listener),
            Err(lost) => tracing::error!("{lost}: another process has taken the place meanwhile"),
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
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = at("127.0.0.1", other.local_addr().unwrap().port());
        for impossible in [taken.clone(), at("192.0.2.1", first)] {
            let error = change(&mut listeners, &[at("127.0.0.1", first), impossible.clone()], 1).unwrap_err();
            assert_eq!(error.listen, impossible);
            assert_eq!(addresses(&listeners), [SocketAddr::from(([0, 0, 0, 0], second))]);
        }
        let twice = [at("*", second), at("*", second)];
        assert_eq!(change(&mut listeners, &twice, 1).unwrap_err().listen, twice[1]);
        assert_eq!(addresses(&listeners), [SocketAddr::from(([0, 0, 0, 0], second))]);
        change(&mut listeners, &[], 1).unwrap();
        assert_eq!(addresses(&listeners), []);
        // What the system has chosen is what it goes back to.
        let any = at("127.0.0.1", 0);
        change(&mut listeners, std::slice::from_ref(&any), 1).unwrap();
        let chosen = addresses(&listeners);
        change(&mut listeners, &[at("127.0.0.1", first), taken], 1).unwrap_err();
        assert_eq!(addresses(&listeners), chosen);
        let before: Vec<Place> = listeners.iter().map(Listener::place).collect();
        change(&mut listeners, &[at("127.0.0.1", first)], 1).unwrap();
        put_back(&mut listeners, &before, 1);
        assert_eq!((addresses(&listeners), &listeners[0].listen), (chosen, &any));
    }
}
