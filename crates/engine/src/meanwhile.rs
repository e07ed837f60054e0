//! Serving a worker's other clients while one of its commands goes on for long. Knows no socket and no thread: who has them
//! says how.
//!
//! A command runs to its end on the thread that has begun it. One that takes long (a script), or has to wait for such a
//! one, would leave the worker's other clients without an answer, also the one that wants to kill the script. So whoever
//! moves the bytes leaves word here, for the time of each call, what can be done about it, and the command asks for it:
//!
//! - mostly another thread can go on with the worker's clients ([`Meanwhile::lend`]). Then nothing is left to do here, and what that
//!   thread runs is to this command as what any other worker runs;
//! - else they are served in the middle of the command, now and then, when a script counts as busy ([`Meanwhile::serve`]). What is run
//!   so is refused unless it is allowed while a script is busy, and never locks a shard: the command below may hold it.

use crate::engine::Engine;
use crate::worker::Worker;
use scoped_tls_hkt::scoped_thread_local;

/// How long a command may take before the worker's other clients are lent, in nanoseconds.
pub(crate) const LENT_AFTER_NS: u64 = 500_000;

/// Serves a worker's clients, all but the one whose command runs.
pub trait Meanwhile {
    /// Has another thread serve them from now on; `true` too if one does already. `false`: there is none to be had now.
    fn lend(&mut self) -> bool;

    /// Takes what has come in and answers what can be answered, without waiting. Not to be called when they are lent.
    fn serve(&mut self, worker: &mut Worker);
}

scoped_thread_local!(
    /// Who serves the clients of this thread's worker.
    static mut MEANWHILE: for<'a> &'a mut (dyn Meanwhile + 'a)
);

/// Runs a call, in which `meanwhile` serves the others when it is asked to.
#[inline(always)]
pub fn with<R>(meanwhile: &mut dyn Meanwhile, call: impl FnOnce() -> R) -> R {
    MEANWHILE.set(meanwhile, call)
}

/// Has another thread serve the others, if that can be; tells whether one does. The command goes on for long, or waits.
pub(crate) fn lend() -> bool {
    MEANWHILE.is_set() && MEANWHILE.with(|meanwhile| meanwhile.lend())
}

/// Serves the others, if anybody knows how: a script is busy.
pub(crate) fn serve(engine: &Engine, worker: &mut Worker) {
    if worker.is_nested || !MEANWHILE.is_set() || lend() {
        return;
    }
    let clock = worker.clock;
    let secrets = std::mem::take(&mut worker.secrets);
    let keeps_expired = worker.keeps_expired;
    let client = worker.client;
    worker.is_nested = true;
    engine.pause.begin_busy();
    engine.with_own_record(worker, |worker| MEANWHILE.with(|meanwhile| meanwhile.serve(worker)));
    engine.pause.end_busy();
    worker.is_nested = false;
    worker.keeps_expired = keeps_expired;
    worker.client = client;
    worker.secrets = secrets;
    // For the command below no time has passed.
    worker.clock = clock;
}
