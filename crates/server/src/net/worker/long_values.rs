//! Receiving a long value where it will stay: the service has room for it, so nothing is copied out of the worker's buffer.
//! Knows no protocol, and no system call.

use super::Worker;
use crate::net::connection::{Intake, Phase};
use crate::net::io::{Event, Io, Received};
use crate::net::service::{CloseReason, Service};
use crate::net::slab::Key;

/// How much is received of what may be the next long value before there is room for it, in bytes: a request up to its value,
/// unless its key is very long, and little to be copied.
const HEAD_BYTES: usize = 2 * 1024;

/// How often a connection with long values may receive before the others have their turn.
const RECEIVES_PER_TURN: usize = 4;

impl<S: Service, I: Io> Worker<'_, S, I> {
    /// Delivers input that is part of a long value, or may be the head of one. (A handshake's takes another way.)
    #[inline(never)]
    pub(super) fn receive_long(&mut self, worker: &mut S::Worker, key: Key) {
        for _ in 0..RECEIVES_PER_TURN {
            let Some(connection) = self.connections.get_mut(key) else { return };
            match connection.intake {
                Intake::Room => self.receive_into_room(worker, key),
                Intake::Head => self.receive_head(worker, key),
                Intake::Handshake => return self.take_slow_lane(key, Event::default()),
                Intake::Buffer => return,
            }
            let Some(connection) = self.connections.get_mut(key) else { return };
            if !self.io.may_receive(&connection.socket) {
                // The receives before may have wanted another turn.
                return self.io.not_later(&mut connection.socket);
            }
            if connection.phase != Phase::Open || connection.unsent(&self.io) > 0 {
                return;
            }
        }
    }

    fn receive_into_room(&mut self, worker: &mut S::Worker, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let state = connection.state.as_mut().expect("a connection is not read while a call with it runs");
        let missing = self.service.missing(state);
        let Some(room) = self.service.room(state) else {
            connection.intake = Intake::Buffer;
            self.io.tell_of_every_byte(&mut connection.socket);
            return self.io.receive_later(&mut connection.socket);
        };
        let before = room.len();
        match self.io.receive_into(&mut connection.socket, room, missing) {
            Received::Bytes => {
                let received = room.len() - before;
                connection.active_at = self.now;
                connection.intake = Intake::Head;
                let state = connection.state.take().expect("it was just there");
                self.call(worker, key, state, |service, worker, state, reply| {
                    service.on_filled(worker, state, received, reply)
                });
                if let Some(connection) = self.connections.get_mut(key)
                    && connection.intake != Intake::Room
                {
                    self.io.tell_of_every_byte(&mut connection.socket);
                }
            }
            Received::Nothing => {}
            Received::End => self.end_of_input(worker, key),
            Received::Failed(error) => self.close(worker, key, CloseReason::Failed(error)),
        }
    }

    fn receive_head(&mut self, worker: &mut S::Worker, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let mut head = std::mem::take(&mut self.head);
        if head.capacity() < HEAD_BYTES {
            head.reserve_exact(HEAD_BYTES);
        }
        match self.io.receive(&mut connection.socket, &mut head) {
            Received::Bytes => {
                connection.active_at = self.now;
                if head.len() == head.capacity() {
                    // Unless it turns out to be the head of a long value.
                    connection.intake = Intake::Buffer;
                }
                let state = connection.state.take().expect("a connection is not read while a call with it runs");
                self.call(worker, key, state, |service, worker, state, reply| {
                    service.on_bytes(worker, state, &head, reply)
                });
            }
            Received::Nothing => {}
            Received::End => self.end_of_input(worker, key),
            Received::Failed(error) => self.close(worker, key, CloseReason::Failed(error)),
        }
        self.head = head;
    }
}
