//! Running a client's batch: what must hold before a command runs, and the statistics after. Knows no command.

mod gate;
mod one_key;

use crate::args::{Args, BigArg};
use crate::batch::{Call, Target, Wrong};
use crate::clock::monotonic_ns;
use crate::command::Command;
use crate::engine::Engine;
use crate::errors::{CmdError, text_bytes};
use crate::large_calls::{LargeSizes, request_len};
use crate::meanwhile;
use crate::monitor::Origin;
use crate::session::{ReplyMode, Session};
use crate::table::Resolved;
use crate::transaction::is_exec;
use crate::worker::Worker;
use gate::Gate;
use one_key::Answer;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tenon_wire::resp::Reply;
use tenon_wire::{ArgSpans, OutBuf};

/// Why a batch ended before its last command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It did not.
    No,
    /// There is much output: the rest is to run when there is room for more.
    Output,
    /// The next command waits for the end of a CLIENT PAUSE.
    Paused,
    /// The last command that ran waits for a key.
    Parked,
    /// The connection is to be closed; the rest is dropped.
    Closing,
}

/// Where a batch's arguments are.
#[derive(Clone, Copy)]
pub struct BatchArgs<'a> {
    /// The buffer that the spans refer to.
    pub input: &'a [u8],
    /// Where the first call begins in it.
    pub input_from: usize,
    /// All calls' arguments, one after another.
    pub spans: &'a ArgSpans,
    /// The long arguments of the only call, if it has any.
    pub bigs: &'a [BigArg],
}

impl<'a> BatchArgs<'a> {
    /// The arguments `from..to`.
    #[inline]
    pub fn of(&self, from: usize, to: usize) -> Args<'a> {
        let args = Args::new(&self.spans.spans[from..to], self.input, &self.spans.scratch, self.bigs);
        args.plain_from(self.spans.plain_from)
    }
}

/// What became of a call.
enum Fate {
    /// It ran, or was refused already when it was read.
    Done,
    /// It did not run: MULTI has queued it, or it was refused.
    Settled(Resolved),
    /// It has to wait.
    Waits,
}

impl Engine {
    /// Runs calls in order. Gives how many ran and why it stopped before the last, if it did.
    pub fn run_batch(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        batch: BatchArgs<'_>,
        calls: &mut [Call],
        out: &mut OutBuf,
    ) -> (usize, Stopped) {
        worker.serve(&session.client);
        let timed_alone = self.times_each_alone();
        if session.client.paused.load(Ordering::Relaxed) {
            session.client.paused.store(false, Ordering::Relaxed);
        }
        // What others have sent before these commands came stands before their replies.
        if session.client.outbox.is_waiting() {
            self.take_messages(session, out);
        }
        let mut ran = 0;
        let mut args_from = 0;
        let mut input_from = batch.input_from;
        let mut stopped = Stopped::No;
        // Quick commands share the time of their stretch; the clock is read where a stretch ends.
        let mut stretch_from = 0;
        let mut stretch_started = monotonic_ns();
        while ran < calls.len() {
            let at = ran;
            // Another client may have changed what this one may do.
            self.follow_rights(session);
            if session.client.killed.load(Ordering::Relaxed) {
                session.closing = true;
                stopped = Stopped::Closing;
                break;
            }
            // Commands on one key cannot change the session: a stretch of quick ones needs no look at it in between.
            let runs_freely = !timed_alone && session.is_plain() && self.is_undisturbed();
            if runs_freely && let Some(free) = self.run_freely(worker, session, batch, &calls[at..], args_from, out) {
                ran += free;
                let last = &calls[ran - 1];
                let large = self.large_sizes().request;
                if request_len(batch, last, input_from) >= large {
                    let from = (args_from, input_from);
                    self.note_large_requests(worker, session, batch, &calls[at..ran], from, large);
                }
                (args_from, input_from) = (last.args_end, last.input_end);
                if self.is_much_output(out.len()) && ran < calls.len() {
                    stopped = Stopped::Output;
                    break;
                }
                continue;
            }
            let call = &mut calls[at];
            let args = batch.of(args_from, call.args_end);
            let alone = timed_alone || !is_quick(&call.target, args.len());
            if alone && stretch_from < at {
                stretch_started = self.note_stretch(
                    worker,
                    session,
                    batch,
                    &calls[..at],
                    stretch_from,
                    (stretch_started, timed_alone),
                );
                stretch_from = at;
            }
            if alone {
                // Others may see what those before it have changed, however long it takes.
                self.broadcast_changes(worker);
            }
            let call = &mut calls[at];
            let unanswered = out.len();
            if !self.run_or_wait(worker, session, call, &args, out) {
                stopped = Stopped::Paused;
                break;
            }
            let sizes = (request_len(batch, call, input_from), out.len().saturating_sub(unanswered));
            // It may be what has set them.
            let large = self.large_sizes();
            if sizes.0 >= large.request || sizes.1 >= large.reply {
                self.note_large(worker, session, &call.target, &args, large, sizes);
            }
            (args_from, input_from) = (call.args_end, call.input_end);
            ran += 1;
            if alone {
                stretch_started =
                    self.note_stretch(worker, session, batch, &calls[..=at], at, (stretch_started, timed_alone));
                stretch_from = at + 1;
                // What it took counts for those behind it: their deadlines are from when they run.
                self.advance_old_clock(worker, stretch_started);
                worker.secrets.clear();
                if meanwhile::command_ended(self) && ran < calls.len() && !session.closing && !session.is_parked() {
                    // Its next command would have what they wait for before they can: it goes on behind them.
                    session.client.paused.store(true, Ordering::Relaxed);
                    self.go_on(vec![session.client.info.key]);
                    stopped = Stopped::Paused;
                    break;
                }
            }
            if session.closing {
                stopped = Stopped::Closing;
                break;
            }
            if session.is_parked() {
                stopped = Stopped::Parked;
                break;
            }
            if self.is_much_output(out.len()) && ran < calls.len() {
                stopped = Stopped::Output;
                break;
            }
        }
        if stretch_from < ran {
            stretch_started =
                self.note_stretch(worker, session, batch, &calls[..ran], stretch_from, (stretch_started, timed_alone));
        }
        let client = &session.client;
        client.active_ms.store(worker.clock.now_ms, Ordering::Relaxed);
        if worker.journaled != 0 {
            client.note_written(worker.journaled);
        }
        // One that waits now counts when its wait is over.
        client.count_commands((ran as u64).saturating_sub(session.is_parked().into()));
        self.advance_old_clock(worker, stretch_started);
        worker.sweep();
        self.evict_behind(worker, out);
        self.broadcast_changes(worker);
        self.wait_for_scanner(worker);
        (ran, stopped)
    }

    /// Runs the quick commands on one key that `calls` starts with, as far as the output has room; gives how many, if
    /// any. The session is plain and nothing is paused.
    #[inline]
    fn run_freely(
        &self,
        worker: &mut Worker,
        session: &Session,
        batch: BatchArgs<'_>,
        calls: &[Call],
        mut args_from: usize,
        out: &mut OutBuf,
    ) -> Option<usize> {
        let large = LargeSizes { request: usize::MAX, ..self.large_sizes() };
        let mut ran = 0;
        let mut args = batch.of(0, 0);
        let mut answered = out.len();
        let mut reply = Reply::new(out, session.proto);
        for call in calls {
            let Target::Key(resolved, hash) = &call.target else { break };
            if !resolved.is_quick {
                break;
            }
            args.go_to(&batch.spans.spans[args_from..call.args_end]);
            worker.near = call.near;
            if self.answer_key(worker, session, *resolved, *hash, &args, &mut reply) != Answer::Given {
                // It comes again, alone, and then waits or is refused.
                worker.waits_for_another_turn = false;
                break;
            }
            args_from = call.args_end;
            ran += 1;
            let len = reply.out().len();
            if len - answered >= large.reply {
                self.note_large(worker, session, &call.target, &args, large, (0, len - answered));
            }
            answered = len;
            if self.is_much_output(len) {
                break;
            }
        }
        worker.look_anywhere();
        (ran > 0).then_some(ran)
    }

    /// Runs one command whose arguments are in no buffer.
    pub fn run_alone(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        target: Target,
        args: &Args<'_>,
        out: &mut OutBuf,
    ) -> Stopped {
        let mut call = Call::new(target, args.len(), 0);
        worker.serve(&session.client);
        let started = Instant::now();
        session.client.paused.store(false, Ordering::Relaxed);
        if session.client.outbox.is_waiting() {
            self.take_messages(session, out);
        }
        self.follow_rights(session);
        if session.client.killed.load(Ordering::Relaxed) {
            session.closing = true;
            return Stopped::Closing;
        }
        let (large, unanswered) = (self.large_sizes(), out.len());
        if !self.run_or_wait(worker, session, &mut call, args, out) {
            return Stopped::Paused;
        }
        let sizes = (args.wire_len(), out.len().saturating_sub(unanswered));
        if sizes.0 >= large.request || sizes.1 >= large.reply {
            self.note_large(worker, session, &call.target, args, large, sizes);
        }
        self.note_alone(worker, session, &call.target, args, started.elapsed());
        worker.secrets.clear();
        if worker.journaled != 0 {
            session.client.note_written(worker.journaled);
        }
        worker.sweep();
        self.evict_behind(worker, out);
        self.broadcast_changes(worker);
        self.wait_for_scanner(worker);
        match (session.closing, session.is_parked()) {
            (true, _) => Stopped::Closing,
            (false, true) => Stopped::Parked,
            (false, false) => Stopped::No,
        }
    }

    /// Runs one call; `false`: it waits for the end of a pause, and the connection will be told of that.
    #[inline]
    fn run_or_wait(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        call: &mut Call,
        args: &Args<'_>,
        out: &mut OutBuf,
    ) -> bool {
        while !self.run_call(worker, session, call, args, out) {
            if std::mem::take(&mut worker.waits_for_another_turn) {
                session.client.paused.store(true, Ordering::Relaxed);
                return false;
            }
            if self.pause.wait(session.client.info.key) {
                session.client.paused.store(true, Ordering::Relaxed);
                return false;
            }
        }
        true
    }

    /// Runs one call, or queues or refuses it; `false`: it has to wait.
    #[inline]
    fn run_call(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        call: &mut Call,
        args: &Args<'_>,
        out: &mut OutBuf,
    ) -> bool {
        if let Target::Key(resolved, hash) = &call.target
            && session.is_plain()
            && self.is_undisturbed()
        {
            match self.answer_key(worker, session, *resolved, *hash, args, &mut Reply::new(out, session.proto)) {
                Answer::Given => return true,
                Answer::Waits => return false,
                Answer::Refused => {}
            }
        }
        self.run_slowly(worker, session, call, args, out)
    }

    /// Every call that is not a command on one key of a plain session.
    #[inline(never)]
    fn run_slowly(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        call: &mut Call,
        args: &Args<'_>,
        out: &mut OutBuf,
    ) -> bool {
        let gate = match &call.target {
            Target::Key(resolved, _) | Target::Other(resolved) => Some(self.gate(worker, session, *resolved, args)),
            Target::Refused(..) | Target::Settled(_) => None,
        };
        // CLIENT REPLY OFF and SKIP: the command runs, its reply goes nowhere, unless it is what ends the silence. Messages are
        // no reply; what is said of a command that does not run is one.
        let by_push = matches!(gate, Some(Ok(Gate::Run))) && call.target.answers_by_push();
        let silent = session.reply.is_silent() && !by_push;
        let unanswered = out.mark();
        let mut unheard = OutBuf::new();
        let mut reply = Reply::new(if silent { &mut unheard } else { &mut *out }, session.proto);
        let fate = match (&call.target, gate) {
            (Target::Refused(wrong, resolved), _) => {
                let mut error = wrong.error(*resolved, args);
                if let Some(resolved) = resolved {
                    if *wrong != Wrong::Subcommand {
                        // A container that lacks it is no command that was refused.
                        worker.stats.commands[resolved.number as usize].rejected.add(1);
                    }
                    error = self.refuse_exec(session, *resolved, error);
                }
                session.abort_transaction();
                self.answer_error(worker, None, &error, &mut reply);
                self.tell_of_refused(worker, session, *resolved, args);
                Fate::Done
            }
            (Target::Key(resolved, _) | Target::Other(resolved), Some(gate)) => {
                let resolved = *resolved;
                match gate {
                    Err(error) => {
                        worker.stats.commands[resolved.number as usize].rejected.add(1);
                        let error = self.refuse_exec(session, resolved, error);
                        session.abort_transaction();
                        self.answer_error(worker, None, &error, &mut reply);
                        self.tell_of_refused(worker, session, Some(resolved), args);
                        Fate::Settled(resolved)
                    }
                    Ok(Gate::Wait) => Fate::Waits,
                    Ok(Gate::Queue) => {
                        self.queue(session, resolved, args);
                        reply.simple("QUEUED");
                        Fate::Settled(resolved)
                    }
                    Ok(Gate::Run) => {
                        if self.onlookers.are_there() {
                            self.run_watched(worker, session, resolved, args, &mut reply)
                        } else {
                            self.run_and_answer(worker, session, resolved, args, &mut reply)
                        }
                    }
                }
            }
            (Target::Key(..) | Target::Other(_) | Target::Settled(_), _) => unreachable!("a call is run once"),
        };
        match fate {
            Fate::Done => {}
            Fate::Settled(resolved) => call.target = Target::Settled(resolved),
            Fate::Waits => return false,
        }
        session.times_put_off = 0;
        if silent && (std::mem::take(&mut session.exec_is_heard) || session.reply == ReplyMode::On) {
            out.append(&mut unheard);
        }
        if !worker.ready.is_empty() {
            self.serve_left(worker);
        }
        if let Some(number) = session.pausing.take() {
            self.park_pausing(worker, session, number, (out, unanswered));
        }
        // What the command has brought upon its own client comes right behind its reply: with a later message, if that is still
        // to come, also where another thread is answering it already.
        if session.client.outbox.is_waiting() && !session.is_parked() {
            self.take_messages(session, out);
        }
        session.reply = session.reply.after_command();
        session.end_caching(match &call.target {
            Target::Key(resolved, _) | Target::Other(resolved) | Target::Settled(resolved) => Some(resolved.command),
            Target::Refused(_, resolved) => resolved.map(|resolved| resolved.command),
        });
        true
    }

    /// Whether nothing stands between a plain session's commands and their run: no pause, no busy script, no loading, and
    /// nobody who watches.
    #[inline]
    fn is_undisturbed(&self) -> bool {
        !self.pause.holds_up() && !self.onlookers.are_there()
    }

    /// Runs one command that has passed its gate, and writes its error if it fails.
    fn run_and_answer(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        resolved: Resolved,
        args: &Args<'_>,
        reply: &mut Reply<'_>,
    ) -> Fate {
        match self.run_one(worker, session, resolved, args, reply) {
            Ok(()) => Fate::Done,
            // It has changed nothing and said nothing.
            Err(CmdError::Later) if worker.waits_for_another_turn => Fate::Waits,
            Err(error) => {
                self.answer_error(worker, Some(resolved), &error, reply);
                Fate::Done
            }
        }
    }

    /// Does that while somebody looks on.
    #[cold]
    fn run_watched(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        resolved: Resolved,
        args: &Args<'_>,
        reply: &mut Reply<'_>,
    ) -> Fate {
        let is_shown = self.monitors.are_watching();
        if is_shown {
            // The command may take its long arguments away: they are made readable for longer.
            (0..args.len()).for_each(|index| _ = args.get(index));
        }
        let measured = self.measure(worker, reply.out().len());
        let fate = self.run_and_answer(worker, session, resolved, args, reply);
        if let Fate::Waits = fate {
            return fate;
        }
        if let Some(measured) = measured {
            self.note_command_cost(worker, &measured, resolved.command, args, reply.out().len());
        }
        if is_shown {
            self.tell_monitors_of(worker, session, resolved.command, args);
        }
        fate
    }

    /// Tells those who watch of a session's command that was refused: as in Redis only of EXEC.
    fn tell_of_refused(&self, worker: &Worker, session: &Session, refused: Option<Resolved>, args: &Args<'_>) {
        if let Some(resolved) = refused.filter(|resolved| is_exec(*resolved)) {
            self.tell_monitors_of(worker, session, resolved.command, args);
        }
    }

    /// Tells those who watch of a session's command, which has run.
    pub(crate) fn tell_monitors_of(&self, worker: &Worker, session: &Session, command: &Command, args: &Args<'_>) {
        self.tell_monitors(Origin::Client(&session.client), session.database, command, args, &worker.secrets);
    }

    /// Writes an error and counts it; `failed` is the command that ran and failed.
    #[cold]
    pub(crate) fn answer_error(
        &self,
        worker: &Worker,
        failed: Option<Resolved>,
        error: &CmdError,
        reply: &mut Reply<'_>,
    ) {
        if let Some(resolved) = failed {
            worker.stats.commands[resolved.number as usize].failed.add(1);
        }
        worker.stats.all.errors.add(1);
        self.count_error(error.code());
        reply.error(text_bytes(&error.to_string()));
    }
}

/// Arguments up to which a command on several keys takes as little time as it says.
const QUICK_ARGS_MAX: usize = 64;

#[inline]
fn is_quick(target: &Target, args: usize) -> bool {
    match target {
        Target::Key(resolved, _) => resolved.is_quick,
        Target::Other(resolved) => resolved.is_quick && args <= QUICK_ARGS_MAX,
        Target::Refused(..) | Target::Settled(_) => true,
    }
}
