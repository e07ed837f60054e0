//! CLIENT PAUSE is answered when nothing is under way any more that had begun before it: whoever has its OK relies on nothing
//! being written. Redis, which runs one command at a time, has that for nothing. Knows no command by name.
//!
//! ```text
//!   CLIENT PAUSE, or EXEC with one in it    it runs, its reply is kept, its client is parked; the pause begins
//!        |
//!   calls under way: batches, scripts, MIGRATE (`calls.rs`)
//!        |
//!   the last of them has ended    the pause's time runs from here; a letter to the client: its reply is sent
//! ```
//!
//! CLIENT UNPAUSE ends a pause that is not answered, too, which is answered then. A client that is gone has paused all the same.

use crate::blocking::Parked;
use crate::clients::Message;
use crate::clock::now_us;
use crate::command::Flags;
use crate::engine::Engine;
use crate::pause::PauseMode;
use crate::session::Session;
use crate::table::Resolved;
use crate::worker::Worker;
use std::sync::atomic::Ordering;
use tenon_wire::{Mark, OutBuf};

/// What is sent when a pause is answered.
#[derive(Debug)]
pub(crate) struct Unanswered {
    /// The pause's number.
    number: u64,
    reply: OutBuf,
    /// Up to where the log has to be on disk before: EXEC may have written.
    journaled: u64,
}

impl Engine {
    /// Begins a session's pause. Its command replies as if it were answered at once.
    pub fn pause_clients(&self, session: &mut Session, timeout_ms: u64, mode: PauseMode) {
        let number = self.pause.begin(timeout_ms, mode, session.client.info.key);
        session.pausing = Some(number);
        self.behind_calls(move |engine| {
            if let Some(client) = engine.pause.settle(number, now_us() / 1_000) {
                engine.clients.tell(client, Message::Unblocked);
            }
        });
    }

    /// Ends clients' pauses, also those that are not answered yet.
    pub fn end_pause(&self) {
        self.pause.end_beginning().into_iter().for_each(|client| self.clients.tell(client, Message::Unblocked));
        self.go_on(self.pause.end());
    }

    /// Parks a session whose command has begun a pause, with its reply, which is what lies behind the mark; not if the pause is
    /// answered already.
    #[cold]
    pub(crate) fn park_pausing(
        &self,
        worker: &Worker,
        session: &mut Session,
        number: u64,
        (out, unanswered): (&mut OutBuf, Mark),
    ) {
        if session.closing || !self.pause.is_beginning(number) {
            return;
        }
        let reply = out.split_off(unanswered);
        session.parked = Some(Parked::Pausing(Box::new(Unanswered { number, reply, journaled: worker.journaled })));
    }

    /// Answers a session's pause, if there is nothing under way any more; tells whether it is answered.
    pub(crate) fn answer_pause(&self, worker: &mut Worker, session: &mut Session, out: &mut OutBuf) -> bool {
        let Some(Parked::Pausing(unanswered)) = &mut session.parked else { return false };
        if self.pause.is_beginning(unanswered.number) {
            return false;
        }
        out.append(&mut unanswered.reply);
        if unanswered.journaled > worker.journaled {
            worker.journaled = unanswered.journaled;
            self.follow_journal(worker);
        }
        session.client.active_ms.store(worker.clock.now_ms, Ordering::Relaxed);
        session.client.count_commands(1);
        session.parked = None;
        true
    }

    /// Whether a command does not wait for the end of a pause, since the pause may wait for a script: it may end that, or have
    /// somebody log in who does.
    pub(crate) fn may_end_scripts(&self, resolved: Resolved) -> bool {
        let (command, running) = (resolved.command, &self.scripts.running);
        command.flags.any(Flags::WAITS_FOR_SCRIPTS) && (running.are_there() || self.pause.begins())
            || command.flags.any(Flags::NO_AUTH) && running.are_there() && self.pause.begins()
            || command.name == "SHUTDOWN" && running.busy().is_some()
    }
}
