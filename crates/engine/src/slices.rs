//! Commands that take long and change nothing: they run a slice at a time, between which their worker serves its other
//! clients. Knows no command and no socket.
//!
//! ```text
//!  the handler: `ServerCx::in_slices` ---- done after the first slice ----> the reply
//!      |
//!      +--> the batch stops, the session is parked, a letter to its own connection
//!                |                     ^
//!                v                     | not done
//!           the worker's next turn: a slice ---- done ----> the reply, the connection goes on
//! ```
//!
//! So the client's later commands wait as behind any command, and others' are run in between. Within MULTI and scripts,
//! and where nobody moves bytes, all slices run at once.

use crate::args::{Args, OwnedArgs};
use crate::batch::Target;
use crate::blocking::Parked;
use crate::clients::Message;
use crate::clock::monotonic_ns;
use crate::context::ServerCx;
use crate::engine::Engine;
use crate::session::Session;
use crate::unsent::OnItsWay;
use crate::worker::Worker;
use std::fmt;
use tenon_wire::OutBuf;
use tenon_wire::resp::Reply;

/// A command's work, in slices.
pub trait Slices: Send {
    /// Does a slice, less than a millisecond's work; tells whether it was the last one.
    fn go_on(&mut self, cx: &mut ServerCx<'_>) -> bool;

    /// Bytes of memory that it has taken so far.
    fn memory(&self) -> usize;

    /// Writes the reply, when all slices are done.
    fn answer(self: Box<Self>, reply: &mut Reply<'_>);
}

/// A command that is not done.
pub(crate) struct Unfinished {
    work: Box<dyn Slices>,
    /// What the slow log will show.
    args: OwnedArgs,
    /// How long its slices took up to now.
    took_ns: u64,
    /// How much of that its first call was, which is counted where it was made.
    counted_ns: u64,
    is_silent: bool,
    /// What it has taken, which is no data.
    taken: OnItsWay,
}

impl fmt::Debug for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unfinished").field("args", &self.args).field("took_ns", &self.took_ns).finish_non_exhaustive()
    }
}

impl ServerCx<'_> {
    /// Does work slice by slice: other clients of the worker are served in between, where that may be.
    pub fn in_slices(&mut self, mut work: Box<dyn Slices>, args: &Args<'_>, reply: &mut Reply<'_>) {
        let started_ns = monotonic_ns();
        let may_wait = !self.holds_shards() && !self.session.is_in_exec() && self.engine.clients.post().is_some();
        while !work.go_on(self) {
            if may_wait {
                let took_ns = monotonic_ns() - started_ns;
                let is_silent = self.session.reply.is_silent();
                let mut taken = self.engine.on_its_way();
                taken.set(work.memory());
                let args = args.to_owned();
                let unfinished = Unfinished { work, args, took_ns, counted_ns: took_ns, is_silent, taken };
                self.session.parked = Some(Parked::InSlices(Box::new(unfinished)));
                self.engine.clients.tell(self.session.client.info.key, Message::Unblocked);
                return;
            }
        }
        work.answer(reply);
    }
}

impl Engine {
    /// Does the next slice of a session's command; writes its reply and tells so if it was the last one.
    pub(crate) fn go_on_in_slices(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        mut unfinished: Box<Unfinished>,
        out: &mut OutBuf,
    ) -> bool {
        worker.serve(&session.client);
        self.advance_clock(worker);
        let started_ns = monotonic_ns();
        let is_done = unfinished.work.go_on(&mut ServerCx { engine: self, worker, session, held: None });
        if !is_done {
            unfinished.took_ns += monotonic_ns() - started_ns;
            unfinished.taken.set(unfinished.work.memory());
            session.parked = Some(Parked::InSlices(unfinished));
            self.clients.tell(session.client.info.key, Message::Unblocked);
            return false;
        }
        let Unfinished { work, args, took_ns, counted_ns, is_silent, mut taken } = *unfinished;
        let mut unheard = OutBuf::new();
        let unanswered = out.len();
        work.answer(&mut Reply::new(if is_silent { &mut unheard } else { &mut *out }, session.proto));
        self.note_large_answer(worker.clock.now_ms, &session.client, &args.view(), out.len() - unanswered);
        // Freeing much of what nobody hears takes its time.
        drop(unheard);
        taken.set(out.memory());
        worker.answers_with(taken);
        let took_ns = took_ns + (monotonic_ns() - started_ns);
        self.note_sliced(worker, session, &args.view(), took_ns, took_ns - counted_ns);
        true
    }

    /// Notes how long a command took that ran in slices: all of it for who looks for slow ones, of the statistics what was
    /// not counted with its first slice.
    fn note_sliced(&self, worker: &Worker, session: &Session, args: &Args<'_>, took_ns: u64, rest_ns: u64) {
        if let Target::Key(resolved, _) | Target::Other(resolved) = self.resolve(args) {
            worker.stats.commands[resolved.number as usize].time_ns.add(rest_ns);
        }
        session.client.active_ms.store(worker.clock.now_ms, std::sync::atomic::Ordering::Relaxed);
        session.client.count_commands(1);
        self.note_if_slow(worker.clock.now_ms, took_ns / 1_000, args, &[], &session.client);
    }
}
