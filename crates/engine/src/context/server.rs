//! What commands on the connection and on the whole server see. Knows no command.

use super::KeyCx;
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::long_calls::WaitsFor;
use crate::session::Session;
use crate::shards::{Locked, ShardState};
use crate::worker::Worker;

/// A session and the server's settings, but no data.
pub struct SessionCx<'a> {
    /// The server.
    pub engine: &'a Engine,
    /// The worker's own state: clock, randomness, statistics.
    pub worker: &'a mut Worker,
    /// The client's session.
    pub session: &'a mut Session,
}

impl SessionCx<'_> {
    /// Keeps argument `index`, a password for example, out of the slow log.
    pub fn keep_secret(&mut self, index: usize) {
        self.worker.keep_secret(index);
    }
}

/// The whole server: the session, and the data shard by shard.
pub struct ServerCx<'a> {
    /// The server.
    pub engine: &'a Engine,
    /// The worker's own state: clock, randomness, statistics.
    pub worker: &'a mut Worker,
    /// The client's session.
    pub session: &'a mut Session,
    /// Within EXEC: shards that are locked already.
    pub(crate) held: Option<&'a mut dyn Locked>,
}

impl ServerCx<'_> {
    /// Whether shards are held already: the command runs within a transaction or a script.
    pub fn holds_shards(&self) -> bool {
        self.held.is_some()
    }

    /// Keeps argument `index`, a password for example, out of the slow log.
    pub fn keep_secret(&mut self, index: usize) {
        self.worker.keep_secret(index);
    }

    /// Calls `visit` with each shard, locked, in the order of indexes, until it answers `false`.
    ///
    /// Outside MULTI the shards are locked one after another, so other clients' writes may fall between; inside, the
    /// whole keyspace stands still.
    pub fn each_shard(&mut self, mut visit: impl FnMut(&Engine, &mut Worker, usize, &mut ShardState) -> bool) {
        match &mut self.held {
            Some(held) => held.each(&mut |index, state| visit(self.engine, self.worker, index, state)),
            None => {
                for index in 0..self.engine.shards.count() {
                    let mut state = self.engine.lock_serving(self.worker, index);
                    let goes_on = visit(self.engine, self.worker, index, &mut state);
                    self.engine.commit(self.worker);
                    if !self.worker.ready.is_empty() {
                        self.engine.release_changed(self.worker, index, state);
                    }
                    if !goes_on {
                        return;
                    }
                }
            }
        }
    }

    /// Calls `visit` with each shard that may have keys, in the same way.
    pub fn each_shard_with_keys(&mut self, mut visit: impl FnMut(&mut Worker, &mut ShardState)) {
        for index in self.engine.shards.with_keys_from(0) {
            self.one_shard(index, &mut visit);
        }
    }

    /// Has a command come again later, from its start, that is to look at shards of which a long call holds one, so that no
    /// thread waits with it. It has done nothing and said nothing yet. One that has come again often goes on, and waits.
    ///
    /// # Errors
    /// [`CmdError::Later`].
    pub fn comes_later(&mut self, shards: impl IntoIterator<Item = usize>) -> Result<(), CmdError> {
        /// How often a command is put off before it waits: calls may follow one another of which each holds another shard.
        const TIMES_MAX: u32 = 16;
        if self.session.times_put_off >= TIMES_MAX {
            return Ok(());
        }
        for shard in shards {
            let client = self.session.client.info.key;
            if self.is_out_of_reach(shard) && self.engine.puts_off(self.worker, client, WaitsFor::Shard(shard)) {
                self.session.times_put_off += 1;
                return Err(CmdError::Later);
            }
        }
        Ok(())
    }

    /// Calls `visit` with each shard that may have keys, as they are at one moment: they are looked at one after another, and all
    /// locked together if what keys there are in the database has changed meanwhile. `begin` makes what is found.
    ///
    /// # Errors
    /// [`CmdError::Later`].
    pub fn look_at_one_moment<T>(
        &mut self,
        begin: impl Fn() -> T,
        mut visit: impl FnMut(&mut T, &mut Worker, &mut ShardState),
    ) -> Result<T, CmdError> {
        let (engine, database) = (self.engine, self.session.database);
        if self.held.is_none() {
            self.comes_later_for_any()?;
            if let Some(before) = engine.moment_of_keys(database) {
                let mut found = begin();
                self.each_shard_with_keys(|worker, state| visit(&mut found, worker, state));
                if engine.moment_of_keys(database) == Some(before) {
                    return Ok(found);
                }
            }
            self.comes_later(0..engine.shards.count())?;
        }
        let mut found = begin();
        self.all_shards(|_, worker, held| {
            held.each(&mut |_, state| {
                visit(&mut found, worker, state);
                true
            });
        });
        Ok(found)
    }

    /// Whether a long call may hold a shard for longer than a moment. Within MULTI and scripts none does.
    pub fn is_out_of_reach(&self, shard: usize) -> bool {
        self.held.is_none() && self.engine.may_put_off() && self.engine.stays_held(shard)
    }

    /// The same as [`ServerCx::comes_later`] of all shards that may have keys.
    ///
    /// # Errors
    /// [`CmdError::Later`].
    pub fn comes_later_for_any(&mut self) -> Result<(), CmdError> {
        self.comes_later(self.engine.shards.with_keys_from(0))
    }

    /// Calls `visit` with one shard, locked.
    pub fn one_shard<R>(&mut self, index: usize, visit: impl FnOnce(&mut Worker, &mut ShardState) -> R) -> R {
        match &mut self.held {
            Some(held) => visit(self.worker, held.shard(index)),
            None => {
                let mut state = self.engine.lock_serving(self.worker, index);
                let result = visit(self.worker, &mut state);
                self.engine.shards.note_if_empty(index, &state.shard);
                self.engine.commit(self.worker);
                if !self.worker.ready.is_empty() {
                    self.engine.release_changed(self.worker, index, state);
                }
                result
            }
        }
    }

    /// Calls `visit` with all shards, locked together.
    pub fn all_shards<R>(&mut self, visit: impl FnOnce(&Engine, &mut Worker, &mut dyn Locked) -> R) -> R {
        match &mut self.held {
            Some(held) => visit(self.engine, self.worker, &mut **held),
            None => {
                let mut held = self.engine.lock_everything(self.worker);
                let result = visit(self.engine, self.worker, &mut held);
                self.engine.commit(self.worker);
                self.engine.release(self.worker, held);
                result
            }
        }
    }

    /// Calls `visit` with one key of the session's database, its shard locked.
    pub fn with_key<R>(&mut self, key: &[u8], visit: impl FnOnce(&mut KeyCx<'_>) -> R) -> R {
        let (engine, database, touches) = (self.engine, self.session.database, self.session.touches);
        let hash = engine.shards.hash(key);
        let index = engine.shards.index(hash);
        self.one_shard(index, |worker, state| visit(&mut KeyCx { engine, worker, state, database, hash, key, touches }))
    }
}
