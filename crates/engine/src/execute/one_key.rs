//! A command on one key of a plain session: what nearly every call is.

use crate::args::Args;
use crate::command::Flags;
use crate::context::KeyCx;
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::locking::OnBusy;
use crate::session::Session;
use crate::shards::{Locked, ShardState};
use crate::snapshot::CHANGES;
use crate::table::Resolved;
use crate::worker::Worker;
use tenon_store::hash::KeyHash;
use tenon_wire::resp::Reply;

/// What came of a command on one key that could run at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// It ran, and its reply or error is written.
    Given,
    /// It has to wait.
    Waits,
    /// There is no memory for it. It takes the way of commands that are looked at before they run, and counts as refused.
    Refused,
}

impl Engine {
    /// Runs a command on one key that may run at once, and writes its error if it fails.
    #[inline(always)]
    pub(super) fn answer_key(
        &self,
        worker: &mut Worker,
        session: &Session,
        resolved: Resolved,
        hash: KeyHash,
        args: &Args<'_>,
        reply: &mut Reply<'_>,
    ) -> Answer {
        match self.run_key(worker, session, resolved, hash, args, reply) {
            Ok(()) => Answer::Given,
            Err(CmdError::Later) => Answer::Waits,
            Err(CmdError::OutOfMemory) => Answer::Refused,
            Err(error) => {
                self.answer_error(worker, Some(resolved), &error, reply);
                Answer::Given
            }
        }
    }

    /// Runs a command on one key that may run at once.
    #[inline(always)]
    fn run_key(
        &self,
        worker: &mut Worker,
        session: &Session,
        resolved: Resolved,
        hash: KeyHash,
        args: &Args<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), CmdError> {
        let command = resolved.command;
        if command.flags.any(Flags::DENY_OOM) && !self.make_room(worker) {
            return Err(CmdError::OutOfMemory);
        }
        let key = args.get(usize::from(resolved.key));
        if args.may_have_bigs() {
            self.prepare_record(worker, command, args);
        }
        let index = self.shards.index(hash);
        let state = self.lock_or_later(worker, session, index);
        let mut state = state.inspect_err(|_| worker.record.forget_prepared())?;
        if state.shard.needs_care() {
            if state.shard.reaches_further() && command.flags.any(CHANGES) {
                drop(state);
                return self.run_key_among_others(worker, session, resolved, hash, args, reply);
            }
            if !self.takes_care(worker, &mut state, command, session, args, (hash, key)) {
                worker.record.forget_prepared();
                return Err(CmdError::Later);
            }
        }
        worker.may_lend = !resolved.is_quick;
        let result = self.run_locked(worker, session, resolved, (hash, key, &mut state), args, reply);
        // Almost always nobody waits for the key: one branch.
        if worker.ready.is_empty() {
            drop(state);
        } else {
            self.release_changed(worker, index, state);
        }
        if !resolved.is_quick {
            self.answer_lent(worker, reply);
        }
        result
    }

    /// Runs a command whose only key's shard is held, and puts down what it did.
    #[inline(always)]
    fn run_locked(
        &self,
        worker: &mut Worker,
        session: &Session,
        resolved: Resolved,
        (hash, key, state): (KeyHash, &[u8], &mut ShardState),
        args: &Args<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), CmdError> {
        if args.may_have_bigs() {
            self.prepare_record_anew(worker, resolved.command, args);
        }
        let (database, touches) = (session.database, session.touches);
        let mut cx = KeyCx { engine: self, worker, state, database, hash, key, touches };
        let result = resolved.command.run_on_key(&mut cx, args, reply);
        if self.is_journaling() {
            self.log_command(worker, database, &result, args);
        } else if args.may_have_bigs() {
            worker.record.forget_prepared();
        }
        result.map(|_effect| ())
    }

    /// Runs a command on one key as `run_key` does, where somebody waits for a key of its shard who wants to change one in
    /// another: both are locked.
    #[cold]
    #[inline(never)]
    fn run_key_among_others(
        &self,
        worker: &mut Worker,
        session: &Session,
        resolved: Resolved,
        hash: KeyHash,
        args: &Args<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), CmdError> {
        let key = args.get(usize::from(resolved.key));
        let index = self.shards.index(hash);
        let held = self.lock_several(worker, vec![index], OnBusy::Refuse);
        let mut held = held.inspect_err(|_busy| worker.record.forget_prepared())?;
        let state = held.shard(index);
        if state.shard.needs_care() && !self.takes_care(worker, state, resolved.command, session, args, (hash, key)) {
            worker.record.forget_prepared();
            return Err(CmdError::Later);
        }
        let result = self.run_locked(worker, session, resolved, (hash, key, state), args, reply);
        self.release(worker, held);
        if !worker.ready.is_empty() {
            self.serve_left(worker);
        }
        result
    }
}
