//! How long an answer may be that repeats what is stored: a few bytes of a command must not ask for all the memory there is.

use std::cell::Cell;
use tenon_engine::context::KeyCx;
use tenon_engine::engine::Engine;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::Mark;
use tenon_engine::wire::resp::Reply;

/// So long any answer may be, in bytes.
const SHORT: usize = 1 << 20;

/// What an answer may grow to.
pub(super) struct AnswerLimit<'e> {
    engine: &'e Engine,
    /// Where it begins.
    begin: Mark,
    /// What bounds it, in bytes.
    bound: fn(&Engine) -> usize,
    /// In bytes; known when it has become longer than any may be.
    max: Cell<Option<usize>>,
}

impl<'e> AnswerLimit<'e> {
    /// That of what is answered from here on, which may be far longer than what it is of.
    #[inline]
    pub(super) fn of(cx: &KeyCx<'e>, reply: &mut Reply<'_>) -> AnswerLimit<'e> {
        AnswerLimit { engine: cx.engine(), begin: reply.out().mark(), bound: Engine::answer_max, max: Cell::new(None) }
    }

    /// That of what is answered from here on, which mostly repeats nothing: where little memory is left it is answered all
    /// the same, as long as a client's output may be so long.
    #[inline]
    pub(super) fn of_output(engine: &'e Engine, reply: &mut Reply<'_>) -> AnswerLimit<'e> {
        AnswerLimit { engine, begin: reply.out().mark(), bound: Engine::output_max, max: Cell::new(None) }
    }

    /// The limit of the same answer, of which is known by now that it repeats nothing.
    pub(super) fn without_repeats(self) -> AnswerLimit<'e> {
        AnswerLimit { bound: Engine::output_max, max: Cell::new(None), ..self }
    }

    /// Whether the answer may go on.
    #[inline]
    pub(super) fn allows_more(&self, reply: &mut Reply<'_>) -> bool {
        let len = reply.out().len_since(self.begin);
        len <= SHORT || len <= self.max()
    }

    #[cold]
    fn max(&self) -> usize {
        let max = self.max.get().unwrap_or_else(|| (self.bound)(self.engine).max(SHORT));
        self.max.set(Some(max));
        max
    }

    /// Takes an answer back that has become too long.
    ///
    /// # Errors
    /// Then.
    #[inline]
    pub(super) fn check(&self, reply: &mut Reply<'_>) -> Result<(), CmdError> {
        if self.allows_more(reply) { Ok(()) } else { Err(self.take_back(reply)) }
    }

    #[cold]
    fn take_back(&self, reply: &mut Reply<'_>) -> CmdError {
        drop(reply.out().split_off(self.begin));
        CmdError::new(format!("ERR the answer would be longer than the {} bytes that it may have", self.max()))
    }
}
