//! Serving a worker's other clients while one of its commands cannot end yet. Knows no socket: who has them says how.
//!
//! A command runs to its end on its worker. One that takes too long (a busy script) or has to wait for such a one would
//! leave the worker's other clients without an answer, also the one that wants to kill the script. So whoever moves the
//! bytes leaves word here, for the time of each call, how they are moved; the command asks for it now and then.
//!
//! What is run so is refused unless it is allowed while a script is busy, and never locks a shard: the command below
//! may hold it.

use crate::engine::Engine;
use crate::worker::Worker;
use scoped_tls_hkt::scoped_thread_local;

/// Serves a worker's clients, all but the one whose command runs.
pub trait Meanwhile {
    /// Takes what has come in and answers what can be answered, without waiting.
    fn serve(&mut self, worker: &mut Worker);
}

impl<F: FnMut(&mut Worker)> Meanwhile for F {
    fn serve(&mut self, worker: &mut Worker) {
        self(worker);
    }
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

/// Serves the others, if anybody knows how.
pub(crate) fn serve(engine: &Engine, worker: &mut Worker) {
    if worker.is_nested || !MEANWHILE.is_set() {
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
