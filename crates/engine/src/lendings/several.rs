//! Several collections that are read while their shards are free: what is large is lent, what is small is copied. Knows no
//! command.
//!
//! ```text
//!   the handler: `KeysCx::with_values`     lent, shards let go ----> the answer
//!
//!   the handler: `KeysCx::make_and_store`  lent, shards let go ----> what is to be stored is made
//!                                                                        |
//!      `Engine::run_to_end`: the shards are held again <-----------------+
//!         the same values as before ----> it is stored
//!         others ----> it is made of those and stored
//! ```

use super::{Loan, Reading, is_long};
use crate::args::Args;
use crate::command::Effect;
use crate::context::KeysCx;
use crate::errors::CmdError;
use crate::meanwhile;
use std::ops::Range;
use tenon_store::entry::{EntryRef, ValueRef};
use tenon_store::keyspace::is_past;
use tenon_store::types::PackedForm;
use tenon_wire::resp::Reply;

/// What is left to do of a command that has let its shards go, when they are held again.
pub(crate) type Rest = Box<dyn FnOnce(&mut KeysCx<'_>, &Args<'_>, &mut Reply<'_>) -> Result<Effect, CmdError> + Send>;

/// One of several values that a command reads when their shards are free.
#[derive(Debug)]
enum Borrowed {
    Nothing,
    /// It lies in its entry, and is small.
    Copied(PackedForm, Vec<u8>),
    Lent(Loan),
}

impl Borrowed {
    fn value(&self) -> Option<ValueRef<'_>> {
        match self {
            Borrowed::Nothing => None,
            Borrowed::Copied(form, bytes) => Some(ValueRef::Packed(*form, bytes)),
            Borrowed::Lent(loan) => Some(ValueRef::Object(loan.lent.object())),
        }
    }

    /// Whether it is what an entry still holds, of which nothing is due.
    fn is(&self, entry: Option<EntryRef<'_>>, now_ms: u64) -> bool {
        if entry.is_some_and(|entry| is_past(entry.due_ms(), now_ms)) {
            return false;
        }
        match (self, entry) {
            (Borrowed::Nothing, entry) => entry.is_none(),
            (Borrowed::Copied(form, bytes), Some(entry)) => {
                matches!(entry.value(), ValueRef::Packed(other, others) if other == *form && others == bytes)
            }
            // What is lent does not change.
            (Borrowed::Lent(loan), Some(entry)) => entry.has_lent(&loan.lent),
            (Borrowed::Copied(..) | Borrowed::Lent(_), None) => false,
        }
    }
}

fn borrowed_values(borrowed: &[Borrowed]) -> Vec<Option<ValueRef<'_>>> {
    borrowed.iter().map(Borrowed::value).collect()
}

impl KeysCx<'_> {
    /// Calls `visit` with the collections of these keys, as [`KeysCx::peek`] finds them. Where `steps` says that it looks at so many
    /// elements of them that it takes long, that is done when the shards are free, and the command may not touch its keys any
    /// more.
    pub fn with_values<'k, R>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
        steps: impl FnOnce(&[Option<ValueRef<'_>>]) -> usize,
        visit: impl FnOnce(Vec<Option<ValueRef<'_>>>) -> R,
    ) -> R {
        let values = self.values(keys.clone());
        if !is_long(steps(&values)) {
            return visit(values);
        }
        match self.borrow_all(keys.clone()) {
            Some(borrowed) => {
                let result = visit(borrowed_values(&borrowed));
                self.give_all_back(borrowed);
                result
            }
            None => visit(self.values(keys)),
        }
    }

    /// Makes something of the values of the keys at these places of the arguments, as [`KeysCx::peek`] finds them, and has it
    /// stored. Where `steps` says that so many of their elements are looked at that it takes long, it is made when the shards are
    /// free, and stored when they are held again: nothing has come in between as far as anybody can tell, since it is made anew if one of the values is
    /// another one then.
    ///
    /// # Errors
    /// Those of `make` and `store`.
    pub fn make_and_store<M: Send + 'static>(
        &mut self,
        args: &Args<'_>,
        keys: Range<usize>,
        reply: &mut Reply<'_>,
        steps: impl FnOnce(&[Option<ValueRef<'_>>]) -> usize,
        make: impl Fn(&Args<'_>, Vec<Option<ValueRef<'_>>>) -> Result<M, CmdError> + Send + 'static,
        store: impl FnOnce(&mut KeysCx<'_>, &Args<'_>, &mut Reply<'_>, M) -> Result<Effect, CmdError> + Send + 'static,
    ) -> Result<Effect, CmdError> {
        let names = keys.clone().map(|at| args.get(at));
        let values = self.values(names.clone());
        let steps = steps(&values);
        if !is_long(steps) {
            let made = make(args, values)?;
            return store(self, args, reply, made);
        }
        let Some(borrowed) = self.borrow_all(names.clone()) else {
            let made = make(args, self.values(names))?;
            return store(self, args, reply, made);
        };
        let made = make(args, borrowed_values(&borrowed));
        self.worker.rest = Some(Box::new(move |cx, args, reply| {
            let keys = || keys.clone().map(|at| args.get(at));
            let now_ms = cx.expiry_now_ms();
            let are_same = keys().zip(&borrowed).all(|(key, borrowed)| borrowed.is(cx.peek(key), now_ms));
            cx.give_all_back(borrowed);
            if are_same {
                return store(cx, args, reply, made?);
            }
            // What is due by now is gone.
            keys().for_each(|key| _ = cx.key(key).find());
            cx.worker.discard_part(made, steps);
            let made = make(args, cx.values(keys()))?;
            store(cx, args, reply, made)
        }));
        Ok(Effect::Unchanged)
    }

    fn values<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Vec<Option<ValueRef<'_>>> {
        keys.map(|key| self.peek(key).map(|entry| entry.value())).collect()
    }

    /// Borrows the values of these keys and lets the shards go, if that may be.
    #[cold]
    fn borrow_all<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>) -> Option<Vec<Borrowed>> {
        if !self.may_let_go() {
            return None;
        }
        // As in `lend_if_allowed`: it stands for all of them.
        let _reading = Reading::begin(self.engine, 0);
        if !meanwhile::lend_long() {
            return None;
        }
        let mut borrowed = Vec::new();
        for key in keys {
            let value = match self.peek(key).map(|entry| entry.value()) {
                None => Borrowed::Nothing,
                Some(ValueRef::Packed(form, bytes)) => Borrowed::Copied(form, bytes.to_vec()),
                Some(ValueRef::Object(_)) => {
                    let mut cx = self.key(key);
                    let reading = Reading::begin(cx.engine, cx.engine.shards.index(cx.hash));
                    match cx.find_as_it_is().and_then(|slot| cx.lend(slot, reading)) {
                        Some(loan) => Borrowed::Lent(loan),
                        None => {
                            self.give_all_back(borrowed);
                            return None;
                        }
                    }
                }
                Some(ValueRef::Bytes(_) | ValueRef::Int(_)) => unreachable!("they are collections"),
            };
            borrowed.push(value);
        }
        self.let_go();
        Some(borrowed)
    }

    fn give_all_back(&mut self, borrowed: Vec<Borrowed>) {
        for value in borrowed {
            if let Borrowed::Lent(loan) = value {
                self.engine.give_back(self.worker, loan);
            }
        }
    }
}
