//! Errands: what a command has done outside of this process, on a thread of its own, while its client waits and the
//! worker serves the others. Knows no socket and no command.
//!
//! ```text
//!  the client's worker                                the errand's thread
//!  -------------------                                -------------------
//!  the handler: `Engine::send_out`  ----------------> the work: it holds no shard
//!  the batch stops, the connection is parked              |
//!  a letter to the connection  <------------------------- what is to be done with its outcome
//!  that is done: it replies, or goes out again
//! ```
//!
//! Where the client is gone meanwhile, the errand's thread does what is to be done without it ([`Finish::finish_alone`]).

use crate::blocking::Parked;
use crate::clients::Message;
use crate::context::SessionCx;
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::session::Session;
use crate::worker::Worker;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenon_wire::OutBuf;
use tenon_wire::resp::Reply;

/// Errands that are out at the same time at most: each has a thread.
const OUT_MAX: usize = 128;

/// What is done outside; it gives what is done with its outcome.
pub type Work = Box<dyn FnOnce() -> Box<dyn Finish> + Send>;

/// What is done with the outcome.
pub trait Finish: Send {
    /// Does it, on the client's worker, no shard being held: replies, or gives further work.
    ///
    /// # Errors
    /// What the client is told instead.
    fn finish(self: Box<Self>, cx: &mut SessionCx<'_>, reply: &mut Reply<'_>) -> Result<Option<Work>, CmdError>;

    /// Does what of it concerns not only the client, which is gone; on no worker's thread. Gives further work.
    fn finish_alone(self: Box<Self>, engine: &Engine, worker: &mut Worker) -> Option<Work> {
        let _ = (engine, worker);
        None
    }
}

/// There is no outcome.
struct NoOutcome;

impl Finish for NoOutcome {
    fn finish(self: Box<Self>, _: &mut SessionCx<'_>, _: &mut Reply<'_>) -> Result<Option<Work>, CmdError> {
        Err(CmdError::text("ERR the command has failed outside of this server"))
    }
}

/// How many errands are out.
#[derive(Debug, Default)]
pub struct Errands {
    out: Arc<AtomicUsize>,
}

/// How far an errand has come.
#[derive(Default)]
enum State {
    #[default]
    Out,
    Back(Box<dyn Finish>),
    /// Its thread has ended and left nothing.
    Lost,
    /// The client is gone.
    Abandoned,
}

/// An errand of a session.
#[derive(Default)]
pub(crate) struct Errand(Mutex<State>);

impl fmt::Debug for Errand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self.0.lock() {
            State::Out => "out",
            State::Back(_) => "back",
            State::Lost => "lost",
            State::Abandoned => "abandoned",
        })
    }
}

/// Tells the client's worker that the errand has ended, however it did.
struct Herald<W: Fn()> {
    errand: Arc<Errand>,
    out: Arc<AtomicUsize>,
    wake: W,
}

impl<W: Fn()> Drop for Herald<W> {
    fn drop(&mut self) {
        let mut state = self.errand.0.lock();
        if matches!(*state, State::Out) {
            *state = State::Lost;
        }
        drop(state);
        self.out.fetch_sub(1, Ordering::Relaxed);
        (self.wake)();
    }
}

impl Engine {
    /// Has work done outside while the session waits; where nobody moves bytes, here and now.
    ///
    /// # Errors
    /// When there is no thread to be had, and there those of the end.
    pub fn send_out(&self, cx: &mut SessionCx<'_>, mut work: Work, reply: &mut Reply<'_>) -> Result<(), CmdError> {
        let Some(post) = self.clients.post() else {
            while let Some(further) = work().finish(cx, reply)? {
                work = further;
            }
            return Ok(());
        };
        let out = Arc::clone(&self.errands.out);
        if out.fetch_add(1, Ordering::Relaxed) >= OUT_MAX {
            out.fetch_sub(1, Ordering::Relaxed);
            return Err(CmdError::text("ERR too many commands wait for other servers"));
        }
        let errand = Arc::<Errand>::default();
        let key = cx.session.client.info.key;
        let herald = Herald { errand: Arc::clone(&errand), out, wake: move || post(key, Message::Unblocked) };
        let engine = self.shared();
        let run = move || {
            let finish = work();
            let mut state = herald.errand.0.lock();
            if !matches!(*state, State::Abandoned) {
                *state = State::Back(finish);
                return;
            }
            drop(state);
            if let Some(engine) = engine {
                engine.finish_alone(finish);
            }
        };
        let started = std::thread::Builder::new().name("errand".to_owned()).spawn(run);
        started.map_err(|error| CmdError::new(format!("ERR no thread could be started: {error}")))?;
        cx.session.parked = Some(Parked::Away { errand, is_silent: cx.session.reply.is_silent() });
        Ok(())
    }

    /// The client is gone: what is to be done with the outcome of its errand is done without it.
    pub(crate) fn abandon_errand(&self, errand: &Errand) {
        let State::Back(finish) = std::mem::replace(&mut *errand.0.lock(), State::Abandoned) else { return };
        let Some(engine) = self.shared() else { return };
        let started = std::thread::Builder::new().name("errand".to_owned());
        if let Err(error) = started.spawn(move || engine.finish_alone(finish)) {
            tracing::error!("what a client that is gone has asked for is not brought to its end: {error}");
        }
    }

    fn finish_alone(&self, mut finish: Box<dyn Finish>) {
        loop {
            let further = {
                // The end of the process waits for what has begun, as it does for calls.
                let _call = self.lent_call();
                let mut worker = self.worker(self.workers());
                let further = finish.finish_alone(self, &mut worker);
                if !worker.ready.is_empty() {
                    self.serve_left(&mut worker);
                }
                worker.sweep();
                self.broadcast_changes(&mut worker);
                further
            };
            let Some(further) = further else { return };
            finish = further();
        }
    }

    /// Does what is to be done with the outcome of a session's errand, if it is back; tells whether the session has its
    /// reply.
    pub(crate) fn finish_errand(&self, worker: &mut Worker, session: &mut Session, out: &mut OutBuf) -> bool {
        let Some(Parked::Away { errand, is_silent }) = &session.parked else { return false };
        let finish = match std::mem::take(&mut *errand.0.lock()) {
            State::Out | State::Abandoned => return false,
            State::Back(finish) => finish,
            State::Lost => Box::new(NoOutcome),
        };
        let is_silent = *is_silent;
        session.parked = None;
        worker.serve(&session.client);
        self.advance_clock(worker);
        let mut answer = OutBuf::new();
        let mut reply = Reply::new(&mut answer, session.proto);
        let mut cx = SessionCx { engine: self, worker, session };
        let result = finish.finish(&mut cx, &mut reply).and_then(|further| match further {
            Some(work) => self.send_out(&mut cx, work, &mut reply),
            None => Ok(()),
        });
        if let Err(error) = result {
            self.answer_error(worker, None, &error, &mut reply);
        }
        if !is_silent {
            out.append(&mut answer);
        }
        if !worker.ready.is_empty() {
            self.serve_left(worker);
        }
        worker.sweep();
        self.broadcast_changes(worker);
        if worker.journaled != 0 {
            // What WAITAOF is to wait for.
            session.client.note_written(worker.journaled);
        }
        session.parked.is_none()
    }
}
