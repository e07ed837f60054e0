//! Waiting for shards: in the order of their indexes, and never for a script that runs for too long without doing
//! something about it. Knows no command.

use crate::clock::monotonic_ns;
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::long_calls::WaitsFor;
use crate::meanwhile;
use crate::session::Session;
use crate::shards::{Held, ShardState};
use crate::worker::Worker;
use parking_lot::MutexGuard;
use std::time::Duration;
use tenon_ds::progress;

/// How long one look at a shard's lock waits before it is asked what else has happened.
pub(crate) const SLICE: Duration = Duration::from_millis(2);

/// How long a command waits for a shard that a long call may hold before it is put off.
pub(crate) const MOMENT: Duration = Duration::from_micros(200);

/// How often whoever wants several shards lets go of those that it has while it waits for another one: a snapshot's moment,
/// which is of all shards, else held up everybody for as long as one script ran. After that it keeps them, or scripts that
/// follow upon each other would never let it in.
const LETS_GO: u32 = 8;

/// What whoever waits does about a busy script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnBusy {
    /// The command is refused.
    Refuse,
    /// It waits on, and its worker serves the other clients meanwhile.
    Serve,
}

impl Engine {
    /// Locks one shard for a command that may be refused.
    #[inline]
    pub(crate) fn lock_or_busy(&self, index: usize) -> Result<MutexGuard<'_, ShardState>, CmdError> {
        match self.shards.try_lock(index) {
            Some(state) => Ok(state),
            None => self.wait_or_busy(index),
        }
    }

    #[cold]
    fn wait_or_busy(&self, index: usize) -> Result<MutexGuard<'_, ShardState>, CmdError> {
        loop {
            if let Some(state) = self.shards.try_lock_for(index, SLICE) {
                return Ok(state);
            }
            self.refuse_if_busy()?;
            meanwhile::lend();
        }
    }

    /// Locks one shard for a command of a client that may be refused, and may be put off while a long call holds the shard:
    /// it is run again then, from its start.
    #[inline]
    pub(crate) fn lock_or_later(
        &self,
        worker: &mut Worker,
        session: &Session,
        index: usize,
    ) -> Result<MutexGuard<'_, ShardState>, CmdError> {
        match self.shards.try_lock(index) {
            Some(state) => Ok(state),
            None => self.wait_or_later(worker, session, index),
        }
    }

    #[cold]
    fn wait_or_later(
        &self,
        worker: &mut Worker,
        session: &Session,
        index: usize,
    ) -> Result<MutexGuard<'_, ShardState>, CmdError> {
        let (mut waited, mut moment) = (Duration::ZERO, self.moment_for(index));
        loop {
            if let Some(state) = self.shards.try_lock_for(index, moment) {
                self.advance_old_clock(worker, monotonic_ns());
                return Ok(state);
            }
            self.refuse_if_busy()?;
            if self.puts_off(worker, session.client.info.key, WaitsFor::Shard(index)) {
                return Err(CmdError::Later);
            }
            moment = MOMENT;
            waited += MOMENT;
            if waited >= SLICE {
                meanwhile::lend();
            }
        }
    }

    /// Refuses a command while a script is busy.
    pub(crate) fn refuse_if_busy(&self) -> Result<(), CmdError> {
        match self.scripts.running.busy() {
            Some(kind) => Err(CmdError::Busy(kind)),
            None => Ok(()),
        }
    }

    /// Locks one shard; while a busy script holds it the worker serves its other clients. The caller holds no shard.
    #[inline]
    pub fn lock_serving(&self, worker: &mut Worker, index: usize) -> MutexGuard<'_, ShardState> {
        match self.shards.try_lock(index) {
            Some(state) => state,
            None => self.wait_serving(worker, index),
        }
    }

    #[cold]
    fn wait_serving(&self, worker: &mut Worker, index: usize) -> MutexGuard<'_, ShardState> {
        loop {
            if let Some(state) = self.shards.try_lock_for(index, SLICE) {
                self.advance_old_clock(worker, monotonic_ns());
                return state;
            }
            match self.scripts.running.busy() {
                Some(_) => meanwhile::serve(self, worker),
                None => _ = meanwhile::lend(),
            }
        }
    }

    /// Locks several shards, in the order of their indexes, and with them those that serving needs who waits in them: so
    /// whoever changes a key can serve at once, before anybody else sees the change.
    ///
    /// # Errors
    /// When a busy script holds one and the command is to be refused.
    pub(crate) fn lock_several(
        &self,
        worker: &mut Worker,
        indexes: Vec<usize>,
        on_busy: OnBusy,
    ) -> Result<Held<'_>, CmdError> {
        self.lock_in_order(worker, indexes, on_busy, LETS_GO)
    }

    /// Does that, and so many times lets go of what it holds rather than wait with it for the next one.
    fn lock_in_order(
        &self,
        worker: &mut Worker,
        mut indexes: Vec<usize>,
        on_busy: OnBusy,
        mut lets_go: u32,
    ) -> Result<Held<'_>, CmdError> {
        'anew: loop {
            put_in_order(&mut indexes, self.shards.count());
            let mut guards = Vec::with_capacity(indexes.len());
            for &index in &indexes {
                if let Some(guard) = self.shards.try_lock(index) {
                    guards.push(guard);
                    continue;
                }
                loop {
                    if let Some(guard) = self.shards.try_lock_for(index, SLICE) {
                        self.advance_old_clock(worker, monotonic_ns());
                        guards.push(guard);
                        break;
                    }
                    // Who holds it may do so for long.
                    meanwhile::lend();
                    let stray = &self.shards.stray;
                    let has = |shard| indexes[..guards.len()].binary_search(&shard).is_ok();
                    let makes_way_for = stray.current().filter(|_| stray.wanted().is_some_and(has));
                    let lets_others_in = !guards.is_empty() && lets_go > 0;
                    if makes_way_for.is_none() && self.scripts.running.busy().is_none() && !lets_others_in {
                        continue;
                    }
                    // What is held is let go before anything else: a script may wait for it.
                    guards.clear();
                    self.go_on_where_free();
                    self.wait_without_any(worker, on_busy, makes_way_for, lets_others_in.then_some(index))?;
                    lets_go -= u32::from(lets_others_in);
                    continue 'anew;
                }
            }
            match Held::new(indexes, guards).with_further() {
                Ok(held) => return Ok(held),
                Err(wanted) => indexes = wanted,
            }
        }
    }

    /// Becomes the stray script, holding no shard; waits for the end of the one that there is.
    ///
    /// # Errors
    /// When a script is busy meanwhile.
    pub(crate) fn begin_stray(&self, worker: &mut Worker) -> Result<(), CmdError> {
        self.go_on_where_free();
        while !self.shards.stray.try_begin() {
            meanwhile::lend();
            self.wait_without_any(worker, OnBusy::Refuse, self.shards.stray.current(), None)?;
        }
        self.advance_old_clock(worker, monotonic_ns());
        Ok(())
    }

    /// Waits, holding no shard, for the end of a stray script and until a shard is free, as far as they are named.
    fn wait_without_any(
        &self,
        worker: &mut Worker,
        on_busy: OnBusy,
        makes_way_for: Option<usize>,
        wanted: Option<usize>,
    ) -> Result<(), CmdError> {
        let stray = &self.shards.stray;
        loop {
            if self.scripts.running.busy().is_some() {
                match on_busy {
                    OnBusy::Refuse => self.refuse_if_busy()?,
                    OnBusy::Serve => meanwhile::serve(self, worker),
                }
            }
            if makes_way_for.is_some() && stray.current() == makes_way_for {
                stray.wait(SLICE);
                continue;
            }
            let Some(wanted) = wanted else { return Ok(()) };
            // Not kept: those before it in the order come first.
            if self.shards.try_lock_for(wanted, SLICE).is_some() {
                return Ok(());
            }
            meanwhile::lend();
        }
    }

    /// Locks every shard if each is to be had within a moment: for a tick, in which nobody serves the worker's clients.
    pub(crate) fn lock_everything_soon(&self, worker: &mut Worker) -> Option<Held<'_>> {
        self.lock_several_soon(worker, (0..self.shards.count()).collect())
    }

    /// Locks several shards likewise, and those that serving needs who waits in them.
    pub(crate) fn lock_several_soon(&self, worker: &mut Worker, mut indexes: Vec<usize>) -> Option<Held<'_>> {
        loop {
            put_in_order(&mut indexes, self.shards.count());
            let guards =
                indexes.iter().map(|&index| self.shards.try_lock_for(index, MOMENT)).collect::<Option<Vec<_>>>()?;
            self.advance_old_clock(worker, monotonic_ns());
            match Held::new(indexes, guards).with_further() {
                Ok(held) => return Some(held),
                Err(wanted) => indexes = wanted,
            }
        }
    }

    /// Locks every shard; while a busy script holds one the worker serves its other clients.
    pub(crate) fn lock_everything(&self, worker: &mut Worker) -> Held<'_> {
        let all = (0..self.shards.count()).collect();
        self.lock_several(worker, all, OnBusy::Serve).expect("who waits on is not refused")
    }
}

/// Sorts indexes of `count` shards, and leaves each once.
fn put_in_order(indexes: &mut Vec<usize>, count: usize) {
    if indexes.is_sorted_by(|before, behind| before < behind) {
        return;
    }
    if indexes.len() <= count {
        indexes.sort_unstable();
        indexes.dedup();
        return;
    }
    let mut is_wanted = vec![false; count];
    for index in indexes.drain(..) {
        progress::count(1);
        is_wanted[index] = true;
    }
    indexes.extend((0..count).filter(|index| is_wanted[*index]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Machine};
    use crate::stray::Stray;
    use std::time::Instant;

    fn until(is_so: &dyn Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < deadline, "it did not come to that");
            std::thread::yield_now();
        }
    }

    #[test]
    fn each_shard_is_locked_once_in_order() {
        for len in [0, 1, 7, 8, 9, 100] {
            let mut indexes: Vec<usize> = (0..len).map(|number| number * 5 % 7).collect();
            let mut expected = indexes.clone();
            expected.sort_unstable();
            expected.dedup();
            put_in_order(&mut indexes, 8);
            assert_eq!(indexes, expected, "{len}");
        }
    }

    /// A stray that has begun, and ends with this: also where the test fails, or who waits for it would do so for ever.
    struct Begun<'s>(&'s Stray);

    impl Drop for Begun<'_> {
        fn drop(&mut self) {
            self.0.end();
        }
    }

    #[test]
    fn who_waits_leaves_to_the_stray_what_it_wants_until_its_end() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let stray = &engine.shards.stray;
        let is_held = || engine.shards.try_lock(0).is_none();
        std::thread::scope(|scope| {
            assert!(stray.try_begin());
            let begun = Begun(stray);
            let of_stray = engine.shards.lock(engine.shards.count() - 1);
            let all = (0..engine.shards.count()).collect();
            // It keeps what it has while it waits.
            let engine = &engine;
            let waiting = scope.spawn(|| drop(engine.lock_in_order(&mut engine.worker(0), all, OnBusy::Serve, 0)));
            until(&is_held);
            stray.wants(Some(0));
            until(&|| !is_held());
            // However long the stray takes to wake.
            for _ in 0..50 {
                std::thread::sleep(Duration::from_millis(1));
                assert!(!is_held(), "it was taken again");
            }
            drop(begun);
            drop(of_stray);
            waiting.join().expect("it has had all");
        });
    }

    #[test]
    fn who_waits_for_one_shard_holds_up_nobody_in_the_others() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let last = engine.shards.count() - 1;
        std::thread::scope(|scope| {
            let of_script = engine.shards.lock(last);
            let waiting = scope.spawn(|| drop(engine.lock_everything(&mut engine.worker(0))));
            // Mostly it has come to the last one then.
            std::thread::sleep(20 * SLICE);
            for shard in 0..last {
                assert!(engine.shards.try_lock_for(shard, Duration::from_secs(60)).is_some(), "{shard} is held");
            }
            drop(of_script);
            waiting.join().expect("it has had all");
        });
    }
}
