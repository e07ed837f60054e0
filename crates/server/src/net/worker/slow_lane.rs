//! Connections whose turn takes so long that few of them have it at a time: those in a handshake, and those that have ended when
//! many do so at once. All others come first, each time. Knows no protocol, and no system call.
//!
//! A signature by an RSA key of 2,048 bits takes a millisecond. When all clients of a fleet connect anew, thousands of
//! handshakes wait together, and who is connected would wait for all of them.

use super::Worker;
use crate::net::connection::Intake;
use crate::net::io::{Event, Io};
use crate::net::service::Service;
use crate::net::slab::Key;
use std::collections::VecDeque;

/// How many connections whose client has ended them are looked at in a turn before the others wait in the lane, and how many of
/// those in each turn. Closing one takes some ten microseconds, mostly the kernel's.
const ENDS_PER_TURN: usize = 32;

/// Who waits, in the order in which they came. Each is there once.
pub(super) struct SlowLane {
    waiting: VecDeque<Key>,
    /// How many ends are still to be dealt with at once in this turn.
    ends_left: usize,
}

impl Default for SlowLane {
    fn default() -> SlowLane {
        SlowLane { waiting: VecDeque::new(), ends_left: ENDS_PER_TURN }
    }
}

impl SlowLane {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A new turn has come for everybody.
    #[inline]
    pub(super) fn begin_turn(&mut self) {
        self.ends_left = ENDS_PER_TURN;
    }

    /// Whether one more connection that has ended may be dealt with at once in this turn.
    pub(super) fn may_end_now(&mut self) -> bool {
        let may = self.ends_left > 0;
        self.ends_left -= usize::from(may);
        may
    }
}

impl<S: Service, I: Io> Worker<'_, S, I> {
    /// Has a connection wait for its turn, with what has happened to it.
    #[cold]
    pub(super) fn take_slow_lane(&mut self, key: Key, event: Event) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        match &mut connection.in_slow_lane {
            Some(earlier) => earlier.add(event),
            none => {
                *none = Some(Event { token: key.to_u64(), ..event });
                self.slow_lane.waiting.push_back(key);
            }
        }
    }

    /// Serves those whose turn it is: one in a handshake, or some that have ended.
    #[cold]
    pub(super) fn serve_slow_lane(&mut self, worker: &mut S::Worker) {
        self.slow_lane.begin_turn();
        for _ in 0..ENDS_PER_TURN {
            let Some(key) = self.slow_lane.waiting.pop_front() else { return };
            let Some(connection) = self.connections.get_mut(key) else { continue };
            let Some(event) = connection.in_slow_lane.take() else { continue };
            let in_handshake = connection.intake == Intake::Handshake;
            if in_handshake {
                connection.intake = Intake::Buffer;
            }
            self.on_event(worker, event);
            if !in_handshake {
                continue;
            }
            if let Some(connection) = self.connections.get_mut(key)
                && self.io.is_handshaking(&connection.socket)
            {
                connection.intake = Intake::Handshake;
            }
            return;
        }
    }
}
