//! What a worker does now and then: ticks, looking for connections that time is up for, and the end of all of them. Knows
//! no protocol, and no system call.

use super::{SWEEP_PERIOD, SWEEP_PORTIONS, Worker, flushed, has_room};
use crate::net::connection::{Intake, Phase};
use crate::net::inbox::Grace;
use crate::net::io::{Event, Io};
use crate::net::service::{CloseReason, Service};
use crate::net::slab::Key;
use std::time::Duration;

/// A client that takes nothing of its last replies for this long is cut.
const FLUSH_STALL_MAX: Duration = Duration::from_secs(60);

/// In the middle of a long value a client that nothing came from for this long is slow: from then on every byte of its is
/// told of, or it would be taken for idle.
const SLOW_AFTER: Duration = Duration::from_millis(500);

/// Bounds for what a service's tick may ask for: neither a spinning worker nor a tick that never comes.
const TICK_MIN: Duration = Duration::from_millis(1);
const TICK_MAX: Duration = Duration::from_secs(1);

impl<S: Service, I: Io> Worker<'_, S, I> {
    pub(super) fn keep_time(&mut self, worker: &mut S::Worker) {
        let now = self.now;
        if now >= self.next_tick {
            let again_in = self.guarded(worker, |service, worker| service.tick(worker, now)).unwrap_or(TICK_MAX);
            self.next_tick = now + again_in.clamp(TICK_MIN, TICK_MAX);
        }
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP_PERIOD / SWEEP_PORTIONS;
            self.sweep(worker);
        }
    }

    /// Looks at the next portion of connections for what only time tells.
    fn sweep(&mut self, worker: &mut S::Worker) {
        let places = self.connections.places();
        let portion = places.div_ceil(SWEEP_PORTIONS as usize);
        for _ in 0..portion {
            self.sweep_from = if self.sweep_from + 1 < places { self.sweep_from + 1 } else { 0 };
            let Some(key) = self.connections.key_at(self.sweep_from) else { continue };
            let Some(connection) = self.connections.get_mut(key) else { continue };
            if connection.state.is_none() {
                // A call with it runs.
                continue;
            }
            let silent_for = self.now.saturating_duration_since(connection.active_at);
            if connection.unsent(&self.io) > 0 {
                self.check_output_limits(worker, key);
            }
            let Some(connection) = self.connections.get_mut(key) else { continue };
            match connection.phase {
                Phase::Parked => {}
                // Others, who had left it little, may have gone. Nothing runs here: a call may have the loop taken away.
                Phase::Draining if has_room(self.service, &self.io, connection) => self.resume_next.push(key),
                Phase::Flushing(_) if silent_for > FLUSH_STALL_MAX => {
                    self.close(worker, key, CloseReason::FlushTimeout)
                }
                _ if connection.intake == Intake::Room
                    && silent_for > SLOW_AFTER
                    && self.io.tell_of_every_byte(&mut connection.socket) => {}
                _ => {
                    let timeout = self.service.idle_timeout(connection.state());
                    if timeout.is_some_and(|timeout| silent_for > timeout) {
                        self.close(worker, key, CloseReason::IdleTimeout);
                    }
                }
            }
        }
    }

    /// Lets every connection answer what it has already been sent.
    pub(super) fn begin_shutdown(&mut self, grace: Grace) {
        self.grace = Some(grace);
        self.service.end_long_calls();
        // There is no end of them.
        self.change_datagrams(Vec::new());
        // What has arrived may not have been reported yet, nor that there is room for what is unsent: who takes nothing is to have
        // been offered it when its time begins. It is dealt with in the next turn, before any connection is closed.
        let keys = (0..self.connections.places()).filter_map(|index| self.connections.key_at(index));
        let events = keys.map(|key| Event { token: key.to_u64(), received: true, sent: true, ..Event::default() });
        self.postponed_events.extend(events);
    }

    /// Closes the connections that have nothing left to do, and those that take nothing; `true` once there are none, and no
    /// datagram's answer is held.
    pub(super) fn is_shut_down(&mut self, worker: &mut S::Worker) -> bool {
        let too_late = self.grace.is_some_and(|grace| grace.is_over(self.now));
        for index in 0..self.connections.places() {
            let Some(key) = self.connections.key_at(index) else { continue };
            let Some(connection) = self.connections.get_mut(key) else { continue };
            if connection.state.is_none() {
                // The call that runs with it is told to end, or comes to its end.
                continue;
            }
            if self.takes_nothing(key) {
                self.close(worker, key, CloseReason::FlushTimeout);
                continue;
            }
            let Some(connection) = self.connections.get_mut(key) else { continue };
            let done = match connection.phase {
                Phase::Open => {
                    (self.is_late || !self.io.may_receive(&connection.socket)) && flushed(&mut self.io, connection) == 0
                }
                // Of one that was served the answer is on its way.
                Phase::Parked => {
                    flushed(&mut self.io, connection) == 0 && self.service.ends_unanswered(connection.state())
                }
                Phase::Draining | Phase::Flushing(_) => false,
            };
            if done || too_late {
                self.close(worker, key, CloseReason::Shutdown);
            }
        }
        self.connections.len() == 0 && (too_late || self.held_answers.is_empty())
    }

    /// Whether a client has taken nothing for so long that the end does not wait for it. The kernel tells late that it has room
    /// again where its buffers are large: it is asked before.
    fn takes_nothing(&mut self, key: Key) -> bool {
        let (Some(grace), Some(connection)) = (self.grace, self.connections.get_mut(key)) else { return false };
        if self.io.unsent(&connection.socket) == 0 || !grace.is_given_up(connection.active_at, self.now) {
            return false;
        }
        match self.io.continue_send(&mut connection.socket) {
            Ok(true) => {
                connection.active_at = self.now;
                // What is to be done when output has left is done as if it had been told of.
                self.postponed_events.push(Event { token: key.to_u64(), sent: true, ..Event::default() });
                false
            }
            Ok(false) | Err(_) => true,
        }
    }
}
