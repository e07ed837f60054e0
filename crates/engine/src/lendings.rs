//! Large collections that are read while their shards are free. Knows no command.
//!
//! Whoever asks for another key in a shard that a long command holds has to wait. A command that answers with what one large
//! collection has need not hold it: it takes a reference to the collection and makes its answer when it has let go.
//!
//! ```text
//!   the handler of one key: `KeyCx::answer_with`
//!      |         small, or nobody can have the worker's other clients ----> answers at once
//!      v
//!   the collection is lent (`EntryMut::lend`), the answer is owed
//!      |
//!   statistics, record, note for its client; the shard is let go
//!      |
//!   `Engine::answer_lent`: the answer, of the collection as it was
//!
//!   of several keys, and what is stored of them: `lendings/several.rs`
//! ```
//!
//! Meanwhile who reads reads it as well, and who takes the key away, or puts another value in its place, leaves it to its readers. Who
//! may change it is put off to the readers' end, as is who wants a shard that a long call holds (`key_gate.rs`, `many_due.rs`); who
//! comes to read then holds the shard, so that there is an end. Where he cannot be put off (a script's undeclared keys, a
//! client that is served by another's push) he changes a copy.

mod several;

use crate::clients::ConnectionKey;
use crate::context::{KeyCx, view_of};
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::keys::Fate;
use crate::long_calls::WaitsFor;
use crate::meanwhile;
use crate::shards::ShardState;
use crate::worker::Worker;
use parking_lot::Mutex;
pub(crate) use several::Rest;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenon_store::Slot;
use tenon_store::entry::{Lent, ValueRef};
use tenon_store::hash::KeyHash;
use tenon_store::types::Collection;
use tenon_wire::resp::Reply;

/// Elements from which collections are lent to who reads them all: a third of a millisecond's work and more.
const LENT_FROM: usize = 8_192;

/// Whether collections are lent to who looks at so many elements.
#[inline]
fn is_long(elements: usize) -> bool {
    elements >= LENT_FROM
}

/// The shards of which keys are lent.
#[derive(Debug, Default)]
pub(crate) struct Lendings {
    /// How many there are. Changed with `shards` locked.
    count: AtomicUsize,
    /// One for each reader.
    shards: Mutex<Vec<usize>>,
}

impl Lendings {
    /// Whether anything is lent.
    #[inline]
    pub(crate) fn are_there(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Whether a key of this shard is. Nothing more is lent of a shard that the caller holds.
    fn are_of(&self, shard: usize) -> bool {
        self.shards.lock().contains(&shard)
    }

    /// Notes one more reader. The caller holds the shard.
    fn begin(&self, shard: usize) {
        let mut shards = self.shards.lock();
        shards.push(shard);
        self.count.store(shards.len(), Ordering::Relaxed);
    }

    /// Notes that a reader has ended.
    fn end(&self, shard: usize) {
        let mut shards = self.shards.lock();
        let at = shards.iter().position(|&it| it == shard).expect("it has begun");
        shards.swap_remove(at);
        self.count.store(shards.len(), Ordering::Relaxed);
    }
}

/// What answers with a value.
type Answer = Box<dyn FnOnce(ValueRef<'_>, &mut Reply<'_>) + Send>;

/// An answer that is made when the shard is free.
pub(crate) struct Owed {
    loan: Loan,
    answer: Answer,
}

impl fmt::Debug for Owed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owed").field("loan", &self.loan).finish_non_exhaustive()
    }
}

/// A value that is lent to a command, which gives it back ([`Engine::give_back`]).
#[derive(Debug)]
struct Loan {
    lent: Arc<Lent>,
    _reading: Reading,
}

/// That somebody reads, or is about to, what lies in a shard, which the caller holds when that begins.
#[derive(Debug)]
struct Reading {
    lendings: Arc<Lendings>,
    shard: usize,
}

impl Reading {
    fn begin(engine: &Engine, shard: usize) -> Reading {
        engine.lendings.begin(shard);
        Reading { lendings: Arc::clone(&engine.lendings), shard }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.lendings.end(self.shard);
    }
}

impl KeyCx<'_> {
    /// Answers with what the collection has, an access, counted as a hit or a miss; `false`: it is not there, and nothing is
    /// answered. `part` says which elements `answer` writes, or about how many: where these are many, that is done when the
    /// shard is free, and the command may not touch the key any more.
    ///
    /// # Errors
    /// When the key holds another type.
    #[inline]
    pub fn answer_with<T: Collection>(
        &mut self,
        reply: &mut Reply<'_>,
        part: impl FnOnce(T::View<'_>) -> Range<usize>,
        answer: impl FnOnce(T::View<'_>, Range<usize>, &mut Reply<'_>) + Send + 'static,
    ) -> Result<bool, CmdError> {
        let Some(slot) = self.find_for_read() else { return Ok(false) };
        let part = part(self.collection::<T>(slot)?);
        self.answer_with_value(slot, is_long(part.len()), reply, |value, reply| {
            answer(view_of::<T>(value).expect("it was of this type"), part, reply);
        });
        Ok(true)
    }

    /// Answers with the value in a slot: where that takes long, when the shard is free, and then the command may not touch the
    /// key any more.
    #[inline]
    pub fn answer_with_value(
        &mut self,
        slot: Slot,
        is_long: bool,
        reply: &mut Reply<'_>,
        answer: impl FnOnce(ValueRef<'_>, &mut Reply<'_>) + Send + 'static,
    ) {
        match is_long.then(|| self.lend_if_allowed(slot)).flatten() {
            Some(loan) => self.worker.owed = Some(Box::new(Owed { loan, answer: Box::new(answer) })),
            None => answer(self.entry(slot).value(), reply),
        }
    }

    /// Lends the value in a slot, if the command may end without its shard and its worker's other clients are served meanwhile.
    #[cold]
    fn lend_if_allowed(&mut self, slot: Slot) -> Option<Loan> {
        if !self.worker.may_lend {
            return None;
        }
        // Before the others are lent, which takes a while: whoever comes meanwhile looks for what is lent.
        let reading = Reading::begin(self.engine, self.engine.shards.index(self.hash));
        meanwhile::lend_long().then(|| self.lend(slot, reading)).flatten()
    }

    fn lend(&mut self, slot: Slot, reading: Reading) -> Option<Loan> {
        let lent = self.entry_mut(slot).lend()?;
        self.state.shard.set_lends(true);
        Some(Loan { lent, _reading: reading })
    }
}

impl Engine {
    /// Makes the answer that a command owes, if it does. Its shard is let go.
    #[inline]
    pub(crate) fn answer_lent(&self, worker: &mut Worker, reply: &mut Reply<'_>) {
        worker.may_lend = false;
        if worker.owed.is_some() {
            self.answer_owed(worker, reply);
        }
    }

    #[cold]
    fn answer_owed(&self, worker: &mut Worker, reply: &mut Reply<'_>) {
        let Some(owed) = worker.owed.take() else { return };
        let Owed { loan, answer } = *owed;
        self.go_on_where_free();
        answer(ValueRef::Object(loan.lent.object()), reply);
        self.give_back(worker, loan);
    }

    /// Gives a value back that was lent.
    fn give_back(&self, worker: &mut Worker, loan: Loan) {
        // The key may have gone meanwhile.
        if let Some(last) = Arc::into_inner(loan.lent) {
            let allocations = last.object().allocations();
            worker.discard_part(last, allocations);
        }
    }

    /// Has a client wait for a key that its command may change, if it is lent, until those who read it have ended; tells whether
    /// it does. A command that only reads changes a key when members of it are due.
    pub(crate) fn waits_for_readers(
        &self,
        worker: &mut Worker,
        state: &mut ShardState,
        fate: Fate,
        database: usize,
        (hash, key): (KeyHash, &[u8]),
        client: ConnectionKey,
    ) -> bool {
        if !state.shard.lends() {
            return false;
        }
        let shard = self.shards.index(hash);
        if !self.lendings.are_of(shard) {
            state.shard.set_lends(false);
            return false;
        }
        let Some((_, entry)) = state.shard.database(database).and_then(|keyspace| keyspace.find_entry(hash, key))
        else {
            return false;
        };
        let changes = match fate {
            Fate::Changes => true,
            Fate::Stays => self.takes_members_out(worker, entry),
            Fate::Goes => false,
        };
        changes && entry.awaits_readers() && self.puts_off(worker, client, WaitsFor::Readers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_lends_until_its_last_reader_has_ended() {
        let lendings = Lendings::default();
        assert!(!lendings.are_there() && !lendings.are_of(7));
        [7, 7, 8].into_iter().for_each(|shard| lendings.begin(shard));
        lendings.end(7);
        assert!(lendings.are_there() && lendings.are_of(7) && lendings.are_of(8));
        lendings.end(7);
        assert!(!lendings.are_of(7) && lendings.are_of(8));
        lendings.end(8);
        assert!(!lendings.are_there());
    }
}
