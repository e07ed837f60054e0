//! Serving connections in the middle of another one's call, on the same thread: what is left where the loop cannot be lent.
//! Knows no protocol, and no system call.

use super::Worker;
use crate::net::inbox::Letter;
use crate::net::io::{Event, Io};
use crate::net::service::{ConnectionId, Meanwhile, Service};
use crate::net::slab::Key;
use std::time::Duration;

impl<S: Service, I: Io> Meanwhile<S::Worker> for Worker<'_, S, I> {
    fn lend(&mut self) -> bool {
        self.lend()
    }

    /// Takes new connections, and what the service lets through of the others' input and messages. Everything else waits
    /// for the call's end.
    fn serve(&mut self, worker: &mut S::Worker) {
        debug_assert!(self.away.is_none(), "whoever has the loop serves them");
        self.in_call = true;
        // The turn's other events first: the next wait would lose them.
        self.deal_with_events(worker);
        self.serve_slow_lane(worker);
        // What an earlier turn has left comes first.
        let left: Vec<_> = std::mem::take(&mut self.letters).into_iter().rev().collect();
        let mut letters = Vec::new();
        self.mailbox().take(&mut letters);
        for letter in left.into_iter().chain(letters) {
            match letter {
                Letter::Accepted(accepted) => self.accept(worker, accepted),
                Letter::Connection(to, message) if self.may_tell(to, &message) => self.deliver(worker, to, message),
                other => {
                    if let Letter::Shutdown { .. } = other {
                        self.service.end_long_calls();
                    }
                    self.postponed_letters.push(other);
                }
            }
        }
        match self.io.wait(Duration::ZERO) {
            Ok(events) => {
                self.events = events;
                self.events_done = 0;
                self.deal_with_events(worker);
            }
            // The loop's own wait will fail in the same way and end it.
            Err(error) => tracing::warn!(worker = self.index, %error, "cannot wait in the middle of a call"),
        }
        self.in_call = false;
    }
}

impl<S: Service, I: Io> Worker<'_, S, I> {
    fn may_tell(&mut self, to: ConnectionId, message: &S::Message) -> bool {
        let connection = self.connections.get_mut(Key { index: to.index, generation: to.generation });
        let state = connection.and_then(|connection| connection.state.as_ref());
        self.service.may_tell_meanwhile(message) && state.is_some_and(|state| self.service.may_serve_meanwhile(state))
    }

    /// Puts an event off that cannot be dealt with in the middle of a call: of this thread's until that ends, of another
    /// thread's with the same connection until that does. A connection has one entry there, whatever comes meanwhile.
    #[cold]
    pub(super) fn put_off(&mut self, event: Event) {
        let list = if self.in_call { &mut self.postponed_events } else { &mut self.awaiting_events };
        match list.iter_mut().rev().find(|earlier| earlier.token == event.token) {
            Some(earlier) => earlier.add(event),
            None => list.push(event),
        }
    }
}
