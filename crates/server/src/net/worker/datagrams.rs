//! Datagrams: they are answered as connections are, and where the log is to be on disk first, so are their answers held. Knows
//! no protocol, and no system call.

use super::Worker;
use super::lending::Returned;
use crate::net::datagrams::{Datagrams, Frames, Way};
use crate::net::io::{Event, Io};
use crate::net::service::Service;
use crate::net::slab::Key;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// So many bytes of memory a worker's held answers may take; what comes beyond is lost, as any datagram may be. Nothing else
/// bounds it: who sends datagrams waits for no answer.
const HELD_MAX: usize = 1 << 20;

/// An answer that waits until the log is on disk up to a position.
pub(super) struct HeldAnswer {
    position: u64,
    socket: Arc<Datagrams>,
    way: Way,
    frames: Frames,
}

impl HeldAnswer {
    fn memory(&self) -> usize {
        size_of::<HeldAnswer>() + self.frames.memory()
    }
}

/// All of them, in the order of their positions.
#[derive(Default)]
pub(super) struct HeldAnswers {
    answers: VecDeque<HeldAnswer>,
    memory: usize,
}

impl HeldAnswers {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    pub(super) fn hold(&mut self, answer: HeldAnswer) {
        if self.memory + answer.memory() <= HELD_MAX {
            self.memory += answer.memory();
            // Mostly behind all others: only a call that had lent the loop may end late.
            let at = self.answers.partition_point(|earlier| earlier.position <= answer.position);
            self.answers.insert(at, answer);
        }
    }

    /// Sends what may leave now that the log is on disk up to `durable`.
    #[inline]
    pub(super) fn send_up_to(&mut self, durable: u64) {
        while let Some(answer) = self.answers.pop_front_if(|answer| answer.position <= durable) {
            self.memory -= answer.memory();
            answer.socket.send(&answer.way, &answer.frames);
        }
    }
}

impl<S: Service, I: Io> Worker<'_, S, I> {
    /// Answers datagrams, if the event is one of a UDP socket.
    #[cold]
    pub(super) fn receive_datagrams(&mut self, worker: &mut S::Worker, key: Key, event: Event) {
        let socket = match self.datagrams.get(key.generation as usize) {
            Some(socket) if key.index == u32::MAX => Arc::clone(socket),
            _ => return,
        };
        if self.in_call {
            return self.put_off(event);
        }
        let mut room = std::mem::take(&mut self.datagram_room);
        let service = self.service;
        let has_more = socket.receive(&mut room, |addresses, datagram, way, frames| {
            self.receiving = Some(event);
            service.begin_call(worker);
            let answer = || {
                catch_unwind(AssertUnwindSafe(|| {
                    service.on_datagram(worker, addresses, datagram, &mut |frame| frames.push(frame));
                }))
            };
            if service.with_meanwhile(self, answer).is_err() {
                service.after_panic(worker);
                tracing::error!(worker = self.index, "a bug made the answer to a datagram panic");
                frames.clear();
            }
            self.receiving = None;
            if !frames.is_empty()
                && let Some(position) = service.holds(worker)
            {
                // A copy has no room left over.
                let (socket, copy) = (Arc::clone(&socket), frames.clone());
                frames.clear();
                self.hold_answer(HeldAnswer { position, socket, way: *way, frames: copy });
            }
            // Whoever has the loop goes on with the socket, too.
            if self.away.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.datagram_room = room;
        if has_more && self.away.is_none() {
            self.io.again(event.token);
        }
        self.end_lent(worker);
    }

    /// Keeps an answer where the loop is.
    #[cold]
    fn hold_answer(&mut self, answer: HeldAnswer) {
        if self.away.is_none() {
            self.held_answers.hold(answer);
        } else {
            self.send_after(Returned::Answer(answer));
        }
    }
}

/// The token of a UDP socket; its index part is one that no connection reaches.
pub(super) fn datagram_token(number: usize) -> u64 {
    Key { index: u32::MAX, generation: number as u32 }.to_u64()
}
