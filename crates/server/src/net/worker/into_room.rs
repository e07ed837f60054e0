//! Receiving a long value where it will stay: the service has room for it, so nothing is copied out of the worker's buffer.
//! Knows no protocol, and no system call.

use super::Worker;
use crate::net::io::{Io, Received};
use crate::net::service::{CloseReason, Service};
use crate::net::slab::Key;

impl<S: Service, I: Io> Worker<'_, S, I> {
    /// Delivers input that is part of a long value: it is received where it will stay.
    #[inline(never)]
    pub(super) fn receive_into_room(&mut self, worker: &mut S::Worker, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let state = connection.state.as_mut().expect("a connection is not read while a call with it runs");
        let Some(room) = self.service.room(state) else {
            connection.fills = false;
            self.io.has_no_room(&mut connection.socket);
            return self.io.receive_later(&mut connection.socket);
        };
        let before = room.len();
        match self.io.receive_into(&mut connection.socket, room) {
            Received::Bytes => {
                let received = room.len() - before;
                connection.active_at = self.now;
                connection.fills = false;
                let state = connection.state.take().expect("it was just there");
                self.call(worker, key, state, |service, worker, state, reply| {
                    service.on_filled(worker, state, received, reply)
                });
                if let Some(connection) = self.connections.get_mut(key)
                    && !connection.fills
                {
                    self.io.has_no_room(&mut connection.socket);
                }
            }
            Received::Nothing => {}
            Received::End => self.end_of_input(worker, key),
            Received::Failed(error) => self.close(worker, key, CloseReason::Failed(error)),
        }
    }
}
