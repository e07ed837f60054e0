//! Beginning a wait, and serving those who wait for a key. Knows no command by name.

use super::ready::{ReadyKey, ReadyKeys};
use super::registry::{Blocking, Leaving};
use super::waiter::{InVain, Outcome, State, Wait, Waiter};
use crate::acl::Denial;
use crate::args::Args;
use crate::clock::monotonic_ns;
use crate::command::{BlockingHandler, Effect, Run};
use crate::context::{KeyCx, KeysCx, Turn};
use crate::engine::Engine;
use crate::errand::Errand;
use crate::errors::CmdError;
use crate::locking::OnBusy;
use crate::pausing::Unanswered;
use crate::session::Session;
use crate::shards::{Held, Locked, ShardState};
use crate::slices::Unfinished;
use crate::table::Resolved;
use crate::worker::Worker;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenon_store::types::ValueType;
use tenon_wire::OutBuf;
use tenon_wire::resp::Reply;

/// Bytes that a place in a key's queue takes beside the key, as measured with 100,000 of them.
const IN_QUEUE: usize = 200;

/// When those are looked at again whose turn comes in a pause, or while somebody holds what they wait for.
const LOOK_LATER_MS: u64 = 10;

/// The least time until then: whoever wants what has been idle for no time at all is told by those who change it.
const LOOK_LEAST_MS: u64 = 5;

/// Times that are as near as this are one: workers tick now and then. Who is looked at too early looks again, and not in the same
/// tick.
const LOOKS_TOGETHER_NS: u64 = (LOOK_LEAST_MS - 1) * 1_000_000;

/// A client that was served, and is to be told so.
#[derive(Debug)]
pub(crate) struct Served {
    waiter: Arc<Waiter>,
    /// Queues that it is still in, of keys whose shards were not held.
    leaving: Vec<Leaving>,
}

/// What a session waits for, and whether the reply goes nowhere (CLIENT REPLY).
#[derive(Debug)]
pub(crate) enum Parked {
    /// A key, or that its writes get on disk.
    ForKey { waiter: Arc<Waiter>, is_silent: bool },
    /// The end of an errand.
    Away { errand: Arc<Errand>, is_silent: bool },
    /// Nothing but its turn: its command goes on, a slice at a time.
    InSlices(Box<Unfinished>),
    /// That nothing is under way any more that had begun before its pause.
    Pausing(Box<Unanswered>),
}

impl Engine {
    /// Runs a command that may wait, its session not in MULTI: it replies, or the session is parked.
    ///
    /// # Errors
    /// Those of the command.
    pub(crate) fn run_blocking(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        resolved: Resolved,
        run: BlockingHandler,
        args: &Args<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), CmdError> {
        let mut held = self.lock_several(worker, self.shards_of(resolved.command, args), OnBusy::Refuse)?;
        let (database, touches) = (session.database, session.touches);
        self.hand_over_keys(worker, database, resolved, args, &mut held);
        let mut cx = KeysCx {
            engine: self,
            worker,
            held: &mut held,
            database,
            touches,
            turn: Turn::BehindOthers,
            lets_go: false,
        };
        cx.worker.stats.keys.begin();
        let outcome = run(&mut cx, args, reply);
        worker.stats.keys.end();
        self.log_outcome(worker, database, &outcome, args);
        self.note_read(session, resolved.command, args);
        let outcome = outcome.map(|outcome| {
            if let Outcome::Wait(wait) = outcome {
                self.park(session, resolved, args, wait, &mut held);
            }
        });
        self.release(worker, held);
        outcome
    }

    /// Appends what a command that may wait has done. Its shards are held.
    fn log_outcome(&self, worker: &mut Worker, database: usize, outcome: &Result<Outcome, CmdError>, args: &Args<'_>) {
        let effect = match outcome {
            Ok(Outcome::Done(effect)) => *effect,
            Ok(Outcome::Wait(_)) | Err(_) => Effect::Unchanged,
        };
        debug_assert_ne!(effect, Effect::Verbatim, "it may not wait where the log is read back");
        self.note_effect(worker, database, &Ok(effect), args);
        self.commit(worker);
    }

    /// Puts a session into the queues of the keys that its command waits for, whose shards are held.
    fn park(&self, session: &mut Session, resolved: Resolved, args: &Args<'_>, wait: Wait, held: &mut dyn Locked) {
        let blocking = &self.blocking;
        let further = self.further_of(resolved, args, &wait);
        let end_ns = wait.timeout.end_ns(monotonic_ns());
        let waiter = Arc::new(Waiter {
            client: Arc::clone(&session.client),
            ticket: blocking.tickets.fetch_add(1, Ordering::Relaxed),
            resolved,
            database: session.database,
            proto: session.proto,
            touches: session.touches,
            user: Arc::clone(session.user()),
            keys: wait.keys,
            further,
            wanted: wait.wanted,
            wakes_without: wait.wakes_without,
            is_told: session.is_told_of(resolved.command),
            in_vain: InVain::NullArray,
            end_ns,
            again_ns: AtomicU64::new(u64::MAX),
            state: Mutex::new(State::Waiting(wait.args.unwrap_or_else(|| args.to_owned()))),
        });
        self.each_queue(&waiter, |index, key| {
            let state = held.shard(index);
            let queues = state.watched.get_or_insert_default();
            let first = queues.wait(waiter.database, key, &waiter);
            state.shard.set_reaches_further(queues.reaches_further());
            blocking.keys.fetch_add(first.at_all.into(), Ordering::Relaxed);
            blocking.keys_watched_for_end.fetch_add(first.until_gone.into(), Ordering::Relaxed);
        });
        self.look_again(&waiter, wait.again_in_ms);
        self.begin_wait(session, waiter);
    }

    /// Parks a session whose wait begins.
    pub(super) fn begin_wait(&self, session: &mut Session, waiter: Arc<Waiter>) {
        self.blocking.clients.fetch_add(1, Ordering::Relaxed);
        if let Some(end_ns) = waiter.end_ns {
            self.blocking.timers[self.timer_of(&waiter)].add(end_ns, waiter.ticket, &waiter);
        }
        if let State::Waiting(args) = &*waiter.state.lock() {
            let of_keys: usize = keys_of(&waiter, &args.view()).into_iter().map(|key| IN_QUEUE + key.len()).sum();
            session.client.waiting_bytes.store((args.memory() + of_keys) as u64, Ordering::Relaxed);
        }
        *session.client.waiter.lock() = Some(Arc::clone(&waiter));
        session.parked = Some(Parked::ForKey { waiter, is_silent: session.reply.is_silent() });
    }

    /// The shards that a command changes which waits, beside that of the key which it is served for: those of the keys
    /// that it names and does not wait for.
    fn further_of(&self, resolved: Resolved, args: &Args<'_>, wait: &Wait) -> Box<[usize]> {
        let shard_of = |at: usize| self.shards.index(self.shards.hash(args.get(at)));
        let others = resolved.command.keys.indexes(args).filter(|at| !wait.keys.contains(at));
        others.map(shard_of).filter(|shard| wait.keys.clone().any(|at| shard_of(at) != *shard)).collect()
    }

    /// Has a waiter looked at again after so many milliseconds, or when that was to be before, if that is sooner.
    fn look_again(&self, waiter: &Arc<Waiter>, in_ms: Option<u64>) {
        let Some(in_ms) = in_ms else { return };
        let now_ns = monotonic_ns();
        let looks = &self.blocking.looks[self.timer_of(waiter)];
        let before_ns = waiter.again_ns.load(Ordering::Relaxed);
        let again_ns = now_ns.saturating_add(in_ms.max(LOOK_LEAST_MS).saturating_mul(1_000_000)).min(u64::MAX - 1);
        if before_ns != u64::MAX && before_ns > now_ns && before_ns <= again_ns {
            return;
        }
        looks.remove(before_ns, waiter.ticket);
        waiter.again_ns.store(again_ns, Ordering::Relaxed);
        looks.add(again_ns, waiter.ticket, waiter);
    }

    /// Which timer a wait is in: that of the worker which has its connection.
    pub(super) fn timer_of(&self, waiter: &Waiter) -> usize {
        (waiter.client.info.key.worker as usize).min(self.blocking.timers.len() - 1)
    }

    /// Calls `visit` with each different key that is waited for and the index of its shard; with none once the wait is
    /// over, as its arguments are gone then.
    fn each_queue(&self, waiter: &Waiter, mut visit: impl FnMut(usize, &[u8])) {
        if let State::Waiting(args) = &*waiter.state.lock() {
            keys_of(waiter, &args.view()).iter().for_each(|key| visit(self.shards.index(self.shards.hash(key)), key));
        }
    }

    /// The same as a list, for who takes the waiter's lock meanwhile.
    pub(super) fn queues_of(&self, waiter: &Waiter) -> Vec<(usize, Box<[u8]>)> {
        let mut queues = Vec::new();
        self.each_queue(waiter, |index, key| queues.push((index, key.into())));
        queues
    }

    /// Lets shards go in which something may have changed. Before that those are served who wait for it, and for what that
    /// changes in turn.
    #[inline]
    pub(crate) fn release(&self, worker: &mut Worker, held: Held<'_>) {
        if !worker.ready.is_empty() {
            self.serve_and_release(worker, held);
        }
    }

    /// The same for one shard, where somebody waits for what has changed.
    #[cold]
    pub(crate) fn release_changed(&self, worker: &mut Worker, index: usize, state: MutexGuard<'_, ShardState>) {
        self.serve_and_release(worker, Held::new(vec![index], vec![state]));
    }

    #[cold]
    fn serve_and_release(&self, worker: &mut Worker, mut held: Held<'_>) {
        self.serve_held(worker, &mut held);
        drop(held);
        self.tell_served(worker);
    }

    /// Serves those who wait for keys that have changed and whose shards are held; the others are left for
    /// [`Engine::serve_left`].
    pub(crate) fn serve_held(&self, worker: &mut Worker, held: &mut dyn Locked) {
        // A key may have come and expired within a transaction or script that took its time.
        self.advance_clock(worker);
        let mut left = ReadyKeys::default();
        while let Some(ready) = worker.ready.pop_front() {
            if !self.serve_key(worker, &ready, held) {
                left.note(ready);
            }
        }
        worker.ready = left;
    }

    /// Serves those who wait for keys that have changed and whose shards were let go before that: of keys that were
    /// evicted, or where a script had to give way to another one. No shard is locked.
    #[cold]
    pub(crate) fn serve_left(&self, worker: &mut Worker) {
        if worker.is_nested {
            // The command below, which may hold any shard, comes to it.
            return;
        }
        while let Some(ready) = worker.ready.front() {
            let index = self.shards.index(self.shards.hash(&ready.key));
            let held = self.lock_several(worker, vec![index], OnBusy::Serve);
            self.serve_and_release(worker, held.expect("who waits on is not refused"));
        }
        self.tell_served(worker);
    }

    /// Tells those who were served, and takes them out of what queues they are still in. No shard is locked.
    pub(crate) fn tell_served(&self, worker: &mut Worker) {
        for Served { waiter, leaving } in std::mem::take(&mut worker.served) {
            leaving.into_iter().for_each(|leaving| self.leave_queue_soon(leaving));
            self.ended(&waiter);
        }
    }

    /// Serves those who wait for one key, the longest waiting first; `false`: a shard is wanting to serve the next.
    fn serve_key(&self, worker: &mut Worker, ready: &ReadyKey, held: &mut dyn Locked) -> bool {
        let mut looked_at = None;
        // What a log says was there for a moment somebody has had then.
        if worker.is_replaying {
            return true;
        }
        if !held.holds(self.shards.index(self.shards.hash(&ready.key))) {
            return false;
        }
        while let Some(waiter) = self.next_waiter(worker, ready, looked_at, held) {
            if !waiter.further.iter().all(|index| held.holds(*index)) {
                return false;
            }
            looked_at = Some(waiter.ticket);
            self.serve(worker, &waiter, &ready.key, held);
        }
        true
    }

    /// The next client in a key's queue that what the key holds is for, behind the one with ticket `after`.
    fn next_waiter(
        &self,
        worker: &mut Worker,
        ready: &ReadyKey,
        after: Option<u64>,
        held: &mut dyn Locked,
    ) -> Option<Arc<Waiter>> {
        let (database, key) = (ready.database, &*ready.key);
        let state = held.shard(self.shards.index(self.shards.hash(key)));
        // Almost always nobody waits any more, and the key need not be looked at.
        state.watched.as_ref()?.waiting(database, key)?;
        let found = self.type_of_key(worker, state, database, key);
        let queue = state.watched.as_ref()?.waiting(database, key)?;
        let from = after.map_or(0, |after| queue.partition_point(|waiter| waiter.ticket <= after));
        // As for those whose shards were locked (`Watched::further`): who waits no more is in nobody's way.
        queue.iter().skip(from).find(|waiter| waiter.wakes_for(found) && waiter.is_waiting()).cloned()
    }

    /// Of what type a key is whose shard is held.
    fn type_of_key(
        &self,
        worker: &mut Worker,
        state: &mut ShardState,
        database: usize,
        key: &[u8],
    ) -> Option<ValueType> {
        let hash = self.shards.hash(key);
        let mut cx = KeyCx { engine: self, worker, state, database, hash, key, touches: false };
        let found = cx.find().map(|slot| ValueType::of(cx.entry(slot).value()));
        self.commit(cx.worker);
        found
    }

    /// Runs a waiting client's command again, now that a key has changed; it is done, or waits on. The shards of that key
    /// and of what the command changes with it are held: it looks at none of the others that it waits for.
    fn serve(&self, worker: &mut Worker, waiter: &Arc<Waiter>, key: &[u8], held: &mut dyn Locked) {
        let mut state = waiter.state.lock();
        // A client that is to be closed takes nothing any more; its own worker takes it out of the queues.
        let State::Waiting(args) = &*state else { return };
        if waiter.client.killed.load(Ordering::Acquire) {
            return;
        }
        let args = args.view();
        let mut out = OutBuf::new();
        let mut reply = Reply::new(&mut out, waiter.proto);
        let started_ns = monotonic_ns();
        // Whoever is told of changes is told whose they are.
        let pusher = std::mem::replace(&mut worker.client, waiter.client.id);
        let outcome = self.run_again(worker, waiter, &args, key, held, &mut reply);
        worker.client = pusher;
        let journaled = worker.journaled;
        self.log_outcome(worker, waiter.database, &outcome, &args);
        if worker.journaled != journaled {
            // Its reply goes out through its own worker, which knows nothing of this record.
            waiter.client.journaled.store(worker.journaled, Ordering::Release);
        }
        match outcome {
            Ok(Outcome::Wait(wait)) => {
                drop(state);
                self.look_again(waiter, wait.again_in_ms);
                return;
            }
            Ok(Outcome::Done(_)) => {}
            Err(error) => self.answer_error(worker, Some(waiter.resolved), &error, &mut reply),
        }
        let mut leaving = Vec::new();
        for key in keys_of(waiter, &args) {
            let shard = self.shards.index(self.shards.hash(key));
            if held.holds(shard) {
                self.leave_queue(waiter, key, held.shard(shard));
            } else {
                leaving.push(Leaving { shard, key: key.into(), waiter: Arc::clone(waiter) });
            }
        }
        // Only now is it known how long it took, the wait apart. As in Redis one that has waited in vain is not noted.
        let duration_us = (monotonic_ns() - started_ns) / 1_000;
        self.note_if_slow(worker.clock.now_ms, duration_us, &args, &[], &waiter.client);
        self.note_large_answer(worker.clock.now_ms, &waiter.client, &args, out.len());
        *state = State::Ended(out);
        drop(state);
        worker.served.push(Served { waiter: Arc::clone(waiter), leaving });
    }

    /// Runs the command of a waiting client, unless the client may not run it any more.
    fn run_again(
        &self,
        worker: &mut Worker,
        waiter: &Waiter,
        args: &Args<'_>,
        key: &[u8],
        held: &mut dyn Locked,
        reply: &mut Reply<'_>,
    ) -> Result<Outcome, CmdError> {
        let rights = waiter.user.rights();
        if !rights.is_everything() {
            let denied = |denial: Denial| format!("NOPERM {}", denial.message(waiter.resolved.command));
            let databases = self.databases_seen_from(waiter.database);
            rights.check(waiter.resolved, args, databases).map_err(|denial| CmdError::new(denied(denial)))?;
        }
        let Run::Blocking(run) = waiter.resolved.command.run else { unreachable!("only such a command waits") };
        let (database, touches) = (waiter.database, waiter.touches);
        self.hand_over_keys(worker, database, waiter.resolved, args, held);
        worker.stats.keys.begin();
        let mut cx = KeysCx { engine: self, worker, held, database, touches, turn: Turn::Woken(key), lets_go: false };
        let outcome = run(&mut cx, args, reply);
        worker.stats.keys.end();
        if waiter.is_told {
            self.note_reader(waiter.client.id, waiter.resolved.command, args);
        }
        outcome
    }

    pub(super) fn leave_queue(&self, waiter: &Waiter, key: &[u8], state: &mut ShardState) {
        let Some(queues) = &mut state.watched else { return };
        let last = queues.stop_waiting(waiter.database, key, waiter);
        self.blocking.keys.fetch_sub(last.at_all.into(), Ordering::Relaxed);
        self.blocking.keys_watched_for_end.fetch_sub(last.until_gone.into(), Ordering::Relaxed);
        state.shard.set_reaches_further(queues.reaches_further());
        if queues.is_empty() {
            state.watched = None;
        }
    }

    /// Ends the waits of a worker's clients whose time is over, and looks at those that are to be looked at again; in a CLIENT
    /// PAUSE these are left for later, as they may write.
    pub(crate) fn end_due_waits(&self, worker: &mut Worker) {
        let mut out_of_reach = BTreeSet::new();
        let now_ns = monotonic_ns();
        let until_ns = now_ns.saturating_add(LOOKS_TOGETHER_NS);
        for waiter in self.blocking.looks[worker.index].take_due(now_ns) {
            if self.pause.is_active() {
                if waiter.is_waiting() {
                    self.look_again(&waiter, Some(LOOK_LATER_MS));
                }
                continue;
            }
            // One that waits for one key alone has been looked at together with another one.
            if waiter.keys.len() > 1 || waiter.again_ns.load(Ordering::Relaxed) <= until_ns {
                self.look_soon(worker, &waiter, until_ns, &mut out_of_reach);
            }
        }
        for waiter in self.blocking.timers[worker.index].take_due(monotonic_ns()) {
            self.end_wait(&waiter, self.timeout_of(&waiter));
        }
    }

    /// Looks again at a waiter, in a tick, in which nobody serves the worker's clients: at keys of shards that are not to be had
    /// within a moment a little later, and no moment is waited for one of them twice. Of others who wait for the same keys those are
    /// looked at with it whose time comes until `until_ns`, too, in the order in which they came: whoever has waited for longest
    /// is served first.
    fn look_soon(&self, worker: &mut Worker, waiter: &Arc<Waiter>, until_ns: u64, out_of_reach: &mut BTreeSet<usize>) {
        for (index, key) in self.queues_of(waiter) {
            let held = if out_of_reach.contains(&index) { None } else { self.lock_several_soon(worker, vec![index]) };
            let Some(mut held) = held else {
                out_of_reach.insert(index);
                self.look_again(waiter, Some(LOOK_LATER_MS));
                continue;
            };
            self.advance_clock(worker);
            for due in due_with(waiter, until_ns, held.shard(index), &key) {
                let found = self.type_of_key(worker, held.shard(index), due.database, &key);
                if due.is_waiting() && due.wakes_for(found) && due.further.iter().all(|index| held.holds(*index)) {
                    self.serve(worker, &due, &key, &mut held);
                }
            }
            self.release(worker, held);
            self.tell_served(worker);
        }
    }

    /// How long it is until a wait of a worker's clients ends or is looked at by itself; `None` when none will.
    #[inline]
    pub fn next_end_of_wait(&self, worker: &Worker) -> Option<Duration> {
        let Blocking { timers, looks, .. } = &*self.blocking;
        let first_ns = timers[worker.index].first_ns().min(looks[worker.index].first_ns());
        (first_ns != u64::MAX).then(|| Duration::from_nanos(first_ns.saturating_sub(monotonic_ns())))
    }

    /// How many waits will end by themselves.
    pub fn waits_with_end(&self) -> usize {
        self.blocking.timers.iter().map(|timers| timers.len()).sum()
    }
}

/// One whose time has come, and all who wait for the same key whose time comes until `until_ns`, in order.
fn due_with(waiter: &Waiter, until_ns: u64, state: &ShardState, key: &[u8]) -> Vec<Arc<Waiter>> {
    let queue = state.watched.as_ref().and_then(|watched| watched.waiting(waiter.database, key)).into_iter().flatten();
    let are_due = queue.filter(|it| it.ticket == waiter.ticket || it.again_ns.load(Ordering::Relaxed) <= until_ns);
    are_due.cloned().collect()
}

/// The different keys that a client waits for.
fn keys_of<'a>(waiter: &Waiter, args: &Args<'a>) -> BTreeSet<&'a [u8]> {
    waiter.keys.clone().map(|index| args.get(index)).collect()
}
