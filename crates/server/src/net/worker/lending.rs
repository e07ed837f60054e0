//! Lending the loop: while a call goes on for long, another thread goes on with all other connections. Knows no protocol,
//! and no system call.
//!
//! ```text
//! thread 1:  turns | call ------- lend ............. its end: return | idle ...... | turns
//!                          the loop |                       the call |        | home
//! thread 2:  idle ............... | turns | turns | turns | turns | answer | turns | idle
//! ```
//!
//! A loop is a value, and so is all that is left to do in its turn. In the middle of a call nothing on the stack below
//! refers to it, so it can be taken away and sent to another thread; what is left in its place is hollow: no connection,
//! no event, no letter. When the call ends, the functions below it find nothing more to do, and what it has come to
//! follows the loop ([`Returned::Call`]); whoever runs that sends the reply. Then the thread itself follows: from then on it
//! can take the loop over in its turn ([`Returned::Thread`]).
//!
//! So each thread that runs a long call takes one that is idle, and as many can do so at a time as there are threads. They
//! are made when they are first needed, belong to their loop and go with it wherever it is. With the next tick the loop goes
//! home to the worker's own thread when that is idle: ticks look after the memory that the thread has allocated.

use super::datagrams::HeldAnswer;
use super::{Ended, Intake, Phase, Worker, has_room};
use crate::net::inbox::Letter;
use crate::net::io::Io;
use crate::net::service::Service;
use crate::net::slab::Key;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender, channel};
use std::time::{Duration, Instant};
use tenon_frontend::Flow;
use tenon_wire::OutBuf;

/// Threads beside the worker's own: so many long calls run at a time before the next one is waited for.
pub(crate) const STAND_INS_MAX: usize = 4;

/// How long no thread is asked for when none could be had.
const HIRE_AGAIN: Duration = Duration::from_secs(1);

/// How long a thread is idle before it does what is to be done now and then.
const FIRST_REST: Duration = Duration::from_millis(100);

/// Starts a thread that runs the loops which it receives.
pub(in crate::net) type Hire<'s, S, I> =
    Box<dyn Fn(Receiver<Box<Worker<'s, S, I>>>) -> std::io::Result<()> + Send + 's>;

/// The threads that can take a loop over.
pub(super) struct Crew<'s, S: Service, I: Io> {
    hire: Hire<'s, S, I>,
    hired: usize,
    /// When the next one may be asked for.
    hire_from: Instant,
    idle: Vec<Idle<'s, S, I>>,
    /// The worker's own thread, if that is idle.
    home: Option<Idle<'s, S, I>>,
    /// Calls that have ended, to be answered.
    ended: VecDeque<EndedCall<S>>,
    /// Answers to datagrams that wait for the log, of calls that have ended.
    answers: Vec<HeldAnswer>,
    returned: Receiver<Returned<'s, S, I>>,
    returns: Sender<Returned<'s, S, I>>,
}

/// Where a loop is that a call has lent.
pub(super) struct Away<'s, S: Service, I: Io> {
    /// The way there.
    returns: Sender<Returned<'s, S, I>>,
    /// The call's number.
    call: u64,
}

/// A thread that waits for a loop.
pub(super) struct Idle<'s, S: Service, I: Io> {
    wake: Sender<Box<Worker<'s, S, I>>>,
    /// What will stand in the loop's place where that comes from.
    hollow: Box<Worker<'s, S, I>>,
    is_home: bool,
}

/// A call that has ended on a thread that had lent the loop.
pub(super) struct EndedCall<S: Service> {
    key: Key,
    state: S::Connection,
    flow: std::thread::Result<Flow>,
    reply: Box<OutBuf>,
    hold_until: Option<u64>,
}

/// What comes back to the loop.
pub(super) enum Returned<'s, S: Service, I: Io> {
    Call(EndedCall<S>),
    Answer(HeldAnswer),
    Thread(Idle<'s, S, I>),
}

impl<'s, S: Service, I: Io> Crew<'s, S, I> {
    pub(super) fn new(hire: Hire<'s, S, I>) -> Crew<'s, S, I> {
        let (returns, returned) = channel();
        let (idle, ended, answers) = Default::default();
        Crew { hire, hired: 0, hire_from: Instant::now(), idle, home: None, ended, answers, returned, returns }
    }

    fn take_returned(&mut self) {
        while let Ok(returned) = self.returned.try_recv() {
            match returned {
                Returned::Call(call) => self.ended.push_back(call),
                Returned::Answer(answer) => self.answers.push(answer),
                Returned::Thread(thread) if thread.is_home => self.home = Some(thread),
                Returned::Thread(thread) => self.idle.push(thread),
            }
        }
    }

    /// A thread that can take the loop over now.
    fn free_thread(&mut self, hollow: impl FnOnce() -> Worker<'s, S, I>) -> Option<Idle<'s, S, I>> {
        self.take_returned();
        if let Some(idle) = self.home.take().or_else(|| self.idle.pop()) {
            return Some(idle);
        }
        if self.hired == STAND_INS_MAX || Instant::now() < self.hire_from {
            return None;
        }
        let (wake, woken) = channel();
        if let Err(error) = (self.hire)(woken) {
            tracing::warn!(%error, "no more threads can be had for serving clients beside long commands");
            self.hire_from = Instant::now() + HIRE_AGAIN;
            return None;
        }
        self.hired += 1;
        Some(Idle { wake, hollow: Box::new(hollow()), is_home: false })
    }
}

impl<'s, S: Service, I: Io> Worker<'s, S, I> {
    /// Says how threads are had that can go on with this loop.
    pub(in crate::net) fn may_be_lent(&mut self, hire: Hire<'s, S, I>) {
        self.crew = Some(Box::new(Crew::new(hire)));
    }

    /// Has another thread go on with the loop, in the middle of a call; `true` too if one does already.
    pub(super) fn lend(&mut self) -> bool {
        if self.away.is_some() {
            return true;
        }
        if self.in_call {
            // Below it is another call, which needs what is here.
            return false;
        }
        let Some(mut crew) = self.crew.take() else { return false };
        let mut free = crew.free_thread(|| self.hollow());
        if free.is_some() && !self.io.leave() {
            crew.idle.extend(free.take());
        }
        let returns = crew.returns.clone();
        self.crew = Some(crew);
        let Some(Idle { wake, hollow: mut here, .. }) = free else { return false };
        let call = self.service.begin_lent_call();
        // Nothing tells of what has come to that socket before.
        let receiving = self.receiving.take();
        self.postponed_events.extend(receiving);
        std::mem::swap(self, &mut here);
        self.away = Some(Away { returns, call });
        match wake.send(here) {
            Ok(()) => true,
            Err(SendError(mut here)) => {
                // A bug has ended that thread.
                std::mem::swap(self, &mut here);
                self.io.arrive().expect("it was here a moment ago");
                self.service.end_lent_call(call);
                false
            }
        }
    }

    /// What stands in the loop's place while that is lent.
    fn hollow(&self) -> Worker<'s, S, I> {
        Worker::empty(self.service, self.index, self.mail.clone(), self.io.hollow())
    }

    /// Sends a call that has ended after the loop.
    #[cold]
    pub(super) fn return_call(
        &mut self,
        worker: &mut S::Worker,
        key: Key,
        state: S::Connection,
        flow: std::thread::Result<Flow>,
        reply: Box<OutBuf>,
    ) {
        let hold_until = self.service.holds(worker);
        self.end_lent(worker);
        self.service.note_on_its_way(0, reply.memory());
        self.send_after(Returned::Call(EndedCall { key, state, flow, reply, hold_until }));
    }

    /// Sends something after the loop that a call has lent.
    pub(super) fn send_after(&self, returned: Returned<'s, S, I>) {
        let Away { returns, .. } = self.away.as_ref().expect("a connection stays while a call with it runs");
        // Where nobody is there any more a bug has ended the loop, and the server ends.
        if returns.send(returned).is_ok() {
            self.mailbox().post(Letter::CallEnded);
        }
    }

    /// Ends a call that has lent the loop, if it has: for what it has done this was a turn of its own.
    pub(super) fn end_lent(&self, worker: &mut S::Worker) {
        if let Some(Away { call, .. }) = self.away {
            self.guarded(worker, |service, worker| service.end_turn(worker));
            self.service.end_lent_call(call);
        }
    }

    /// Answers the calls that have ended on other threads.
    #[cold]
    pub(super) fn end_calls(&mut self, worker: &mut S::Worker) {
        if let Some(crew) = &mut self.crew {
            crew.take_returned();
            crew.answers.drain(..).for_each(|answer| self.held_answers.hold(answer));
        }
        while let Some(call) = self.crew.as_mut().and_then(|crew| crew.ended.pop_front()) {
            let EndedCall { key, state, flow, reply, hold_until } = call;
            // What has come meanwhile comes before what comes now.
            self.postponed_events.append(&mut self.awaiting_events);
            self.letters.extend(self.awaiting_letters.drain(..).rev());
            let answered = reply.memory();
            self.after_call(worker, key, state, flow, reply, |_, _| hold_until);
            self.service.note_on_its_way(answered, 0);
            let Some(connection) = self.connections.get_mut(key) else { continue };
            // Until now it was not idle.
            connection.active_at = self.now;
            if connection.intake != Intake::Room {
                self.io.tell_of_every_byte(&mut connection.socket);
            }
            if connection.phase == Phase::Draining
                && connection.state.is_some()
                && has_room(self.service, &self.io, connection)
            {
                // Its output may have left in the middle of the call.
                self.resume_next.push(key);
            }
        }
    }

    /// Whether the worker's own thread has nothing to do.
    #[cold]
    pub(super) fn is_awaited_at_home(&self) -> bool {
        self.crew.as_ref().is_some_and(|crew| crew.home.is_some())
    }
}

/// Runs the loops that a thread receives which goes on with them for another one, until the server is shut down.
pub(in crate::net) fn run_lent<'s, S: Service, I: Io>(
    loops: &Receiver<Box<Worker<'s, S, I>>>,
    worker: &mut S::Worker,
) -> std::io::Result<()> {
    let Ok(mut first) = loops.recv() else { return Ok(()) };
    first.io.arrive()?;
    run(first, worker, false)
}

/// Runs a loop, and others when that was lent, until the server is shut down. `is_home`: on the worker's own thread.
pub(in crate::net) fn run<'s, S: Service, I: Io>(
    mut here: Box<Worker<'s, S, I>>,
    worker: &mut S::Worker,
    is_home: bool,
) -> std::io::Result<()> {
    let service = here.service;
    loop {
        let woken = match here.turns(worker, is_home)? {
            Ended::ShutDown => return Ok(()),
            Ended::Lent => {
                let Some(follow) = follow(here, is_home) else { return Ok(()) };
                follow
            }
            Ended::GoesHome => match go_home(here) {
                Ok(woken) => woken,
                Err(again) => {
                    here = again;
                    continue;
                }
            },
        };
        let Some(next) = be_idle(service, worker, &woken) else { return Ok(()) };
        here = next;
        here.io.arrive()?;
    }
}

/// Sends the thread after the loop that it has lent; nothing if that has ended.
fn follow<'s, S: Service, I: Io>(
    mut hollow: Box<Worker<'s, S, I>>,
    is_home: bool,
) -> Option<Receiver<Box<Worker<'s, S, I>>>> {
    let Away { returns, .. } = hollow.away.take()?;
    // What the call had taken out of the loop it has put here.
    (hollow.input, hollow.head, hollow.reply, hollow.datagram_room) = Default::default();
    let (mail, index) = (hollow.mail.clone(), hollow.index);
    let (wake, woken) = channel();
    returns.send(Returned::Thread(Idle { wake, hollow, is_home })).ok()?;
    mail.mailbox(index).post(Letter::CallEnded);
    Some(woken)
}

/// Gives the loop to the worker's own thread; gives it back if it has to stay, or a bug has ended that.
#[expect(clippy::type_complexity, reason = "it is one or the other")]
fn go_home<'s, S: Service, I: Io>(
    mut here: Box<Worker<'s, S, I>>,
) -> Result<Receiver<Box<Worker<'s, S, I>>>, Box<Worker<'s, S, I>>> {
    let Some(crew) = &mut here.crew else { return Err(here) };
    let Some(home) = crew.home.take() else { return Err(here) };
    if !here.io.leave() {
        // It goes there when that thread is the next to be idle.
        crew.idle.push(home);
        return Err(here);
    }
    let (wake, woken) = channel();
    crew.idle.push(Idle { wake, hollow: home.hollow, is_home: false });
    home.wake.send(here).map(|()| woken).map_err(|SendError(mut here)| {
        if let Some(crew) = &mut here.crew {
            // It was this thread.
            crew.idle.pop();
        }
        here.io.arrive().expect("it was here a moment ago");
        here
    })
}

/// Waits for a loop; nothing when none will come any more.
fn be_idle<'s, S: Service, I: Io>(
    service: &'s S,
    worker: &mut S::Worker,
    woken: &Receiver<Box<Worker<'s, S, I>>>,
) -> Option<Box<Worker<'s, S, I>>> {
    let mut rest = FIRST_REST;
    loop {
        match woken.recv_timeout(rest) {
            Ok(here) => return Some(here),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                let rested = catch_unwind(AssertUnwindSafe(|| service.rest(worker)));
                if rested.is_err() {
                    service.after_panic(worker);
                }
                rest = rested.unwrap_or(FIRST_REST);
            }
        }
    }
}
