//! Output that has not left: what the kernel did not take, and what waits for the log.

use super::Worker;
use crate::net::connection::{Connection, Phase};
use crate::net::io::Io;
use crate::net::service::{CloseReason, Service};
use crate::net::slab::Key;
use std::time::Instant;

impl<S: Service, I: Io> Worker<'_, S, I> {
    /// Sends what was left; `false` if the connection is gone.
    pub(super) fn go_on_sending(&mut self, worker: &mut S::Worker, key: Key) -> bool {
        let Some(connection) = self.connections.get_mut(key) else { return false };
        match self.io.continue_send(&mut connection.socket) {
            Ok(true) => connection.active_at = self.now,
            Ok(false) => {}
            Err(error) => {
                self.close(worker, key, CloseReason::Failed(error));
                return false;
            }
        }
        self.has_sent(worker, key)
    }

    /// Does what is to be done when output has left; `false` if the connection is gone.
    pub(super) fn has_sent(&mut self, worker: &mut S::Worker, key: Key) -> bool {
        let Some(connection) = self.connections.get_mut(key) else { return false };
        let unsent = connection.unsent(&self.io);
        if unsent == 0 {
            connection.over_soft_since = None;
        }
        note_output(self.service, worker, &self.io, connection, (0, unsent));
        let phase = connection.phase;
        match phase {
            Phase::Draining if has_room(self.service, &self.io, connection) => self.resume(worker, key),
            Phase::Flushing(reason) if unsent == 0 && flushed(&mut self.io, connection) == 0 => {
                self.close(worker, key, reason)
            }
            _ if unsent > 0 => self.check_output_limits(worker, key),
            _ => {}
        }
        self.connections.get_mut(key).is_some()
    }

    /// Sends what has waited for the log, as far as that is on disk now.
    pub(super) fn release_held(&mut self, worker: &mut S::Worker) {
        if self.holding.is_empty() && self.to_release.is_empty() && self.held_answers.is_empty() {
            return;
        }
        let mut durable = self.service.durable();
        self.release_up_to(worker, durable);
        while !(self.holding.is_empty() && self.held_answers.is_empty()) {
            self.service.holds_on(worker);
            let risen = self.service.durable();
            if risen == durable {
                return;
            }
            durable = risen;
            self.release_up_to(worker, durable);
        }
    }

    fn release_up_to(&mut self, worker: &mut S::Worker, durable: u64) {
        self.held_answers.send_up_to(durable);
        self.to_release.append(&mut self.holding);
        while let Some(key) = self.to_release.pop() {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            if connection.state.is_none() {
                // Until the call ends that runs with it.
                self.holding.push(key);
                continue;
            }
            let mut out = connection.held.take(durable);
            if connection.held.bytes() > 0 {
                self.holding.push(key);
            }
            if out.is_empty() {
                continue;
            }
            if let Err(error) = self.io.send(&mut connection.socket, &mut out) {
                self.close(worker, key, CloseReason::Failed(error));
                continue;
            }
            // The turn may have begun long ago, and the client has had none of that time to take the rest.
            connection.active_at = if self.io.unsent(&connection.socket) > 0 { Instant::now() } else { self.now };
            if self.has_sent(worker, key) {
                self.read_on(key);
            }
        }
    }

    /// Has a connection read that may not have been because of what was unsent: input of which an event has told meanwhile is
    /// told of no more.
    pub(super) fn read_on(&mut self, key: Key) {
        if let Some(connection) = self.connections.get_mut(key)
            && connection.phase == Phase::Open
            && !has_too_much_unsent(self.service, &self.io, connection)
        {
            self.io.receive_later(&mut connection.socket);
        }
    }

    pub(super) fn check_output_limits(&mut self, worker: &mut S::Worker, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let unsent = connection.unsent(&self.io);
        let limits = self.service.output_limits(connection.state());
        let over = |bytes: usize| bytes != 0 && unsent > bytes;
        let since = over(limits.soft_bytes).then(|| connection.over_soft_since.unwrap_or(self.now));
        connection.over_soft_since = since;
        let over_soft_for = since.map(|since| self.now.saturating_duration_since(since));
        if over(limits.hard_bytes) || over_soft_for.is_some_and(|time| time > limits.soft_for) {
            tracing::warn!(?connection.id, unsent, "a client's unsent output is over its limit; it is cut");
            self.close(worker, key, CloseReason::OutputLimit);
        } else {
            self.read_on(key);
        }
    }
}

/// Bytes of output that have not left, when all has been offered to the kernel: where there are none it may be closed.
#[cold]
pub(super) fn flushed<C, I: Io>(io: &mut I, connection: &mut Connection<C, I::Socket>) -> usize {
    match io.flush(&mut connection.socket) {
        Ok(()) => connection.unsent(io),
        // Nothing will leave any more.
        Err(_) => 0,
    }
}

/// Tells the service how much has left, of `written` bytes more and of what was unsent before, and how much is unsent now:
/// with nothing unsent before and after, which is usual, all that was written.
#[inline(always)]
pub(super) fn note_output<S: Service, I: Io>(
    service: &S,
    worker: &mut S::Worker,
    io: &I,
    connection: &mut Connection<S::Connection, I::Socket>,
    (written, unsent): (usize, usize),
) {
    let sent = if unsent | connection.unsent_noted == 0 { written } else { sent_of(connection, written, unsent) };
    if sent > 0 {
        service.note_sent(worker, connection.state(), sent);
    }
    if unsent != connection.unsent_noted {
        if connection.unsent_noted == 0 {
            // The call may have taken long, and the client has had none of that time to take what it was answered.
            connection.active_at = Instant::now();
        }
        connection.unsent_noted = unsent;
        let memory = if unsent > 0 { connection.unsent_memory(io) } else { 0 };
        service.note_unsent(connection.state(), unsent, memory);
    }
}

/// How much has left since the last time, in bytes. What is unsent may be more than all that there was: a send that the
/// kernel cuts short gives bytes back, and TLS adds some. Then that much less has left the next time.
#[cold]
fn sent_of<C, S>(connection: &mut Connection<C, S>, written: usize, unsent: usize) -> usize {
    let (there_was, is_not_new) = (written + connection.unsent_noted, unsent + connection.sent_ahead);
    connection.sent_ahead = is_not_new.saturating_sub(there_was);
    there_was.saturating_sub(is_not_new)
}

/// Whether a connection is not to be read until it has less unsent output.
#[inline]
pub(super) fn has_too_much_unsent<S: Service, I: Io>(
    service: &S,
    io: &I,
    connection: &Connection<S::Connection, I::Socket>,
) -> bool {
    // What the service does not know of is a TLS handshake's.
    connection.unsent_noted > 0 && connection.unsent(io) > service.unsent_read_max(connection.state())
}

/// Whether a connection that waits for room in its output has enough to go on: half of what it may have, lest each
/// packet that leaves call for a few replies.
pub(super) fn has_room<S: Service, I: Io>(
    service: &S,
    io: &I,
    connection: &Connection<S::Connection, I::Socket>,
) -> bool {
    let unsent = connection.unsent(io);
    unsent == 0 || unsent <= service.unsent_read_max(connection.state()) / 2
}
