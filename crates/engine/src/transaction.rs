//! MULTI, EXEC and WATCH: queueing commands and running them as one. Knows no command by name but EXEC.

use crate::acl::Context;
use crate::args::{Args, OwnedArgs};
use crate::batch::Target;
use crate::clients::Client;
use crate::command::{Flags, Run};
use crate::context::KeyCx;
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::large_calls::LargeSizes;
use crate::locking::{MOMENT, OnBusy};
use crate::scripting::is_script_call;
use crate::session::{AtExec, ReplyMode, Session, Transaction, WatchedKey};
use crate::shards::Locked;
use crate::snapshot::has_due_members;
use crate::table::Resolved;
use crate::watch::{AtWatch, DirtyFlag};
use crate::worker::Worker;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenon_ds::progress;
use tenon_wire::OutBuf;
use tenon_wire::resp::Reply;

/// What a queued command counts for beside the elements that it looks at.
const STEPS_OF_A_COMMAND: usize = 4;

impl Session {
    /// Whether `is_so` of one of the commands that run when this one does: those that MULTI has queued, if it is EXEC, and
    /// itself. Within MULTI no other command runs any.
    ///
    /// # Errors
    /// The first that `is_so` gives.
    pub(crate) fn any_call(
        &self,
        resolved: Resolved,
        args: &Args<'_>,
        mut is_so: impl FnMut(Resolved, &Args<'_>) -> Result<bool, CmdError>,
    ) -> Result<bool, CmdError> {
        if let Some(transaction) = &self.transaction {
            if resolved.command.name != "EXEC" {
                return Ok(false);
            }
            for (queued, args) in &transaction.queue {
                if is_so(*queued, &args.view())? {
                    return Ok(true);
                }
            }
        }
        is_so(resolved, args)
    }
}

impl Engine {
    /// Adds a command to MULTI's queue.
    pub(crate) fn queue(&self, session: &mut Session, resolved: Resolved, args: &Args<'_>) {
        let transaction = session.transaction.as_mut().expect("queueing happens within MULTI");
        let args = args.to_owned();
        let bytes = session.client.queued_bytes.load(Ordering::Relaxed) + args.memory() as u64;
        transaction.queue.push((resolved, args));
        session.client.queued_bytes.store(bytes, Ordering::Relaxed);
        session.client.queued.store(transaction.queue.len() as u32, Ordering::Relaxed);
    }

    /// Whether what a call runs has one of these flags: it has it itself, or it is EXEC and a call in its queue has.
    pub(crate) fn runs_any(&self, session: &Session, resolved: Resolved, args: &Args<'_>, flags: Flags) -> bool {
        if is_exec(resolved) {
            let queue = session.transaction.iter().flat_map(|transaction| &transaction.queue);
            return self.any_call_has(queue, flags);
        }
        self.flags_of(resolved, args).any(flags)
    }

    fn any_call_has<'a>(&self, calls: impl IntoIterator<Item = &'a (Resolved, OwnedArgs)>, flags: Flags) -> bool {
        calls.into_iter().any(|(resolved, args)| self.flags_of(*resolved, &args.view()).any(flags))
    }

    /// Runs MULTI's queue as one: all shards that it touches are locked before the first command and until the last.
    ///
    /// # Errors
    /// When a command was refused while it was queued.
    pub fn exec(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        transaction: Transaction,
        reply: &mut Reply<'_>,
    ) -> Result<(), CmdError> {
        if transaction.aborted {
            self.unwatch(session);
            return Err(CmdError::text("EXECABORT Transaction discarded because of previous errors."));
        }
        if self.any_call_has(&transaction.queue, Flags::DENY_OOM) && !self.make_room(worker) {
            self.unwatch(session);
            return Err(exec_abort(&CmdError::OutOfMemory));
        }
        // Before any shard is locked: under its own locks it could evict nothing.
        let calls_scripts = transaction.queue.iter().any(|(it, _)| is_script_call(it.command));
        let out_of_memory = calls_scripts && !self.make_room(worker);
        let mut watched = std::mem::take(&mut session.watched);
        let reaches_far = |run: &Run| matches!(run, Run::Server(_) | Run::Following { .. });
        let whole = transaction.queue.iter().any(|(resolved, _)| reaches_far(&resolved.command.run));
        let mut held = if whole {
            self.lock_everything(worker)
        } else {
            let keys =
                transaction.queue.iter().flat_map(|(resolved, args)| self.shards_of(resolved.command, &args.view()));
            let watches = watched.iter().map(|watch| self.shards.index(self.shards.hash(&watch.key)));
            let indexes = keys.chain(watches).collect();
            match self.lock_several(worker, indexes, OnBusy::Refuse) {
                Ok(held) => held,
                Err(error) => {
                    session.watched = watched;
                    self.unwatch(session);
                    return Err(exec_abort(&error));
                }
            }
        };
        // The watched keys' shards are locked too, so nothing can change between this look and the first command.
        let mut dirty = session.dirty.is_set();
        for watch in &watched {
            progress::count(1);
            let hash = self.shards.hash(&watch.key);
            let state = held.shard(self.shards.index(hash));
            let keyspace = state.shard.database(watch.database);
            let slot = keyspace.and_then(|keyspace| Some((keyspace, keyspace.find(hash, &watch.key)?)));
            if let Some((keyspace, slot)) = slot {
                let (entry, now_ms) = (keyspace.entry(slot), worker.clock.now_ms);
                dirty |= match watch.found {
                    AtWatch::Current => entry.is_past(now_ms) || has_due_members(entry, now_ms),
                    AtWatch::MembersDue => entry.is_past(now_ms),
                    AtWatch::Past => false,
                };
            }
            if let Some(watchers) = &mut state.watched
                && watchers.remove(watch.database, &watch.key, &session.dirty)
            {
                state.watched = None;
            }
        }
        if !watched.is_empty() {
            session.dirty.renew();
            session.client.watches_nothing(&watched);
            watched.clear();
            session.watches_nothing(watched);
        }
        if dirty {
            reply.null_array();
            return Ok(());
        }
        let answer = reply.out().mark();
        let answer_max = self.config.output_buffer_limit(session.client.class()).hard_bytes as usize;
        let silent = session.reply.is_silent();
        if !silent {
            reply.array(transaction.queue.len());
        }
        let refusal = if calls_scripts { self.refusal() } else { None };
        session.in_exec = Some(AtExec { refusal, out_of_memory });
        // As with Redis it is in the transaction until that has ended.
        session.client.queued.store(transaction.queue.len() as u32, Ordering::Relaxed);
        // Libraries are of no shard: others change them in the log behind this, or before.
        let changes_libraries = transaction.queue.iter().any(|(it, _)| it.command.flags.any(Flags::CHANGES_LIBRARIES));
        let order = changes_libraries.then(|| self.scripts.libraries.keep_order());
        let switches_log = transaction.queue.iter().any(|(it, _)| it.command.flags.any(Flags::SWITCHES_LOG));
        let expected = switches_log.then(|| self.begin_switching_unit(worker));
        if expected.is_none() {
            self.begin_unit(worker);
        }
        for (resolved, args) in &transaction.queue {
            progress::count(STEPS_OF_A_COMMAND);
            let started = std::time::Instant::now();
            // What it may do can have changed since the command was queued, by a command of this very transaction, too.
            self.follow_rights(session);
            let denial = self.acl_check(session, *resolved, &args.view()).err();
            // CLIENT REPLY OFF, and whatever closes the connection, silence the rest; HELLO changes how it is written.
            let by_push = denial.is_none() && resolved.command.flags.any(Flags::ANSWERS_BY_PUSH);
            let muted = session.closing || session.reply == ReplyMode::Off && !by_push;
            let mut unheard = OutBuf::new();
            let out = if muted { &mut unheard } else { reply.out() };
            let mut one = Reply::new(out, session.proto);
            if let Some(denial) = denial {
                self.note_denial(worker, session, *resolved, &args.view(), denial, Context::Multi);
                self.answer_error(worker, None, &CmdError::new(denial.message_in_exec()), &mut one);
                continue;
            }
            let unanswered = one.out().len();
            let measured = self.measure(worker, unanswered);
            let result = self.run_held(worker, session, *resolved, &args.view(), &mut held, &mut one);
            if let Some(measured) = measured {
                self.note_command_cost(worker, &measured, resolved.command, &args.view(), one.out().len());
            }
            let elapsed = started.elapsed();
            worker.stats.commands[resolved.number as usize].ran(1, elapsed.as_nanos() as u64);
            worker.stats.all.commands.add(1);
            // EXEC itself is kept out of the slow log: what it ran is noted.
            if !resolved.command.flags.any(Flags::SKIP_SLOWLOG) {
                let (now_ms, took_us) = (worker.clock.now_ms, elapsed.as_micros() as u64);
                self.note_if_slow(now_ms, took_us, &args.view(), &worker.secrets, &session.client);
            }
            let large = LargeSizes { request: usize::MAX, ..self.large_sizes() };
            let answered = one.out().len().saturating_sub(unanswered);
            if answered >= large.reply {
                let target = Target::Other(*resolved);
                self.note_large(worker, session, &target, &args.view(), large, (0, answered));
            }
            self.tell_monitors_of(worker, session, resolved.command, &args.view());
            worker.secrets.clear();
            if let Err(error) = result {
                self.answer_error(worker, Some(*resolved), &error, &mut one);
            }
            if muted && session.reply == ReplyMode::On && !session.closing {
                // CLIENT REPLY ON. Where EXEC itself began in silence there is no array.
                reply.out().append(&mut unheard);
            }
            if answer_max > 0 && reply.out().len_since(answer) > answer_max {
                // As in Redis: all is done, but nobody is told of more.
                session.closing = true;
            }
        }
        session.in_exec = None;
        session.client.queued.store(u32::MAX, Ordering::Relaxed);
        session.exec_is_heard = silent;
        match expected {
            Some(expected) => self.end_switching_unit(worker, expected),
            None => self.end_unit(worker),
        }
        drop(order);
        self.release(worker, held);
        Ok(())
    }

    /// Watches a key of the session's database.
    pub fn watch(&self, worker: &mut Worker, session: &mut Session, key: &[u8]) {
        progress::count(1);
        let (database, touches) = (session.database, session.touches);
        let hash = self.shards.hash(key);
        let index = self.shards.index(hash);
        let mut state = self.lock_serving(worker, index);
        // A key past its deadline is removed before it is watched: its removal must not count as a change later. In a
        // pause it stays.
        let kept_expired = std::mem::replace(&mut worker.keeps_expired, self.pause.is_active());
        let mut cx = KeyCx { engine: self, worker, state: &mut state, database, hash, key, touches };
        let found = match cx.find() {
            Some(slot) if has_due_members(cx.entry(slot), cx.now_ms()) => AtWatch::MembersDue,
            None if cx.find_as_it_is().is_some() => AtWatch::Past,
            Some(_) | None => AtWatch::Current,
        };
        worker.keeps_expired = kept_expired;
        self.commit(worker);
        let is_new = state.watched.get_or_insert_default().add(database, key, &session.dirty, found);
        if worker.ready.is_empty() {
            drop(state);
        } else {
            self.release_changed(worker, index, state);
        }
        // The shard knows it at once; a look through the session's list would take the longer the more it watches.
        if is_new {
            session.watched.push(WatchedKey { database, key: key.into(), found });
            session.client.names_bytes.fetch_add(key.len() as u64, Ordering::Relaxed);
        }
        session.client.watching.store(session.watched.len() as u32, Ordering::Relaxed);
    }

    /// Watches nothing any more.
    pub fn unwatch(&self, session: &mut Session) {
        if session.watched.is_empty() {
            return;
        }
        let mut watched = std::mem::take(&mut session.watched);
        session.client.watches_nothing(&watched);
        self.unwatch_keys(&mut watched, &session.dirty, MOMENT);
        if watched.is_empty() {
            session.dirty.renew();
            session.watches_nothing(watched);
        } else {
            // Somebody may hold their shards for long: a tick goes on. Until then changes mark what nobody looks at any more.
            self.scripts.unwatched.lock().push((watched, std::mem::take(&mut session.dirty)));
        }
    }

    /// Lets watched keys go, the last first, up to one whose shard is not to be had in this time, which is short: where a
    /// connection is closed, or time is up, nobody serves the worker's clients meanwhile.
    fn unwatch_keys(&self, watched: &mut Vec<WatchedKey>, dirty: &DirtyFlag, at_most: Duration) {
        while let Some(watch) = watched.last() {
            progress::count(1);
            let hash = self.shards.hash(&watch.key);
            let Some(mut state) = self.shards.try_lock_for(self.shards.index(hash), at_most) else { return };
            if let Some(watchers) = &mut state.watched
                && watchers.remove(watch.database, &watch.key, dirty)
            {
                state.watched = None;
            }
            drop(state);
            watched.pop();
        }
    }

    /// Lets go what sessions could not let go while somebody held it for long. No shard is locked.
    pub(crate) fn unwatch_deferred(&self) {
        // Taken in a statement of its own: in the loop's head the lock would be held to the loop's end.
        let deferred = std::mem::take(&mut *self.scripts.unwatched.lock());
        for (mut watched, dirty) in deferred {
            // There may be very many whose shard is still held.
            self.unwatch_keys(&mut watched, &dirty, Duration::ZERO);
            if !watched.is_empty() {
                self.scripts.unwatched.lock().push((watched, dirty));
            }
        }
    }

    /// Ends MULTI without running its queue (DISCARD); tells whether there was one.
    pub fn discard(&self, session: &mut Session) -> bool {
        let was_in_multi = session.transaction.is_some();
        if was_in_multi {
            session.set_transaction(None);
            self.unwatch(session);
        }
        was_in_multi
    }

    /// What a refusal of EXEC itself, for its arguments or a missing password say, entails: MULTI is over too. Gives the
    /// error to answer; that of any other command stays as it is.
    pub(crate) fn refuse_exec(&self, session: &mut Session, resolved: Resolved, error: CmdError) -> CmdError {
        if !is_exec(resolved) {
            return error;
        }
        if !self.discard(session) {
            // Nor is anything watched any more where there was no MULTI.
            self.unwatch(session);
        }
        exec_abort(&error)
    }

    /// Ends a session: nothing is watched for it any more, it gets no messages, and it is not listed.
    pub fn end_session(&self, session: &mut Session) {
        self.leave_wait(session);
        self.unwatch(session);
        self.unsubscribe_all(session);
        self.stop_monitoring(session);
        self.stop_tracking(session);
        self.forget_client(&session.client);
    }

    /// Takes a client away that is connected no more: it is not listed, nor told of the end of a pause.
    pub fn forget_client(&self, client: &Client) {
        if client.paused.load(Ordering::Relaxed) {
            self.pause.forget(client.info.key);
        }
        self.clients.remove(client.id);
    }
}

pub(crate) fn is_exec(resolved: Resolved) -> bool {
    resolved.command.flags.any(Flags::NOT_QUEUED) && resolved.command.name == "EXEC"
}

/// What EXEC answers when it is refused itself: the reason without the code of a plain error.
fn exec_abort(reason: &CmdError) -> CmdError {
    let reason = reason.to_string();
    let reason = reason.strip_prefix("ERR ").unwrap_or(&reason);
    CmdError::new(format!("EXECABORT Transaction discarded because of: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Machine};

    #[test]
    fn what_cannot_be_let_go_as_somebody_holds_it_is_deferred_again() {
        let machine = Machine::of_cores(1);
        let engine = Engine::new(Config::new(machine), &[], 1);
        let index = engine.shards.index(engine.shards.hash(b"key"));
        let dirty = DirtyFlag::default();
        let mut held = engine.shards.try_lock(index).expect("nobody holds it");
        held.watched.get_or_insert_default().add(0, b"key", &dirty, AtWatch::Current);
        let watched = vec![WatchedKey { database: 0, key: (*b"key").into(), found: AtWatch::Current }];
        engine.scripts.unwatched.lock().push((watched, dirty));

        engine.unwatch_deferred();
        assert_eq!(engine.scripts.unwatched.lock().len(), 1);
        assert!(held.watched.is_some());

        drop(held);
        let mut worker = engine.worker(0);
        engine.tick(&mut worker);
        assert!(engine.scripts.unwatched.lock().is_empty());
        assert!(engine.shards.try_lock(index).expect("it was let go").watched.is_none());
    }
}
