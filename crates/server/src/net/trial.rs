//! Both ways to move bytes answer a few clients of their own for a moment, in turns, and what that costs is taken. Knows neither
//! services nor workers, nor what is made of the figures.
//!
//! ```text
//!   clients: a request each -> [ wait, receive, send ] -> clients: take the replies of the round before
//! ```
//!
//! Only the part in brackets counts, in CPU time of this thread. The clients are a reply behind, as io_uring's short replies
//! leave with the next wait: so a round is one turn of the loop for either way.

use super::epoll::Epoll;
use super::inbox::Waker;
use super::io::{Io, Received};
use super::uring::Uring;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tenon_engine::clock::thread_cpu_ns;
use tenon_wire::OutBuf;

/// Clients of each way.
const CLIENTS: usize = 8;
/// Rounds between two looks at the clock, and how often each way has as many.
const ROUNDS: u32 = 24;
const SLICES: usize = 6;

/// When so much time has passed no slice begins, so that a busy machine does not start late.
const TIME_MAX: Duration = Duration::from_millis(50);
/// How long anything on loopback may take before the trial fails.
const PATIENCE: Duration = Duration::from_millis(200);

/// What a small GET and its answer amount to.
const REQUEST: [u8; 36] = [b'q'; 36];
const REPLY: [u8; 39] = [b'r'; 39];

/// CPU time of one request, the least that was seen: what else goes on in a machine only adds to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Costs {
    pub(super) epoll: Duration,
    pub(super) io_uring: Duration,
}

/// Takes both ways' costs.
pub(super) fn compare(uring: Uring) -> Result<Costs> {
    let began_at = Instant::now();
    let mut epoll = Trial::new(Epoll::new(&Waker::new()?)?)?;
    let mut uring = Trial::new(uring)?;
    // Their first rounds are slow, and tell nothing.
    epoll.round()?;
    uring.round()?;
    let mut costs = Costs { epoll: Duration::MAX, io_uring: Duration::MAX };
    for _ in 0..SLICES {
        costs.epoll = costs.epoll.min(epoll.slice()?);
        costs.io_uring = costs.io_uring.min(uring.slice()?);
        if began_at.elapsed() > TIME_MAX {
            break;
        }
    }
    epoll.end();
    uring.end();
    Ok(costs)
}

/// One way, and clients that it serves.
struct Trial<I: Io> {
    io: I,
    sockets: Vec<I::Socket>,
    clients: Vec<TcpStream>,
    input: Vec<u8>,
    reply: OutBuf,
    has_answered: bool,
}

impl<I: Io> Trial<I> {
    fn new(mut io: I) -> Result<Trial<I>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let (mut sockets, mut clients) = (Vec::new(), Vec::new());
        for token in 0..CLIENTS as u64 {
            let client = TcpStream::connect(address)?;
            let (served, from) = listener.accept()?;
            if from != client.local_addr()? {
                return Err(Error::other("somebody else has come"));
            }
            client.set_nodelay(true)?;
            client.set_read_timeout(Some(PATIENCE))?;
            served.set_nodelay(true)?;
            served.set_nonblocking(true)?;
            sockets.push(io.open(served.into(), None, token)?);
            clients.push(client);
        }
        let (input, reply) = (Vec::with_capacity(4096), OutBuf::new());
        Ok(Trial { io, sockets, clients, input, reply, has_answered: false })
    }

    /// CPU time of a request in some rounds.
    fn slice(&mut self) -> Result<Duration> {
        let mut spent = Duration::ZERO;
        for _ in 0..ROUNDS {
            spent += self.round()?;
        }
        Ok(spent / (ROUNDS * CLIENTS as u32))
    }

    /// CPU time of answering a request of each client.
    fn round(&mut self) -> Result<Duration> {
        for client in &mut self.clients {
            client.write_all(&REQUEST)?;
        }
        let before_ns = thread_cpu_ns();
        self.answer()?;
        let spent = Duration::from_nanos(thread_cpu_ns() - before_ns);
        if std::mem::replace(&mut self.has_answered, true) {
            for client in &mut self.clients {
                client.read_exact(&mut [0; REPLY.len()])?;
            }
        }
        Ok(spent)
    }

    fn answer(&mut self) -> Result<()> {
        let mut missing = CLIENTS * REQUEST.len();
        while missing > 0 {
            let events = self.io.wait(PATIENCE)?;
            if events == 0 {
                return Err(ErrorKind::TimedOut.into());
            }
            for index in 0..events {
                let event = self.io.event(index);
                // The token of none is the waker's.
                let Some(socket) = self.sockets.get_mut(event.token as usize) else { continue };
                self.io.note(socket, event);
                if !self.io.may_receive(socket) {
                    continue;
                }
                match self.io.receive(socket, &mut self.input) {
                    Received::Bytes => {
                        missing = missing.saturating_sub(self.input.len());
                        self.reply.tail().extend_from_slice(&REPLY);
                        self.io.send(socket, &mut self.reply)?;
                        self.io.receive_later(socket);
                    }
                    Received::Nothing => {}
                    Received::End => return Err(ErrorKind::UnexpectedEof.into()),
                    Received::Failed(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    fn end(mut self) {
        // Clients that go with a reply unread leave no port behind that is kept from others for a while.
        self.clients.clear();
        self.sockets.drain(..).for_each(|socket| self.io.close(socket));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_answered_in_its_round() {
        let mut trial = Trial::new(Epoll::new(&Waker::new().expect("a waker")).expect("epoll")).expect("loopback");
        for _ in 0..3 {
            trial.round().expect("answers");
        }
        trial.end();
    }

    #[test]
    fn both_ways_have_a_cost() {
        // A system without io_uring has nothing to compare.
        let Ok(uring) = Uring::try_out() else { return };
        let costs = compare(uring).expect("compares");
        assert!(costs.epoll > Duration::ZERO && costs.epoll < Duration::MAX, "{costs:?}");
        assert!(costs.io_uring > Duration::ZERO && costs.io_uring < Duration::MAX, "{costs:?}");
    }
}
