//! Whether a session may run a command, and the note of it if not. Knows no rule.

use super::databases::Databases;
use super::denial::{Context, Denial, Reason};
use super::log::LogEntry;
use crate::args::{Args, OwnedArgs};
use crate::client_line::Lines;
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::session::Session;
use crate::table::Resolved;
use crate::worker::Worker;

impl Engine {
    /// Whether a session's user may run a command with these arguments; nothing is noted.
    ///
    /// # Errors
    /// Why not.
    #[inline]
    pub fn acl_check(&self, session: &Session, found: Resolved, args: &Args<'_>) -> Result<(), Denial> {
        if session.rights().is_everything() {
            return Ok(());
        }
        session.rights().check(found, args, self.databases_seen_from(session.database))
    }

    /// All databases, as a client sees them that has selected this one.
    pub fn databases_seen_from(&self, selected: usize) -> Databases {
        Databases { selected, count: self.config.databases() as usize }
    }

    /// Whether a session's user may run a command with these arguments; a refusal is noted in the log.
    ///
    /// # Errors
    /// What the client is to be told.
    #[inline]
    pub fn acl_guard(
        &self,
        worker: &Worker,
        session: &Session,
        found: Resolved,
        args: &Args<'_>,
        context: Context,
    ) -> Result<(), CmdError> {
        match self.acl_check(session, found, args) {
            Ok(()) => Ok(()),
            Err(denial) => {
                self.note_denial(worker, session, found, args, denial, context);
                Err(CmdError::new(format!("NOPERM {}", denial.message(found.command))))
            }
        }
    }

    /// Notes in the log that a command was refused.
    #[cold]
    pub fn note_denial(
        &self,
        worker: &Worker,
        session: &Session,
        found: Resolved,
        args: &Args<'_>,
        denial: Denial,
        context: Context,
    ) {
        let refusal = Refusal::of(session, found, args, denial, context);
        self.note_refusal(worker, session, found, args, refusal);
    }

    /// Notes in the log that a command of a script was refused, which the client has run by these arguments.
    #[cold]
    pub fn note_denial_in_script(
        &self,
        worker: &Worker,
        session: &Session,
        script: &Args<'_>,
        (found, args): (Resolved, &Args<'_>),
        denial: Denial,
    ) {
        let refusal = Refusal::of(session, found, args, denial, Context::Lua);
        let runs = self.commands.find(script.get(0)).unwrap_or(found);
        self.note_refusal(worker, session, runs, script, refusal);
    }

    /// Adds to the log what was refused to a session that runs this command.
    pub(super) fn note_refusal(
        &self,
        worker: &Worker,
        session: &Session,
        found: Resolved,
        args: &Args<'_>,
        refusal: Refusal,
    ) {
        let now_ms = worker.clock.now_ms;
        let exec = OwnedArgs::new(["EXEC"]);
        // What the client itself has sent last.
        let (found, args) = match self.commands.find_declared(b"EXEC").filter(|_| session.is_in_exec()) {
            Some(found) => (found, &exec.view()),
            None => (found, args),
        };
        let mut lines = Lines::new(self, session, now_ms, found.command, args);
        lines.push(&session.client);
        self.note_in_log(now_ms, &lines, refusal);
    }

    /// Puts a refusal into the log, with the line of the client.
    pub(super) fn note_in_log(&self, now_ms: u64, lines: &Lines<'_>, refusal: Refusal) {
        let entry = LogEntry {
            id: 0,
            count: 1,
            reason: refusal.reason,
            context: refusal.context,
            object: refusal.object,
            user: refusal.user,
            client: lines.text.trim_end().to_owned(),
            created_ms: now_ms,
            updated_ms: now_ms,
        };
        self.acl.log.add(entry, usize::try_from(self.config.acllog_max_len()).unwrap_or(usize::MAX));
    }
}

/// What was refused, and to whom.
pub(super) struct Refusal {
    pub(super) reason: Reason,
    pub(super) context: Context,
    pub(super) object: Vec<u8>,
    pub(super) user: Vec<u8>,
}

impl Refusal {
    /// What was refused to a session's user when it was to run this command.
    fn of(session: &Session, found: Resolved, args: &Args<'_>, denial: Denial, context: Context) -> Refusal {
        let object = match denial {
            Denial::Command | Denial::Database(None) => found.command.full_name().into_bytes(),
            Denial::Key(index) | Denial::Channel(index) | Denial::Database(Some(index)) => args.get(index).to_vec(),
        };
        Refusal { reason: denial.reason(), context, object, user: session.user().name.to_vec() }
    }
}
