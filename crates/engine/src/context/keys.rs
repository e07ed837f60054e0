//! Several keys whose shards are locked together. Knows neither protocol nor command.

use super::KeyCx;
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::shards::Locked;
use crate::worker::Worker;
use tenon_ds::progress;
use tenon_store::entry::EntryRef;
use tenon_store::types::ValueType;

/// Which keys a command may take elements from, as far as others wait for them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn<'a> {
    /// All: it does not wait in any case.
    Now,
    /// Those that nobody waits for: it could overtake them.
    BehindOthers,
    /// This one, which has changed: it has waited for it, and it is its turn.
    Woken(&'a [u8]),
}

/// The keys that a command's declaration names, their shards locked, at one instant.
pub struct KeysCx<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) worker: &'a mut Worker,
    pub(crate) held: &'a mut dyn Locked,
    pub(crate) database: usize,
    pub(crate) touches: bool,
    pub(crate) turn: Turn<'a>,
    /// Whether the command may let its shards go before its end.
    pub(crate) lets_go: bool,
}

impl<'a> KeysCx<'a> {
    /// The server.
    pub fn engine(&self) -> &'a Engine {
        self.engine
    }

    /// The worker's own state: clock, randomness, statistics.
    pub fn worker(&mut self) -> &mut Worker {
        self.worker
    }

    /// The present in milliseconds since the UNIX epoch; the same for a whole batch.
    pub fn now_ms(&self) -> u64 {
        self.worker.clock.now_ms
    }

    /// The present that deadlines are held against: see [`KeyCx::expiry_now_ms`].
    pub fn expiry_now_ms(&self) -> u64 {
        if self.worker.is_replaying { 0 } else { self.worker.clock.now_ms }
    }

    /// Whether [`KeysCx::let_go`] does.
    pub(crate) fn may_let_go(&self) -> bool {
        self.lets_go && self.worker.ready.is_empty()
    }

    /// Has read all that it wants: from here on the command works on its own copies, and the keys are anybody's, where
    /// that makes no difference. None of them may be touched any more.
    pub fn let_go(&mut self) {
        // What has expired on the way is put down, and told to those who wait, while the shards are held.
        if self.may_let_go() {
            self.engine.commit(self.worker);
            self.held.let_go();
            self.engine.go_on_where_free();
        }
    }

    /// Whether the command is a call of a script.
    pub fn is_in_script(&self) -> bool {
        self.worker.runs_script
    }

    /// The session's database.
    pub fn database(&self) -> usize {
        self.database
    }

    /// Whether a command that takes values of this type, and may wait for one, may take from this key: nobody has waited
    /// longer, and where it has waited, this is the key that has changed.
    ///
    /// # Errors
    /// When others have waited longer and the key holds another type: that is no reason to wait behind them.
    pub fn may_take(&mut self, key: &[u8], wanted: ValueType) -> Result<bool, CmdError> {
        match self.turn {
            Turn::Now => Ok(true),
            Turn::Woken(ready) => Ok(ready == key),
            Turn::BehindOthers => {
                let index = self.engine.shards.index(self.engine.shards.hash(key));
                let watched = &self.held.shard(index).watched;
                let queue = watched.as_ref().and_then(|watched| watched.waiting(self.database, key));
                let is_behind =
                    queue.is_some_and(|queue| queue.iter().any(|it| it.wanted() == wanted && it.is_waiting()));
                if !is_behind {
                    return Ok(true);
                }
                let is_other = self.peek(key).is_some_and(|entry| ValueType::of(entry.value()) != wanted);
                if is_other { Err(CmdError::WrongType) } else { Ok(false) }
            }
        }
    }

    /// Whether a command that only reads from this key, and may wait for it, is to look at it: always, but where it has
    /// waited only at the key that has changed.
    pub fn is_ready(&self, key: &[u8]) -> bool {
        if let Turn::Woken(ready) = self.turn { ready == key } else { true }
    }

    /// One of the keys, in the session's database.
    ///
    /// # Panics
    /// When the declaration does not name the key.
    pub fn key<'b>(&'b mut self, key: &'b [u8]) -> KeyCx<'b> {
        self.key_in(self.database, key)
    }

    /// The entry of one of the keys in the session's database as it is now, several at the same time. Neither an access
    /// nor a statistic; a key past its deadline counts as absent and stays.
    ///
    /// # Panics
    /// When the declaration does not name the key.
    pub fn peek(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        let hash = self.engine.shards.hash(key);
        let state = self.held.shard_ref(self.engine.shards.index(hash));
        let keyspace = state.shard.database(self.database)?;
        let entry = keyspace.entry(keyspace.find(hash, key)?);
        (self.worker.is_replaying || !entry.is_past(self.now_ms())).then_some(entry)
    }

    /// One of the keys, in any database.
    ///
    /// # Panics
    /// When the declaration does not name the key.
    pub fn key_in<'b>(&'b mut self, database: usize, key: &'b [u8]) -> KeyCx<'b> {
        progress::count(1);
        let hash = self.engine.shards.hash(key);
        let state = self.held.shard(self.engine.shards.index(hash));
        let (engine, worker, touches) = (self.engine, &mut *self.worker, self.touches);
        let mut cx = KeyCx { engine, worker, state, database, hash, key, touches };
        if database != self.database {
            // Only what is in the session's database was handed over before the command.
            cx.hand_over();
        }
        cx
    }
}
