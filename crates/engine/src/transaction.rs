//! MULTI, EXEC and WATCH: queueing commands and running them as one. Knows no command by name.

use crate::args::Args;
use crate::command::{Flags, Run};
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::session::{ReplyMode, Session, Transaction, WatchedKey};
use crate::shards::Locked;
use crate::table::Resolved;
use crate::watch::DirtyFlag;
use crate::worker::Worker;
use std::sync::atomic::Ordering;
use tenon_store::keyspace::is_past;
use tenon_wire::OutBuf;
use tenon_wire::resp::Reply;

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

    /// Whether running this command, EXEC above all, would write.
    pub(crate) fn writes_when_run(&self, session: &Session, resolved: Resolved, _args: &Args<'_>) -> bool {
        resolved.command.flags.any(Flags::NOT_QUEUED)
            && resolved.command.name == "EXEC"
            && session.transaction.as_ref().is_some_and(|transaction| {
                transaction.queue.iter().any(|(queued, _)| queued.command.flags.any(Flags::WRITE))
            })
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
        let watched = std::mem::take(&mut session.watched);
        let whole = transaction.queue.iter().any(|(resolved, _)| matches!(resolved.command.run, Run::Server(_)));
        let mut held = if whole {
            self.shards.lock_everything()
        } else {
            let keys =
                transaction.queue.iter().flat_map(|(resolved, args)| self.shards_of(resolved.command, &args.view()));
            let watches = watched.iter().map(|watch| self.shards.index(self.shards.hash(&watch.key)));
            self.shards.lock_all_of(keys.chain(watches).collect())
        };
        // The watched keys' shards are locked too, so nothing can change between this look and the first command.
        let mut dirty = session.dirty.is_set();
        for watch in &watched {
            let hash = self.shards.hash(&watch.key);
            let state = held.shard(self.shards.index(hash));
            let keyspace = state.shard.database(watch.database);
            let slot = keyspace.and_then(|keyspace| Some((keyspace, keyspace.find(hash, &watch.key)?)));
            if let Some((keyspace, slot)) = slot {
                let expired = is_past(keyspace.entry(slot).deadline_ms(), worker.clock.now_ms);
                dirty |= expired && !watch.was_expired;
            }
            if let Some(watchers) = &mut state.watched
                && watchers.remove(watch.database, &watch.key, &session.dirty)
            {
                state.watched = None;
            }
        }
        session.dirty = DirtyFlag::default();
        session.client.watching.store(0, Ordering::Relaxed);
        if dirty {
            reply.null_array();
            return Ok(());
        }
        let silent = session.reply.is_silent();
        reply.array(transaction.queue.len());
        for (resolved, args) in &transaction.queue {
            let started = std::time::Instant::now();
            // CLIENT REPLY OFF, and whatever closes the connection, silence the rest; HELLO changes how it is written.
            let muted = session.closing || session.reply == ReplyMode::Off;
            let mut unheard = OutBuf::new();
            let out = if muted { &mut unheard } else { reply.out() };
            let mut one = Reply::new(out, session.proto);
            let result = self.run_held(worker, session, *resolved, &args.view(), &mut held, &mut one);
            worker.stats.commands[resolved.number as usize].ran(1, started.elapsed().as_nanos() as u64);
            worker.stats.all.commands.add(1);
            if let Err(error) = result {
                self.answer_error(worker, Some(*resolved), &error, &mut one);
            }
            if muted && session.reply == ReplyMode::On && !session.closing {
                // CLIENT REPLY ON. Where EXEC itself began in silence, so did its array.
                if silent {
                    reply.out().clear();
                }
                reply.out().append(&mut unheard);
            }
        }
        Ok(())
    }

    /// Watches a key of the session's database.
    pub fn watch(&self, worker: &Worker, session: &mut Session, key: &[u8]) {
        let database = session.database;
        if session.watched.iter().any(|watch| watch.database == database && *watch.key == *key) {
            return;
        }
        let hash = self.shards.hash(key);
        let mut state = self.shards.lock(self.shards.index(hash));
        let keyspace = state.shard.database(database);
        let was_expired = keyspace.is_some_and(|keyspace| {
            let slot = keyspace.find(hash, key);
            slot.is_some_and(|slot| is_past(keyspace.entry(slot).deadline_ms(), worker.clock.now_ms))
        });
        state.watched.get_or_insert_default().add(database, key, &session.dirty);
        drop(state);
        session.watched.push(WatchedKey { database, key: key.into(), was_expired });
        session.client.watching.store(session.watched.len() as u32, Ordering::Relaxed);
    }

    /// Watches nothing any more.
    pub fn unwatch(&self, session: &mut Session) {
        for watch in std::mem::take(&mut session.watched) {
            let hash = self.shards.hash(&watch.key);
            let mut state = self.shards.lock(self.shards.index(hash));
            if let Some(watchers) = &mut state.watched
                && watchers.remove(watch.database, &watch.key, &session.dirty)
            {
                state.watched = None;
            }
        }
        session.dirty = DirtyFlag::default();
        session.client.watching.store(0, Ordering::Relaxed);
    }

    /// Ends a session: nothing is watched for it any more, and it is not listed.
    pub fn end_session(&self, session: &mut Session) {
        self.unwatch(session);
        self.clients.remove(session.client.id);
    }
}
