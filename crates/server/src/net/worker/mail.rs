//! What others have left in the worker's mailbox: messages, new connections, the end of everything. Knows no protocol, and no
//! system call.

use super::Worker;
use super::datagrams::datagram_token;
use crate::net::acceptor::refuse;
use crate::net::connection::{Connection, Intake, Phase};
use crate::net::datagrams::Datagrams;
use crate::net::held::Held;
use crate::net::inbox::{Accepted, Letter};
use crate::net::io::Io;
use crate::net::service::{CloseReason, ConnectionId, Peer, Service};
use crate::net::slab::Key;
use crate::net::tls::TlsSession;
use rustix::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Letters that are dealt with in a turn, after which the sockets are looked at again: one message to thousands of subscribers
/// is as many letters, and as many writes.
const LETTERS_A_TURN: usize = 64;

impl<S: Service, I: Io> Worker<'_, S, I> {
    pub(super) fn read_mail(&mut self, worker: &mut S::Worker) {
        let mut left = LETTERS_A_TURN;
        // Those first that were left when the loop was lent, or a turn was long.
        self.deal_with_letters(worker, &mut left);
        if self.away.is_some() || !self.letters.is_empty() {
            return;
        }
        self.mail.mailbox(self.index).take(&mut self.letters);
        if !self.postponed_letters.is_empty() {
            self.letters.splice(0..0, std::mem::take(&mut self.postponed_letters));
        }
        self.letters.reverse();
        self.deal_with_letters(worker, &mut left);
    }

    fn deal_with_letters(&mut self, worker: &mut S::Worker, left: &mut usize) {
        while *left > 0
            && let Some(letter) = self.letters.pop()
        {
            *left -= 1;
            match letter {
                Letter::Connection(to, message) => self.deliver(worker, to, message),
                Letter::Worker(message) => {
                    self.guarded(worker, |service, worker| service.on_worker_message(worker, message));
                }
                Letter::Accepted(accepted) => self.accept(worker, accepted),
                Letter::Datagrams(sockets) => self.change_datagrams(sockets),
                Letter::CallEnded => self.end_calls(worker),
                Letter::Shutdown(grace) => self.begin_shutdown(grace),
            }
        }
    }

    /// Receives datagrams at these sockets and no others. What has come to one that stays is told of anew.
    pub(super) fn change_datagrams(&mut self, sockets: Vec<Arc<Datagrams>>) {
        for (number, socket) in self.datagrams.iter().enumerate() {
            self.io.unwatch(&**socket, datagram_token(number));
        }
        self.datagrams = sockets;
        for (number, socket) in self.datagrams.iter().enumerate() {
            if let Err(error) = self.io.watch(&**socket, datagram_token(number)) {
                let (worker, address) = (self.index, socket.local());
                tracing::error!(worker, %address, %error, "cannot watch a UDP socket; its datagrams are left to others");
            }
        }
    }

    pub(super) fn deliver(&mut self, worker: &mut S::Worker, to: ConnectionId, message: S::Message) {
        let key = Key { index: to.index, generation: to.generation };
        let Some(connection) = self.connections.get_mut(key) else {
            self.guarded(worker, |service, worker| service.on_lost_message(worker, to, message));
            return;
        };
        let Some(state) = connection.state.take() else {
            return self.awaiting_letters.push(Letter::Connection(to, message));
        };
        self.call(worker, key, state, |service, worker, state, reply| {
            service.on_message(worker, state, message, reply)
        });
    }

    pub(super) fn accept(&mut self, worker: &mut S::Worker, accepted: Accepted) {
        let Accepted { fd, front_end, tls, remote, local, taken_back } = accepted;
        let key = self.connections.next_key();
        let id = ConnectionId { worker: self.index as u32, index: key.index, generation: key.generation };
        let peer = Peer { id, front_end, remote, local, fd: fd.as_raw_fd(), taken_back };
        let service = self.service;
        let tls = match self.begin_tls(tls) {
            Ok(tls) => tls,
            Err(error) => {
                tracing::warn!(?id, "no TLS can be spoken with a new connection; it is closed: {error}");
                return self.mailbox().connection_gone();
            }
        };
        let answer = catch_unwind(AssertUnwindSafe(|| service.accept(worker, peer)));
        let state = match answer {
            Ok(Ok(state)) => state,
            Ok(Err(refusal)) => {
                // Under TLS nobody would understand it.
                refuse(&fd, if tls.is_some() { b"" } else { &refusal });
                return self.mailbox().connection_gone();
            }
            Err(_) => {
                tracing::error!(?id, "a bug made the greeting of a client panic; its connection is closed");
                return self.mailbox().connection_gone();
            }
        };
        let intake = if tls.is_some() { Intake::Handshake } else { Intake::Buffer };
        let socket = match self.io.open(fd, tls, key.to_u64()) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(?id, %error, "cannot watch a new connection; it is closed");
                let reason =
                    CloseReason::Failed(rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO));
                self.guarded(worker, |service, worker| service.closed(worker, state, reason));
                return self.mailbox().connection_gone();
            }
        };
        let phase = Phase::Open;
        let state = Some(state);
        let connection = Connection {
            socket,
            state,
            held: Held::default(),
            id,
            phase,
            intake,
            in_slow_lane: None,
            silent_until: 0,
            active_at: self.now,
            unsent_noted: 0,
            sent_ahead: 0,
            over_soft_since: None,
        };
        let inserted = self.connections.insert(connection);
        debug_assert_eq!(inserted, key);
    }

    /// A new connection's TLS, if it is to have one.
    fn begin_tls(&self, wanted: bool) -> Result<Option<TlsSession>, String> {
        if !wanted {
            return Ok(None);
        }
        let terms = self.service.tls().ok_or("there is no certificate")?;
        TlsSession::new(terms).map(Some).map_err(|error| error.to_string())
    }
}
