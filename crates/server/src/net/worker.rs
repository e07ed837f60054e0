//! One worker's event loop: its connections, its mail and its ticks. Knows no protocol, and no system call.

mod datagrams;
pub(super) mod lending;
mod long_values;
mod mail;
mod meanwhile;
mod slow_lane;
mod unsent;
mod upkeep;

pub(super) use lending::{Hire, run, run_lent};

use super::connection::{Connection, Intake, Phase};
use super::datagrams::{Datagrams, Room};
use super::inbox::{Grace, Letter, Mailbox, Mailboxes};
use super::io::{Event, Io, RECEIVE_BYTES, Received};
use super::service::{CloseReason, Service};
use super::slab::{Key, Slab};
use datagrams::{HeldAnswers, datagram_token};
use lending::{Away, Crew};
use slow_lane::SlowLane;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenon_frontend::Flow;
use tenon_wire::OutBuf;
use unsent::{flushed, has_room, has_too_much_unsent, note_output};

/// How often every connection is looked at for timeouts, over this many portions.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);
const SWEEP_PORTIONS: u32 = 10;

/// The loop. What is left to be done in its turn is all here: in the middle of a call another thread may go on with it.
pub(super) struct Worker<'s, S: Service, I: Io> {
    service: &'s S,
    index: usize,
    mail: Mailboxes<S::Message>,
    /// Those of this turn that are to be dealt with, the last one first.
    letters: Vec<Letter<S::Message>>,
    io: I,
    connections: Slab<Connection<S::Connection, I::Socket>>,
    /// The UDP sockets, by the generation part of their tokens.
    datagrams: Vec<Arc<Datagrams>>,
    /// Where they are received; taken out for a call.
    datagram_room: Room,
    /// What has told of the socket whose datagrams are being answered, in the middle of a call.
    receiving: Option<Event>,
    /// Answers to datagrams that wait for the log.
    held_answers: HeldAnswers,
    /// Where replies are written before they are sent; empty between calls, and taken out for one.
    reply: Option<Box<OutBuf>>,
    /// Where input is received; taken out for a call.
    input: Vec<u8>,
    /// Where heads of long values are; taken out for a call.
    head: Vec<u8>,
    /// The events of this turn, and how many of them are dealt with.
    events: usize,
    events_done: usize,
    /// Whether all events of this turn have had theirs, and letters and the like have it.
    is_past_events: bool,
    /// Whether what is done now is done in the middle of a call.
    in_call: bool,
    /// Events and letters that came in the middle of a call, to be dealt with in the next turn.
    postponed_events: Vec<Event>,
    postponed_letters: Vec<Letter<S::Message>>,
    /// Those of connections with which calls run on other threads, until one of these ends.
    awaiting_events: Vec<Event>,
    awaiting_letters: Vec<Letter<S::Message>>,
    /// Connections whose turn takes so long that few of them have it at a time.
    slow_lane: SlowLane,
    /// Connections whose output left at once although they asked to be resumed after it: they go on in the next turn,
    /// so that others have theirs. And those that go on in this one.
    resume_next: Vec<Key>,
    resume_now: Vec<Key>,
    /// Connections with replies that wait for the log to be on disk, and those that are to be looked at in this turn.
    holding: Vec<Key>,
    to_release: Vec<Key>,
    now: Instant,
    next_tick: Instant,
    next_sweep: Instant,
    sweep_from: usize,
    /// Set when the server is shutting down: what is unsent behind it is lost.
    grace: Option<Grace>,
    /// Whether a quarter of that is over: nothing more is received.
    is_late: bool,
    /// The threads that can go on with this loop, if it may be lent.
    crew: Option<Box<Crew<'s, S, I>>>,
    /// The loop is lent: all of it but this, the way to where it is, has been taken away.
    away: Option<Away<'s, S, I>>,
}

/// Why a thread runs a loop no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The server is shut down.
    ShutDown,
    /// It was lent in the middle of a call, which has ended since.
    Lent,
    /// The worker's own thread is free, and it is time for what that has to do.
    GoesHome,
}

impl<'s, S: Service, I: Io> Worker<'s, S, I> {
    /// Makes the worker on the thread that will run it.
    pub(super) fn new(
        service: &'s S,
        index: usize,
        mail: Mailboxes<S::Message>,
        datagrams: Vec<Arc<Datagrams>>,
        mut io: I,
    ) -> std::io::Result<Worker<'s, S, I>> {
        for (number, socket) in datagrams.iter().enumerate() {
            io.watch(&**socket, datagram_token(number))?;
        }
        Ok(Worker { datagrams, ..Worker::empty(service, index, mail, io) })
    }

    fn empty(service: &'s S, index: usize, mail: Mailboxes<S::Message>, io: I) -> Worker<'s, S, I> {
        let now = Instant::now();
        Worker {
            service,
            index,
            mail,
            letters: Vec::new(),
            io,
            connections: Slab::new(),
            datagrams: Vec::new(),
            datagram_room: Room::default(),
            receiving: None,
            held_answers: HeldAnswers::default(),
            reply: None,
            input: Vec::new(),
            head: Vec::new(),
            events: 0,
            events_done: 0,
            is_past_events: false,
            in_call: false,
            postponed_events: Vec::new(),
            postponed_letters: Vec::new(),
            awaiting_events: Vec::new(),
            awaiting_letters: Vec::new(),
            slow_lane: SlowLane::default(),
            resume_next: Vec::new(),
            resume_now: Vec::new(),
            holding: Vec::new(),
            to_release: Vec::new(),
            now,
            next_tick: now,
            next_sweep: now + SWEEP_PERIOD / SWEEP_PORTIONS,
            sweep_from: 0,
            grace: None,
            is_late: false,
            crew: None,
            away: None,
        }
    }

    /// Serves until the server is shut down, or until the loop is to run on another thread. Begins with what is left of a
    /// turn. `is_home`: on the worker's own thread.
    fn turns(&mut self, worker: &mut S::Worker, is_home: bool) -> std::io::Result<Ended> {
        loop {
            self.now = Instant::now();
            let now = self.now;
            self.is_late = self.grace.is_some_and(|grace| grace.is_late(now));
            self.guarded(worker, |service, worker| service.begin_turn(worker, now));
            if self.is_past_events {
                // A call behind the events has lent the loop, and the next one may again: others are not to wait for the last of them.
                self.events = self.io.wait(Duration::ZERO)?;
                self.events_done = 0;
                self.is_past_events = false;
            }
            if !self.postponed_events.is_empty() {
                self.deal_with_postponed(worker);
            }
            self.deal_with_events(worker);
            self.is_past_events = true;
            if !self.slow_lane.is_empty() {
                self.serve_slow_lane(worker);
            }
            self.slow_lane.begin_turn();
            self.resume_waiting(worker);
            // Where the loop was lent there is nothing left here that would be done.
            if self.away.is_some() {
                return Ok(Ended::Lent);
            }
            self.read_mail(worker);
            self.release_held(worker);
            if self.away.is_some() {
                return Ok(Ended::Lent);
            }
            let goes_home = !is_home && self.now >= self.next_tick && self.is_awaited_at_home();
            if !goes_home {
                self.keep_time(worker);
            }
            self.guarded(worker, |service, worker| service.end_turn(worker));
            if goes_home {
                return Ok(Ended::GoesHome);
            }
            let has_none_left = self.letters.is_empty() && self.postponed_events.is_empty();
            if self.grace.is_some_and(|grace| has_none_left || grace.is_over(self.now)) && self.is_shut_down(worker) {
                return Ok(Ended::ShutDown);
            }
            self.events = self.wait(worker)?;
            self.events_done = 0;
            self.is_past_events = false;
        }
    }

    fn mailbox(&self) -> &Mailbox<S::Message> {
        self.mail.mailbox(self.index)
    }

    fn deal_with_events(&mut self, worker: &mut S::Worker) {
        while self.events_done < self.events {
            let event = self.io.event(self.events_done);
            self.events_done += 1;
            self.on_event(worker, event);
        }
    }

    #[cold]
    fn deal_with_postponed(&mut self, worker: &mut S::Worker) {
        // One of each connection, so their order means nothing.
        while let Some(event) = self.postponed_events.pop() {
            self.on_event(worker, event);
        }
    }

    /// Makes a call for a connection, whose `state` was taken out for it, and does what it asks for. All that the call
    /// needs is taken out of the loop, so that others can be served in its middle, here or by another thread: in that
    /// case the loop is gone when it ends, and with it all that is left to do.
    #[inline(always)]
    fn call(
        &mut self,
        worker: &mut S::Worker,
        key: Key,
        mut state: S::Connection,
        call: impl FnOnce(&S, &mut S::Worker, &mut S::Connection, &mut OutBuf) -> Flow,
    ) {
        let mut reply = self.reply.take().unwrap_or_default();
        let service = self.service;
        if !self.in_call {
            service.begin_call(worker);
        }
        let flow = service
            .with_meanwhile(self, || catch_unwind(AssertUnwindSafe(|| call(service, worker, &mut state, &mut reply))));
        if flow.is_err() && !self.in_call {
            service.after_panic(worker);
        }
        self.after_call(worker, key, state, flow, reply, |service, worker| service.holds(worker));
    }

    fn wait(&mut self, worker: &S::Worker) -> std::io::Result<usize> {
        if let Some(earlier) = self.service.wakes_in(worker) {
            self.next_tick = self.next_tick.min(self.now + earlier);
        }
        let next = self.next_tick.min(self.next_sweep);
        let mut timeout = next.saturating_duration_since(self.now);
        let mailbox = self.mail.mailbox(self.index);
        let has_postponed = !self.postponed_events.is_empty() || !self.postponed_letters.is_empty();
        let has_work = !self.resume_next.is_empty() || !self.letters.is_empty() || !self.slow_lane.is_empty();
        if !mailbox.may_sleep() || has_work || has_postponed {
            timeout = Duration::ZERO;
        }
        let events = self.io.wait(timeout);
        mailbox.awake();
        events
    }

    /// Calls the service where no connection is to blame; a panic is logged and the worker lives on.
    fn guarded<R>(&self, worker: &mut S::Worker, call: impl FnOnce(&S, &mut S::Worker) -> R) -> Option<R> {
        let service = self.service;
        let result = catch_unwind(AssertUnwindSafe(|| call(service, worker))).ok();
        if result.is_none() {
            if !self.in_call {
                service.after_panic(worker);
            }
            tracing::error!(worker = self.index, "a bug made the worker's upkeep panic; it goes on");
        }
        result
    }

    /// Does what an event asks for, which is mostly to deliver one buffer of input. Inlined, with all that this leads to:
    /// what a request costs beside its system calls is mostly this.
    #[inline(always)]
    fn on_event(&mut self, worker: &mut S::Worker, event: Event) {
        let key = Key::from_u64(event.token);
        // A token without a connection is that of one closed since the wait, the waker's, or that of a UDP socket.
        let Some(mut connection) = self.connections.get_mut(key) else {
            return self.receive_datagrams(worker, key, event);
        };
        let may_go_on = match &connection.state {
            Some(_) if !self.in_call => true,
            Some(state) => self.service.may_serve_meanwhile(state),
            None => false,
        };
        if !may_go_on {
            return self.put_off(event);
        }
        self.io.note(&mut connection.socket, event);
        if event.broken || event.peer_ended || event.sent {
            if !self.on_more_than_input(worker, key, event) {
                return;
            }
            let Some(still_there) = self.connections.get_mut(key) else { return };
            connection = still_there;
        }
        if connection.phase != Phase::Open
            || self.is_late
            || !self.io.may_receive(&connection.socket)
            || has_too_much_unsent(self.service, &self.io, connection)
        {
            return;
        }
        if connection.intake != Intake::Buffer {
            return self.receive_long(worker, key);
        }
        if self.input.capacity() < RECEIVE_BYTES {
            self.input.reserve_exact(RECEIVE_BYTES - self.input.len());
        }
        match self.io.receive(&mut connection.socket, &mut self.input) {
            Received::Bytes => {
                connection.active_at = self.now;
                let state = connection.state.take().expect("a connection is not read while a call with it runs");
                let input = std::mem::take(&mut self.input);
                self.call(worker, key, state, |service, worker, state, reply| {
                    service.on_bytes(worker, state, &input, reply)
                });
                self.input = input;
            }
            Received::Nothing => {}
            Received::End => self.end_of_input(worker, key),
            Received::Failed(error) => self.close(worker, key, CloseReason::Failed(error)),
        }
    }

    /// Does what an event asks for beside receiving; `false` if nothing is to be received now.
    #[inline(never)]
    fn on_more_than_input(&mut self, worker: &mut S::Worker, key: Key, event: Event) -> bool {
        if (event.broken || event.peer_ended) && !self.slow_lane.may_end_now() {
            if let Some(connection) = self.connections.get_mut(key)
                && connection.phase == Phase::Parked
                && let Some(state) = &connection.state
                && self.service.drops_parked(state)
            {
                // What comes before its turn is for others.
                self.service.note_gone(state);
            }
            self.take_slow_lane(key, event);
            return false;
        }
        let Some(connection) = self.connections.get_mut(key) else { return false };
        if event.broken && connection.phase != Phase::Open {
            self.close(worker, key, CloseReason::PeerClosed);
            return false;
        }
        if event.peer_ended && connection.phase == Phase::Parked {
            self.peer_ended_while_parked(worker, key);
            if event.sent {
                // Nothing tells again of the room that there is, and what was answered before is to leave.
                self.go_on_sending(worker, key);
            }
            return false;
        }
        !event.sent || self.go_on_sending(worker, key)
    }

    #[inline(never)]
    fn end_of_input(&mut self, worker: &mut S::Worker, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if flushed(&mut self.io, connection) == 0 {
            self.close(worker, key, CloseReason::PeerClosed);
        } else {
            connection.phase = Phase::Flushing(CloseReason::PeerClosed);
        }
    }

    fn resume(&mut self, worker: &mut S::Worker, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.phase = Phase::Open;
        // While it waited it was not idle.
        connection.active_at = self.now;
        let Some(state) = connection.state.take() else { return };
        self.call(worker, key, state, |service, worker, state, reply| service.resume(worker, state, reply));
    }

    fn resume_waiting(&mut self, worker: &mut S::Worker) {
        if self.resume_next.is_empty() && self.resume_now.is_empty() {
            return;
        }
        self.resume_now.append(&mut self.resume_next);
        self.resume_now.reverse();
        while let Some(key) = self.resume_now.pop() {
            if let Some(connection) = self.connections.get_mut(key)
                && connection.phase == Phase::Draining
                && connection.state.is_some()
                && has_room(self.service, &self.io, connection)
            {
                self.resume(worker, key);
            }
        }
    }

    /// Gives a connection its state back, sends what a call has written and does what it asked for. `holds` is
    /// [`Service::holds`] for the call.
    #[inline(always)]
    fn after_call(
        &mut self,
        worker: &mut S::Worker,
        key: Key,
        state: S::Connection,
        flow: std::thread::Result<Flow>,
        mut reply: Box<OutBuf>,
        holds: impl FnOnce(&S, &S::Worker) -> Option<u64>,
    ) {
        let Some(connection) = self.connections.get_mut(key) else {
            // It stays while a call with it runs: so it is the loop that has gone.
            return self.return_call(worker, key, state, flow, reply);
        };
        connection.state = Some(state);
        let flow = match flow {
            Ok(Flow::Close) => return self.close(worker, key, CloseReason::Service),
            Ok(flow) => flow,
            Err(_) => return self.close_panicked(worker, key),
        };
        let mut hold_until = holds(self.service, worker);
        let written = reply.len();
        if written == 0 {
            connection.silent_until = hold_until.unwrap_or(connection.silent_until);
        } else {
            if connection.silent_until > 0 {
                let silent = std::mem::take(&mut connection.silent_until);
                hold_until = hold_until.max(Some(silent).filter(|silent| *silent > self.service.durable()));
            }
            if connection.held.bytes() > 0 || hold_until.is_some() {
                if connection.held.bytes() == 0 {
                    self.holding.push(key);
                }
                connection.held.put(hold_until.unwrap_or(0), &mut reply);
            } else if let Err(error) = self.io.send(&mut connection.socket, &mut reply) {
                return self.close(worker, key, CloseReason::Failed(error));
            }
        }
        // What the kernel did not take is the socket's now.
        debug_assert!(reply.is_empty(), "sending takes everything");
        self.reply = Some(reply);
        let unsent = connection.unsent(&self.io);
        note_output(self.service, worker, &self.io, connection, (written, unsent));
        if unsent == 0 && flow == Flow::Continue && connection.phase == Phase::Open {
            // Nearly always.
            return self.io.receive_later(&mut connection.socket);
        }
        self.after_unusual_call(worker, key, flow, unsent);
    }

    #[inline(never)]
    fn after_unusual_call(&mut self, worker: &mut S::Worker, key: Key, flow: Flow, unsent: usize) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        match (connection.phase, flow) {
            (Phase::Flushing(_), _) | (_, Flow::Stay) => {}
            (_, Flow::CloseAfterFlush) => match flushed(&mut self.io, connection) {
                0 => return self.close(worker, key, CloseReason::Service),
                _ => connection.phase = Phase::Flushing(CloseReason::Service),
            },
            (Phase::Open, Flow::Continue) => self.io.receive_later(&mut connection.socket),
            (Phase::Open, Flow::Fill) => {
                if self.io.is_clear(&connection.socket) {
                    connection.intake = Intake::Room;
                }
                self.io.receive_later(&mut connection.socket);
            }
            (Phase::Draining, Flow::Continue) => {}
            (Phase::Parked, Flow::Continue) => return self.resume(worker, key),
            (_, Flow::Fill) => unreachable!("said of input alone, which only open connections are given"),
            (Phase::Open, Flow::Park) => {
                connection.phase = Phase::Parked;
                if self.io.peer_ended(&connection.socket) {
                    return self.peer_ended_while_parked(worker, key);
                }
            }
            (_, Flow::Park) => {}
            (_, Flow::Drain) => {
                connection.phase = Phase::Draining;
                if has_room(self.service, &self.io, connection) {
                    self.resume_next.push(key);
                }
            }
            (_, Flow::Close) => unreachable!("handled before"),
        }
        if unsent > 0 {
            self.check_output_limits(worker, key);
        }
    }

    #[cold]
    fn close_panicked(&mut self, worker: &mut S::Worker, key: Key) {
        if let Some(connection) = self.connections.get_mut(key) {
            tracing::error!(?connection.id, "a bug made a command panic; its connection is closed");
        }
        self.close(worker, key, CloseReason::Panicked);
    }

    fn peer_ended_while_parked(&mut self, worker: &mut S::Worker, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if self.service.drops_parked(connection.state()) {
            if connection.held.bytes() == 0 {
                return self.close(worker, key, CloseReason::PeerClosed);
            }
            // What it was answered before leaves when it is on disk; what it waits for is not done any more.
            self.service.note_gone(connection.state());
            connection.phase = Phase::Flushing(CloseReason::PeerClosed);
        }
    }

    fn close(&mut self, worker: &mut S::Worker, key: Key, reason: CloseReason) {
        let Some(connection) = self.connections.remove(key) else { return };
        let Connection { socket, state, unsent_noted, .. } = connection;
        let state = state.expect("a connection is not closed while a call with it runs");
        if unsent_noted > 0 {
            self.service.note_unsent(&state, 0, 0);
        }
        self.guarded(worker, |service, worker| service.closed(worker, state, reason));
        self.io.close(socket);
        self.mailbox().connection_gone();
    }
}
