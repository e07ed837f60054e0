//! What must hold before a command runs.

use crate::acl::Context;
use crate::args::Args;
use crate::command::Flags;
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::pause::PauseMode;
use crate::scripting::is_script_call;
use crate::session::{Roles, Session};
use crate::table::Resolved;
use crate::worker::Worker;

/// What a gate says of a command.
pub(super) enum Gate {
    /// It runs now.
    Run,
    /// MULTI queues it.
    Queue,
    /// It has to wait.
    Wait,
}

impl Engine {
    /// What must hold before a command runs.
    pub(super) fn gate(
        &self,
        worker: &mut Worker,
        session: &Session,
        resolved: Resolved,
        args: &Args<'_>,
    ) -> Result<Gate, CmdError> {
        let flags = resolved.command.flags;
        if !flags.any(Flags::NO_AUTH) && self.wants_password(session) {
            return Err(CmdError::NoAuth);
        }
        if self.pause.is_busy() && !is_allowed_while_busy(session, resolved) {
            let kind = self.scripts.running.busy();
            // Within another command of this worker nothing else may run, although the script may have ended just now.
            let kind = kind.or(worker.is_nested.then_some(crate::scripting::Kind::Script));
            if let Some(kind) = kind {
                return Err(CmdError::Busy(kind));
            }
        }
        let in_transaction = session.transaction.is_some();
        if in_transaction && flags.any(Flags::NO_MULTI) {
            return Err(CmdError::NotInMulti);
        }
        let context = if in_transaction { Context::Multi } else { Context::TopLevel };
        self.acl_guard(worker, session, resolved, args, context)?;
        // What is queued is asked for no more, as in Redis from 7.4 on: a transaction of DELs is how memory comes back.
        let is_loading = self.is_loading();
        let may_need_memory = flags.any(Flags::DENY_OOM) || is_script_call(resolved.command);
        if may_need_memory
            && !is_loading
            && !self.make_room(worker)
            && self.flags_of(resolved, args).any(Flags::DENY_OOM)
        {
            return Err(CmdError::OutOfMemory);
        }
        // As in Redis PING is refused as well: health checks are to see it.
        if self.pause.refuses_writes()
            && (self.runs_any(session, resolved, args, Flags::WRITE) || resolved.command.name == "PING")
            && let Some(error) = self.refusal()
        {
            return Err(error);
        }
        if session.only_listens() && !flags.any(Flags::WHILE_SUBSCRIBED) {
            return Err(CmdError::OnlyListens(resolved.command.full_name()));
        }
        // To Redis who watches is a replica.
        let touches = Flags::WRITE.or(Flags::READONLY).or(Flags::MAY_REPLICATE);
        if session.roles().has(Roles::MONITOR) && self.runs_any(session, resolved, args, touches) {
            return Err(CmdError::text("ERR Replica can't interact with the keyspace"));
        }
        // Who loads into a server that runs waits for the scripts that had begun before.
        if is_loading && !flags.any(Flags::LOADING) && !self.may_end_scripts(resolved) {
            return Err(CmdError::Loading);
        }
        // As in Redis a command waits even where it would only be queued. In Redis the end of a pause waits for the
        // end of the pause, too, so that one begun with a wrong number stays; here it does not.
        let waits = match self.pause.holds_back(worker.clock.now_ms) {
            None => false,
            Some(PauseMode::All) => resolved.command.name != "CLIENT UNPAUSE" && !self.may_end_scripts(resolved),
            // A message is nothing that the log has.
            Some(PauseMode::Write) if flags.any(Flags::PUBSUB) && !self.pause.is_active() => false,
            Some(PauseMode::Write) => self.runs_any(session, resolved, args, Flags::WRITE.or(Flags::MAY_REPLICATE)),
        };
        let is_run = !in_transaction || flags.any(Flags::NOT_QUEUED);
        if waits || is_run && self.waits_for_keys(worker, session, resolved, args)? {
            return Ok(Gate::Wait);
        }
        if is_run && flags.any(Flags::WAITS_FOR_SCRIPTS) && self.waits_for_scripts(worker, session) {
            return Ok(Gate::Wait);
        }
        Ok(if in_transaction && !flags.any(Flags::NOT_QUEUED) { Gate::Queue } else { Gate::Run })
    }

    /// Whether a client that wants to kill a script is to come again when there is one to kill, or none.
    #[cold]
    fn waits_for_scripts(&self, worker: &mut Worker, session: &Session) -> bool {
        let waits =
            !worker.is_nested && self.clients.post().is_some() && self.scripts.running.waits(session.client.info.key);
        worker.waits_for_another_turn |= waits;
        waits
    }
}

/// Whether a command runs while a script is busy. What is queued and what looks at data does not: the script may hold it.
fn is_allowed_while_busy(session: &Session, resolved: Resolved) -> bool {
    let flags = resolved.command.flags;
    let is_queued = session.transaction.is_some() && !flags.any(Flags::NOT_QUEUED);
    flags.any(Flags::ALLOW_BUSY) && !is_queued && resolved.command.name != "WATCH"
}
