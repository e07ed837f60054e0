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

use crate::clock::{monotonic_ns, process_cpu_ns};
use crate::engine::Engine;
use crate::worker::Worker;
use scoped_tls_hkt::scoped_thread_local;
use std::cell::Cell;
use tenon_ds::{memory, progress};

/// How long a command may take before the worker's other clients are lent, in nanoseconds.
pub(crate) const LENT_AFTER_NS: u64 = 500_000;

/// Work that is sure to take as long, in steps of [`progress`]: with so much of it ahead nobody waits that long.
const LENT_BEFORE_STEPS: usize = 2_048;

/// [`LOOKS_AT_NS`] before the first look of a call.
const NOT_YET: u64 = 0;
/// [`LOOKS_AT_NS`] when the others are lent.
const NEVER: u64 = u64::MAX;

/// Serves a worker's clients, all but the one whose command runs.
pub trait Meanwhile {
    /// The server.
    fn engine(&self) -> &Engine;

    /// Has another thread serve them from now on; `true` too if one does already. `false`: there is none to be had now.
    fn lend(&mut self) -> bool;

    /// Takes what has come in and answers what can be answered, without waiting. Not to be called when they are lent.
    fn serve(&mut self, worker: &mut Worker);
}

scoped_thread_local!(
    /// Who serves the clients of this thread's worker.
    static mut MEANWHILE: for<'a> &'a mut (dyn Meanwhile + 'a)
);

thread_local! {
    /// When the others of this thread's worker are to be lent, by the monotonic clock in nanoseconds.
    static LOOKS_AT_NS: Cell<u64> = const { Cell::new(NOT_YET) };
    /// What [`memory::counted_here`] said when the call began, and how much it was said to have taken since.
    static TAKEN: Cell<(isize, usize)> = const { Cell::new((0, 0)) };
    /// Whether this thread works in the background, for nobody who waits.
    static IS_BACKGROUND: Cell<bool> = const { Cell::new(false) };
    /// When this thread may give way again, by the monotonic clock in nanoseconds.
    static GIVES_WAY_AT_NS: Cell<u64> = const { Cell::new(0) };
}

/// Has every long work in a call lend the worker's other clients.
pub(crate) fn follow_progress() {
    progress::listen(went_on);
    progress::listen_to_taking(is_about_to_take);
}

/// From now on long work on this thread lets the server's other threads in as it goes on.
pub(crate) fn stay_in_background() {
    IS_BACKGROUND.set(true);
}

/// Work goes on and has so many steps ahead. Called in the middle of anything: what the command works on may be half
/// changed, and shards are locked.
fn went_on(steps_ahead: usize) {
    if !MEANWHILE.is_set() {
        if IS_BACKGROUND.get() {
            give_way();
        }
        return;
    }
    let looks_at_ns = LOOKS_AT_NS.get();
    if looks_at_ns == NEVER {
        return go_on_beside();
    }
    let now_ns = monotonic_ns();
    let is_long = steps_ahead >= LENT_BEFORE_STEPS || looks_at_ns != NOT_YET && now_ns >= looks_at_ns;
    if is_long && MEANWHILE.with(lend_in) {
        return;
    }
    if is_long || looks_at_ns == NOT_YET {
        LOOKS_AT_NS.set(now_ns + LENT_AFTER_NS);
    }
}

/// Goes on beside the thread that has the others: notes what the call has taken by now, and lets that thread in.
pub(crate) fn go_on_beside() {
    if MEANWHILE.is_set() && LOOKS_AT_NS.get() == NEVER {
        MEANWHILE.with(|meanwhile| note_taken(meanwhile.engine(), taken_by_now()));
    }
    give_way();
}

/// Lets the thread in that has the others: where it shares this one's core it would wait for the kernel's clock to tick.
fn give_way() {
    GIVES_WAY_AT_NS.set(gave_way(GIVES_WAY_AT_NS.get(), monotonic_ns, process_cpu_ns, std::thread::yield_now));
}

/// Gives way if it is time to; tells when it is the next time. Where other processes want the core as well, each of them has
/// a turn before this thread has its next one: so it works for as long as they have kept it from that, or it would do little
/// else. For the time that this process's own threads have had, which serve the others, it owes nothing to itself.
fn gave_way(at_ns: u64, now_ns: impl Fn() -> u64, own_ns: impl Fn() -> u64, give_way: impl FnOnce()) -> u64 {
    let before_ns = now_ns();
    if before_ns < at_ns {
        return at_ns;
    }
    let own_before_ns = own_ns();
    give_way();
    let behind_ns = now_ns();
    behind_ns + (behind_ns - before_ns).saturating_sub(own_ns() - own_before_ns)
}

/// Runs a call, in which `meanwhile` serves the others when it is asked to. The call does not panic.
#[inline(always)]
pub fn with<R>(meanwhile: &mut dyn Meanwhile, call: impl FnOnce() -> R) -> R {
    LOOKS_AT_NS.set(NOT_YET);
    TAKEN.set((memory::counted_here(), 0));
    let result = MEANWHILE.set(meanwhile, call);
    if LOOKS_AT_NS.get() == NEVER {
        end_long(meanwhile.engine());
    }
    result
}

/// Has another thread serve the others, if that can be; tells whether one does. The command waits for one that may go on for
/// long.
pub(crate) fn lend() -> bool {
    MEANWHILE.is_set() && MEANWHILE.with(|meanwhile| meanwhile.lend())
}

/// As [`lend`] for a command that goes on for long itself, and mostly holds shards: whoever wants those waits for its end.
pub(crate) fn lend_long() -> bool {
    MEANWHILE.is_set() && (LOOKS_AT_NS.get() == NEVER || MEANWHILE.with(lend_in))
}

fn lend_in(meanwhile: &mut dyn Meanwhile) -> bool {
    let is_lent = meanwhile.lend();
    if is_lent {
        LOOKS_AT_NS.set(NEVER);
        note_taken(meanwhile.engine(), taken_by_now());
        meanwhile.engine().long_calls.begin();
    }
    is_lent
}

/// Notes how much the call has taken that goes on: nobody evicts for it, as in Redis, where nobody could. When it has ended
/// that is data, or output.
fn note_taken(engine: &Engine, bytes: usize) {
    let (from, before) = TAKEN.get();
    engine.note_on_its_way(before, bytes);
    TAKEN.set((from, bytes));
}

/// How much the call has taken by now.
fn taken_by_now() -> usize {
    usize::try_from(memory::counted_here() - TAKEN.get().0).unwrap_or(0)
}

/// How much this thread's call is said to have taken, where it goes on for long.
pub(crate) fn taken_here() -> usize {
    if LOOKS_AT_NS.get() == NEVER { TAKEN.get().1 } else { 0 }
}

/// Notes what a call that goes on for long is about to take, so that nobody makes room for it before the call says how much it
/// has taken.
fn is_about_to_take(bytes: usize) {
    if MEANWHILE.is_set() && LOOKS_AT_NS.get() == NEVER {
        MEANWHILE.with(|meanwhile| note_taken(meanwhile.engine(), taken_by_now() + bytes));
    }
}

/// A command of a batch has ended, and more may follow in the same call: whoever waits for what it held tries again. Tells
/// whether anybody does.
#[inline]
pub(crate) fn command_ended(engine: &Engine) -> bool {
    if LOOKS_AT_NS.get() != NEVER {
        return false;
    }
    let waiting = engine.long_calls.command_ended(|shard| engine.is_free(shard));
    let are_there = !waiting.is_empty();
    engine.go_on(waiting);
    are_there
}

#[cold]
fn end_long(engine: &Engine) {
    LOOKS_AT_NS.set(NOT_YET);
    note_taken(engine, 0);
    engine.go_on(engine.long_calls.end(|shard| engine.is_free(shard)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stays_in_the_background_gives_way_as_its_work_goes_on() {
        let gives_way = |stays: bool| {
            let work = move || {
                if stays {
                    stay_in_background();
                }
                went_on(1);
                GIVES_WAY_AT_NS.get() > 0
            };
            std::thread::spawn(work).join().expect("it ends")
        };
        assert!(gives_way(true));
        // Nobody waits for a worker's core when no call runs: it is starting, or stopping.
        assert!(!gives_way(false));
    }

    #[test]
    fn who_gives_way_to_other_processes_works_half_of_the_time() {
        const WORK_NS: u64 = 100_000;
        // The server's other threads have the core for long, and for a short while; five busy processes have it for a turn each.
        for (own_ns, others_ns) in [(15_000_000, 0), (20_000, 0), (20_000, 15_000_000)] {
            let (now_ns, used_ns) = (Cell::new(1_000), Cell::new(0));
            let (mut at_ns, mut times) = (0, 0);
            for _ in 0..1_000 {
                now_ns.set(now_ns.get() + WORK_NS);
                used_ns.set(used_ns.get() + WORK_NS);
                let wait = || {
                    now_ns.set(now_ns.get() + own_ns + others_ns);
                    used_ns.set(used_ns.get() + own_ns);
                    times += 1;
                };
                at_ns = gave_way(at_ns, || now_ns.get(), || used_ns.get(), wait);
            }
            assert!(times * others_ns <= 1_000 * WORK_NS + others_ns, "{times} times");
            assert_eq!(times == 1_000, others_ns == 0, "{times} times");
        }
    }
}
