//! What a handler puts down for the log where its command as it came would not do the same again. Without a journal each of
//! these costs a load and a branch. Knows no command but those of the forms that several handlers share.

use super::{KeyCx, KeysCx, ServerCx};
use crate::command::Effect;
use crate::engine::Engine;
use crate::record::Word;
use crate::worker::Worker;
use tenon_store::Slot;

impl Engine {
    /// Puts a command of these words down.
    #[inline]
    pub(crate) fn log(&self, worker: &mut Worker, database: usize, words: &[Word<'_>]) {
        let number = self.journal_number();
        if number != 0 && worker.record.begin(number, database) {
            worker.record.command(words);
        }
    }
}

impl KeyCx<'_> {
    /// Whether anything is put down, for what would take long to gather.
    #[inline]
    pub fn logs(&self) -> bool {
        self.engine.is_journaling() && !self.worker.record.is_muted()
    }

    /// Puts a command of these words down.
    #[inline]
    pub fn log(&mut self, words: &[Word<'_>]) -> Effect {
        self.engine.log(self.worker, self.database, words);
        Effect::As
    }

    /// Puts a command down of these words and others that follow them.
    pub fn log_of<'w>(&mut self, words: &[Word<'_>], rest: impl ExactSizeIterator<Item = Word<'w>>) -> Effect {
        let number = self.engine.journal_number();
        if number != 0 && self.worker.record.begin(number, self.database) {
            self.worker.record.command_of(words, rest);
        }
        Effect::As
    }

    /// Puts down that the key is gone.
    pub fn log_deleted(&mut self) -> Effect {
        let key = self.key;
        self.log(&["DEL".into(), key.into()])
    }

    /// Puts down what the string in a slot is now, with its deadline and memcached's client flags.
    ///
    /// # Panics
    /// When it is no string.
    pub fn log_string(&mut self, slot: Slot) -> Effect {
        let number = self.engine.journal_number();
        if number != 0 && self.worker.record.begin(number, self.database) {
            let KeyCx { worker, state, database, key, .. } = self;
            let keyspace = state.shard.database(*database).expect("a slot is of a database that is there");
            let entry = keyspace.entry(slot);
            worker.record.annotate_flags(entry.flags());
            let set = [Word::from("SET"), Word::from(*key), Word::Value(entry.value())];
            match entry.deadline_ms() {
                None => worker.record.command(&set),
                Some(ms) => worker.record.command_of(&set, ["PXAT".into(), ms.into()].into_iter()),
            }
        }
        Effect::As
    }

    /// Puts down when the key in a slot expires now.
    pub fn log_deadline(&mut self, slot: Slot) -> Effect {
        let key = self.key;
        match self.entry(slot).deadline_ms() {
            Some(ms) => self.log(&["PEXPIREAT".into(), key.into(), ms.into()]),
            None => self.log(&["PERSIST".into(), key.into()]),
        }
    }
}

impl KeysCx<'_> {
    /// Whether anything is put down, for what would take long to gather.
    #[inline]
    pub fn logs(&self) -> bool {
        self.engine.is_journaling() && !self.worker.record.is_muted()
    }

    /// Puts a command of these words down.
    #[inline]
    pub fn log(&mut self, words: &[Word<'_>]) -> Effect {
        self.engine.log(self.worker, self.database, words);
        Effect::As
    }
}

impl ServerCx<'_> {
    /// Puts down a command that is about no key, and appends it. What it has changed is locked.
    pub fn log_alone(&mut self, words: &[Word<'_>]) {
        self.engine.log(self.worker, 0, words);
        self.engine.commit(self.worker);
    }
}
